#include "client/enable/gate_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/enable_report.h"
#include "client/enable/proc_receive.h"
#include "client/hooks/gate_link.h"

#define NAME    GATE_LINK_NAME
#define NEW     NAME ".new"
#define CHAINED NAME GATE_LINK_CHAINED

static char *path_in(const char *hooks, const char *name)
{
	return xasprintf("%s/%s", hooks, name);
}

static bool is_gate(const char *hooks)
{
	char *path = path_in(hooks, NAME);
	bool is = gate_link_is(path);

	free(path);
	return is;
}

static bool is_there(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Has the hook both names? Then gate_hook_make() was interrupted. */
static bool has_both_names(int dir)
{
	struct stat hook, chained;

	return fstatat(dir, NAME, &hook, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(dir, CHAINED, &chained, AT_SYMLINK_NOFOLLOW) == 0 &&
	    hook.st_dev == chained.st_dev && hook.st_ino == chained.st_ino;
}

bool gate_hook_links_to(const char *hooks, const char *target)
{
	char *path = path_in(hooks, NAME), found[PATH_MAX];
	ssize_t len = readlink(path, found, sizeof(found) - 1);

	found[len > 0 ? len : 0] = '\0';
	free(path);
	return len > 0 && !strcmp(found, target);
}

bool gate_hook_may_be_in(const char *hooks)
{
	char *hook = path_in(hooks, NAME), *chained = path_in(hooks, CHAINED);
	struct stat is, would;
	bool may = proc_receive_may_be_in(hooks);

	if (may && !gate_link_is(hook) && lstat(hook, &is) == 0 &&
	    lstat(chained, &would) == 0 && is.st_ino != would.st_ino) {
		say_error("%s would become %s, which exists", hook, chained);
		may = false;
	}
	free(hook);
	free(chained);
	return may;
}

/* ---- making ---- */

/* The link replaces the hook by a rename, when the hook has its second name. */
static int put(int dir, const char *hooks, const char *target)
{
	if (!is_gate(hooks) && is_there(dir, NAME) && !has_both_names(dir) &&
	    linkat(dir, NAME, dir, CHAINED, 0) < 0)
		return -errno;
	if (unlinkat(dir, NEW, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(target, dir, NEW) < 0 ||
	    renameat(dir, NEW, dir, NAME) < 0 || fsync(dir) < 0)
		return -errno;
	return 0;
}

bool gate_hook_make(const char *hooks, const char *target)
{
	int dir = proc_receive_open_hooks(hooks), err = dir < 0 ? dir : 0;
	char *path = path_in(hooks, NAME);

	if (!err)
		err = put(dir, hooks, target);
	if (err)
		say_error("cannot make %s: %s", path, strerror(-err));
	else
		enable_report("linked", path, "linked to %s", target);
	if (!err && is_there(dir, CHAINED))
		enable_report("kept", path,
		    "the hook that was there is " CHAINED
		    " now, and still runs");
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}

/* ---- removing ---- */

static int take(int dir, const char *path)
{
	bool has_chained = is_there(dir, CHAINED);

	unlinkat(dir, NEW, 0);
	/* rename() does nothing with two names of a file. */
	if (has_both_names(dir)) {
		if (unlinkat(dir, CHAINED, 0) < 0)
			return -errno;
	} else if (has_chained && renameat(dir, CHAINED, dir, NAME) < 0) {
		return -errno;
	}
	if (!has_chained && unlinkat(dir, NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	/* A power loss must not bring the gate back. */
	if (fsync(dir) < 0)
		return -errno;
	enable_report("removed", path,
	    has_chained ? "removed; the hook that was there is back" :
			  "removed");
	return 0;
}

/* The gate is gone, or not there yet, and the hook has its second name. */
static bool is_to_go_back(int dir)
{
	return has_both_names(dir) ||
	    (is_there(dir, CHAINED) && !is_there(dir, NAME));
}

bool gate_hook_remove(const char *hooks)
{
	int dir = proc_receive_open_hooks(hooks), err = 0;
	char *path = path_in(hooks, NAME);

	if (dir >= 0 && (is_gate(hooks) || is_to_go_back(dir)))
		err = take(dir, path);
	else if (dir >= 0 && is_there(dir, NAME))
		enable_report("kept", path, "not refd's any more: kept");
	else if (dir < 0 && dir != -ENOENT && dir != -ENOTDIR)
		err = dir;
	if (err)
		say_error("cannot remove %s: %s", path, strerror(-err));
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}
