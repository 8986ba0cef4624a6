/*
 * One repository. Root checks with the rights of the owner, so that no link in
 * the repository leads to files of others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/owner.h"
#include "client/request/probe.h"
#include "client/request/connect.h"
#include "client/request/unserved.h"
#include "proto/lib/interrupt.h"

static bool load_config(struct doctor_repo *p)
{
	if (site_read(&p->site, &p->record) &&
	    gitconfig_read(&p->all, p->gd->path) == 0)
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
	char *who = user_name(p->owner.st_uid);

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

/* Compares with the daemon's view of the path, if /proc permits. */
static void check_through_daemon(struct doctor_repo *p)
{
	char *path;
	struct stat st;

	if (!p->d->daemon)
		return;
	path = xasprintf("/proc/%d/root", (int)p->d->daemon);
	if (stat(path, &st) == 0) {
		free(path);
		path = xasprintf("/proc/%d/root%s", (int)p->d->daemon, p->name);
		if (stat(path, &st) < 0)
			doctor_found_in(p, FOUND_DAEMON_SEES,
			    "the daemon does not see it: %s", strerror(errno));
		else if (st.st_dev != p->gd->dev || st.st_ino != p->gd->ino)
			doctor_found_in(p, FOUND_DAEMON_SEES,
			    "the daemon sees another directory there");
	}
	free(path);
}

/* Once for the machine, at the first such repository. */
static void check_distance(struct doctor_repo *p)
{
	const char *state = p->d->state_dir;
	struct stat st;

	if (state && stat(state, &st) == 0 && st.st_dev != p->gd->dev &&
	    !findings_have(&p->d->f, FOUND_STATE_ELSEWHERE, "", state))
		doctor_found(p->d, FOUND_STATE_ELSEWHERE, "", state,
		    "the journal is on a different file system than %s: "
		    "snapshots of both have different times",
		    p->name);
}

static void check_service(struct doctor_repo *p)
{
	char *socket = connect_socket(p->d->socket_option, &p->all);
	struct text why = { 0 };
	enum probe probe;

	check_distance(p);
	check_through_daemon(p);
	if (p->d->daemon || strcmp(socket, p->d->socket)) {
		probe = probe_as(p->owner.st_uid, socket, p->gd,
		    gitconfig_object_format(&p->all, p->gd), &why);
		check_probe(p, probe, socket, why.data ? why.data : "");
		if (probe == PROBE_OK)
			doctor_check_foreign(p, socket);
	}
	text_done(&why);
	free(socket);
}

/* Other nodes never get what git writes. The file keeps git from writing. With
 * daemons of both kinds, the repository can be of either. */
static void check_group_file(struct doctor_repo *p)
{
	bool is_marked;

	owner_enter(&p->owner);
	is_marked = connect_is_in_group(p->gd);
	owner_leave();
	if (is_marked && p->d->nr_single && !p->d->nr_nodes)
		doctor_found(p->d, FOUND_GROUP_LEFT, p->name, "refd/group",
		    "the file keeps git from writing, as in a group of nodes, "
		    "and the daemon is in no group");
	if (!is_marked && p->is_enabled && p->d->nr_nodes && !p->d->nr_single)
		doctor_found_in(p, FOUND_GROUP_UNMARKED,
		    "this is a node of a group, and there is no file "
		    "refd/group: while the daemon is away, git takes pushes, "
		    "and no other node gets them");
}

/* ---- all checks ---- */

/* Not an error: git writes there. The administrator may expect refd. */
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

static void check_as_owner(struct doctor_repo *p)
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

static void remember(struct doctor *d, const char *path)
{
	d->known = xrealloc(d->known, (d->nr_known + 1) * sizeof(*d->known));
	d->known[d->nr_known].uuid = NULL;
	d->known[d->nr_known++].path = xstrdup(path);
	d->f.done = d->nr_known;
	findings_progress(&d->f, path, "");
}

static void examine(struct doctor_repo *p)
{
	bool is_served;

	owner_enter(&p->owner);
	site_init(&p->site, p->name);
	is_served = load_config(p) && is_of_served_kind(p);
	p->is_enabled = p->record.nr || is_below_root(p);
	p->hooks = gitconfig_hooks_path(&p->all, p->gd);
	p->hooks_are_set = p->hooks != NULL;
	if (!p->hooks)
		p->hooks = xstrdup(p->site.hooks);
	if (is_served)
		check_as_owner(p);
	owner_leave();
	doctor_check_disk(p->d, p->name, "repositories are");
	doctor_check_locks(p);
	if (is_served && p->is_enabled)
		check_service(p);
	/* The daemon has opened the repository, which can change the file. */
	if (is_served)
		check_group_file(p);
}

void doctor_check_repository(struct doctor *d, const char *path)
{
	struct gitdir gd = { 0 };
	struct doctor_repo p = { .d = d, .gd = &gd };
	struct text why = { 0 };

	if (interrupt_came())
		return;
	if (!gitdir_locate(&gd, path, &why) ||
	    !owner_stat(gd.common, &p.owner, &why)) {
		doctor_found(d, FOUND_NO_REPOSITORY, path, "", "%s", why.data);
	} else {
		p.name = gd.common;
		remember(d, p.name);
		p.as_owner = owner_may_be(&p.owner);
		examine(&p);
		d->nr_checked += !interrupt_came();
	}
	free(p.hooks);
	gitconfig_done(&p.all);
	block_done(&p.record);
	site_done(&p.site);
	gitdir_done(&gd);
	text_done(&why);
}
