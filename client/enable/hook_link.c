/*
 * A member of the repository's Unix group can exchange the directory of hooks
 * at any time, so all changes are made beneath a descriptor of the directory.
 *
 * Failure modes: a kill can leave the new link under its temporary name, or the
 * user's hook under both of its names. The next call for this hook recognizes
 * both cases and continues there.
 */
#include "client/enable/hook_link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/enable_report.h"
#include "client/git/owner.h"
#include "client/hooks/gate_link.h"
#include "proto/lib/cli.h"

/* NEW becomes NAME; CHAINED is the second name of a user's hook. */
static const struct hook_names {
	const char *name, *new, *chained;
} names_of[] = {
	[HOOK_PROC_RECEIVE] = { "proc-receive", "proc-receive.new", NULL },
	[HOOK_GATE] = { GATE_LINK_NAME, GATE_LINK_NAME ".new",
	    GATE_LINK_NAME GATE_LINK_CHAINED },
};

/* ---- looking ---- */

static char *path_of(const char *hooks, enum hook_name hook)
{
	return xasprintf("%s/%s", hooks, names_of[hook].name);
}

bool hook_link_is_refd(const char *hooks)
{
	char *path = path_of(hooks, HOOK_PROC_RECEIVE);
	bool is = gate_link_is_this_program(path);

	free(path);
	return is;
}

bool hook_link_is_other(const char *hooks)
{
	char *path = path_of(hooks, HOOK_PROC_RECEIVE);
	bool is = access(path, X_OK) == 0 && !gate_link_is_this_program(path);

	free(path);
	return is;
}

static bool leads_to(int dir, const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t len = readlinkat(dir, path, found, sizeof(found) - 1);

	found[len > 0 ? len : 0] = '\0';
	return len > 0 && !strcmp(found, target);
}

bool hook_link_leads_to(const char *hooks, enum hook_name hook,
    const char *target)
{
	char *path = path_of(hooks, hook);
	bool does = leads_to(AT_FDCWD, path, target);

	free(path);
	return does;
}

bool hook_link_is_free(const char *hooks, const char *self, const char *mine)
{
	char *path = path_of(hooks, HOOK_PROC_RECEIVE);
	struct stat st;
	bool is = lstat(path, &st) < 0 || leads_to(AT_FDCWD, path, self);

	if (!is && mine)
		is = leads_to(AT_FDCWD, path, mine) ||
		    (S_ISLNK(st.st_mode) && access(path, F_OK) < 0);
	else if (!is)
		is = gate_link_is_this_program(path);
	free(path);
	return is;
}

static bool is_foreign_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
	    !owned_trusts_link(path);
}

static int open_hooks(const char *hooks)
{
	int no_link = owned_trusts_link(hooks) ? 0 : O_NOFOLLOW;
	int fd = open(hooks, O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_link);

	return fd < 0 ? -errno : fd;
}

static bool is_there(int dir, const char *name)
{
	struct stat st;

	return name && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* After a kill, the link may lead to this program, and the note to an older
 * program. */
static bool is_refds(int dir, const char *name, const char *target,
    bool is_gate)
{
	char *path = xasprintf("/proc/self/fd/%d/%s", dir, name);
	struct stat st;
	bool is = leads_to(dir, name, target) ||
	    (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(st.st_mode) &&
		(gate_link_is_this_program(path) ||
		    (is_gate && gate_link_is(path))));

	free(path);
	return is;
}

/* Has the user's hook both names, because the making was interrupted? */
static bool has_both_names(int dir, const struct hook_names *n)
{
	struct stat hook, chained;

	return n->chained &&
	    fstatat(dir, n->name, &hook, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(dir, n->chained, &chained, AT_SYMLINK_NOFOLLOW) == 0 &&
	    hook.st_dev == chained.st_dev && hook.st_ino == chained.st_ino;
}

bool hook_link_may_be_in(const char *hooks, enum hook_name hook)
{
	const struct hook_names *n = &names_of[hook];
	int dir;
	bool may;

	if (is_foreign_link(hooks)) {
		say_error("%s is a link that another user may have made; "
			  "replace the link by a directory, or set "
			  "core.hooksPath",
		    hooks);
		return false;
	}
	dir = open_hooks(hooks);
	may = dir < 0 || !is_there(dir, n->name) ||
	    !is_there(dir, n->chained) || has_both_names(dir, n) ||
	    is_refds(dir, n->name, "", true);
	if (!may)
		say_error("%s/%s would become %s, which exists", hooks, n->name,
		    n->chained);
	if (dir >= 0)
		close(dir);
	return may;
}

/* ---- making ---- */

/* By rename, when a user's hook has its second name. The hook is on disk before
 * the configuration names it. */
static int put(int dir, const struct hook_names *n, const char *target)
{
	if (n->chained && is_there(dir, n->name) &&
	    !is_refds(dir, n->name, target, true) && !has_both_names(dir, n) &&
	    linkat(dir, n->name, dir, n->chained, 0) < 0)
		return -errno;
	if (unlinkat(dir, n->new, 0) < 0 && errno != ENOENT)
		return -errno;
	if (symlinkat(target, dir, n->new) < 0 ||
	    renameat(dir, n->new, dir, n->name) < 0)
		return -errno;
	return 0;
}

bool hook_link_make(const char *hooks, enum hook_name hook, const char *target)
{
	const struct hook_names *n = &names_of[hook];
	bool is_new = mkdir(hooks, 0777) == 0;
	int dir = open_hooks(hooks), err = dir < 0 ? dir : 0;
	bool done = !err && leads_to(dir, n->name, target);
	char *path = path_of(hooks, hook);

	if (is_new)
		enable_report(hooks, "made");
	if (!err && !done)
		err = put(dir, n, target);
	if (!err && fsync(dir) < 0)
		err = -errno;
	if (err)
		say_error("cannot make %s: %s", path, strerror(-err));
	else if (!done)
		enable_report(path, "linked to %s", target);
	if (!err && !done && is_there(dir, n->chained))
		enable_report(path,
		    "the hook that was there is %s now, and still runs",
		    n->chained);
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}

/* ---- removing ---- */

static int take(int dir, const struct hook_names *n, const char *path)
{
	const bool has_chained = is_there(dir, n->chained);
	int r;

	/* rename() does nothing with two names of a file, so one name is
	 * removed. */
	if (has_both_names(dir, n))
		r = unlinkat(dir, n->chained, 0);
	else if (has_chained)
		r = renameat(dir, n->chained, dir, n->name);
	else
		r = unlinkat(dir, n->name, 0);
	if (r < 0)
		return -errno;
	enable_report(path,
	    has_chained ? "removed; the hook that was there is back" :
			  "removed");
	return 0;
}

static int take_back(int dir, const struct hook_names *n, const char *path,
    const char *target)
{
	const bool is_gate = n->chained, is_hook = is_there(dir, n->name);
	int err = 0;

	if (is_refds(dir, n->new, target, is_gate))
		unlinkat(dir, n->new, 0);
	if (is_refds(dir, n->name, target, is_gate) || has_both_names(dir, n) ||
	    (!is_hook && is_there(dir, n->chained)))
		err = take(dir, n, path);
	else if (is_hook)
		enable_report(path, "not refd's any more: kept");
	/* A power loss must not bring the hook back. */
	return !err && fsync(dir) < 0 ? -errno : err;
}

bool hook_link_remove(const char *hooks, enum hook_name hook,
    const char *target)
{
	int dir = open_hooks(hooks), err = 0;
	char *path = path_of(hooks, hook);

	if (dir >= 0)
		err = take_back(dir, &names_of[hook], path, target);
	else if (is_foreign_link(hooks))
		enable_report(hooks,
		    "a link that another user may have made: kept");
	else if (dir != -ENOENT && dir != -ENOTDIR)
		err = dir;
	if (err)
		say_error("cannot remove %s: %s", path, strerror(-err));
	if (dir >= 0)
		close(dir);
	free(path);
	return !err;
}
