#include "client/hooks/gate_link.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/hooks/forward.h"

static bool is_named_refd(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "refd");
}

bool gate_link_is_this_program(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool gate_link_is(const char *path)
{
	char target[PATH_MAX];
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	target[len] = '\0';
	return is_named_refd(target) || gate_link_is_this_program(path);
}

/* Owned. */
static char *hook_in(const char *hooks, const char *common)
{
	char *path = xasprintf("%s/" GATE_LINK_NAME, hooks);
	char *hook = forward_follow(path, common);

	free(path);
	return hook;
}

bool gate_link_is_run(const char *hooks, const char *common)
{
	char *hook = hook_in(hooks, common);
	bool is = gate_link_is(hook) && access(hook, X_OK) == 0;

	free(hook);
	return is;
}

bool gate_link_runs_other(const char *hooks, const char *common)
{
	char *hook = hook_in(hooks, common);
	char *chained = xasprintf("%s" GATE_LINK_CHAINED, hook);
	bool runs = access(gate_link_is(hook) ? chained : hook, X_OK) == 0;

	free(hook);
	free(chained);
	return runs;
}
