#include "client/enable/proc_receive.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "client/enable/durable.h"

bool proc_receive_is_this_program(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

char *proc_receive_path(const char *hooks)
{
	return xasprintf("%s/proc-receive", hooks);
}

static bool links_to(const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t len = readlink(path, found, sizeof(found) - 1);

	found[len > 0 ? len : 0] = '\0';
	return len > 0 && !strcmp(found, target);
}

bool proc_receive_links_to(const char *hooks, const char *target)
{
	char *path = proc_receive_path(hooks);
	bool does = links_to(path, target);

	free(path);
	return does;
}

enum proc_receive proc_receive_look(const char *hooks, const char *self,
    const char *mine)
{
	char *path = proc_receive_path(hooks);
	enum proc_receive is = HOOK_OTHER;
	struct stat st;

	if (links_to(path, self) ||
	    (!mine && proc_receive_is_this_program(path)))
		is = HOOK_REFD;
	else if (lstat(path, &st) < 0 || (mine && links_to(path, mine)) ||
	    (mine && S_ISLNK(st.st_mode) && access(path, F_OK) < 0))
		is = HOOK_MISSING;
	free(path);
	return is;
}

/* By rename, so that there is a whole hook at every moment. The hook is on disk
 * before the configuration names it. */
bool proc_receive_link(const char *hooks, const char *target)
{
	char *path = proc_receive_path(hooks);
	char *new = xasprintf("%s.new", path);
	bool done = links_to(path, target), ok = done;

	if (!done) {
		unlink(new);
		ok = symlink(target, new) == 0 && rename(new, path) == 0;
	}
	if (!ok)
		say_error("cannot make %s: %s", path, strerror(errno));
	else if (!done)
		printf("%s -> %s\n", path, target);
	if (ok)
		durable_sync_parent(path);
	free(new);
	free(path);
	return ok;
}

/* After a kill, the link may lead to this program, and the note to an older
 * program. */
static bool is_own_link(const char *path, const char *target)
{
	struct stat st;

	return links_to(path, target) ||
	    (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
		proc_receive_is_this_program(path));
}

bool proc_receive_unlink(const char *hooks, const char *target)
{
	char *path = proc_receive_path(hooks);
	char *new = xasprintf("%s.new", path);
	struct stat st;
	bool ok = true;

	if (is_own_link(new, target))
		unlink(new);
	if (lstat(path, &st) < 0) {
		ok = errno == ENOENT || errno == ENOTDIR;
	} else if (!is_own_link(path, target)) {
		printf("%s is not refd's any more: left\n", path);
	} else {
		ok = unlink(path) == 0;
		if (ok)
			printf("%s: removed\n", path);
	}
	if (!ok)
		say_error("cannot remove %s: %s", path, strerror(errno));
	free(new);
	free(path);
	return ok;
}

bool proc_receive_make_directory(const char *dir)
{
	if (mkdir(dir, 0777) == 0) {
		printf("%s: made\n", dir);
	} else if (errno != EEXIST) {
		say_error("cannot make %s: %s", dir, strerror(errno));
		return false;
	}
	return true;
}
