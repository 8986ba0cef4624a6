/* One repository, or a template that new ones are made from. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/enable/enable_plan.h"
#include "client/enable/owner.h"
#include "client/enable/registry.h"
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

/* Written down, listed, then done; each as whom it belongs to. */
static bool carry_out(struct plan *p, const struct stat *st)
{
	bool is_first = !p->before.nr, ok = true;

	owner_enter(st);
	if (p->todo.nr) {
		enabled_remember(&p->before, &p->todo);
		ok = enabled_write(&p->before, &p->site);
		if (ok)
			exact_keep(&p->site, is_first);
	}
	owner_leave();
	if (!ok)
		return false;
	registry_add(p->site.name, !p->gd);
	if (enabled_find(&p->before, STEP_USES, NULL, p->w->hooks) &&
	    !hooks_acquire(p->w))
		return false;
	owner_enter(st);
	if (p->todo.nr) {
		ok = enabled_carry_out(&p->todo, &p->site);
		exact_seal(&p->site);
	}
	owner_leave();
	return ok;
}

/* A warning only: the daemon may be started, or get another root, later. */
static void ask_daemon(const struct plan *p, const struct stat *st)
{
	char *socket = connect_socket(p->w->socket, &p->all);
	struct text why = { 0 };
	enum probe probe = probe_as(st->st_uid, socket, p->gd, &why);

	if (probe != PROBE_OK && probe != PROBE_STATE)
		say_warning("%s: the daemon does not serve it now: %s; "
			    "\"refd doctor\" says what helps",
		    p->site.name, why.data ? why.data : "no answer");
	text_done(&why);
	free(socket);
}

static bool enable(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	struct plan p = { .w = w, .gd = gd };
	struct stat st;
	bool ok;

	if (!find_owner(dir, &st))
		return false;
	site_init(&p.site, dir);
	owner_enter(&st);
	ok = plan_make(&p);
	if (ok && gd)
		warn_weak(gd, &p.all, p.hooks);
	owner_leave();
	if (ok && p.by_system)
		printf("%s: enabled already, by the system's configuration\n",
		    dir);
	else if (ok && !p.todo.nr)
		printf("%s: enabled already\n", dir);
	if (ok && !p.by_system)
		ok = carry_out(&p, &st);
	if (ok && gd)
		ask_daemon(&p, &st);
	plan_done(&p);
	return ok;
}

bool enable_repository(const char *dir, const struct wishes *w)
{
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok = gitdir_at(&gd, dir, &why);

	if (ok)
		ok = enable(gd.common, &gd, w);
	else
		say_error("%s", why.data);
	gitdir_done(&gd);
	text_done(&why);
	return ok;
}

bool enable_template(const char *dir, const struct wishes *w)
{
	char *path = realpath(dir, NULL);
	bool ok = path && enable(path, NULL, w);

	if (!path)
		say_error("%s: %s", dir, strerror(errno));
	free(path);
	return ok;
}

/* ---- disabling ---- */

static bool undo(const struct site *site, const struct enabled *record,
    const struct stat *st)
{
	const struct step *uses = enabled_find(record, STEP_USES, NULL, NULL);
	bool ok;

	owner_enter(st);
	ok = enabled_undo(record, site);
	owner_leave();
	if (ok && uses)
		ok = hooks_release(uses->value, site->name);
	owner_enter(st);
	ok = ok && enabled_remove(site);
	owner_leave();
	return ok;
}

static bool disable(const char *dir)
{
	struct enabled record = { 0 };
	struct site site;
	struct stat st;
	bool ok;

	if (!find_owner(dir, &st))
		return false;
	site_init(&site, dir);
	owner_enter(&st);
	exact_unlock(&site);
	ok = enabled_read(&record, &site);
	owner_leave();
	if (ok && !record.nr)
		printf("%s: not enabled\n", dir);
	if (ok)
		ok = undo(&site, &record, &st);
	if (ok)
		registry_remove(dir);
	enabled_done(&record);
	site_done(&site);
	return ok;
}

bool disable_repository(const char *dir)
{
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok = gitdir_at(&gd, dir, &why);

	if (ok)
		ok = disable(gd.common);
	else
		say_error("%s", why.data);
	gitdir_done(&gd);
	text_done(&why);
	return ok;
}

bool disable_template(const char *dir)
{
	char *path = realpath(dir, NULL);
	bool ok = path && disable(path);

	if (!path)
		say_error("%s: %s", dir, strerror(errno));
	free(path);
	return ok;
}
