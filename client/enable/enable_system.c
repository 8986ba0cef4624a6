/*
 * All repositories below a directory, without touching one: an includeIf in
 * git's system configuration leads to a file of refd's, and that to hooks that
 * are refd's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/enable/enable.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/enable/system.h"

/* ---- refd's own file ---- */

static void put_value(struct text *t, const char *name, const char *value)
{
	text_addf(t, "\t%s = \"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			text_addc(t, '\\');
		text_addc(t, *value);
	}
	text_adds(t, "\"\n");
}

static void put_fsync(struct text *t, const struct wishes *w,
    const struct gitconfig *was, const struct gitconfig *system)
{
	struct enabled plan = { 0 };
	struct wishes wished = *w;
	size_t i;

	if (w->repair)
		wished.fsync = config_get(was, "core.fsync");
	plan_durability(system, &wished, &plan);
	for (i = 0; i < plan.nr; i++)
		put_value(t, strchr(plan.steps[i].key, '.') + 1,
		    plan.steps[i].value);
	enabled_done(&plan);
}

/* What the file said of other prefixes, and of a socket, it goes on saying. */
static void put_refd(struct text *t, const struct wishes *w,
    const struct gitconfig *was)
{
	const char *socket =
	    w->socket ? w->socket : config_get(was, "refd.socket");
	const char *key, *value;
	size_t at = 0, i;

	text_adds(t, "[refd]\n");
	if (socket)
		put_value(t, "socket", socket);
	while (gitconfig_next(was, &at, &key, &value))
		if (!strcmp(key, "refd.chain"))
			put_value(t, "chain", value);
	for (i = 0; i < w->nr_chains; i++)
		if (!config_has(was, "refd.chain", w->chains[i]))
			put_value(t, "chain", w->chains[i]);
}

static bool make_file(struct text *t, const char *path, const struct site *site,
    const struct wishes *w)
{
	const struct site file = { .name = (char *)path,
		.config = (char *)path };
	struct gitconfig was = { 0 }, system = { 0 };
	bool ok = site_config(&file, &was) && site_config(site, &system);
	size_t i;

	text_adds(t, OWN_FILE " --system; disable --system removes it.\n");
	text_adds(t, "[core]\n");
	put_value(t, "hooksPath", w->hooks);
	put_fsync(t, w, &was, &system);
	text_adds(t, "[receive]\n");
	for (i = 0; i < 2; i++)
		put_value(t, "procReceiveRefs", enable_refs[i]);
	put_refd(t, w, &was);
	gitconfig_done(&was);
	gitconfig_done(&system);
	return ok;
}

/* ---- what would break ---- */

struct look {
	const struct wishes *w;
	bool breaks;
};

static bool may_say(const char *file)
{
	struct text t = { 0 };
	bool may = text_read_file(&t, file) == 0 &&
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

	if (site_config(site, &own) && check_pushes(site, &own)) {
		set = config_get(&own, "core.hooksPath");
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

static bool is_refds(const char *dir)
{
	char *hook = xasprintf("%s/proc-receive", dir);
	bool is = is_this_program(hook);

	free(hook);
	return is;
}

static void look_at(const struct gitdir *gd, void *data)
{
	struct look *look = data;
	struct site site;
	char *hook;

	site_init(&site, gd->common);
	hook = xasprintf("%s/proc-receive", site.hooks);
	if (may_say(site.config) && breaks_config(&site, look->w))
		look->breaks = true;
	if (!look->w->nr_chains && access(hook, X_OK) == 0 &&
	    !is_refds(site.hooks)) {
		say_error("%s: its own proc-receive hook would not run any "
			  "more; --chain PREFIX leaves it the refs below "
			  "PREFIX",
		    site.name);
		look->breaks = true;
	}
	free(hook);
	site_done(&site);
}

/* ---- enabling ---- */

static bool differs(const char *path, const struct text *wanted)
{
	struct text now = { 0 };
	bool does =
	    text_read_file(&now, path) < 0 || strcmp(now.data, wanted->data);

	text_done(&now);
	return does;
}

static bool is_plain(const char *root)
{
	if (!root[strcspn(root, "*?[\\\"\n")])
		return true;
	say_error("%s: git would take that for a pattern", root);
	return false;
}

static bool plan_roots(const char **roots, size_t nr, const struct wishes *w,
    const struct site *site, struct enabled *plan, const char *file)
{
	struct look look = { .w = w };
	struct gitconfig own = { 0 };
	bool ok = site_config(site, &own);
	size_t i;

	for (i = 0; i < nr && ok; i++) {
		char *key = system_key(roots[i]);

		ok = is_plain(roots[i]);
		if (ok && !config_has(&own, key, file)) {
			scan_repositories(roots[i], look_at, &look);
			enabled_add(plan, STEP_ADD, key, file, NULL);
		}
		free(key);
	}
	gitconfig_done(&own);
	return ok && !look.breaks;
}

/* Those of the record that are not in place (any more). */
static void plan_again(const struct enabled *before, struct enabled *plan,
    const struct site *site)
{
	struct gitconfig own = { 0 };
	size_t i;

	if (!site_config(site, &own))
		return;
	for (i = 0; i < before->nr; i++) {
		const struct step *s = &before->steps[i];

		if (s->kind == STEP_ADD && !step_holds(s, site, &own) &&
		    !enabled_find(plan, STEP_ADD, s->key, NULL))
			enabled_add(plan, STEP_ADD, s->key, s->value, NULL);
	}
	gitconfig_done(&own);
}

static bool is_among(const char *root, const char **roots, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(roots[i], root))
			return true;
	return false;
}

/* A root of BEFORE that is not in ROOTS, owned; NULL: there is none. */
static char *other_root(const struct enabled *before, const char **roots,
    size_t nr)
{
	size_t i;
	char *root;

	for (i = 0; i < before->nr; i++) {
		root = system_root(&before->steps[i]);
		if (root && !is_among(root, roots, nr))
			return root;
		free(root);
	}
	return NULL;
}

/* One file serves all roots, so all roots have one socket: ROOTS must not take
 * the socket of another root, nor get that socket unasked. Without ROOTS all
 * roots are meant. */
static bool keeps_sockets(const char **roots, size_t nr, const struct wishes *w,
    const struct enabled *before, const char *path)
{
	const struct site file = { .name = (char *)path,
		.config = (char *)path };
	char *other = nr ? other_root(before, roots, nr) : NULL;
	struct gitconfig was = { 0 };
	const char *socket;
	bool ok = site_config(&file, &was);

	socket = config_get(&was, "refd.socket");
	if (ok && other &&
	    (!socket != !w->socket || (socket && strcmp(socket, w->socket)))) {
		say_error("%s: one file, %s, names the socket for all roots, "
			  "and %s uses %s%s: if one daemon serves both, %s; "
			  "if not, enable each repository below %s by itself "
			  "(refd enable --socket PATH REPOSITORY)",
		    roots[0], path, other,
		    socket ? "--socket " : "the default socket",
		    socket ? socket : "",
		    socket ? "name that socket, too" : "name no socket",
		    roots[0]);
		ok = false;
	}
	gitconfig_done(&was);
	free(other);
	return ok;
}

static bool carry_out(const struct site *site, struct enabled *before,
    const struct enabled *plan, const struct wishes *w)
{
	bool is_first = !before->nr, ok;

	enabled_remember(before, plan);
	if (!enabled_write(before, site))
		return false;
	exact_keep(site, is_first);
	ok = hooks_acquire(w) && enabled_carry_out(plan, site);
	exact_seal(site);
	return ok;
}

bool enable_system(const char **roots, size_t nr, const struct wishes *w)
{
	struct enabled before = { 0 }, plan = { 0 };
	char *file = system_file("gitconfig");
	struct text t = { 0 };
	struct site site;
	bool ok = system_read(&site, &before);

	exact_unlock(&site);
	if (ok && !nr && !before.nr && !w->repair) {
		say_error("--root names the directory with the repositories");
		ok = false;
	}
	ok = ok && keeps_sockets(roots, nr, w, &before, file);
	if (ok && !enabled_find(&before, STEP_USES, NULL, w->hooks))
		enabled_add(&plan, STEP_USES, NULL, w->hooks, NULL);
	ok = ok && make_file(&t, file, &site, w);
	if (ok && differs(file, &t))
		enabled_add(&plan, STEP_FILE, NULL, file, NULL);
	if (ok && access(site.config, F_OK) < 0)
		enabled_add(&plan, STEP_CONFIG_FILE, NULL, NULL, NULL);
	site.file = &t;
	ok = ok && plan_roots(roots, nr, w, &site, &plan, file);
	if (ok) {
		plan_again(&before, &plan, &site);
		if (!plan.nr)
			printf("%s: enabled already\n", site.name);
		ok = plan.nr ? carry_out(&site, &before, &plan, w) :
			       hooks_acquire(w);
	}
	enabled_done(&before);
	enabled_done(&plan);
	site_done(&site);
	text_done(&t);
	free(file);
	return ok;
}

/* ---- and back ---- */

static bool is_last(const struct enabled *record)
{
	return !enabled_find(record, STEP_ADD, NULL, NULL);
}

/* Takes the step with KEY out of RECORD. */
static bool undo_one(struct enabled *record, const char *key,
    const struct site *site)
{
	struct step *s = enabled_find(record, STEP_ADD, key, NULL);
	size_t rest;

	if (!s) {
		printf("%s: %s: not enabled\n", site->name, key);
		return true;
	}
	if (!step_undo(s, site))
		return false;
	free(s->key);
	free(s->value);
	free(s->old);
	rest = record->nr - 1 - (size_t)(s - record->steps);
	memmove(s, s + 1, rest * sizeof(*s));
	record->nr--;
	return enabled_write(record, site);
}

static bool undo_all(const struct enabled *record, const struct site *site)
{
	const struct step *uses = enabled_find(record, STEP_USES, NULL, NULL);

	return enabled_undo(record, site) &&
	    (!uses || hooks_release(uses->value, "system")) &&
	    enabled_remove(site);
}

bool disable_system(const char **roots, size_t nr)
{
	struct enabled record = { 0 };
	struct site site;
	bool ok = system_read(&site, &record);
	size_t i;

	exact_unlock(&site);
	if (ok && !record.nr) {
		printf("%s: not enabled\n", site.name);
		enabled_remove(&site);
	}
	for (i = 0; i < nr && ok && record.nr; i++) {
		char *key = system_key(roots[i]);

		ok = undo_one(&record, key, &site);
		free(key);
	}
	if (ok && record.nr && (!nr || is_last(&record)))
		ok = undo_all(&record, &site);
	enabled_done(&record);
	site_done(&site);
	return ok;
}
