/*
 * Writes reflogs.
 *
 * Happy path:
 *	prepare		open, fstat, close: the log exists and is writable
 *	append		open, fstat, one write
 *
 * Failure modes:
 *	directories are missing, or empty directories stand in the file's
 *	place: made and removed, up to three times against other processes
 *	a write fails half-way: the file is cut back to its old size
 *	the log is gone at append: -ENOENT, and the caller may prepare again
 *	the file has a second name (a hard link): -EMLINK, file unchanged
 *	the end is torn: a line feed goes first, so that readers lose only the
 *	torn line
 */
#include "daemon/store/files/format/reflog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/format/reflog_internal.h"

#define TRIES 3

/* ---- the file ---- */

/* Never blocks on a FIFO, never follows a link. A file with a second name may
 * be any file of the daemon's account, because with fs.protected_hardlinks=0
 * every user with write access below logs/ can link the file there. */
static int open_existing(const struct reflog_file *log, int flags,
    uint64_t *size)
{
	const struct sys *sys = log->sys;
	struct sys_stat st;
	int fd, r;

	fd = SYS(sys, openat, log->dirfd, log->path,
	    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0);
	if (fd < 0)
		return fd == -ENXIO ? -EINVAL : fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && !S_ISREG(st.mode))
		r = -EINVAL;
	if (r == 0 && st.nlink > 1)
		r = -EMLINK;
	if (r < 0) {
		SYS(sys, close, fd);
		return r;
	}
	*size = st.size;
	return fd;
}

static int create(const struct reflog_file *log, int flags, uint64_t *size)
{
	const struct sys *sys = log->sys;
	int fd, r;

	fd = SYS(sys, openat, log->dirfd, log->path,
	    O_RDWR | O_CREAT | O_EXCL | flags, log->file_mode);
	if (fd < 0)
		return fd;
	r = SYS(sys, fchmod, fd, log->file_mode);
	if (r < 0) {
		SYS(sys, close, fd);
		SYS(sys, unlinkat, log->dirfd, log->path);
		return r;
	}
	*size = 0;
	return fd;
}

/* Removes obstacles of a new log, or makes missing directories. 0: try
 * again. */
static int make_room(const struct reflog_file *log, int error,
    unsigned *made_dirs)
{
	int r;

	if (error == -EISDIR) {
		r = loose_clear_dirs(log->sys, log->dirfd, log->path, NULL);
		return r == -ENOTEMPTY ? -EISDIR : r;
	}
	if (error == -EEXIST)
		return 0;
	if (error != -ENOENT)
		return error;
	r = sys_make_parents(log->sys, log->dirfd, log->path, log->dir_mode);
	if (r > 0 && made_dirs != NULL)
		*made_dirs += (unsigned)r;
	return r == -ENOENT ? 0 : r;
}

int reflog_open(const struct reflog_file *log, int flags, uint64_t *size,
    unsigned *made_dirs)
{
	unsigned tries;
	int fd, r;

	fd = open_existing(log, flags, size);
	if (!log->create)
		return fd == -EISDIR ? -ENOENT : fd;
	for (tries = 0; fd < 0 && tries < TRIES; tries++) {
		if (fd == -ENOENT)
			fd = create(log, flags, size);
		if (fd >= 0)
			break;
		r = make_room(log, fd, made_dirs);
		if (r < 0)
			return r;
		fd = open_existing(log, flags, size);
	}
	return fd;
}

int reflog_prepare(const struct reflog_file *log, bool *will_log, bool *made,
    unsigned *made_dirs)
{
	uint64_t size;
	int fd;

	*will_log = *made = false;
	*made_dirs = 0;
	fd = open_existing(log, O_APPEND, &size);
	if (fd < 0 && log->create) {
		fd = reflog_open(log, O_APPEND, &size, made_dirs);
		*made = fd >= 0;
	} else if (fd == -ENOENT || fd == -EISDIR) {
		return 0;
	}
	if (fd < 0)
		return fd;
	SYS(log->sys, close, fd);
	*will_log = true;
	return 0;
}

int reflog_unmake(const struct reflog_file *log)
{
	struct sys_stat st;
	int r;

	r = SYS(log->sys, lstatat, log->dirfd, log->path, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return st.size == 0 ? reflog_delete(log) : 0;
}

/* 1: the SIZE bytes of FD end in half a line, because the machine lost power
 * before the writer had synced the line. */
static int ends_torn(const struct sys *sys, int fd, uint64_t size)
{
	char last = '\n';
	ssize_t n = 0;

	if (size > 0)
		n = SYS(sys, pread, fd, &last, 1, (off_t)(size - 1));
	return n < 0 ? (int)n : last != '\n';
}

int reflog_append(const struct reflog_file *log, const char *line, size_t len)
{
	const struct sys *sys = log->sys;
	uint64_t size;
	int fd, r;

	fd = reflog_open(log, O_APPEND, &size, NULL);
	if (fd < 0)
		return fd;
	r = ends_torn(sys, fd, size);
	if (r > 0)
		r = SYS(sys, write_all, fd, "\n", 1);
	if (r == 0)
		r = SYS(sys, write_all, fd, line, len);
	if (r == 0)
		return fd;
	SYS(sys, ftruncate, fd, (off_t)size);
	SYS(sys, close, fd);
	return r;
}

/* 1 when the SIZE bytes of FD end with LINE as a whole line. */
static int ends_with(const struct sys *sys, int fd, uint64_t size,
    const char *line, size_t len)
{
	size_t want = len + (size > len), have = 0;
	char *tail;
	ssize_t n;
	int r = 0;

	if (size < len)
		return 0;
	tail = malloc(want + 1);
	if (tail == NULL)
		return -ENOMEM;
	while (have < want && r == 0) {
		n = SYS(sys, pread, fd, tail + have, want - have,
		    (off_t)(size - want + have));
		if (n <= 0)
			r = n < 0 ? (int)n : -EIO;
		else
			have += (size_t)n;
	}
	if (r == 0)
		r = (want == len || tail[0] == '\n') &&
		    memcmp(tail + want - len, line, len) == 0;
	free(tail);
	return r;
}

static int cut_last_line(const struct sys *sys, int fd, uint64_t size,
    const char *line, size_t len)
{
	int r = ends_with(sys, fd, size, line, len);

	if (r > 0)
		r = SYS(sys, ftruncate, fd, (off_t)(size - len));
	return r;
}

int reflog_retract_open(const struct sys *sys, int fd, const char *line,
    size_t len)
{
	struct sys_stat st;
	int r = SYS(sys, fstat, fd, &st);

	return r < 0 ? r : cut_last_line(sys, fd, st.size, line, len);
}

int reflog_retract(const struct reflog_file *log, const char *line, size_t len)
{
	uint64_t size;
	int fd, r;

	fd = reflog_open(log, O_APPEND, &size, NULL);
	if (fd < 0)
		return fd == -ENOENT || fd == -EMLINK ? 0 : fd;
	r = cut_last_line(log->sys, fd, size, line, len);
	SYS(log->sys, close, fd);
	return r;
}

int reflog_complete(const struct reflog_file *log, const char *line, size_t len,
    bool *added)
{
	const struct sys *sys = log->sys;
	size_t lines, cut;
	uint64_t size;
	int fd, r;

	*added = false;
	r = reflog_repair(log, NULL, 0, 0, &lines, &cut);
	if (r < 0)
		return r;
	fd = reflog_open(log, O_APPEND, &size, NULL);
	if (fd < 0)
		return fd;
	r = ends_with(sys, fd, size, line, len);
	if (r == 0) {
		r = SYS(sys, write_all, fd, line, len);
		*added = r == 0;
	}
	SYS(sys, close, fd);
	return r < 0 ? r : 0;
}

/* The number of components of a log's path that stay: up to logs/refs/<x>.
 * Elsewhere (HEAD's log) all stay. */
static unsigned components_kept(const char *log_path)
{
	const char *p = log_path;
	unsigned before = 0;

	while (strncmp(p, "logs/refs/", 10) != 0) {
		p = strchr(p, '/');
		if (p == NULL)
			return UINT32_MAX;
		p++;
		before++;
	}
	return before + 3;
}

int reflog_delete(const struct reflog_file *log)
{
	int r;

	r = SYS(log->sys, unlinkat, log->dirfd, log->path);
	if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR)
		return 0;
	if (r == 0)
		loose_prune_parents(log->sys, log->dirfd, log->path,
		    components_kept(log->path));
	return r;
}
