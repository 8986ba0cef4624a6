/*
 * The happy path: split the path at the last slash, find the directory among
 * the kept directories, and call the table below with the directory's
 * descriptor and one name, so that the call needs no openat2. Otherwise the
 * directory is opened, and kept.
 *
 * Failures:
 *	the directory is missing, or	the call fails as without this table
 *	a link is on the way
 *	memory is short			the call fails with -ENOMEM
 *	a kept directory was removed	a call that creates a name gets
 *					-ENOENT: the directory is opened again,
 *					once
 */
#include "daemon/base/sys_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* A directory, and a name in the directory. */
struct resolved {
	int fd;
	const char *name;
	struct sys_dirs_kept *kept; /* NULL: FD is the caller's */
	bool is_old;                /* kept since an earlier call */
};

static struct sys_dirs *dirs_of(const struct sys *sys)
{
	return (struct sys_dirs *)(uintptr_t)sys;
}

static void drop(struct sys_dirs *d, struct sys_dirs_kept *kept)
{
	if (kept->fd < 0)
		return;
	SYS(d->below, close, kept->fd);
	free(kept->path);
	kept->fd = -1;
}

/* The entry for this path, or else the least recently used entry. */
static struct sys_dirs_kept *choose(struct sys_dirs *d, int dirfd,
    const char *path, size_t len, bool *found)
{
	struct sys_dirs_kept *k, *oldest = &d->kept[0];

	for (k = d->kept; k < d->kept + SYS_DIRS_KEPT; k++) {
		if (k->fd >= 0 && k->dirfd == dirfd && k->len == len &&
		    memcmp(k->path, path, len) == 0) {
			k->last_used = ++d->nr_calls;
			*found = true;
			return k;
		}
		if (k->last_used < oldest->last_used)
			oldest = k;
	}
	*found = false;
	return oldest;
}

static int open_kept(struct sys_dirs *d, struct sys_dirs_kept *k, int dirfd,
    const char *path, size_t len)
{
	char *dir = strndup(path, len);
	int fd;

	if (dir == NULL)
		return -ENOMEM;
	fd = SYS(d->below, openat, dirfd, dir, O_PATH | O_DIRECTORY, 0);
	if (fd < 0) {
		free(dir);
		return fd;
	}
	drop(d, k);
	*k = (struct sys_dirs_kept){ dirfd, fd, dir, len, ++d->nr_calls };
	return 0;
}

static int find(struct sys_dirs *d, int dirfd, const char *path,
    struct resolved *spot)
{
	const char *slash = strrchr(path, '/');
	size_t len;
	int r;

	*spot = (struct resolved){ .fd = dirfd, .name = path };
	if (dirfd == SYS_TRUSTED || slash == NULL)
		return 0;
	r = sys_path_check(path);
	if (r < 0)
		return r;
	len = (size_t)(slash - path);
	spot->kept = choose(d, dirfd, path, len, &spot->is_old);
	if (!spot->is_old)
		r = open_kept(d, spot->kept, dirfd, path, len);
	spot->fd = spot->kept->fd;
	spot->name = slash + 1;
	return r;
}

/* R is the result of a call that creates SPOT's name. True: the directory may
 * have been replaced, so the call must be tried again. */
static bool again(struct sys_dirs *d, const struct resolved *spot, int r)
{
	if (r != -ENOENT || !spot->is_old)
		return false;
	drop(d, spot->kept);
	return true;
}

/* ---- calls that read ---- */

static int dirs_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r = find(d, dirfd, path, &at);

	return r < 0 ? r : SYS(d->below, lstatat, at.fd, at.name, st);
}

static ssize_t dirs_readlinkat(const struct sys *sys, int dirfd,
    const char *path, char *buf, size_t size)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r = find(d, dirfd, path, &at);

	return r < 0 ? r : SYS(d->below, readlinkat, at.fd, at.name, buf, size);
}

static int dirs_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r = find(d, dirfd, path, &at);

	return r < 0 ? r : SYS(d->below, dir_open, at.fd, at.name, dir);
}

/* If PATH is kept, no link was on the way when PATH was opened. */
static int dirs_stays_below(const struct sys *sys, int dirfd, const char *path)
{
	struct sys_dirs *d = dirs_of(sys);
	struct sys_dirs_kept *k;
	size_t len = strlen(path);
	bool found;
	int r;

	k = choose(d, dirfd, path, len, &found);
	r = found ? 0 : open_kept(d, k, dirfd, path, len);
	return r == -ELOOP ? SYS(d->below, stays_below, dirfd, path) : r;
}

/* ---- calls that remove names ---- */

static int dirs_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r = find(d, dirfd, path, &at);

	return r < 0 ? r : SYS(d->below, unlinkat, at.fd, at.name);
}

static int dirs_rmdirat(const struct sys *sys, int dirfd, const char *path)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r = find(d, dirfd, path, &at);

	return r < 0 ? r : SYS(d->below, rmdirat, at.fd, at.name);
}

/* ---- calls that may create names ---- */

static int dirs_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r;

	do {
		r = find(d, dirfd, path, &at);
		if (r < 0)
			return r;
		r = SYS(d->below, openat, at.fd, at.name, flags, mode);
	} while (flags & O_CREAT && again(d, &at, r));
	return r;
}

static int dirs_mkdirat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved at;
	int r;

	do {
		r = find(d, dirfd, path, &at);
		if (r < 0)
			return r;
		r = SYS(d->below, mkdirat, at.fd, at.name, mode);
	} while (again(d, &at, r));
	return r;
}

static int dirs_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved from, to;
	int r;

	do {
		r = find(d, olddirfd, oldpath, &from);
		if (r == 0)
			r = find(d, newdirfd, newpath, &to);
		if (r < 0)
			return r;
		r = SYS(d->below, linkat, from.fd, from.name, to.fd, to.name);
	} while (again(d, &to, r));
	return r;
}

static int dirs_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	struct sys_dirs *d = dirs_of(sys);
	struct resolved from, to;
	int r;

	do {
		r = find(d, olddirfd, oldpath, &from);
		if (r == 0)
			r = find(d, newdirfd, newpath, &to);
		if (r < 0)
			return r;
		r = SYS(d->below, renameat, from.fd, from.name, to.fd, to.name);
	} while (again(d, &to, r));
	return r;
}

/* The other calls take no path, so they work with a copy of the table and the
 * context of the table below. */
void sys_dirs_init(struct sys_dirs *d, const struct sys *below)
{
	size_t i;

	d->sys = *below;
	d->below = below;
	d->nr_calls = 0;
	for (i = 0; i < SYS_DIRS_KEPT; i++) {
		d->kept[i].fd = -1;
		d->kept[i].last_used = 0;
	}
	d->sys.openat = dirs_openat;
	d->sys.lstatat = dirs_lstatat;
	d->sys.readlinkat = dirs_readlinkat;
	d->sys.dir_open = dirs_dir_open;
	d->sys.stays_below = dirs_stays_below;
	d->sys.unlinkat = dirs_unlinkat;
	d->sys.rmdirat = dirs_rmdirat;
	d->sys.mkdirat = dirs_mkdirat;
	d->sys.linkat = dirs_linkat;
	d->sys.renameat = dirs_renameat;
}

void sys_dirs_forget(struct sys_dirs *d)
{
	size_t i;

	for (i = 0; i < SYS_DIRS_KEPT; i++)
		drop(d, &d->kept[i]);
}
