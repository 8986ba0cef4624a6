#include "client/hooks/githook.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/hooks/forward.h"
#include "client/hooks/gate_link.h"

#define ARGS_MAX 4

/* ---- finding a hook ---- */

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

/* The repository's own directory of hooks, spelled as by git, because a hook
 * sees it as $0. */
static char *own_hooks_dir(const struct gitdir *gd, const struct place *place)
{
	const char *base = place->git_dir ? place->git_dir : ".git";

	if (strcmp(gd->path, gd->common))
		return xasprintf("%s/hooks", gd->common);
	if (!strcmp(base, "."))
		return xstrdup("hooks");
	return xasprintf("%s/hooks", base);
}

static char *hooks_dir(const struct gitdir *gd, const struct gitconfig *config,
    const struct place *place)
{
	const char *set = gitconfig_get(config, "core.hookspath");

	return set && *set ? expand_home(set) : own_hooks_dir(gd, place);
}

static char *absolute(const struct githook *h, const struct place *place)
{
	return h->path[0] == '/' ? xstrdup(h->path) :
				   xasprintf("%s/%s", place->dir, h->path);
}

/* The forwarder of refd would only run the repository's own hook, so this hook
 * replaces the forwarder, and no shell is needed. */
static void follow_forwarder(struct githook *h, const struct gitdir *gd,
    const struct place *place)
{
	char *path = absolute(h, place), *own;

	if (forward_is(path)) {
		own = own_hooks_dir(gd, place);
		free(h->path);
		h->path = xasprintf("%s/%s", own, h->name);
		free(own);
	}
	free(path);
}

/* refd records its own updates, so the hook behind the gate is run instead of
 * the gate. */
static void follow_gate(struct githook *h, const struct place *place)
{
	char *path;

	if (strcmp(h->name, GATE_LINK_NAME) != 0)
		return;
	path = absolute(h, place);
	if (gate_link_is(path)) {
		free(path);
		path = xasprintf("%s" GATE_LINK_CHAINED, h->path);
		free(h->path);
		h->path = path;
		return;
	}
	free(path);
}

static bool is_executable(const struct githook *h, const struct place *place)
{
	char *path = absolute(h, place);
	bool is = access(path, X_OK) == 0;
	int err = errno;

	free(path);
	errno = err;
	return is;
}

bool githook_is_configured(const struct gitconfig *config, const char *name)
{
	const char *key, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &key, &value)) {
		size_t len = strlen(key);

		if (has_prefix(key, "hook.") && len > 10 &&
		    !strcmp(key + len - 6, ".event") && !strcmp(value, name))
			return true;
	}
	return false;
}

bool githook_git_lists(const struct gitdir *gd, const char *name)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "hook", "list", name, NULL };
	bool lists = child_succeeds(argv);

	free(dir);
	return lists;
}

void githook_find(struct githook *h, const char *name, const struct gitdir *gd,
    const struct gitconfig *config, const struct place *place,
    bool with_configured)
{
	char *dir = hooks_dir(gd, config, place);

	memset(h, 0, sizeof(*h));
	h->name = name;
	h->path = xasprintf("%s/%s", dir, name);
	free(dir);
	if (gitconfig_get(config, "core.hookspath"))
		follow_forwarder(h, gd, place);
	follow_gate(h, place);
	if (with_configured && githook_is_configured(config, name) &&
	    githook_git_lists(gd, name))
		h->exists = h->by_git = true;
	else if (is_executable(h, place))
		h->exists = true;
	else
		h->is_ignored = errno == EACCES &&
		    gitconfig_bool(config, "advice.ignoredhook", true);
}

void githook_done(struct githook *h)
{
	free(h->path);
	memset(h, 0, sizeof(*h));
}

void githook_warn(struct githook *h, bool as_2_39)
{
	if (!h->is_ignored)
		return;
	print_lines(stderr,
	    "hint: The '%s' hook was ignored because it's not set as "
	    "executable.\n"
	    "hint: You can disable this warning with `git config "
	    "%sadvice.ignoredHook false`.\n",
	    h->path, as_2_39 ? "" : "set ");
	h->is_ignored = false;
}

/* ---- running a hook ---- */

bool githook_run(const struct githook *h, const struct place *place,
    const char *const args[], const struct text *input)
{
	const char *argv[ARGS_MAX + 8];
	size_t n = 0, i;

	if (h->by_git) {
		argv[n++] = "git";
		argv[n++] = "hook";
		argv[n++] = "run";
		argv[n++] = "--ignore-missing";
		if (input->len)
			argv[n++] = "--to-stdin=/dev/stdin";
		argv[n++] = h->name;
		argv[n++] = "--";
	} else {
		argv[n++] = h->path;
	}
	for (i = 0; i < ARGS_MAX && args[i]; i++)
		argv[n++] = args[i];
	argv[n] = NULL;
	return child_hook(argv, place->dir, place->env, input) == 0;
}
