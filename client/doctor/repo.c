/*
 * One repository. It is looked at with its owner's rights, where this is root:
 * nothing in it leads further than its owner could go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/owner.h"
#include "client/request/probe.h"
#include "client/request/connect.h"
#include "client/request/unserved.h"

static bool load_config(struct patient *p)
{
	char *dir = xasprintf("--git-dir=%s", p->gd->path);
	const char *list[] = { "git", dir, "config", "-z", "--list", NULL };
	bool ok = child_capture(list, &p->all.list) == 0;

	if (!ok)
		found(&p->d->f, FOUND_CONFIG_BROKEN, p->name,
		    "git cannot read its configuration");
	free(dir);
	return ok;
}

/* A relative one is found from where git runs hooks. */
static char *find_hooks(struct patient *p)
{
	char *dir = xasprintf("--git-dir=%s", p->gd->path), *path;
	const char *get[] = { "git", dir, "config", "--type=path", "-z",
		"--get", "core.hooksPath", NULL };
	const char *set = gitconfig_get(&p->all, "core.hookspath");
	struct text t = { 0 };

	p->hooks_are_set = set && *set;
	if (p->hooks_are_set && set[0] == '~' && child_capture(get, &t) == 0 &&
	    t.len)
		set = t.data;
	if (!p->hooks_are_set)
		path = xstrdup(p->site.hooks);
	else if (set[0] == '/')
		path = xstrdup(set);
	else
		path = xasprintf("%s/%s", p->gd->path, set);
	text_done(&t);
	free(dir);
	return path;
}

/* ---- what the daemon makes of it ---- */

static char *user_name(uid_t uid)
{
	return xasprintf("user %u", (unsigned)uid);
}

static void tell_probe(struct patient *p, enum probe probe, const char *socket,
    const char *why)
{
	struct findings *f = &p->d->f;
	char *who = user_name(p->owner.st_uid);

	switch (probe) {
	case PROBE_OK:
	case PROBE_STATE:
		break;
	case PROBE_AWAY:
		if (!findings_have(f, FOUND_DAEMON_AWAY, socket))
			found(f, FOUND_DAEMON_AWAY, socket,
			    "%s, where pushes into %s look for it", why,
			    p->name);
		break;
	case PROBE_CLOSED:
		found(f, FOUND_SOCKET_CLOSED, p->name,
		    "its owner, %s, cannot open the socket: %s", who, why);
		break;
	case PROBE_DENIED:
		found(f, FOUND_USER_DENIED, p->name,
		    "the daemon denies its owner, %s: %s", who, why);
		break;
	case PROBE_PROTOCOL:
		if (!findings_have(f, FOUND_DAEMON_PROTOCOL, socket))
			found(f, FOUND_DAEMON_PROTOCOL, socket, "%s", why);
		break;
	case PROBE_REFUSED:
		found(f, FOUND_REPO_REFUSED, p->name, "the daemon says: %s",
		    why);
		break;
	}
	free(who);
}

/* The daemon's view of the same path, where this may look at it. */
static void look_through_daemon(struct patient *p)
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
			found(&p->d->f, FOUND_DAEMON_SEES, p->name,
			    "the daemon does not see it: %s", strerror(errno));
		else if (st.st_dev != p->gd->dev || st.st_ino != p->gd->ino)
			found(&p->d->f, FOUND_DAEMON_SEES, p->name,
			    "the daemon sees another directory there");
	}
	free(path);
}

/* Said once: it is of the machine, not of the repository. */
static void look_at_distance(struct patient *p)
{
	const char *state = p->d->state_dir;
	struct stat st;

	if (state && stat(state, &st) == 0 && st.st_dev != p->gd->dev &&
	    !findings_have(&p->d->f, FOUND_STATE_ELSEWHERE, state))
		found(&p->d->f, FOUND_STATE_ELSEWHERE, state,
		    "the journal is on another file system than %s: a snapshot "
		    "of one does not go with the other",
		    p->name);
}

static void look_at_service(struct patient *p)
{
	char *socket = connect_socket(p->d->socket_option, &p->all);
	struct text why = { 0 };
	enum probe probe;

	look_at_distance(p);
	look_through_daemon(p);
	if (p->d->daemon || strcmp(socket, p->d->socket)) {
		probe = probe_as(p->owner.st_uid, socket, p->gd, &why);
		tell_probe(p, probe, socket, why.data ? why.data : "");
	}
	text_done(&why);
	free(socket);
}

/* ---- all of it ---- */

/* Git writes there, and nothing is wrong. But the administrator wanted refd. */
static bool is_of_served_kind(struct patient *p)
{
	const char *why = unserved_format(&p->all);

	if (why)
		found(&p->d->f, FOUND_FORMAT, p->name,
		    "refd does not serve it: %s", why);
	return !why;
}

static bool is_below_root(const struct patient *p)
{
	size_t i;

	for (i = 0; i < p->d->nr_roots; i++)
		if (has_prefix(p->name, p->d->roots[i]))
			return true;
	return false;
}

static void look_as_owner(struct patient *p)
{
	look_at_hooks(p);
	look_at_patterns(p);
	look_at_settings(p);
	look_at_owners(p);
	look_at_links(p);
	look_at_worktrees(p);
	look_at_alternates(p);
	look_at_id(p);
}

static void remember(struct doctor *d, const char *path)
{
	d->known = xrealloc(d->known, (d->nr_known + 1) * sizeof(*d->known));
	d->known[d->nr_known].uuid = NULL;
	d->known[d->nr_known++].path = xstrdup(path);
}

static void examine(struct patient *p)
{
	bool is_served;

	owner_enter(&p->owner);
	site_init(&p->site, p->name);
	is_served = load_config(p) && is_of_served_kind(p);
	site_read(&p->site, &p->record);
	p->is_enabled = p->record.nr || is_below_root(p);
	p->hooks = find_hooks(p);
	if (is_served)
		look_as_owner(p);
	owner_leave();
	look_at_disk(p->d, p->name, "repositories are");
	look_at_locks(p);
	if (is_served && p->is_enabled)
		look_at_service(p);
}

void look_at_repository(struct doctor *d, const char *path)
{
	struct gitdir gd = { 0 };
	struct patient p = { .d = d, .gd = &gd };
	struct text why = { 0 };

	if (!gitdir_at(&gd, path, &why) ||
	    !owner_stat(gd.common, &p.owner, &why)) {
		found(&d->f, FOUND_NO_REPOSITORY, path, "%s", why.data);
	} else {
		p.name = gd.common;
		remember(d, p.name);
		p.as_owner = owner_may_be(&p.owner);
		examine(&p);
	}
	free(p.hooks);
	gitconfig_done(&p.all);
	block_done(&p.record);
	site_done(&p.site);
	gitdir_done(&gd);
	text_done(&why);
}
