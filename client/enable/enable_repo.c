/*
 * One repository, or a template of new repositories.
 *
 * Normal path: the work is done with the rights of the owner (owner.h), who
 * finds the repository again. The list and the shared hooks belong to others.
 * So the work asks this process for changes there, between its own changes.
 *
 * Failures: whatever happens to the work, the list names each repository in
 * which something was changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/enable_plan.h"
#include "client/enable/enable_report.h"
#include "client/enable/hook_link.h"
#include "client/enable/import.h"
#include "client/enable/registry.h"
#include "client/enable/shared_hooks.h"
#include "client/git/owner.h"
#include "client/hooks/gate_link.h"
#include "client/request/connect.h"
#include "client/request/probe.h"

/* One call of enable_repository() or enable_template(). */
struct enabling {
	const struct wishes *w; /* NULL to disable */
	const char *named;
	struct owned at;        /* NAMED */
	const struct stat *was; /* the common dir that was checked; or NULL */
	bool is_listed, is_template;
};

/* ---- outside of the repository ---- */

/* The first byte of a request. The rest is a path. */
enum request_for { LISTING = 'l', UNLISTING, HOOKS, NO_HOOKS, IMPORT };

/* A worker could have been tricked by the files that it read. */
static bool may_name(const struct enabling *e, const char *path)
{
	struct text why = { 0 };
	struct owned o;
	bool may = owner_is_here(&e->at.st) || !strcmp(path, e->named);

	if (!may && owner_find(&o, path, &why)) {
		may = !strcmp(path, o.path) && o.st.st_uid == e->at.st.st_uid;
		owned_done(&o);
	}
	text_done(&why);
	return may;
}

static int hear(void *arg, const char *data, size_t len)
{
	const struct enabling *e = arg;
	const char *path = data + 1;

	if (len < 2 || memchr(data, '\0', len) != data + len - 1 ||
	    !may_name(e, path))
		return false;
	switch ((enum request_for)data[0]) {
	case LISTING:
		registry_add(path, e->is_template);
		return true;
	case UNLISTING:
		registry_remove(path);
		return true;
	case HOOKS:
		return e->w && shared_hooks_acquire(e->w->hooks, e->w->self);
	case NO_HOOKS:
		return shared_hooks_release(path);
	case IMPORT:
		import_later(path);
		return true;
	}
	return false;
}

/* refd-group makes a repository under such a name, for which nobody asks the
 * daemon, and which the list would not find later. */
static bool is_aside(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash && has_prefix(slash, "/.refd-");
}

static bool request(enum request_for what, const char *path)
{
	char *packet = xasprintf("%c%s", (char)what, path);
	bool ok = worker_tell(packet, strlen(packet) + 1) == true;

	free(packet);
	return ok;
}

/* ---- enabling ---- */

/* After a power loss, recovery takes `reference` in core.fsync for a proof that
 * no block of a reftable is missing. So older tables are durable before the
 * setting is there. */
static bool sync_tables(const struct enable_plan *p)
{
	const char *key = enable_fsync[0][0];
	int err;

	if (!gitconfig_is_reftable(&p->own) ||
	    !block_has(&p->block, key, NULL) ||
	    block_has(&p->before, key, NULL))
		return true;
	err = durable_sync_fs(p->site.config);
	if (err)
		say_error("%s: can't sync the file system, so core.fsync is "
			  "not set: %s",
		    p->site.name, strerror(-err));
	return err == 0;
}

/* Notes in the configuration precede each change outside of the configuration:
 * after a kill, disable knows of the change. */
static bool write_notes(const struct enable_plan *p)
{
	if (p->before.is_active ||
	    !(p->makes_hook || block_has(&p->block, NOTE_USES, NULL)))
		return true;
	return site_write(&p->site, &p->before, &p->block, false);
}

/* If the configuration names a missing hook, git refuses every push. So the
 * hook comes first. */
static bool make(const struct enable_plan *p)
{
	if (block_has(&p->block, NOTE_HOOKS_MADE, NULL) &&
	    !hook_link_make_directory(p->site.hooks))
		return false;
	if (p->makes_hook &&
	    !hook_link_make(p->site.hooks, HOOK_PROC_RECEIVE, p->w->self))
		return false;
	return site_write(&p->site, &p->before, &p->block, true) &&
	    (!p->makes_gate ||
		hook_link_make(p->site.hooks, HOOK_GATE, p->w->self));
}

/* The order: older tables, notes, list, hook, settings, gate. */
static bool carry_out(const struct enable_plan *p)
{
	return (!p->changes || (sync_tables(p) && write_notes(p))) &&
	    (is_aside(p->site.name) || request(LISTING, p->site.name)) &&
	    (!block_has(&p->block, NOTE_USES, p->w->hooks) ||
		request(HOOKS, p->site.name)) &&
	    (!p->changes || make(p));
}

/* A daemon that is away may come, and until then git takes pushes. But a daemon
 * that refuses the repository refuses every push, too, so nothing is enabled
 * there. An enabled repository stays as it is: only a warning. */
static bool ask_daemon(const struct enable_plan *p)
{
	struct daemon_socket socket;
	struct text why = { 0 };
	enum probe probe;
	bool is_refused;

	connect_choose(&socket, p->w->socket, &p->all, p->gd);
	/* Pushes find the name in the repository. */
	if (p->w->socket)
		connect_guard(&socket, &p->all, p->gd);
	probe = probe_daemon(&socket, p->gd,
	    gitconfig_object_format(&p->all, p->gd), &why);
	/* A group refuses updates until it has the refs. */
	if (import_is_due(p->gd))
		probe = PROBE_OK;
	is_refused = probe == PROBE_REFUSED && !p->by_system && !p->before.nr;
	if (is_refused)
		say_error("%s: not enabled, because the daemon at %s does not "
			  "serve it and would refuse every push: %s",
		    p->site.name, socket.path, why.data);
	else if (probe != PROBE_OK && probe != PROBE_STATE)
		say_warning("%s: the daemon does not serve it now: %s; "
			    "\"refd doctor\" says what helps",
		    p->site.name, why.data ? why.data : "no answer");
	text_done(&why);
	free(socket.path);
	return !is_refused;
}

static bool enable_once(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	struct enable_plan p = { .w = w, .gd = gd };
	bool ok;

	site_init(&p.site, dir);
	ok = enable_plan_make(&p);
	if (ok && gd)
		enable_warn_weak(gd, &p.all, p.hooks);
	if (ok && gd && !is_aside(dir))
		ok = ask_daemon(&p);
	if (ok && p.by_system)
		enable_report("unchanged", dir,
		    "enabled already, by the system's configuration");
	else if (ok && !p.changes)
		enable_report("unchanged", dir, "enabled already");
	if (ok && !p.by_system)
		ok = carry_out(&p);
	enable_plan_done(&p);
	return ok;
}

/* The daemon of a group says so when it opens the repository, which can be at
 * the end of the first time. */
static bool enable(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	const bool knows_group = !gd || connect_is_in_group(gd);

	bool ok = enable_once(dir, gd, w) &&
	    (knows_group || !connect_is_in_group(gd) ||
		enable_once(dir, gd, w));

	/* The gate is there by now, so git adds no further ref. */
	return ok && (!gd || !import_is_due(gd) || request(IMPORT, dir));
}

/* ---- disabling ---- */

/* Git refuses every push if the configuration names a missing hook. A tool that
 * writes the file anew can leave refd's values there, without refd's mark. */
static bool names_no_hook(const struct site *site)
{
	struct gitconfig own = { 0 };
	bool is_read = site_config(site, &own), ok = is_read;
	size_t i;

	for (i = 0; ok && i < 2; i++)
		ok = !gitconfig_has(&own, "receive.procReceiveRefs",
		    enable_refs[i]);
	if (is_read && !ok)
		say_error(
		    "%s: the hook stays, because another program wrote "
		    "receive.procReceiveRefs into %s, and git would "
		    "refuse every push without the hook; run \"git config "
		    "--file %s --unset-all receive.procReceiveRefs "
		    "'^(adm!:)?refs$'\", then refd disable again",
		    site->name, site->config, site->config);
	gitconfig_done(&own);
	return ok;
}

/* TARGET is NULL if no note has it. Another program may have taken all notes
 * away, so the link itself tells, too. */
static bool remove_hook(const struct site *site, enum hook_name hook,
    const char *target, bool is_linked)
{
	if (!target && !is_linked)
		return true;
	return hook_link_remove(site->hooks, hook, target ? target : "");
}

/* The hooks go after the settings, which are off the disk by then. */
static bool undo_own(const struct site *site, const struct block *b)
{
	char *gate = xasprintf("%s/" GATE_LINK_NAME, site->hooks);
	const char *hook = block_get(b, NOTE_HOOK);
	bool is_linked = hook_link_is_refd(site->hooks);
	/* With --chain the hook there is the user's, and stays. */
	bool ok = (!b->is_active || site_write(site, b, b, false)) &&
	    ((!hook && !is_linked) || names_no_hook(site)) &&
	    remove_hook(site, HOOK_PROC_RECEIVE, hook, is_linked) &&
	    remove_hook(site, HOOK_GATE, block_get(b, NOTE_GATE),
		gate_link_is(gate));

	if (ok && block_has(b, NOTE_HOOKS_MADE, NULL) &&
	    rmdir(site->hooks) == 0)
		enable_report("removed", site->hooks, "removed");
	free(gate);
	return ok;
}

static bool undo(const struct site *site, const struct block *b)
{
	const struct block none = { 0 };

	return undo_own(site, b) &&
	    (!block_has(b, NOTE_USES, NULL) || request(NO_HOOKS, site->name)) &&
	    site_write(site, &none, &none, false);
}

static bool disable(const char *dir)
{
	struct block b = { 0 };
	struct site site;
	bool ok;

	site_init(&site, dir);
	site_unlock(&site);
	ok = site_read(&site, &b);
	if (ok && !b.nr && !b.is_active && !hook_link_is_refd(site.hooks))
		enable_report("unchanged", dir, "not enabled");
	else
		ok = ok && undo(&site, &b);
	if (ok)
		request(UNLISTING, dir);
	block_done(&b);
	site_done(&site);
	return ok;
}

/* ---- both ---- */

/* The owner of a listed repository may have put a link, or a file "commondir",
 * to another repository in its place. */
static bool is_in_place(const struct enabling *e, const char *found)
{
	if (!e->is_listed || !strcmp(e->named, found))
		return true;
	say_error("%s leads to %s now%s; name %s itself", e->named, found,
	    e->w ? "" : ", and is not listed any more", found);
	if (!e->w)
		request(UNLISTING, e->named);
	return false;
}

/* The owner may have put another repository in its place. */
static bool is_checked(const struct enabling *e, const struct gitdir *gd)
{
	if (!e->was || (gd->dev == e->was->st_dev && gd->ino == e->was->st_ino))
		return true;
	say_error("%s: another repository is there since the check, so it is "
		  "left alone; run the command again",
	    e->named);
	return false;
}

static bool do_there(const struct enabling *e, const char *dir,
    const struct gitdir *gd)
{
	return is_in_place(e, dir) && is_checked(e, gd) &&
	    (e->w ? enable(dir, gd, e->w) : disable(dir));
}

static int work(void *arg)
{
	const struct enabling *e = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok;

	if (e->is_template) {
		ok = do_there(e, e->at.path, NULL);
	} else {
		ok = owner_gitdir(&gd, &e->at, &why);
		if (!ok)
			say_error("%s", why.data);
		ok = ok && do_there(e, gd.common, &gd);
	}
	gitdir_done(&gd);
	text_done(&why);
	return ok ? 0 : 1;
}

/* The owner of the list may name any path. */
static bool may_follow(const struct enabling *e)
{
	if (!e->is_listed || registry_leads_to(e->at.st.st_uid))
		return true;
	say_error("%s belongs to user %u, who is not the owner of the list: "
		  "run \"refd %s %s%s\"",
	    e->named, (unsigned)e->at.st.st_uid, e->w ? "enable" : "disable",
	    e->is_template ? "--template " : "", e->named);
	return false;
}

static bool run(struct enabling *e)
{
	struct text why = { 0 };
	bool ok = owner_find(&e->at, e->named, &why) && may_follow(e) &&
	    owner_run(&e->at,
		(struct work){ .run = work,
		    .hear = hear,
		    .arg = e,
		    .always_forks = e->was != NULL },
		&why) == 0;

	if (why.len)
		say_error("%s", why.data);
	owned_done(&e->at);
	text_done(&why);
	return ok;
}

bool enable_repository(const char *dir, bool is_listed, const struct wishes *w)
{
	return run(
	    &(struct enabling){ .w = w, .named = dir, .is_listed = is_listed });
}

bool enable_checked(const char *dir, const struct stat *was,
    const struct wishes *w)
{
	return run(&(struct enabling){ .w = w, .named = dir, .was = was });
}

bool enable_template(const char *dir, bool is_listed, const struct wishes *w)
{
	return run(&(struct enabling){ .w = w,
	    .named = dir,
	    .is_listed = is_listed,
	    .is_template = true });
}
