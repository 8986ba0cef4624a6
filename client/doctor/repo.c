/*
 * One repository. The work in the repository has the rights of the owner, so
 * that no link in the repository leads to files of others. The work tells this
 * process its findings, and what only this process may look at.
 *
 * Failures: if the work of an owner ends early, the findings so far stay, and
 * the end is a finding too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "client/git/owner.h"
#include "client/hooks/gate_link.h"
#include "client/request/connect.h"
#include "client/request/probe.h"
#include "client/request/unserved.h"
#include "proto/lib/interrupt.h"

/* Git would wait for a FIFO in the place of the configuration. */
static bool load_config(struct doctor_repo *p)
{
	if (site_look(&p->site) && gitconfig_read(&p->all, p->gd->path) == 0)
		return true;
	doctor_found_in(p, FOUND_CONFIG_BROKEN,
	    "git cannot read its configuration");
	return false;
}

/* ---- the daemon's answer ---- */

static char *user_name(uid_t uid)
{
	return xasprintf("user %u", (unsigned)uid);
}

static void check_probe(struct doctor_repo *p, enum probe probe,
    const char *socket, const char *why)
{
	struct findings *f = &p->d->f;
	char *who = user_name(geteuid());

	switch (probe) {
	case PROBE_OK:
	case PROBE_STATE:
		break;
	case PROBE_AWAY:
		if (!findings_have(f, FOUND_DAEMON_AWAY, "", socket))
			doctor_found(p->d, FOUND_DAEMON_AWAY, "", socket,
			    "%s, where pushes into %s look for it", why,
			    p->name);
		break;
	case PROBE_CLOSED:
		doctor_found_in(p, FOUND_SOCKET_CLOSED,
		    "its owner, %s, cannot open the socket: %s", who, why);
		break;
	case PROBE_DENIED:
		doctor_found_in(p, FOUND_USER_DENIED,
		    "the daemon denies its owner, %s: %s", who, why);
		break;
	case PROBE_PROTOCOL:
		if (!findings_have(f, FOUND_DAEMON_PROTOCOL, "", socket))
			doctor_found(p->d, FOUND_DAEMON_PROTOCOL, "", socket,
			    "%s", why);
		break;
	case PROBE_REFUSED:
		doctor_found_in(p, FOUND_REPO_REFUSED, "the daemon says: %s",
		    why);
		break;
	}
	free(who);
}

static void check_service(struct doctor_repo *p)
{
	struct daemon_socket socket;
	struct text why = { 0 };
	enum probe probe;

	connect_choose(&socket, p->d->socket_option, &p->all, p->gd);
	doctor_tell(TOLD_SERVED, "");
	if (p->d->daemon || strcmp(socket.path, p->d->socket)) {
		probe = probe_daemon(&socket, p->gd,
		    gitconfig_object_format(&p->all, p->gd), &why);
		check_probe(p, probe, socket.path, why.data ? why.data : "");
		if (probe == PROBE_OK)
			doctor_check_foreign(p, &socket);
	}
	text_done(&why);
	free(socket.path);
}

/* Other nodes never get what git writes, so the file keeps git from writing.
 * With daemons of both kinds, the repository can be of either, so there is no
 * finding. */
static void check_group_file(struct doctor_repo *p)
{
	const bool is_marked = connect_is_in_group(p->gd);

	if (is_marked && p->d->nr_single && !p->d->nr_nodes)
		doctor_found(p->d, FOUND_GROUP_LEFT, p->name, "refd/group",
		    "the file keeps git from writing, as in a group of nodes, "
		    "and the daemon is in no group");
	if (!is_marked && p->is_enabled && p->d->nr_nodes && !p->d->nr_single)
		doctor_found_in(p, FOUND_GROUP_UNMARKED,
		    "this is a node of a group, and there is no file "
		    "refd/group: while the daemon is away, git takes pushes, "
		    "and no other node gets them");
	if (is_marked && p->d->nr_nodes && !p->d->nr_single &&
	    !gate_link_is_run(p->hooks, p->name))
		doctor_found_in(p, FOUND_GROUP_UNGUARDED,
		    "the hook reference-transaction is not refd's: git may "
		    "write, and no other node gets what git writes");
}

/* ---- all checks ---- */

/* Git writes there, so this is no error, but the administrator may expect
 * refd. */
static bool is_of_served_kind(struct doctor_repo *p)
{
	const char *why = unserved_format(&p->all);

	if (why)
		doctor_found_in(p, FOUND_FORMAT, "refd does not serve it: %s",
		    why);
	return !why;
}

static bool is_below_root(const struct doctor_repo *p)
{
	size_t i;

	for (i = 0; i < p->d->nr_roots; i++)
		if (has_prefix(p->name, p->d->roots[i]))
			return true;
	return false;
}

static void check_files(struct doctor_repo *p)
{
	doctor_check_hooks(p);
	doctor_check_patterns(p);
	doctor_check_settings(p);
	doctor_check_owners(p);
	doctor_check_links(p);
	doctor_check_worktrees(p);
	doctor_check_alternates(p);
	doctor_check_id(p);
}

static void examine(struct doctor_repo *p)
{
	bool is_served;

	site_init(&p->site, p->name);
	is_served = load_config(p) && is_of_served_kind(p);
	p->is_enabled = p->site.before.nr || is_below_root(p);
	p->hooks = gitconfig_hooks_path(&p->all, p->gd);
	p->hooks_are_set = p->hooks != NULL;
	if (!p->hooks)
		p->hooks = xstrdup(p->site.hooks);
	if (is_served)
		check_files(p);
	if (is_served && p->is_enabled)
		check_service(p);
	/* The daemon has opened the repository, which can change the file, so
	 * this check comes last. */
	if (is_served)
		check_group_file(p);
	free(p->hooks);
	gitconfig_done(&p->all);
	site_done(&p->site);
}

/* ---- the work of the owner ---- */

struct doctor_visit {
	struct doctor *d;
	const char *named;
	enum doctor_source from;
	struct owned at, repo; /* NAMED, and the common directory found there */
};

static void check_found(const struct doctor_visit *v, const struct gitdir *gd)
{
	struct doctor_repo p = { .d = v->d, .gd = gd, .name = gd->common };

	if (v->from == FROM_ROOT && strcmp(gd->path, gd->common) != 0)
		return;
	if (doctor_tell(TOLD_FOUND, gd->common) == true) {
		p.as_owner = owner_is_here(&v->at.st);
		examine(&p);
	}
}

static int work(void *arg)
{
	struct doctor_visit *v = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };

	v->d->f.tell = worker_tell;
	if (owner_gitdir(&gd, &v->at, &why))
		check_found(v, &gd);
	else if (v->from != FROM_ROOT)
		doctor_found(v->d, FOUND_NO_REPOSITORY, v->named, "", "%s",
		    why.data);
	v->d->f.tell = NULL;
	gitdir_done(&gd);
	text_done(&why);
	return 0;
}

/* ---- what the work tells ---- */

static bool is_known(const struct doctor *d, const char *path)
{
	size_t i;

	for (i = 0; i < d->nr_known; i++)
		if (!strcmp(d->known[i].path, path))
			return true;
	return false;
}

static void remember(struct doctor *d, const struct owned *repo)
{
	d->known = xrealloc(d->known, (d->nr_known + 1) * sizeof(*d->known));
	d->known[d->nr_known++] =
	    (struct known_repo){ .path = xstrdup(repo->path), .st = repo->st };
	d->f.done = d->nr_known;
	findings_progress(&d->f, repo->path, "");
}

/* A worker could have been tricked by the files that it read, so PATH is looked
 * at again. */
static bool take_repository(struct doctor_visit *v, const char *path)
{
	struct text why = { 0 };
	bool is = !v->repo.path && owner_find(&v->repo, path, &why) &&
	    !strcmp(v->repo.path, path) &&
	    (!v->at.is_for_root || v->repo.st.st_uid == v->at.st.st_uid);

	text_done(&why);
	if (!is || (v->from == FROM_ROOT && is_known(v->d, path)))
		return false;
	remember(v->d, &v->repo);
	doctor_check_disk(v->d, path, "repositories are");
	return true;
}

/* Compares with the daemon's view of the path, if /proc permits. */
static void check_through_daemon(const struct doctor_visit *v)
{
	const char *repo = v->repo.path;
	struct doctor *d = v->d;
	char *path;
	struct stat st;

	if (!d->daemon)
		return;
	path = xasprintf("/proc/%d/root", (int)d->daemon);
	if (stat(path, &st) == 0) {
		free(path);
		path = xasprintf("/proc/%d/root%s", (int)d->daemon, repo);
		if (stat(path, &st) < 0)
			doctor_found(d, FOUND_DAEMON_SEES, repo, "",
			    "the daemon does not see it: %s", strerror(errno));
		else if (st.st_dev != v->repo.st.st_dev ||
		    st.st_ino != v->repo.st.st_ino)
			doctor_found(d, FOUND_DAEMON_SEES, repo, "",
			    "the daemon sees another directory there");
	}
	free(path);
}

/* Once for the machine, at the first such repository. */
static void check_distance(const struct doctor_visit *v)
{
	const char *state = v->d->state_dir;
	struct stat st;

	if (state && stat(state, &st) == 0 && st.st_dev != v->repo.st.st_dev &&
	    !findings_have(&v->d->f, FOUND_STATE_ELSEWHERE, "", state))
		doctor_found(v->d, FOUND_STATE_ELSEWHERE, "", state,
		    "the journal is on a different file system than %s: "
		    "snapshots of both have different times",
		    v->repo.path);
}

static int take(struct doctor_visit *v, enum doctor_told what, const char *text)
{
	struct doctor *d = v->d;

	switch (what) {
	case TOLD_FOUND:
		return take_repository(v, text);
	case TOLD_UUID:
		if (v->repo.path && !d->known[d->nr_known - 1].uuid)
			d->known[d->nr_known - 1].uuid = xstrdup(text);
		return true;
	case TOLD_SERVED:
		if (v->repo.path) {
			check_distance(v);
			check_through_daemon(v);
		}
		return true;
	}
	return false;
}

static int hear(void *arg, const char *data, size_t len)
{
	struct doctor_visit *v = arg;
	struct findings *f = &v->d->f;
	const char *repo = v->repo.path ? v->repo.path : v->named;
	int (*const tell)(const void *, size_t) = f->tell;
	int answer = false;

	/* Here, if this process has the rights of the owner. */
	f->tell = NULL;
	if (!findings_hear(f, repo, data, len) && len > 1 &&
	    data[len - 1] == '\0')
		answer = take(v, (enum doctor_told)data[0], data + 1);
	f->tell = tell;
	return answer;
}

/* ---- all ---- */

/* The owner of the list may name any path, so repositories of others are left
 * alone. */
static bool may_mend(const struct doctor_visit *v)
{
	if (!v->d->mends || v->from != FROM_LIST ||
	    registry_leads_to(v->at.st.st_uid))
		return true;
	doctor_found(v->d, FOUND_NOT_CHECKED, v->named, "",
	    "it belongs to user %u, who is not the owner of the list, so "
	    "--all --fix leaves it alone",
	    (unsigned)v->at.st.st_uid);
	return false;
}

void doctor_check_repository(struct doctor *d, const char *path,
    enum doctor_source from)
{
	struct doctor_visit v = { .d = d, .named = path, .from = from };
	struct text why = { 0 };
	int r = 0;

	if (interrupt_came())
		return;
	if (!owner_find(&v.at, path, &why)) {
		doctor_found(d, FOUND_NO_REPOSITORY, path, "", "%s", why.data);
	} else if (may_mend(&v)) {
		r = owner_run(&v.at,
		    (struct work){ .run = work, .hear = hear, .arg = &v },
		    &why);
		if (r < 0 && !interrupt_came())
			doctor_found(d, FOUND_NOT_CHECKED, path, "", "%s",
			    why.data);
	}
	d->nr_checked += v.repo.path && r == 0 && !interrupt_came();
	owned_done(&v.at);
	owned_done(&v.repo);
	text_done(&why);
}
