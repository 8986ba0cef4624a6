/*
 * The system calls of the store, as a table. Tests replace the table, to inject
 * faults or to model a disk that loses data.
 *
 * Every call returns the result of the system call with the same name, but a
 * failure is a negative errno, and errno itself is not used. EINTR is retried
 * inside if this is safe (read, write, open). fsync, fdatasync and syncfs are
 * retried only on EINTR, because any other failure has consumed the error. Any
 * thread; any call may block. SELF, the first argument, is the table, so that a
 * fake table can carry state.
 *
 * Paths. A call with a directory descriptor takes a path below this directory:
 * names with single slashes in between, or "." for the directory. Any other
 * path, also with "..", is -EINVAL. The path is resolved beneath the
 * descriptor, and a link is -ELOOP, even as the last component. The calls that
 * name a link (lstatat, readlinkat, unlinkat, linkat, renameat) act on the
 * link. Opening never waits for a FIFO, a device or a lease (O_NONBLOCK,
 * O_NOCTTY), so the caller must check the type with fstat. Other accounts may
 * change the files of a repository at any moment, and these rules keep every
 * path inside (openat2(2), Linux 5.6).
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The attributes from fstat and statx that the store uses, with times in
 * nanoseconds. */
struct sys_stat {
	uint64_t dev, ino, size;
	uint32_t mode, nlink, uid, gid;
	int64_t mtime_ns, ctime_ns;
};

/*
 * What tells a file from its copy. Each subvolume of btrfs has an f_fsid of its
 * own, but a snapshot keeps inodes and times of birth. Other file systems give
 * the number of a removed inode out again, but then the birth differs.
 */
struct sys_file_id {
	uint64_t fs; /* f_fsid of statfs(2) of the directory */
	uint64_t ino;
	int64_t born_ns; /* stx_btime of statx(2); 0: not known */
};

/*
 * When was the file written? The earlier of mtime and ctime counts. A tool can
 * set the mtime to the future, but every change sets the ctime to the clock, so
 * a later mtime is no proof of a write. An earlier mtime counts, because a new
 * name or a new mode is no write. After a power loss both times are of the same
 * moment, unlike the times that a program read before.
 */
static inline int64_t sys_stat_written_ns(const struct sys_stat *st)
{
	return st->mtime_ns < st->ctime_ns ? st->mtime_ns : st->ctime_ns;
}

/* A directory entry, whose NAME is valid until the next call. */
struct sys_dirent {
	const char *name;
	uint64_t ino;
	unsigned char type; /* DT_*; DT_UNKNOWN if not known */
};

struct sys_dir;

/*
 * SYS_TRUSTED takes the place of a descriptor, for a path that is resolved as
 * usual, without the rules above. Only root and the daemon's account may be
 * able to change such a file: configuration, state directory, sockets, roots
 * and /proc. scripts/check-layers lists the permitted files.
 */
#define SYS_TRUSTED AT_FDCWD

struct sys {
	void *ctx;
	int (*openat)(const struct sys *, int dirfd, const char *path,
	    int flags, mode_t mode); /* O_CLOEXEC is always added */
	int (*close)(const struct sys *, int fd);
	ssize_t (*pread)(const struct sys *, int fd, void *buf, size_t len,
	    off_t offset);
	/* Writes all bytes, or fails, and continues after a short write. */
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
	/* The life of the file system of FD: constant while its page cache
	 * lives, in every mount namespace if possible (sys_mount.c), and
	 * different after a new mount. Bit 62 is 0. */
	int (*mount_id)(const struct sys *, int fd, uint64_t *id);
	/* f_type of statfs(2). */
	int (*fs_type)(const struct sys *, int fd, uint64_t *type);
	int (*file_id)(const struct sys *, int dirfd, const char *name,
	    struct sys_file_id *id);
	/* The absolute path of an open directory, with links resolved, by
	 * /proc/self/fd. -ENOENT: the directory was removed. -ENAMETOOLONG. */
	int (*fd_path)(const struct sys *, int fd, char *buf, size_t size);
	/* Opens the directory PATH below DIRFD for reading. Follows links, and
	 * "..", only inside DIRFD, and otherwise fails with -EXDEV. *IS_PLAIN:
	 * PATH consists of plain names, and no name on the way is a link. */
	int (*open_below)(const struct sys *, int dirfd, const char *path,
	    bool *is_plain);
	/* Tells why another call failed with -ELOOP. 0: PATH is a directory
	 * below DIRFD, without links on the way. -EXDEV: a link on the way
	 * leads out of DIRFD. -ELOOP: a link on the way leads to a place below
	 * DIRFD. */
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
	/* Writes dirty data of a file to the drive (sync_file_range(2)). begin
	 * does not wait, and after wait the data has arrived at the drive. The
	 * size and the name of the file, and data in the cache of the drive,
	 * may still be lost without a flush. */
	int (*write_out_begin)(const struct sys *, int fd);
	int (*write_out_wait)(const struct sys *, int fd);
	/* 1: on FD's file system an fsync of the last changed file also makes
	 * durable all earlier changes of names, and all data that was written
	 * out. 0: not so, or unknown. */
	int (*fsync_covers_all)(const struct sys *, int fd);
	int (*flock_try)(const struct sys *, int fd); /* exclusive; -EAGAIN */
	/* Drops clean pages that no process has mapped. If cache_holds then
	 * says 0, the next read is from the disk. */
	int (*drop_cache)(const struct sys *, int fd);
	/* 1: some pages of the file FD are in memory, or the kernel does not
	 * tell. */
	int (*cache_holds)(const struct sys *, int fd);

	/* opendir, readdir (0 at the end, 1 for an entry, or negative) and
	 * closedir, without the entries "." and "..". */
	int (*dir_open)(const struct sys *, int dirfd, const char *path,
	    struct sys_dir **dir);
	int (*dir_next)(const struct sys *, struct sys_dir *dir,
	    struct sys_dirent *entry);
	void (*dir_close)(const struct sys *, struct sys_dir *dir);

	/* The clocks, in nanoseconds: the wall clock, the monotonic clock, and
	 * a monotonic clock that goes on while the machine is suspended.
	 * sleep_ns() sleeps. */
	int64_t (*now_wall)(const struct sys *);
	int64_t (*now_mono)(const struct sys *);
	int64_t (*now_boot)(const struct sys *);
	void (*sleep_ns)(const struct sys *, int64_t ns);
};

/* The table of the kernel. */
extern const struct sys sys_kernel;

/* For calls without naming the table twice: SYS(sys, openat, dirfd, path,
 * flags, mode). */
#define SYS(table, call, ...) ((table)->call((table), ##__VA_ARGS__))

/* 0, or -EINVAL: a call with a descriptor does not accept PATH (see above). */
int sys_path_check(const char *path);

/*
 * A rename or a link failed with ERR. May it have happened all the same? Errors
 * of access, of paths, of room for a name and of descriptors are only found
 * before the first change. After any other error, as -EIO, nobody knows, so the
 * answer is true. 0: false.
 */
bool sys_may_have_happened(int err);

/* The attributes of a trusted path, of which the last link is followed, too. */
int sys_stat_trusted(const struct sys *sys, const char *path,
    struct sys_stat *st);

/* Reads a whole regular file into *BUF, which ends with NUL and is freed by the
 * caller; *LEN is without NUL. -EFBIG: larger than MAX. -EISDIR: a directory.
 * -EINVAL: any other type. */
int sys_read_file(const struct sys *sys, int dirfd, const char *path,
    size_t max, char **buf, size_t *len);
int sys_read_fd(const struct sys *sys, int fd, size_t max, char **buf,
    size_t *len);

/* Makes the parents of PATH below DIRFD, as mkdir -p, but not PATH. A new
 * directory gets MODE (without the bits of the umask, which is 0 in the daemon,
 * and with an inherited set-group-ID bit). Returns the number of directories
 * that were missing, which are the innermost ones. Another process may have
 * made some of them meanwhile. -ENOTDIR: a parent is a file. -ENOENT: another
 * process removed a parent meanwhile, or DIRFD. */
int sys_make_parents(const struct sys *sys, int dirfd, const char *path,
    mode_t mode);

#endif
