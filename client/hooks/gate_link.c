#include "client/hooks/gate_link.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_named_refd(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "refd");
}

static bool is_this_program(const char *path)
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
	return is_named_refd(target) || is_this_program(path);
}

char *gate_link_follow(const char *path)
{
	return gate_link_is(path) ? xasprintf("%s" GATE_LINK_CHAINED, path) :
				    xstrdup(path);
}
