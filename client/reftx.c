#include "client/reftx.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/child.h"
#include "client/reftx_list.h"

#define HOOK "reference-transaction"

/* ---- finding it ---- */

/* "~/..." and "~user/...", as git expands a path of its configuration. */
static char *expand_home(const char *path)
{
	const char *slash = strchrnul(path, '/'), *home;
	struct passwd *pw;
	char *user;

	if (path[0] != '~')
		return xstrdup(path);
	user = xasprintf("%.*s", (int)(slash - path - 1), path + 1);
	pw = *user ? getpwnam(user) : NULL;
	home = *user ? pw ? pw->pw_dir : NULL : getenv("HOME");
	free(user);
	if (!home)
		die("failed to expand user dir in: '%s'", path);
	return xasprintf("%s%s", home, slash);
}

static char *hooks_dir(const struct reftx *tx, const struct gitconfig *config)
{
	const char *set = gitconfig_get(config, "core.hookspath");
	const char *base = tx->place.git_dir ? tx->place.git_dir : ".git";

	if (set && *set)
		return expand_home(set);
	if (strcmp(tx->gd->path, tx->gd->common))
		return xasprintf("%s/hooks", tx->gd->common);
	if (!strcmp(base, "."))
		return xstrdup("hooks");
	return xasprintf("%s/hooks", base);
}

static bool is_executable(const struct reftx *tx)
{
	char *path = tx->path[0] == '/' ?
	    xstrdup(tx->path) :
	    xasprintf("%s/%s", tx->place.dir, tx->path);
	bool is = access(path, X_OK) == 0;
	int err = errno;

	free(path);
	errno = err;
	return is;
}

/* hook.<name>.event, which git 2.54 and later know. */
static bool is_configured(const struct gitconfig *config)
{
	const char *key, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &key, &value)) {
		size_t len = strlen(key);

		if (has_prefix(key, "hook.") && len > 10 &&
		    !strcmp(key + len - 6, ".event") && !strcmp(value, HOOK))
			return true;
	}
	return false;
}

/* An older git fails at the question, and would not run them either. */
static bool git_runs_configured(const struct gitdir *gd)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "hook", "list", HOOK, NULL };
	bool runs = child_succeeds(argv);

	free(dir);
	return runs;
}

void reftx_find(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config, const char *named, bool as_2_39)
{
	char *dir;

	memset(tx, 0, sizeof(*tx));
	tx->gd = gd;
	tx->as_2_39 = as_2_39;
	place_find(&tx->place, gd, named);
	dir = hooks_dir(tx, config);
	tx->path = xasprintf("%s/" HOOK, dir);
	free(dir);
	if (!as_2_39 && is_configured(config) && git_runs_configured(gd)) {
		tx->by_git = true;
	} else if (!is_executable(tx)) {
		if (errno == EACCES &&
		    gitconfig_bool(config, "advice.ignoredhook", true))
			tx->ignored = as_2_39 ? "" : "set ";
		return;
	}
	place_make_environment(&tx->place);
}

void reftx_done(struct reftx *tx)
{
	free(tx->path);
	place_done(&tx->place);
	text_done(&tx->all);
	text_done(&tx->deleted);
	memset(tx, 0, sizeof(*tx));
}

bool reftx_exists(const struct reftx *tx)
{
	return tx->place.env != NULL;
}

void reftx_warn(struct reftx *tx)
{
	if (!tx->ignored)
		return;
	fprintf(stderr,
	    "hint: The '%s' hook was ignored because it's not set as "
	    "executable.\n"
	    "hint: You can disable this warning with `git config "
	    "%sadvice.ignoredHook false`.\n",
	    tx->path, tx->ignored);
	tx->ignored = NULL;
}

/* ---- running it ---- */

/* True: it has nothing against it. */
static bool run(struct reftx *tx, const char *phase, const struct text *input)
{
	const char *own[] = { tx->path, phase, NULL };
	const char *all[] = { "git", "hook", "run", "--ignore-missing",
		"--to-stdin=/dev/stdin", HOOK, "--", phase, NULL };

	return child_hook(tx->by_git ? all : own, tx->place.dir, tx->place.env,
		   input) == 0;
}

/* The same, of a phase in which it is asked. */
static bool ask(struct reftx *tx, const char *phase, const struct text *input)
{
	if (run(tx, phase, input))
		return true;
	tx->failed_in = phase;
	return false;
}

/* ---- a transaction ---- */

bool reftx_preparing(struct reftx *tx, const struct changes *changes)
{
	struct text asked = { 0 };
	bool ok;

	if (!reftx_exists(tx) || tx->as_2_39)
		return true;
	reftx_list_asked(changes, &asked);
	ok = ask(tx, "preparing", &asked);
	if (!ok)
		run(tx, "aborted", &asked);
	text_done(&asked);
	return ok;
}

/* packed-refs' own transaction, where there is one. */
static bool prepare_packed(struct reftx *tx)
{
	if (tx->deleted.len && !tx->rewrites_packed)
		run(tx, "aborted", &tx->deleted);
	if (!tx->deleted.len || !tx->rewrites_packed)
		return true;
	return (tx->as_2_39 || ask(tx, "preparing", &tx->deleted)) &&
	    ask(tx, "prepared", &tx->deleted);
}

bool reftx_prepared(struct reftx *tx, const struct changes *changes,
    const struct refd_answer *ans)
{
	struct reftx_list list;

	if (!reftx_exists(tx))
		return true;
	text_clear(&tx->all);
	text_clear(&tx->deleted);
	reftx_list_make(&list, tx->gd, changes, ans, tx->as_2_39);
	reftx_list_all(&list, &tx->all);
	reftx_list_deleted(&list, &tx->deleted);
	reftx_list_done(&list);
	tx->rewrites_packed = ans->rewrites_packed;
	tx->in_packed = !prepare_packed(tx);
	return !tx->in_packed && ask(tx, "prepared", &tx->all);
}

static void finish_packed(struct reftx *tx, const char *phase)
{
	if (tx->rewrites_packed && tx->deleted.len)
		run(tx, phase, &tx->deleted);
}

void reftx_committed(struct reftx *tx)
{
	if (!reftx_exists(tx))
		return;
	finish_packed(tx, "committed");
	run(tx, "committed", &tx->all);
}

void reftx_aborted(struct reftx *tx)
{
	if (!reftx_exists(tx))
		return;
	finish_packed(tx, "aborted");
	/* Refused there, git comes to no end with the whole. */
	if (!tx->in_packed)
		run(tx, "aborted", &tx->all);
}

void reftx_given_up(struct reftx *tx, const struct changes *changes)
{
	struct text asked = { 0 };

	if (!reftx_exists(tx))
		return;
	reftx_list_asked(changes, &asked);
	run(tx, "aborted", &asked);
	text_done(&asked);
}

void reftx_why(const struct reftx *tx, struct text *why)
{
	if (tx->as_2_39)
		text_adds(why, "ref updates aborted by hook");
	else
		text_addf(why,
		    "in '%s' phase, update aborted by the "
		    "reference-transaction hook",
		    tx->failed_in);
}
