/* One repository, or a template of new repositories. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/enable_plan.h"
#include "client/enable/enable_report.h"
#include "client/enable/gate_hook.h"
#include "client/enable/import.h"
#include "client/enable/owner.h"
#include "client/enable/proc_receive.h"
#include "client/enable/registry.h"
#include "client/enable/shared_hooks.h"
#include "client/request/probe.h"
#include "client/request/connect.h"

static bool find_owner(const char *dir, struct stat *st)
{
	struct text why = { 0 };
	bool ok = owner_stat(dir, st, &why);

	if (!ok)
		say_error("%s", why.data);
	text_done(&why);
	return ok;
}

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
	    !proc_receive_make_directory(p->site.hooks))
		return false;
	if (p->makes_hook && !proc_receive_link(p->site.hooks, p->w->self))
		return false;
	return site_write(&p->site, &p->before, &p->block, true) &&
	    (!p->makes_gate || gate_hook_make(p->site.hooks, p->w->self));
}

/* The order: older tables, notes, the list, the hook, the settings, the gate.
 * Files of the repository are written as its owner. */
static bool carry_out(struct enable_plan *p, const struct stat *st)
{
	bool ok;

	owner_enter(st);
	ok = !p->changes || (sync_tables(p) && write_notes(p));
	owner_leave();
	if (!ok)
		return false;
	registry_add(p->site.name, !p->gd);
	if (block_has(&p->block, NOTE_USES, p->w->hooks) &&
	    !shared_hooks_acquire(p->w->hooks, p->w->self))
		return false;
	owner_enter(st);
	ok = !p->changes || make(p);
	owner_leave();
	return ok;
}

/* Only a warning: the daemon may be started later, or get a further root. */
static void ask_daemon(const struct enable_plan *p, const struct stat *st)
{
	char *socket = connect_socket(p->w->socket, &p->all);
	struct text why = { 0 };
	enum probe probe = probe_as(st->st_uid, socket, p->gd,
	    gitconfig_object_format(&p->all, p->gd), &why);

	if (probe != PROBE_OK && probe != PROBE_STATE && !import_is_due(p->gd))
		say_warning("%s: the daemon does not serve it now: %s; "
			    "\"refd doctor\" says what helps",
		    p->site.name, why.data ? why.data : "no answer");
	text_done(&why);
	free(socket);
}

static bool enable_once(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	struct enable_plan p = { .w = w, .gd = gd };
	struct stat st;
	bool ok;

	if (!find_owner(dir, &st))
		return false;
	site_init(&p.site, dir);
	owner_enter(&st);
	ok = enable_plan_make(&p);
	if (ok && gd)
		enable_warn_weak(gd, &p.all, p.hooks);
	owner_leave();
	if (ok && p.by_system)
		enable_report("unchanged", dir,
		    "enabled already, by the system's configuration");
	else if (ok && !p.changes)
		enable_report("unchanged", dir, "enabled already");
	if (ok && !p.by_system)
		ok = carry_out(&p, &st);
	if (ok && gd)
		ask_daemon(&p, &st);
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
	if (ok && gd && import_is_due(gd))
		import_later(dir);
	return ok;
}

/* ---- disabling ---- */

/* The hooks go after the settings, which are off the disk by then. */
static bool undo_own(const struct site *site, const struct block *b)
{
	const char *hook = block_get(b, NOTE_HOOK);
	bool ok = !b->is_active || site_write(site, b, b, false);

	if (ok && hook)
		ok = proc_receive_unlink(site->hooks, hook);
	if (ok && block_has(b, NOTE_GATE, NULL))
		ok = gate_hook_remove(site->hooks);
	if (ok && block_has(b, NOTE_HOOKS_MADE, NULL) &&
	    rmdir(site->hooks) == 0)
		enable_report("removed", site->hooks, "removed");
	return ok;
}

static bool undo(const struct site *site, const struct block *b,
    const struct stat *st)
{
	const char *uses = block_get(b, NOTE_USES);
	const struct block none = { 0 };
	bool ok;

	owner_enter(st);
	ok = undo_own(site, b);
	owner_leave();
	if (ok && uses)
		ok = shared_hooks_release(uses, site->name);
	owner_enter(st);
	ok = ok && site_write(site, &none, &none, false);
	owner_leave();
	return ok;
}

static bool disable(const char *dir)
{
	struct block b = { 0 };
	struct site site;
	struct stat st;
	bool ok;

	if (!find_owner(dir, &st))
		return false;
	site_init(&site, dir);
	owner_enter(&st);
	site_unlock(&site);
	ok = enable_check_former(&site, xasprintf("%s/refd/enabled", dir)) &&
	    site_read(&site, &b);
	owner_leave();
	if (ok && !b.nr && !b.is_active)
		enable_report("unchanged", dir, "not enabled");
	else
		ok = ok && undo(&site, &b, &st);
	if (ok)
		registry_remove(dir);
	block_done(&b);
	site_done(&site);
	return ok;
}

/* ---- both ---- */

/* The owner of a listed repository may have put a link, or a file "commondir",
 * to a repository of another user in its place. */
static bool is_in_place(const char *listed, const char *found,
    const struct wishes *w)
{
	if (!strcmp(listed, found))
		return true;
	say_error("%s leads to %s now%s; name %s itself", listed, found,
	    w ? "" : ", and is not listed any more", found);
	if (!w)
		registry_remove(listed);
	return false;
}

/* A file "commondir" or ".git" of one user must not make root change the
 * repository of another user. */
static bool is_of_one_owner(const char *dir, const struct gitdir *gd)
{
	struct stat named, found;

	if (geteuid() != 0 ||
	    (stat(dir, &named) == 0 && stat(gd->common, &found) == 0 &&
		(named.st_uid == 0 || named.st_uid == found.st_uid)))
		return true;
	say_error("%s leads to %s, which belongs to another user; name %s "
		  "itself",
	    dir, gd->common, gd->common);
	return false;
}

bool enable_repository(const char *dir, bool is_listed, const struct wishes *w)
{
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok = gitdir_locate(&gd, dir, &why);

	if (!ok)
		say_error("%s", why.data);
	else if ((is_listed && !is_in_place(dir, gd.common, w)) ||
	    !is_of_one_owner(dir, &gd))
		ok = false;
	else
		ok = w ? enable(gd.common, &gd, w) : disable(gd.common);
	gitdir_done(&gd);
	text_done(&why);
	return ok;
}

bool enable_template(const char *dir, bool is_listed, const struct wishes *w)
{
	char *path = realpath(dir, NULL);
	bool ok = false;

	if (!path)
		say_error("%s: %s", dir, strerror(errno));
	else if (!is_listed || is_in_place(dir, path, w))
		ok = w ? enable(path, NULL, w) : disable(path);
	free(path);
	return ok;
}
