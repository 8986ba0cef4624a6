/*
 * The kernel's system calls that take a path, which no other file of the daemon
 * makes (scripts/check-layers).
 *
 * The happy path, for a path below a descriptor:
 *	open		one openat2 that stays beneath the descriptor and
 *			follows no link
 *	other calls	the same openat2 for the directory, then the call with
 *			a single name; a path that is a single name needs no
 *			openat2
 *
 * Failures: the kernel itself refuses links on the way, so a link in the place
 * of a directory is -ELOOP at any moment of the call. No file outside of the
 * directory behind the descriptor is opened, made, changed or removed, even if
 * somebody exchanges directories for links meanwhile.
 *
 * A path with SYS_TRUSTED is resolved as usual.
 */
#include "daemon/base/sys_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "proto/limits.h"

/* For open_below(), the only call that takes "..". */
#define RENAME_TRIES 1000

static int result(int r)
{
	return r < 0 ? -errno : r;
}

/* ---- opening ---- */

static int open_how(int dirfd, const char *path, int flags, mode_t mode,
    uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	return result((int)fd);
}

/* A FIFO, a terminal or a lease in the place of a file does not make the caller
 * wait. A link is told from a missing file, because without O_NOFOLLOW,
 * RESOLVE_NO_SYMLINKS refuses the last component, too. */
static int open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	int r = sys_path_check(path);

	if (r < 0)
		return r;
	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY;
	else
		flags = (flags & ~O_NOFOLLOW) | O_NONBLOCK | O_NOCTTY;
	return open_how(dirfd, path, flags, mode, RESOLVE_NO_SYMLINKS);
}

int sys_path_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	int fd;

	(void)sys;
	if (dirfd != SYS_TRUSTED)
		return open_beneath(dirfd, path, flags, mode);
	do
		fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return result(fd);
}

/* A rename while the kernel goes up a ".." is EAGAIN, so the call is
 * repeated. */
static int open_below(int dirfd, const char *path, int flags)
{
	int fd, tries = RENAME_TRIES;

	do
		fd = open_how(dirfd, path, flags | O_DIRECTORY, 0, 0);
	while (fd == -EAGAIN && --tries > 0);
	return fd;
}

int sys_path_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	int fd = open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0);

	(void)sys;
	*is_plain = fd >= 0;
	return fd == -ELOOP || fd == -EINVAL ?
	    open_below(dirfd, path, O_RDONLY) :
	    fd;
}

int sys_path_stays_below(const struct sys *sys, int dirfd, const char *path)
{
	int fd;

	(void)sys;
	fd = open_beneath(dirfd, path, O_PATH | O_DIRECTORY, 0);
	if (fd == -ELOOP) {
		fd = open_below(dirfd, path, O_PATH);
		if (fd != -EXDEV) {
			if (fd >= 0)
				close(fd);
			return -ELOOP;
		}
	}
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* ---- the directory of a name ---- */

/* A directory opened for one call. */
struct path_place {
	int fd;
	bool is_owned;
	const char *name; /* in the directory */
};

static int find_place(struct path_place *p, int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[REFD_PATH_MAX];
	int r;

	*p = (struct path_place){ .fd = dirfd, .name = path };
	if (dirfd == SYS_TRUSTED)
		return 0;
	r = sys_path_check(path);
	if (r < 0 || slash == NULL)
		return r;
	if ((size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	p->fd = open_beneath(dirfd, dir, O_PATH | O_DIRECTORY, 0);
	if (p->fd < 0)
		return p->fd;
	p->is_owned = true;
	p->name = slash + 1;
	return 0;
}

/* R is the result of the call with P's name. */
static int leave_place(struct path_place *p, int r)
{
	r = result(r);
	if (p->is_owned)
		close(p->fd);
	return r;
}

/* ---- looking ---- */

static void fill_stat(struct sys_stat *out, const struct stat *st)
{
	*out = (struct sys_stat){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_ns = time_ns(st->st_mtim),
		.ctime_ns = time_ns(st->st_ctim),
	};
}

int sys_path_fstat(const struct sys *sys, int fd, struct sys_stat *out)
{
	struct stat st;

	(void)sys;
	if (fstat(fd, &st) < 0)
		return -errno;
	fill_stat(out, &st);
	return 0;
}

int sys_path_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *out)
{
	struct stat st;
	struct path_place p;
	int r;

	(void)sys;
	r = find_place(&p, dirfd, path);
	if (r < 0)
		return r;
	r = leave_place(&p, fstatat(p.fd, p.name, &st, AT_SYMLINK_NOFOLLOW));
	if (r == 0)
		fill_stat(out, &st);
	return r;
}

ssize_t sys_path_readlinkat(const struct sys *sys, int dirfd, const char *path,
    char *buf, size_t size)
{
	struct path_place p;
	int r;

	(void)sys;
	r = find_place(&p, dirfd, path);
	if (r < 0)
		return r;
	return leave_place(&p, (int)readlinkat(p.fd, p.name, buf, size));
}

/* The kernel marks a deleted file only by "(deleted)" in the text, and a name
 * may contain the same text, so the number of links decides. */
int sys_path_of_fd(const struct sys *sys, int fd, char *buf, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t suffix = sizeof(deleted) - 1;
	struct stat st;
	char link[64];
	ssize_t n;

	(void)sys;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	if ((size_t)n < suffix || strcmp(buf + n - suffix, deleted) != 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -ENOENT : 0;
}

/* ---- names ---- */

/* The common part of link(2) and rename(2). */
static int two_names(int (*call)(int, const char *, int, const char *),
    int olddirfd, const char *oldpath, int newdirfd, const char *newpath)
{
	struct path_place from, to;
	int r;

	r = find_place(&from, olddirfd, oldpath);
	if (r < 0)
		return r;
	r = find_place(&to, newdirfd, newpath);
	if (r == 0)
		r = leave_place(&to, call(from.fd, from.name, to.fd, to.name));
	if (from.is_owned)
		close(from.fd);
	return r;
}

bool sys_may_have_happened(int err)
{
	switch (err) {
	case 0:
	case -EACCES:
	case -EPERM:
	case -EROFS:
	case -ENOENT:
	case -ENOTDIR:
	case -EISDIR:
	case -EEXIST:
	case -ENOTEMPTY:
	case -EBUSY:
	case -EINVAL:
	case -ELOOP:
	case -ENAMETOOLONG:
	case -EXDEV:
	case -ENOSPC:
	case -EDQUOT:
	case -EMLINK:
	case -EBADF:
	case -EMFILE:
	case -ENFILE:
		return false;
	default:
		return true;
	}
}

/* For a link, links the link itself and not the target. */
static int link_name(int fd, const char *name, int newfd, const char *newname)
{
	return linkat(fd, name, newfd, newname, 0);
}

int sys_path_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	(void)sys;
	return two_names(link_name, olddirfd, oldpath, newdirfd, newpath);
}

int sys_path_renameat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	(void)sys;
	return two_names(renameat, olddirfd, oldpath, newdirfd, newpath);
}

static int remove_name(int dirfd, const char *path, int flags)
{
	struct path_place p;
	int r;

	r = find_place(&p, dirfd, path);
	return r < 0 ? r : leave_place(&p, unlinkat(p.fd, p.name, flags));
}

int sys_path_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	(void)sys;
	return remove_name(dirfd, path, 0);
}

int sys_path_rmdirat(const struct sys *sys, int dirfd, const char *path)
{
	(void)sys;
	return remove_name(dirfd, path, AT_REMOVEDIR);
}

int sys_path_mkdirat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode)
{
	struct path_place p;
	int r;

	(void)sys;
	r = find_place(&p, dirfd, path);
	return r < 0 ? r : leave_place(&p, mkdirat(p.fd, p.name, mode));
}

int sys_path_chmod_trusted(const struct sys *sys, const char *path, mode_t mode)
{
	(void)sys;
	return result(chmod(path, mode));
}
