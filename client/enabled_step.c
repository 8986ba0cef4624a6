/* The steps of enable, one way and back. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/child.h"
#include "client/enabled.h"

/* "git config" on the repository's own file, and nothing but that file. */
static int git_config(const struct gitdir *gd, const char *const args[])
{
	char *file = xasprintf("%s/config", gd->common);
	const char *argv[12] = { "git", "config", "--file", file };
	int n = 4, status;

	while (*args)
		argv[n++] = *args++;
	status = child_run(argv);
	free(file);
	return status;
}

/* The last value there, owned; NULL if there is none. */
static char *config_value(const struct gitdir *gd, const char *key)
{
	char *file = xasprintf("%s/config", gd->common);
	const char *argv[] = { "git", "config", "--file", file, "-z", "--get",
		key, NULL };
	struct text t = { 0 };
	int status = child_capture(argv, &t);

	free(file);
	if (status) {
		text_done(&t);
		return NULL;
	}
	return t.data;
}

static bool has_value(const struct gitdir *gd, const char *key,
    const char *value)
{
	char *file = xasprintf("%s/config", gd->common);
	const char *argv[] = { "git", "config", "--file", file, "--fixed-value",
		"--get-all", key, value, NULL };
	struct text t = { 0 };
	int status = child_capture(argv, &t);

	free(file);
	text_done(&t);
	return status == 0;
}

static bool check(int status, const struct gitdir *gd, const char *key)
{
	if (status)
		say_error("%s: git config %s failed", gd->common, key);
	return !status;
}

/* ---- doing ---- */

static bool make_hooks_dir(const struct gitdir *gd)
{
	char *dir = xasprintf("%s/hooks", gd->common);
	bool ok = mkdir(dir, 0777) == 0 || errno == EEXIST;

	if (!ok)
		say_error("cannot make %s: %s", dir, strerror(errno));
	free(dir);
	return ok;
}

/* By rename, so that there is a whole hook at every moment. */
static bool link_hook(const struct gitdir *gd, const char *target)
{
	char *path = xasprintf("%s/hooks/proc-receive", gd->common);
	char *new = xasprintf("%s.new", path);
	bool ok;

	unlink(new);
	ok = symlink(target, new) == 0 && rename(new, path) == 0;
	if (ok)
		printf("%s: hooks/proc-receive -> %s\n", gd->common, target);
	else
		say_error("cannot make %s: %s", path, strerror(errno));
	free(new);
	free(path);
	return ok;
}

static bool add_value(const struct gitdir *gd, const struct step *step)
{
	const char *args[] = { "--add", step->key, step->value, NULL };

	if (has_value(gd, step->key, step->value))
		return true;
	if (!check(git_config(gd, args), gd, step->key))
		return false;
	printf("%s: %s += %s\n", gd->common, step->key, step->value);
	return true;
}

static bool set_value(const struct gitdir *gd, const char *key,
    const char *value)
{
	const char *args[] = { key, value, NULL };

	if (!check(git_config(gd, args), gd, key))
		return false;
	printf("%s: %s = %s\n", gd->common, key, value);
	return true;
}

bool step_do(const struct step *step, const struct gitdir *gd)
{
	switch (step->kind) {
	case STEP_HOOKS_DIR:
		return make_hooks_dir(gd);
	case STEP_HOOK:
		return link_hook(gd, step->value);
	case STEP_ADD:
		return add_value(gd, step);
	case STEP_SET:
		return set_value(gd, step->key, step->value);
	}
	return false;
}

/* ---- undoing ---- */

static bool remove_hooks_dir(const struct gitdir *gd)
{
	char *dir = xasprintf("%s/hooks", gd->common);

	/* Others may have put theirs there since. */
	rmdir(dir);
	free(dir);
	return true;
}

static bool unlink_hook(const struct gitdir *gd, const char *target)
{
	char *path = xasprintf("%s/hooks/proc-receive", gd->common);
	char found[PATH_MAX];
	ssize_t len = readlink(path, found, sizeof(found) - 1);
	bool ok = true;

	found[len > 0 ? len : 0] = '\0';
	if (strcmp(found, target)) {
		printf("%s: hooks/proc-receive is not refd's any more: left\n",
		    gd->common);
	} else if (unlink(path) < 0) {
		say_error("cannot remove %s: %s", path, strerror(errno));
		ok = false;
	} else {
		printf("%s: hooks/proc-receive removed\n", gd->common);
	}
	free(path);
	return ok;
}

static bool remove_value(const struct gitdir *gd, const struct step *step)
{
	const char *args[] = { "--fixed-value", "--unset-all", step->key,
		step->value, NULL };

	if (!has_value(gd, step->key, step->value))
		return true;
	if (!check(git_config(gd, args), gd, step->key))
		return false;
	printf("%s: %s -= %s\n", gd->common, step->key, step->value);
	return true;
}

static bool unset_value(const struct gitdir *gd, const struct step *step)
{
	const char *args[] = { "--unset", step->key, NULL };
	char *now = config_value(gd, step->key);
	bool ok = true;

	if (!now || strcmp(now, step->value)) {
		printf("%s: %s was changed since: left\n", gd->common,
		    step->key);
	} else if (step->old) {
		ok = set_value(gd, step->key, step->old);
	} else {
		ok = check(git_config(gd, args), gd, step->key);
		if (ok)
			printf("%s: %s unset\n", gd->common, step->key);
	}
	free(now);
	return ok;
}

bool step_undo(const struct step *step, const struct gitdir *gd)
{
	switch (step->kind) {
	case STEP_HOOKS_DIR:
		return remove_hooks_dir(gd);
	case STEP_HOOK:
		return unlink_hook(gd, step->value);
	case STEP_ADD:
		return remove_value(gd, step);
	case STEP_SET:
		return unset_value(gd, step);
	}
	return false;
}
