/*
 * A file system in memory behind struct sys, on a disk that loses unsynced
 * data: a fake for unit tests with failing calls, crashes and power losses.
 *
 * Calls return the same results as in Linux (tests/unit/test_memfs.c compares
 * both), with these exceptions: there is no permission check, no umask, no
 * access time and no special file, and a directory stream shows the names at
 * the time of opening. A descriptor number is never used again, so a closed
 * descriptor is always detected. An inode number is used again at once, as on
 * ext4.
 *
 * Durability. The data of a file is on disk after fsync or fdatasync of the
 * file, a name after fsync of its directory (for a rename: of the new
 * directory), and a whole mount after syncfs. Other changes are pending: names
 * and modes in one ordered list per mount, data per file. A power loss keeps a
 * prefix of the list. Of the pending data of a file it keeps all, none, NULs of
 * the right size, a part, or a mixture of sectors. Data that is overwritten
 * between two syncs is not remembered.
 *
 * Calls on one memfs may come from any thread. Nothing blocks: sleeping
 * advances the clock.
 */
#ifndef TESTS_LIB_MEMFS_H
#define TESTS_LIB_MEMFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct memfs;

/* Makes an empty directory, "/", to which AT_FDCWD also refers. */
struct memfs *memfs_new(void);
void memfs_free(struct memfs *fs);

/* Calls of the process under test. The rest of this file is about these
 * calls. */
const struct sys *memfs_sys(struct memfs *fs);
/* Calls of a different process. Faults, crashes and counters do not apply to
 * it, but power losses do. */
const struct sys *memfs_other(struct memfs *fs);

/* ---- mounts and modes ---- */

#define MEMFS_MOUNTS_MAX 4

/* Mounts a file system on the empty directory PATH, which is made if necessary.
 * "/" is mount 0; the first call returns 1, the next 2, and so on. */
unsigned memfs_mount(struct memfs *fs, const char *path);
unsigned memfs_nr_mounts(struct memfs *fs);

enum memfs_mode {
	/* fsync of a directory makes only its own names durable; fsync of a
	 * file makes no name durable. */
	MEMFS_STRICT,
	/* As the journals of ext4 and XFS: any fsync makes all earlier names of
	 * the mount durable; fdatasync makes no name durable. Data after
	 * write-out and wait is durable together with the name of its file. In
	 * STRICT, write-out has no effect. */
	MEMFS_ORDERED
};
void memfs_set_mode(struct memfs *fs, enum memfs_mode mode);

/* Sets the free room of a mount; negative (the default) means no limit. Data
 * counts in blocks of 4096 bytes; a file or directory is one inode. */
void memfs_set_room(struct memfs *fs, unsigned mount, int64_t bytes,
    int64_t inodes);
/* All calls on the mount fail with ERR, a negative errno; 0 ends this. */
void memfs_set_dead(struct memfs *fs, unsigned mount, int err);
/* -EMFILE after NR descriptors. */
void memfs_set_max_fds(struct memfs *fs, unsigned nr);
/* Directories return DT_UNKNOWN, as in XFS without ftype. */
void memfs_hide_types(struct memfs *fs, bool hide);

/* ---- time ---- */

/* Both clocks advance by 1 us with every call. */
/* File times are the wall clock rounded down to a multiple of TICK_NS (1:
 * exact; 4 ms: ext4 before Linux 6.13). */
void memfs_set_tick(struct memfs *fs, int64_t tick_ns);
void memfs_advance(struct memfs *fs, int64_t ns);
/* Somebody sets the clock forward, or back if NS is negative. No time
 * passes. */
void memfs_step_clock(struct memfs *fs, int64_t ns);
/* Sets only the wall clock: forward, or back if NS < 0. */
void memfs_shift_wall(struct memfs *fs, int64_t ns);

/* ---- faults ---- */

/* All calls of struct sys that can fail; also close and dir_next. */
#define MEMFS_CALLS(X)                                                         \
	X(OPENAT, openat)                                                      \
	X(CLOSE, close)                                                        \
	X(PREAD, pread)                                                        \
	X(WRITE_ALL, write_all)                                                \
	X(PWRITE, pwrite)                                                      \
	X(FTRUNCATE, ftruncate)                                                \
	X(FCHMOD, fchmod)                                                      \
	X(CHMOD_TRUSTED, chmod_trusted)                                        \
	X(FUTIMENS_NOW, futimens_now)                                          \
	X(FSTAT, fstat)                                                        \
	X(LSTATAT, lstatat)                                                    \
	X(MOUNT_ID, mount_id)                                                  \
	X(FS_TYPE, fs_type)                                                    \
	X(FILE_ID, file_id)                                                    \
	X(FD_PATH, fd_path)                                                    \
	X(STAYS_BELOW, stays_below)                                            \
	X(LINKAT, linkat)                                                      \
	X(RENAMEAT, renameat)                                                  \
	X(UNLINKAT, unlinkat)                                                  \
	X(RMDIRAT, rmdirat)                                                    \
	X(MKDIRAT, mkdirat)                                                    \
	X(READLINKAT, readlinkat)                                              \
	X(FSYNC, fsync)                                                        \
	X(FDATASYNC, fdatasync)                                                \
	X(SYNCFS, syncfs)                                                      \
	X(WRITE_OUT_BEGIN, write_out_begin)                                    \
	X(WRITE_OUT_WAIT, write_out_wait)                                      \
	X(FLOCK_TRY, flock_try)                                                \
	X(DROP_CACHE, drop_cache)                                              \
	X(CACHE_HOLDS, cache_holds)                                            \
	X(DIR_OPEN, dir_open)                                                  \
	X(DIR_NEXT, dir_next)

#define X(name, call) MEMFS_##name,
enum memfs_call { MEMFS_CALLS(X) MEMFS_NR_CALLS };
#undef X

/*
 * The call after N further calls fails with ERR, a negative errno: any call
 * except close, or only calls of the kind CALL. One fault is armed at a time.
 *
 * After a failed write_all, the first half is written. A failed fsync,
 * fdatasync or syncfs writes nothing, and the next sync returns 0 all the same:
 * the data stays in memory, clean, until drop_cache. A failed close has closed.
 */
void memfs_fail(struct memfs *fs, unsigned long n, int err);
void memfs_fail_call(struct memfs *fs, enum memfs_call call, unsigned long n,
    int err);
/* As memfs_fail_call(), but the call has taken effect. CALL changes names. */
void memfs_fail_after(struct memfs *fs, enum memfs_call call, unsigned long n,
    int err);
/* As memfs_fail(), but all later calls fail, too: the disk is gone. */
void memfs_die(struct memfs *fs, unsigned long n, int err);
void memfs_fail_none(struct memfs *fs);

/* Runs FN once, just before the call after N further calls. FN acts as a
 * concurrent process, and may use memfs_other(). FN NULL: runs nothing, because
 * an earlier FN that was not reached must not outlive its argument. */
void memfs_between(struct memfs *fs, unsigned long n,
    void (*fn)(struct memfs *fs, void *arg), void *arg);

/* Number of calls so far as memfs_fail() counts them, and of calls that changed
 * the disk. */
unsigned long memfs_nr_calls(struct memfs *fs);
unsigned long memfs_nr_changes(struct memfs *fs);
/* Has the armed fault, power loss or crash occurred? */
bool memfs_was_hit(struct memfs *fs);
/* The first call that was hit, for a message: "renameat a.lock". Valid until
 * the next fault is armed. */
const char *memfs_hit(struct memfs *fs);

/* Number of forbidden calls since memfs_new(): use of a closed descriptor; a
 * second sync after a failed sync. */
unsigned long memfs_bad_fds(struct memfs *fs);
unsigned long memfs_bad_syncs(struct memfs *fs);
unsigned long memfs_open_fds(struct memfs *fs);

/* ---- crashes and power losses ---- */

/* The process, or the machine, stops before the change after N further changes.
 * All later calls fail with -EIO and change nothing, so the caller unwinds.
 * memfs_crash() or memfs_power_loss() then makes the state for the next
 * start. */
void memfs_crash_at(struct memfs *fs, unsigned long n);
void memfs_power_loss_at(struct memfs *fs, unsigned long n);

enum memfs_data {
	MEMFS_DATA_MIXED, /* chosen for each file by the seed */
	MEMFS_DATA_NONE,
	MEMFS_DATA_ALL,
	MEMFS_DATA_NULS,
	MEMFS_DATA_TORN
};

struct memfs_choice {
	uint64_t seed;
	enum memfs_data data;
	/* Pending changes of names to keep; negative: chosen by the seed. */
	long keep[MEMFS_MOUNTS_MAX];
};
/* Chooses everything by SEED. */
struct memfs_choice memfs_choose(uint64_t seed);
/* Number of changes of names on MOUNT that a power loss could lose. */
size_t memfs_nr_pending(struct memfs *fs, unsigned mount);

/* Loses only the descriptors and locks of the process. */
void memfs_crash(struct memfs *fs);
/* Loses the memory. CHOICE selects the pending changes that survive. The boot
 * id and all mount ids are new. */
void memfs_power_loss(struct memfs *fs, const struct memfs_choice *choice);
/* The same for one mount of a running machine. The mount comes back with a new
 * mount id, and its old descriptors return -EIO. */
void memfs_remount(struct memfs *fs, unsigned mount,
    const struct memfs_choice *choice);
/* A snapshot of the mount, which has what CHOICE selects, takes its place in
 * the same boot, after the process has ended. f_fsid is new. So is st_dev, but
 * a second call brings the first number back, as the kernel does. The mount id
 * is as before, because memory lives on. */
void memfs_put_back(struct memfs *fs, unsigned mount,
    const struct memfs_choice *choice);
/* In the format of /proc/sys/kernel/random/boot_id. */
const char *memfs_boot_id(struct memfs *fs);

/* ---- setup and inspection; these calls can't fail ---- */

/* The results are durable at once. Missing parents are made, with mode 0777. */
void memfs_mkdirs(struct memfs *fs, const char *path);
void memfs_write(struct memfs *fs, const char *path, const char *text);
void memfs_write_bytes(struct memfs *fs, const char *path, const void *buf,
    size_t len);
void memfs_symlink(struct memfs *fs, const char *target, const char *path);
void memfs_set_owner(struct memfs *fs, const char *path, uint32_t uid,
    uint32_t gid);
/* MODE: the permissions. */
void memfs_chmod(struct memfs *fs, const char *path, uint32_t mode);
/* As touch -d: the mtime becomes AHEAD_NS after now, the ctime is now. */
void memfs_set_mtime(struct memfs *fs, const char *path, int64_t ahead_ns);

/* While another process has PATH mapped, none of its pages are dropped from
 * memory. */
void memfs_map(struct memfs *fs, const char *path, bool mapped);

/* The content, NUL-terminated, to be freed; NULL if there is no such file. LEN
 * may be NULL. */
char *memfs_read(struct memfs *fs, const char *path, size_t *len);
bool memfs_exists(struct memfs *fs, const char *path);
/* Is the content of PATH exactly TEXT? If TEXT is NULL: is PATH absent? */
bool memfs_holds(struct memfs *fs, const char *path, const char *text);
/* Every path below PATH that ends in ".lock", sorted, each with a newline; to
 * be freed. */
char *memfs_list_locks(struct memfs *fs, const char *path);
/* The tree, the pending changes and the last fault, for a message of libcheck.
 * Cut to a limited length; to be freed. */
char *memfs_dump(struct memfs *fs);

#endif
