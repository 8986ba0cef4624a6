/*
 * All repositories below a directory, without a change in any repository: an
 * includeIf in git's system configuration leads to a file of refd, and the file
 * to the shared hooks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/enable_report.h"
#include "client/enable/hook_link.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/enable/shared_hooks.h"
#include "client/enable/system.h"
#include "client/git/owner.h"
#include "client/request/connect.h"
#include "client/request/daemons.h"

/* The system configuration, and refd's own file, which it includes. */
struct system {
	struct site site, own;
	struct block before, own_before; /* found */
	struct block block, own_block;   /* wanted */
};

static bool system_init(struct system *sy)
{
	bool ok;

	memset(sy, 0, sizeof(*sy));
	system_site(&sy->site);
	sy->own.name = system_file("gitconfig");
	sy->own.config = xstrdup(sy->own.name);
	site_unlock(&sy->site);
	site_unlock(&sy->own);
	ok = site_read(&sy->site, &sy->before) &&
	    site_read(&sy->own, &sy->own_before);
	block_copy(&sy->before, &sy->block);
	block_copy(&sy->own_before, &sy->own_block);
	return ok;
}

static void system_done(struct system *sy)
{
	site_done(&sy->site);
	site_done(&sy->own);
	block_done(&sy->before);
	block_done(&sy->own_before);
	block_done(&sy->block);
	block_done(&sy->own_block);
}

/* ---- what would break ---- */

struct look {
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
		strcasestr(t.data, "include"));

	text_done(&t);
	return may;
}

static bool breaks_config(const struct site *site, const struct wishes *w)
{
	struct gitconfig own = { 0 };
	bool breaks = true;
	const char *set;

	if (site_config(site, &own) && enable_check_pushes(site, &own)) {
		set = gitconfig_get(&own, "core.hooksPath");
		breaks = set && strcmp(set, w->hooks);
		if (breaks)
			say_error("%s: its own core.hooksPath, %s, would hide "
				  "refd's hooks; link proc-receive there to "
				  "refd and \"refd enable\" it by itself first",
			    site->name, set);
	}
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

/* Root looks as the owner, who may have put links in the place of files. */
static int look_here(void *arg)
{
	const struct look *look = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	struct site site;
	bool breaks = false;

	if (owner_gitdir(&gd, &look->at, &why)) {
		site_init(&site, gd.common);
		breaks = may_say(site.config) && breaks_config(&site, look->w);
		breaks |= breaks_hook(&site, look->w);
		site_done(&site);
	}
	gitdir_done(&gd);
	text_done(&why);
	return breaks;
}

static void look_at(const char *dir, void *data)
{
	struct look *look = data;
	const struct work work = { .run = look_here, .arg = look };
	struct text why = { 0 };

	look->breaks |= owner_work(&look->at, dir, work, &why) > 0;
	if (why.len)
		say_warning("not looked at: %s", why.data);
	text_done(&why);
}

/* ---- enabling ---- */

static bool is_plain(const char *root)
{
	if (!root[strcspn(root, "*?[\\\"\n")])
		return true;
	say_error("%s: git would take that for a pattern", root);
	return false;
}

/* Adds ROOTS, and mends the roots that there are. */
static bool plan_roots(struct system *sy, const char **roots, size_t nr,
    const struct wishes *w)
{
	struct look look = { .w = w };
	size_t i;
	char *key;

	for (i = 0; i < nr; i++) {
		if (!is_plain(roots[i]))
			return false;
		if (block_has(&sy->block, NOTE_ROOT, roots[i]))
			continue;
		scan_repositories(roots[i], look_at, &look);
		block_add(&sy->block, NOTE_ROOT, roots[i]);
	}
	for (i = 0; i < sy->block.nr; i++) {
		if (strcmp(sy->block.lines[i].key, NOTE_ROOT))
			continue;
		key = system_key(sy->block.lines[i].value);
		block_add(&sy->block, key, sy->own.config);
		free(key);
	}
	return !look.breaks;
}

/* Earlier settings of refd's own file stay. */
static bool plan_own(struct system *sy, const struct wishes *w)
{
	bool fsync = w->repair ?
	    block_has(&sy->own_before, enable_fsync[0][0], NULL) :
	    w->fsync;
	struct gitconfig system = { 0 };
	struct block *b = &sy->own_block;
	size_t i;

	if (!site_config(&sy->site, &system))
		return false;
	block_set(b, "core.hooksPath", w->hooks);
	for (i = 0; fsync && i < 2; i++)
		if (!gitconfig_get(&system, enable_fsync[i][0]))
			block_set(b, enable_fsync[i][0], enable_fsync[i][1]);
	for (i = 0; i < 2; i++)
		if (!gitconfig_get(&system, enable_no_packing[i]))
			block_set(b, enable_no_packing[i], "false");
	for (i = 0; i < 2; i++)
		block_add(b, "receive.procReceiveRefs", enable_refs[i]);
	if (w->socket)
		block_set(b, "refd.socket", w->socket);
	for (i = 0; i < w->nr_chains; i++)
		block_add(b, "refd.chain", w->chains[i]);
	gitconfig_done(&system);
	return true;
}

/* ---- who serves ---- */

/* Pushes would go to the daemon on SOCKET, so this one has to serve ROOT. */
static bool check_daemons(const struct daemons *all, const char *socket,
    const char *root)
{
	const struct known_daemon *mine = daemons_on(all, socket), *other;
	struct text who = { 0 };

	if (mine && daemons_serves(mine, root))
		return true;
	other = daemons_other(all, root, socket);
	if (other) {
		daemons_describe(other, &who);
		say_error("%s: not enabled, because it is served by the daemon "
			  "on %s; run \"refd enable --system --socket %s "
			  "--root %s\"",
		    root, who.data, other->socket, root);
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

static bool are_served(const struct system *sy, const char **roots, size_t nr,
    const struct wishes *w)
{
	const char *socket = w->socket ? w->socket : CONNECT_SYSTEM_SOCKET;
	struct daemons all = { 0 };
	bool ok = true;
	size_t i;

	daemons_find(&all, socket);
	for (i = 0; i < nr; i++)
		ok &= block_has(&sy->block, NOTE_ROOT, roots[i]) ||
		    check_daemons(&all, socket, roots[i]);
	daemons_done(&all);
	return ok;
}

/* ---- the files ---- */

static bool is_among(const char *root, const char **roots, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(roots[i], root))
			return true;
	return false;
}

/* A root that is not in ROOTS; NULL: there is none. */
static const char *other_root(const struct block *b, const char **roots,
    size_t nr)
{
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!strcmp(b->lines[i].key, NOTE_ROOT) &&
		    !is_among(b->lines[i].value, roots, nr))
			return b->lines[i].value;
	return NULL;
}

/* One file serves all roots, so all roots have one socket. A new root must not
 * change the socket of another root, nor get that socket unasked. Without ROOTS
 * the options apply to all roots. */
static bool keeps_sockets(const struct system *sy, const char **roots,
    size_t nr, const struct wishes *w)
{
	const char *other = nr ? other_root(&sy->before, roots, nr) : NULL;
	const char *socket = block_get(&sy->own_before, "refd.socket");

	if (!other ||
	    (!socket == !w->socket && (!socket || !strcmp(socket, w->socket))))
		return true;
	say_error("%s: one file, %s, names the socket for all roots, "
		  "and %s uses %s%s: if one daemon serves both, %s; "
		  "if not, enable each repository below %s by itself "
		  "(refd enable --socket PATH REPOSITORY)",
	    roots[0], sy->own.config, other,
	    socket ? "--socket " : "the default socket", socket ? socket : "",
	    socket ? "name that socket, too" : "name no socket", roots[0]);
	return false;
}

static bool is_without_root(const struct system *sy, size_t nr,
    const struct wishes *w)
{
	if (nr || sy->before.nr || w->repair)
		return false;
	say_error("--root names the directory with the repositories");
	return true;
}

/* The order: notes, hooks, refd's own file, the configuration with its name. */
static bool carry_out(const struct system *sy, const struct wishes *w)
{
	return (sy->before.is_active ||
		   site_write(&sy->site, &sy->before, &sy->block, false)) &&
	    shared_hooks_acquire(w->hooks, w->self) &&
	    (block_is_done(&sy->own_before, &sy->own_block) ||
		site_write(&sy->own, &sy->own_before, &sy->own_block, true)) &&
	    (block_is_done(&sy->before, &sy->block) ||
		site_write(&sy->site, &sy->before, &sy->block, true));
}

static bool enable(const char **roots, size_t nr, const struct wishes *w)
{
	struct system sy;
	bool ok = system_init(&sy) && !is_without_root(&sy, nr, w) &&
	    keeps_sockets(&sy, roots, nr, w) && are_served(&sy, roots, nr, w) &&
	    plan_own(&sy, w) && plan_roots(&sy, roots, nr, w);

	block_set(&sy.block, NOTE_USES, w->hooks);
	if (ok && block_is_done(&sy.own_before, &sy.own_block) &&
	    block_is_done(&sy.before, &sy.block))
		enable_report("unchanged", sy.site.name, "enabled already");
	ok = ok && carry_out(&sy, w);
	system_done(&sy);
	return ok;
}

/* ---- and back ---- */

static void remove_root(struct system *sy, const char *root)
{
	char *key = system_key(root);

	if (!block_has(&sy->block, NOTE_ROOT, root))
		enable_report("unchanged", sy->site.name, "%s: not enabled",
		    root);
	block_remove(&sy->block, key, NULL);
	block_remove(&sy->block, NOTE_ROOT, root);
	free(key);
}

static bool undo(const struct system *sy)
{
	const struct block none = { 0 };

	return (!sy->before.is_active ||
		   site_write(&sy->site, &sy->before, &sy->before, false)) &&
	    (!sy->own_before.nr ||
		site_write(&sy->own, &sy->own_before, &none, false)) &&
	    (!block_has(&sy->before, NOTE_USES, NULL) ||
		shared_hooks_release("system")) &&
	    site_write(&sy->site, &none, &none, false);
}

static bool disable(const char **roots, size_t nr)
{
	struct system sy;
	bool ok = system_init(&sy);
	size_t i;

	for (i = 0; ok && i < nr; i++)
		remove_root(&sy, roots[i]);
	if (ok && !sy.before.nr)
		enable_report("unchanged", sy.site.name, "not enabled");
	else if (ok && (!nr || !block_has(&sy.block, NOTE_ROOT, NULL)))
		ok = undo(&sy);
	else if (ok && sy.block.nr < sy.before.nr)
		ok = site_write(&sy.site, &sy.before, &sy.block,
		    sy.before.is_active);
	system_done(&sy);
	return ok;
}

bool enable_system(const char **roots, size_t nr, const struct wishes *w)
{
	return w ? enable(roots, nr, w) : disable(roots, nr);
}
