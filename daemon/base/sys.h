/*
 * The system calls of the store, as a table: tests put a fault, or a model of
 * a disk that forgets, in place of the kernel.
 *
 * Every call returns what the man page of its namesake says, except that a
 * failure is a negative errno and errno itself is not used. EINTR is retried
 * inside where that is safe (read, write, open); fsync, fdatasync and syncfs
 * are retried on EINTR alone and never after another failure. Any thread; any
 * call may block. SELF is the table's own first argument so that a fake can
 * carry state.
 *
 * Paths. Each call that takes a directory's descriptor takes a path below it:
 * names with single slashes between them, or "." for the directory itself;
 * anything else, ".." too, is -EINVAL. The path is resolved beneath the
 * descriptor without following any link, the last one included: -ELOOP, and
 * the calls that name a link (lstatat, readlinkat, unlinkat, linkat, renameat)
 * act on the link. Opening never waits for a FIFO, a device or a lease
 * (O_NONBLOCK, O_NOCTTY); what was opened is the caller's to fstat. So a
 * repository's files, which others than the daemon may change at any moment,
 * lead nowhere else (openat2(2), Linux 5.6).
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What fstat and statx tell that the store uses. Times in nanoseconds. */
struct sys_stat {
	uint64_t dev, ino, size;
	uint32_t mode, nlink, uid, gid;
	int64_t mtime_ns, ctime_ns;
};

/* One directory entry; name is valid until the next call. */
struct sys_dirent {
	const char *name;
	uint64_t ino;
	unsigned char type; /* DT_*; DT_UNKNOWN where not told */
};

struct sys_dir;

/*
 * In place of a descriptor, before a path that is followed wherever it leads:
 * only for what nobody but root and the daemon's account can change, that is
 * configuration, state directory, sockets, roots and /proc. scripts/check-layers
 * lists the files that may say it.
 */
#define SYS_TRUSTED AT_FDCWD

struct sys {
	void *ctx;
	int (*openat)(const struct sys *, int dirfd, const char *path,
	    int flags, mode_t mode); /* O_CLOEXEC is always added */
	int (*close)(const struct sys *, int fd);
	ssize_t (*pread)(const struct sys *, int fd, void *buf, size_t len,
	    off_t offset);
	/* All of it or an error; a short write is carried on. */
	int (*write_all)(const struct sys *, int fd, const void *buf,
	    size_t len);
	ssize_t (*pwrite)(const struct sys *, int fd, const void *buf,
	    size_t len, off_t offset);
	int (*ftruncate)(const struct sys *, int fd, off_t size);
	int (*fchmod)(const struct sys *, int fd, mode_t mode);
	int (*chmod_trusted)(const struct sys *, const char *path, mode_t mode);
	int (*futimens_now)(const struct sys *, int fd);
	int (*fstat)(const struct sys *, int fd, struct sys_stat *st);
	int (*lstatat)(const struct sys *, int dirfd, const char *path,
	    struct sys_stat *st); /* never follows the last link */
	/* Which life of which file system holds FD: the same number as long as
	 * its page cache lives, in any mount namespace where that can be told
	 * (sys_mount.c), and another once it was mounted anew. Bit 62 is 0. */
	int (*mount_id)(const struct sys *, int fd, uint64_t *id);
	/* f_type of statfs(2). */
	int (*fs_type)(const struct sys *, int fd, uint64_t *type);
	/* The absolute path of an open directory, links resolved; the kernel's
	 * is /proc/self/fd. -ENOENT: it was removed. -ENAMETOOLONG. */
	int (*fd_path)(const struct sys *, int fd, char *buf, size_t size);
	/* The directory PATH below DIRFD, to be read. Links are followed as long
	 * as they, and ".." too, stay below it; else -EXDEV (the same call). */
	int (*open_below)(const struct sys *, int dirfd, const char *path);
	/* Tells apart what the other calls have -ELOOP for. 0: PATH is a
	 * directory below DIRFD, and no link is on the way. -EXDEV: a link
	 * leads out; -ELOOP: one is there, and leads elsewhere below. */
	int (*stays_below)(const struct sys *, int dirfd, const char *path);
	int (*linkat)(const struct sys *, int olddirfd, const char *oldpath,
	    int newdirfd, const char *newpath);
	int (*renameat)(const struct sys *, int olddirfd, const char *oldpath,
	    int newdirfd, const char *newpath);
	int (*unlinkat)(const struct sys *, int dirfd, const char *path);
	int (*rmdirat)(const struct sys *, int dirfd, const char *path);
	int (*mkdirat)(const struct sys *, int dirfd, const char *path,
	    mode_t mode);
	ssize_t (*readlinkat)(const struct sys *, int dirfd, const char *path,
	    char *buf, size_t size);
	int (*fsync)(const struct sys *, int fd);
	int (*fdatasync)(const struct sys *, int fd);
	int (*syncfs)(const struct sys *, int fd);
	/* Has what was written to a file go to the drive: begin does not wait
	 * for it. After wait it has arrived there, but neither the file's size
	 * or name nor what the drive keeps in memory lasts: that takes a flush
	 * of another kind (sync_file_range(2)). */
	int (*write_out_begin)(const struct sys *, int fd);
	int (*write_out_wait)(const struct sys *, int fd);
	/* 1: on FD's file system an fsync of any one file that was changed
	 * last also makes all names last that were changed before, and all
	 * data that was written out. 0: it does not, or nobody knows. */
	int (*fsync_covers_all)(const struct sys *, int fd);
	int (*flock_try)(const struct sys *, int fd); /* exclusive; -EAGAIN */
	/* Drops clean pages that nobody has mapped: what is read next is the
	 * disk's where cache_holds says 0 then. */
	int (*drop_cache)(const struct sys *, int fd);
	/* 1: something of the file FD is in memory, or nobody may tell. */
	int (*cache_holds)(const struct sys *, int fd);

	/* opendir, readdir (0 at the end, 1 for an entry, or negative),
	 * closedir. "." and ".." are left out. */
	int (*dir_open)(const struct sys *, int dirfd, const char *path,
	    struct sys_dir **dir);
	int (*dir_next)(const struct sys *, struct sys_dir *dir,
	    struct sys_dirent *entry);
	void (*dir_close)(const struct sys *, struct sys_dir *dir);

	/* Wall clock and monotonic clock, in nanoseconds; sleeping. */
	int64_t (*now_wall)(const struct sys *);
	int64_t (*now_mono)(const struct sys *);
	void (*sleep_ns)(const struct sys *, int64_t ns);
};

/* The kernel's. */
extern const struct sys sys_kernel;

/* Calls read better without the table's name twice:
 * SYS(sys, openat, dirfd, path, flags, mode). */
#define SYS(table, call, ...) ((table)->call((table), ##__VA_ARGS__))

/* 0, or -EINVAL: PATH is not one for a call with a descriptor (above). */
int sys_path_check(const char *path);

/* Of a trusted path, its last link followed. */
int sys_stat_trusted(const struct sys *sys, const char *path,
    struct sys_stat *st);

/* Reads the whole of a regular file into *BUF, NUL-terminated, to be freed by
 * the caller; *LEN without the NUL. -EFBIG beyond MAX, -EISDIR for a
 * directory, -EINVAL for anything else that is no file. */
int sys_read_file(const struct sys *sys, int dirfd, const char *path,
    size_t max, char **buf, size_t *len);
int sys_read_fd(const struct sys *sys, int fd, size_t max, char **buf,
    size_t *len);

/* mkdir -p of every parent of PATH (not PATH itself) below DIRFD; each new
 * directory gets MODE (less the process's umask, which is 0 in the daemon,
 * and plus an inherited set-group-ID bit). How many were made: the innermost
 * ones. -ENOTDIR: a parent is a file; -ENOENT: somebody pruned one meanwhile, or DIRFD itself is gone. */
int sys_make_parents(const struct sys *sys, int dirfd, const char *path,
    mode_t mode);

#endif
