#include "client/enable/proc_receive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "client/enable/enable_report.h"
#include "client/git/owner.h"

#define NAME "proc-receive"
#define NEW  NAME ".new"

/* ---- looking ---- */

static bool is_this_program(int dir, const char *path)
{
	struct stat a, b;

	return fstatat(dir, path, &a, 0) == 0 &&
	    stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino;
}

bool proc_receive_is_this_program(const char *path)
{
	return is_this_program(AT_FDCWD, path);
}

char *proc_receive_path(const char *hooks)
{
	return xasprintf("%s/" NAME, hooks);
}

static bool links_to(int dir, const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t len = readlinkat(dir, path, found, sizeof(found) - 1);

	found[len > 0 ? len : 0] = '\0';
	return len > 0 && !strcmp(found, target);
}

bool proc_receive_links_to(const char *hooks, const char *target)
{
	char *path = proc_receive_path(hooks);
	bool does = links_to(AT_FDCWD, path, target);

	free(path);
	return does;
}

enum proc_receive proc_receive_look(const char *hooks, const char *self,
    const char *mine)
{
	char *path = proc_receive_path(hooks);
	enum proc_receive is = HOOK_OTHER;
	struct stat st;

	if (links_to(AT_FDCWD, path, self) ||
	    (!mine && proc_receive_is_this_program(path)))
		is = HOOK_REFD;
	else if (lstat(path, &st) < 0 ||
	    (mine && links_to(AT_FDCWD, path, mine)) ||
	    (mine && S_ISLNK(st.st_mode) && access(path, F_OK) < 0))
		is = HOOK_MISSING;
	free(path);
	return is;
}

/* ---- changes ---- */

static bool is_foreign_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
	    !owner_trusts_link(path);
}

bool proc_receive_may_be_in(const char *hooks)
{
	if (!is_foreign_link(hooks))
		return true;
	say_error("%s is a link that another user may have made; replace the "
		  "link by a directory, or set core.hooksPath",
	    hooks);
	return false;
}

int proc_receive_open_hooks(const char *hooks)
{
	int no_link = owner_trusts_link(hooks) ? 0 : O_NOFOLLOW;
	int fd = open(hooks, O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_link);

	return fd < 0 ? -errno : fd;
}

/* By rename, so that there is a whole hook at every moment. The hook is on disk
 * before the configuration names it. */
static int put_link(int dir, const char *target)
{
	if (unlinkat(dir, NEW, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(target, dir, NEW) < 0 ||
	    renameat(dir, NEW, dir, NAME) < 0)
		return -errno;
	return 0;
}

bool proc_receive_link(const char *hooks, const char *target)
{
	int dir = proc_receive_open_hooks(hooks), err = dir < 0 ? dir : 0;
	bool done = !err && links_to(dir, NAME, target);
	char *path = proc_receive_path(hooks);

	if (!err && !done)
		err = put_link(dir, target);
	if (!err && fsync(dir) < 0)
		err = -errno;
	if (err)
		say_error("cannot make %s: %s", path, strerror(-err));
	else if (!done)
		enable_report("linked", path, "linked to %s", target);
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}

/* After a kill, the link may lead to this program, and the note to an older
 * program. */
static bool is_own_link(int dir, const char *name, const char *target)
{
	struct stat st;

	return links_to(dir, name, target) ||
	    (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(st.st_mode) && is_this_program(dir, name));
}

static int remove_link(int dir, const char *path, const char *target)
{
	struct stat st;

	if (is_own_link(dir, NEW, target))
		unlinkat(dir, NEW, 0);
	if (fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!is_own_link(dir, NAME, target)) {
		enable_report("kept", path, "not refd's any more: kept");
		return 0;
	}
	if (unlinkat(dir, NAME, 0) < 0)
		return -errno;
	enable_report("removed", path, "removed");
	return 0;
}

bool proc_receive_unlink(const char *hooks, const char *target)
{
	int dir = proc_receive_open_hooks(hooks), err = 0;
	char *path = proc_receive_path(hooks);

	if (dir >= 0)
		err = remove_link(dir, path, target);
	else if (is_foreign_link(hooks))
		enable_report("kept", hooks,
		    "a link that another user may have made: kept");
	else if (dir != -ENOENT && dir != -ENOTDIR)
		err = dir;
	/* A power loss must not bring the hook back. */
	if (dir >= 0 && !err && fsync(dir) < 0)
		err = -errno;
	if (err)
		say_error("cannot remove %s: %s", path, strerror(-err));
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}

bool proc_receive_make_directory(const char *dir)
{
	if (mkdir(dir, 0777) == 0) {
		enable_report("made", dir, "made");
	} else if (errno != EEXIST) {
		say_error("cannot make %s: %s", dir, strerror(errno));
		return false;
	}
	return true;
}
