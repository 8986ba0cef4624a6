/*
 * Enables all repositories below a directory without a change in any
 * repository. An includeIf in git's system configuration leads to a file of
 * refd, and core.hooksPath in this file names the shared hooks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/scan.h"
#include "client/enable/enable_plan.h"
#include "client/enable/enable_report.h"
#include "client/enable/hook_link.h"
#include "client/enable/registry.h"
#include "client/enable/shared_hooks.h"
#include "client/enable/system.h"
#include "client/git/owner.h"
#include "client/git/quote.h"
#include "client/request/connect.h"
#include "client/request/daemons.h"

/* ---- what would break ---- */

struct root_look {
	const struct wishes *w;
	struct owned at; /* a repository */
	bool breaks;
};

static bool may_say(const char *file)
{
	struct text t = { 0 };
	bool may = text_read_regular(&t, file, SITE_CONFIG_BYTES) == 0 &&
	    (strcasestr(t.data, "hookspath") ||
		strcasestr(t.data, "shallowupdate") ||
		strcasestr(t.data, "worktreeconfig") ||
		strcasestr(t.data, "include"));

	text_done(&t);
	return may;
}

/* The owner may have enabled the repository with another refd. */
static bool is_recorded(struct site *site, const char *hooks)
{
	return site_look(site) &&
	    settings_have(&site->before, HOOKS_PATH, hooks);
}

/* The owner chose the path, so a link that root made could be anywhere. */
static void say_hidden(const struct gitdir *gd, const char *hooks,
    const struct wishes *w)
{
	char *hook = xasprintf("%s/proc-receive", hooks);
	char *command = quote_command("ln", "-s", w->self, hook, NULL);

	if (!strcmp(hooks, "/"))
		say_error("%s: its own core.hooksPath is empty or \"/\", and "
			  "would hide refd's hooks; its owner must unset it",
		    gd->common);
	else
		say_error("%s: its own core.hooksPath, %s, would hide refd's "
			  "hooks; as its owner, user %u, run \"%s\" first",
		    gd->common, hooks, (unsigned)gd->owner, command);
	free(command);
	free(hook);
}

static bool breaks_config(struct site *site, const struct gitdir *gd,
    const struct wishes *w)
{
	struct gitconfig own = { 0 };
	bool breaks = true;
	char *hooks = NULL;

	if (gitconfig_read_own(&own, gd->path) != 0) {
		say_error("%s: git config failed", site->name);
	} else if (enable_check_pushes(site, &own)) {
		hooks = gitconfig_hooks_path(&own, gd);
		breaks = hooks && strcmp(hooks, w->hooks) &&
		    !hook_link_is_refd(hooks) && !is_recorded(site, hooks);
		if (breaks)
			say_hidden(gd, hooks, w);
	}
	free(hooks);
	gitconfig_done(&own);
	return breaks;
}

static bool breaks_hook(const struct site *site, const struct wishes *w)
{
	if (w->nr_chains || !hook_link_is_other(site->hooks))
		return false;
	say_error("%s: its own proc-receive hook would not run any more; "
		  "--chain PREFIX leaves it the refs below PREFIX",
	    site->name);
	return true;
}

/* The owner may have put links in the place of files, so root looks as the
 * owner. */
static int look_here(void *arg)
{
	const struct root_look *look = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	struct site site;
	bool breaks = false;

	if (owner_gitdir(&gd, &look->at, &why)) {
		site_init(&site, gd.common);
		breaks =
		    may_say(site.config) && breaks_config(&site, &gd, look->w);
		breaks |= breaks_hook(&site, look->w);
		site_done(&site);
	}
	gitdir_done(&gd);
	text_done(&why);
	return breaks;
}

static void look_at(const char *dir, void *data)
{
	struct root_look *look = data;
	const struct work work = { .run = look_here, .arg = look };
	struct text why = { 0 };

	look->breaks |= owner_work(&look->at, dir, work, &why) > 0;
	if (why.len)
		say_warning("not looked at: %s", why.data);
	text_done(&why);
}

/* ---- who serves ---- */

/* Pushes would go to the daemon on SOCKET, so this one has to serve ROOT. */
static bool check_daemons(const struct daemons *all, const char *socket,
    const char *root)
{
	const struct known_daemon *mine = daemons_on(all, socket), *other;
	struct text who = { 0 };
	char *command;

	if (mine && daemons_serves(mine, root))
		return true;
	other = daemons_other(all, root, socket);
	if (other) {
		daemons_describe(other, &who);
		command = quote_command("refd", "enable", "--socket",
		    other->socket, NULL);
		say_error("%s: not enabled, because it is served by the daemon "
			  "on %s; run \"%s\" with the repositories there",
		    root, who.data, command);
		free(command);
	} else if (mine && mine->nr_roots) {
		daemons_describe(mine, &who);
		text_adds(&who, " does not serve it: ");
		daemons_add_root_command(socket, root, &who);
		say_error("%s: not enabled, because the daemon on %s", root,
		    who.data);
	} else if (!mine) {
		daemons_add_start(socket, -ENOENT, &who);
		say_warning("%s: no daemon listens on %s, so git takes the "
			    "pushes until then%s",
		    root, socket, who.data);
	}
	text_done(&who);
	return !other && !(mine && mine->nr_roots);
}

/* All roots have one socket, which an administrator may have put into the
 * record, for the roots alone. */
static bool are_served(const struct site *site, const struct gitconfig *system,
    const char **roots, size_t nr)
{
	const char *set = gitconfig_get(system, "refd.socket");
	const char *noted = settings_get(&site->before, "refd.socket");
	const char *socket = set ? set : noted ? noted : REFD_SYSTEM_SOCKET;
	struct daemons all = { 0 };
	bool ok = true;
	size_t i;

	daemons_find(&all, socket);
	for (i = 0; i < nr; i++)
		ok &= settings_have(&site->before, NOTE_ROOT, roots[i]) ||
		    check_daemons(&all, socket, roots[i]);
	daemons_done(&all);
	return ok;
}

/* ---- enabling ---- */

static bool is_plain(const char *root)
{
	if (!root[strcspn(root, "*?[\\\"\n")])
		return true;
	say_error("%s: git would take that for a pattern", root);
	return false;
}

/* Adds ROOTS. False: something below a new root would break. */
static bool plan_roots(struct site *site, const char **roots, size_t nr,
    const struct wishes *w)
{
	struct root_look look = { .w = w };
	size_t i;

	for (i = 0; i < nr; i++) {
		if (!is_plain(roots[i]))
			return false;
		if (settings_have(&site->before, NOTE_ROOT, roots[i]))
			continue;
		scan_repositories(roots[i], look_at, &look);
		settings_add(&site->wanted, NOTE_ROOT, roots[i]);
	}
	return !look.breaks;
}

/* Earlier settings of the record stay. */
static bool plan(struct site *site, const char **roots, size_t nr,
    const struct wishes *w)
{
	struct gitconfig system = { 0 };
	bool ok = site_config(site, &system) &&
	    enable_wish(site, &system, HOOKS_PATH, w->hooks) &&
	    are_served(site, &system, roots, nr);
	size_t i;

	/* The record has the hooks, also if the configuration has them now. */
	settings_set(&site->wanted, HOOKS_PATH, w->hooks);
	enable_wish_defaults(site, &system);
	for (i = 0; i < 2; i++)
		settings_add(&site->wanted, ENABLE_PATTERNS, enable_refs[i]);
	for (i = 0; i < w->nr_chains; i++)
		settings_add(&site->wanted, "refd.chain", w->chains[i]);
	gitconfig_done(&system);
	return ok;
}

/* ---- the files ---- */

static bool is_without_root(const struct site *site, size_t nr)
{
	if (nr || settings_have(&site->before, NOTE_ROOT, NULL))
		return false;
	say_error("--root names the directory with the repositories");
	return true;
}

static bool include(const struct site *site)
{
	const char *root;
	size_t at = 0;
	bool ok = true;

	while (ok && (root = system_next_root(&site->wanted, &at))) {
		char *key = system_key(root);

		ok = site_include(site, key);
		free(key);
	}
	return ok;
}

static bool enable(struct site *site, const char **roots, size_t nr,
    const struct wishes *w)
{
	if (is_without_root(site, nr) || !plan(site, roots, nr, w) ||
	    !plan_roots(site, roots, nr, w) ||
	    !shared_hooks_are_there(w->hooks))
		return false;
	if (settings_are_same(&site->before, &site->wanted) &&
	    system_holds(site))
		enable_report(site->name, "enabled already");
	/* A line counts at once, so the record is there before. */
	return site_save(site) && include(site);
}

/* ---- and back ---- */

/* Removes the line of ROOT, or all lines if ROOT is NULL. */
static bool exclude(struct site *site, const char *root)
{
	char *key = root ? system_key(root) : NULL;
	bool ok = site_exclude(site, key);

	if (root && !settings_have(&site->before, NOTE_ROOT, root))
		enable_report(site->name, "%s: not enabled", root);
	settings_remove(&site->wanted, NOTE_ROOT, root);
	free(key);
	return ok;
}

/* The settings go with the last root. */
static bool disable(struct site *site, const char **roots, size_t nr)
{
	/* Before the first root, the record may already name the socket, and a
	 * call of disable then keeps the record. */
	const bool was =
	    site->lines.nr > 0 || settings_have(&site->before, NOTE_ROOT, NULL);
	bool ok = true;
	size_t i;

	if (!nr && !was)
		enable_report(site->name, "not enabled");
	for (i = 0; ok && i < nr; i++)
		ok = exclude(site, roots[i]);
	if (!nr)
		ok = exclude(site, NULL);
	if (ok && was && !settings_have(&site->wanted, NOTE_ROOT, NULL))
		settings_done(&site->wanted);
	return ok && site_save(site);
}

bool enable_system(const char **roots, size_t nr, const struct wishes *w)
{
	struct site site;
	bool ok;

	system_site(&site);
	ok = site_lock(&site) &&
	    (w ? enable(&site, roots, nr, w) : disable(&site, roots, nr));
	site_done(&site);
	return ok;
}
