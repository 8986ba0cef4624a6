/*
 * "refd enable" and "refd disable". Order matters: a repository whose
 * configuration names a hook that isn't there refuses every push, so the hook
 * comes first and goes last.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/child.h"
#include "client/command.h"
#include "client/enabled.h"
#include "client/gitconfig.h"

struct wishes {
	const char *socket; /* to be set as refd.socket, or NULL */
	bool fsync;
	char self[PATH_MAX]; /* this program, which is the hook */
};

static const char enable_usage[] =
    "usage: refd enable [--socket PATH] [--no-fsync] <repository>...\n";
static const char disable_usage[] = "usage: refd disable <repository>...\n";

static void find_self(struct wishes *w)
{
	ssize_t len = readlink("/proc/self/exe", w->self, sizeof(w->self) - 1);

	if (len < 0)
		die("cannot find out where refd is: %s", strerror(errno));
	w->self[len] = '\0';
	if (access(w->self, X_OK) < 0)
		die("%s: %s", w->self, strerror(errno));
}

/* ---- the hook ---- */

static bool is_this_program(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* core.hooksPath: hooks are shared with others, so they are not ours to
 * place; one that is there already will do. */
static bool plan_shared_hook(const struct gitdir *gd, const char *dir)
{
	char *hook = dir[0] == '/' ?
	    xasprintf("%s/proc-receive", dir) :
	    xasprintf("%s/%s/proc-receive", gd->path, dir);
	bool ours = is_this_program(hook);

	if (!ours)
		say_error(
		    "%s: core.hooksPath is %s, so hooks are not the "
		    "repository's own; link proc-receive to refd there, or "
		    "unset it",
		    gd->common, dir);
	free(hook);
	return ours;
}

static bool plan_own_hook(const struct gitdir *gd, const struct wishes *w,
    const struct enabled *before, struct enabled *plan)
{
	const struct step *mine = enabled_find(before, STEP_HOOK, NULL);
	char *dir = xasprintf("%s/hooks", gd->common);
	char *hook = xasprintf("%s/proc-receive", dir);
	char target[PATH_MAX];
	struct stat st;
	ssize_t len;
	bool ok = true;

	if (lstat(hook, &st) < 0) {
		if (access(dir, F_OK) < 0)
			enabled_add(plan, STEP_HOOKS_DIR, NULL, NULL, NULL);
		enabled_add(plan, STEP_HOOK, NULL, w->self, NULL);
		goto out;
	}
	len = readlink(hook, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	if (!strcmp(target, w->self) || (!mine && is_this_program(hook)))
		goto out;
	ok = mine && !strcmp(target, mine->value);
	if (ok)
		enabled_add(plan, STEP_HOOK, NULL, w->self, NULL);
	else
		say_error("%s: there is another proc-receive hook in %s",
		    gd->common, dir);
out:
	free(hook);
	free(dir);
	return ok;
}

/* ---- the configuration ---- */

static bool lists(const struct gitconfig *config, const char *key,
    const char *wanted)
{
	const char *name, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &name, &value))
		if (!strcmp(name, key) && !strcmp(value, wanted))
			return true;
	return false;
}

/* The repository's own file alone. */
static void load_own(struct gitconfig *own, const struct gitdir *gd)
{
	char *file = xasprintf("%s/config", gd->common);
	const char *argv[] = { "git", "config", "--file", file, "-z", "--list",
		NULL };

	if (child_capture(argv, &own->list))
		die("%s: git config failed", gd->common);
	free(file);
}

/*
 * Both values are needed for every ref to reach the hook; each with a key of
 * its own spelling is how git wants them (a list in one does nothing).
 */
static void plan_config(const struct gitdir *gd, const struct wishes *w,
    struct enabled *plan)
{
	static const char *const refs[] = { "refs", "adm!:refs" };
	struct gitconfig own = { 0 }, all = { 0 };
	const char *now;
	size_t i;

	load_own(&own, gd);
	gitconfig_load(&all, gd);
	now = gitconfig_get(&own, "refd.socket");
	if (w->socket && (!now || strcmp(now, w->socket)))
		enabled_add(plan, STEP_SET, "refd.socket", w->socket, now);
	if (w->fsync && !gitconfig_get(&all, "core.fsync"))
		enabled_add(plan, STEP_SET, "core.fsync",
		    "committed,loose-object", NULL);
	if (w->fsync && !gitconfig_get(&all, "core.fsyncmethod"))
		enabled_add(plan, STEP_SET, "core.fsyncMethod", "batch", NULL);
	for (i = 0; i < 2; i++)
		if (!lists(&own, "receive.procreceiverefs", refs[i]))
			enabled_add(plan, STEP_ADD, "receive.procReceiveRefs",
			    refs[i], NULL);
	gitconfig_done(&own);
	gitconfig_done(&all);
}

/* ---- enabling ---- */

static bool is_recorded(const struct enabled *before, const struct step *step)
{
	size_t i;

	for (i = 0; i < before->nr; i++)
		if (before->steps[i].kind == STEP_ADD &&
		    !strcmp(before->steps[i].key, step->key) &&
		    !strcmp(before->steps[i].value, step->value))
			return true;
	return false;
}

/* What is to be done joins what was: undoing goes back to before all. */
static void remember(struct enabled *before, const struct step *step)
{
	struct step *known = NULL;

	if (step->kind != STEP_ADD)
		known = enabled_find(before, step->kind, step->key);
	else if (is_recorded(before, step))
		return;
	if (!known) {
		enabled_add(before, step->kind, step->key, step->value,
		    step->old);
		return;
	}
	free(known->value);
	known->value = step->value ? xstrdup(step->value) : NULL;
}

static bool carry_out(const struct gitdir *gd, struct enabled *before,
    const struct enabled *plan)
{
	size_t i;

	for (i = 0; i < plan->nr; i++)
		remember(before, &plan->steps[i]);
	if (!enabled_write(before, gd))
		return false;
	for (i = 0; i < plan->nr; i++)
		if (!step_do(&plan->steps[i], gd))
			return false;
	return true;
}

static bool enable(const struct gitdir *gd, const struct wishes *w)
{
	struct enabled before = { 0 }, plan = { 0 };
	struct gitconfig config = { 0 };
	const char *hooks;
	bool ok;

	gitconfig_load(&config, gd);
	hooks = gitconfig_get(&config, "core.hookspath");
	ok = enabled_read(&before, gd) &&
	    (hooks ? plan_shared_hook(gd, hooks) :
		     plan_own_hook(gd, w, &before, &plan));
	if (ok)
		plan_config(gd, w, &plan);
	if (ok && !plan.nr)
		printf("%s: enabled already\n", gd->common);
	else if (ok)
		ok = carry_out(gd, &before, &plan);
	gitconfig_done(&config);
	enabled_done(&before);
	enabled_done(&plan);
	return ok;
}

static bool disable(const struct gitdir *gd, const struct wishes *w)
{
	struct enabled before = { 0 };
	bool ok = enabled_read(&before, gd);
	size_t i;

	(void)w;
	if (ok && !before.nr)
		printf("%s: not enabled\n", gd->common);
	for (i = before.nr; ok && i-- > 0;)
		ok = step_undo(&before.steps[i], gd);
	if (ok && before.nr)
		ok = enabled_remove(gd);
	enabled_done(&before);
	return ok;
}

/* ---- for each repository ---- */

/* Root works as the repository's owner, so that what it leaves is the
 * owner's. */
static void become(uid_t uid, gid_t gid)
{
	if (seteuid(0) < 0 || setegid(gid) < 0 || seteuid(uid) < 0)
		die("cannot act as user %u: %s", (unsigned)uid,
		    strerror(errno));
}

static bool with_owner(const struct gitdir *gd, const struct wishes *w,
    bool (*act)(const struct gitdir *gd, const struct wishes *w))
{
	gid_t group = getegid();
	struct stat st;
	bool ok;

	if (stat(gd->common, &st) < 0) {
		say_error("%s: %s", gd->common, strerror(errno));
		return false;
	}
	if (geteuid() != 0 || st.st_uid == 0)
		return act(gd, w);
	become(st.st_uid, st.st_gid);
	ok = act(gd, w);
	become(0, group);
	return ok;
}

static int for_each(char **repositories, const struct wishes *w,
    bool (*act)(const struct gitdir *gd, const struct wishes *w))
{
	int rc = EXIT_DONE;

	for (; *repositories; repositories++) {
		struct text why = { 0 };
		struct gitdir gd = { 0 };

		if (!gitdir_at(&gd, *repositories, &why)) {
			say_error("%s", why.data);
			rc = EXIT_FAILED;
		} else if (!with_owner(&gd, w, act)) {
			rc = EXIT_FAILED;
		}
		gitdir_done(&gd);
		text_done(&why);
	}
	return rc;
}

static int bad_usage(const char *text)
{
	fputs(text, stderr);
	return EXIT_USAGE;
}

int command_enable(int argc, char **argv)
{
	static const struct option options[] = { { "socket", required_argument,
						     NULL, 's' },
		{ "no-fsync", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	struct wishes w = { .fsync = true, .socket = getenv("REFD_SOCKET") };
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (c) {
		case 's':
			w.socket = optarg;
			break;
		case 'n':
			w.fsync = false;
			break;
		case 'h':
			fputs(enable_usage, stdout);
			return EXIT_DONE;
		default:
			return bad_usage(enable_usage);
		}
	}
	if (optind == argc)
		return bad_usage(enable_usage);
	if (w.socket && !*w.socket)
		w.socket = NULL;
	if (w.socket && (w.socket[0] != '/' || strchr(w.socket, '\n')))
		die("'%s': the hook runs elsewhere, so the socket's path has "
		    "to be absolute",
		    w.socket);
	find_self(&w);
	return for_each(argv + optind, &w, enable);
}

int command_disable(int argc, char **argv)
{
	struct wishes w = { 0 };

	if (argc > 1 &&
	    (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(disable_usage, stdout);
		return EXIT_DONE;
	}
	if (argc < 2 || argv[1][0] == '-')
		return bad_usage(disable_usage);
	return for_each(argv + 1, &w, disable);
}
