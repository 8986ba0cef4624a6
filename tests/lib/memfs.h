/*
 * A file system in memory behind struct sys, on a disk that forgets: a fake
 * for unit tests that fails calls, kills the process and cuts the power.
 *
 * What it answers is what Linux answers (tests/unit/test_memfs.c compares the
 * two), with these exceptions: nobody is denied anything, there is no umask,
 * no access time, no special file, and a directory is read as it was when it
 * was opened. Descriptors are never used twice, so that a closed one can't
 * pass for another. An inode number is used again at once, as on ext4.
 *
 * What lasts. Data of a file is on disk after fsync or fdatasync of that
 * file, a name after fsync of its directory (for a rename: of the new name's),
 * and everything of a mount after syncfs. The rest is pending: changes of
 * names and modes in one ordered list per mount, data per file. A power loss
 * keeps a prefix of each list, and of each file's pending data all, none,
 * NULs of the right size, a part, or a mixture of sectors. What was written
 * and written over between two syncs is not remembered.
 *
 * Calls on one memfs may come from any thread. Nothing blocks: sleeping moves
 * the clock.
 */
#ifndef TESTS_LIB_MEMFS_H
#define TESTS_LIB_MEMFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct memfs;

/* One empty directory, "/", which is also what AT_FDCWD names. */
struct memfs *memfs_new(void);
void memfs_free(struct memfs *fs);

/* The process under test; the rest of this file speaks of its calls. */
const struct sys *memfs_sys(struct memfs *fs);
/* Another process: faults, kills and counters pass it by, a power loss does
 * not. */
const struct sys *memfs_other(struct memfs *fs);

/* ---- mounts and modes ---- */

#define MEMFS_MOUNTS_MAX 4

/* Another file system at the empty directory PATH, made if need be. "/" is
 * mount 0, the first one mounted here is 1, and so on. */
unsigned memfs_mount(struct memfs *fs, const char *path);
unsigned memfs_nr_mounts(struct memfs *fs);

enum memfs_mode {
	/* fsync of a directory makes its own names last and no other's; fsync
	 * of a file makes no name last. */
	MEMFS_STRICT,
	/* Any fsync makes all names of the mount last that came before it, as
	 * the journals of ext4 and XFS do. fdatasync makes none last. Data
	 * that was written out and waited for lasts with its file's name; in
	 * STRICT writing out does nothing. */
	MEMFS_ORDERED
};
void memfs_set_mode(struct memfs *fs, enum memfs_mode mode);

/* Room left on a mount; negative (the default) is without end. Data counts in
 * blocks of 4096 bytes, each file and directory as one inode. */
void memfs_set_room(struct memfs *fs, unsigned mount, int64_t bytes,
    int64_t inodes);
/* Every call that touches the mount fails with ERR, a negative errno; 0: it
 * works again. */
void memfs_set_dead(struct memfs *fs, unsigned mount, int err);
/* -EMFILE beyond NR descriptors. */
void memfs_set_max_fds(struct memfs *fs, unsigned nr);
/* Directories tell DT_UNKNOWN, as XFS without ftype does. */
void memfs_hide_types(struct memfs *fs, bool hide);

/* ---- time ---- */

/* Both clocks go on by 1 us with every call. */
/* Files get the wall clock rounded down to a multiple of this (1: exact; 4 ms
 * is what ext4 does before Linux 6.13). */
void memfs_set_tick(struct memfs *fs, int64_t tick_ns);
void memfs_advance(struct memfs *fs, int64_t ns);
/* Somebody sets the wall clock alone: forward, or back where NS < 0. */
void memfs_shift_wall(struct memfs *fs, int64_t ns);

/* ---- faults ---- */

/* Every call of struct sys that can fail; close and dir_next too. */
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
 * The call after N more fails with ERR, a negative errno: any call but close,
 * or one of the kind CALL alone. One fault is armed at a time.
 *
 * A failed write_all leaves the first half written. A failed fsync, fdatasync
 * or syncfs has written nothing, and the next one answers 0 all the same: the
 * data stays in memory, clean, until drop_cache. A failed close has closed.
 */
void memfs_fail(struct memfs *fs, unsigned long n, int err);
void memfs_fail_call(struct memfs *fs, enum memfs_call call, unsigned long n,
    int err);
/* The same, and every call after it fails too: the disk is gone. */
void memfs_die(struct memfs *fs, unsigned long n, int err);
void memfs_fail_none(struct memfs *fs);

/* Runs FN just before the call after N more, once: what another process does
 * in between. FN may use memfs_other(). */
void memfs_between(struct memfs *fs, unsigned long n,
    void (*fn)(struct memfs *fs, void *arg), void *arg);

/* Calls made so far that memfs_fail counts; those that changed something. */
unsigned long memfs_nr_calls(struct memfs *fs);
unsigned long memfs_nr_changes(struct memfs *fs);
/* Has the armed fault, cut or kill come about? */
bool memfs_was_hit(struct memfs *fs);
/* The first call it came about at, for a message: "renameat a.lock". Valid until
 * the next one is armed. */
const char *memfs_hit(struct memfs *fs);

/* What no program should do, counted since memfs_new(): use a descriptor
 * that it has closed; sync one again whose sync has failed. */
unsigned long memfs_bad_fds(struct memfs *fs);
unsigned long memfs_bad_syncs(struct memfs *fs);
unsigned long memfs_open_fds(struct memfs *fs);

/* ---- kill -9 and power losses ---- */

/* Before the change after N more the process, or the machine, stops: every
 * call fails with -EIO and changes nothing, so that the caller unwinds. Then
 * memfs_crash() or memfs_power_loss() makes the state that the next start finds. */
void memfs_crash_at(struct memfs *fs, unsigned long n);
void memfs_power_loss_at(struct memfs *fs, unsigned long n);

enum memfs_data {
	MEMFS_DATA_MIXED, /* each file fares as the seed says */
	MEMFS_DATA_NONE,
	MEMFS_DATA_ALL,
	MEMFS_DATA_NULS,
	MEMFS_DATA_TORN
};

struct memfs_choice {
	uint64_t seed;
	enum memfs_data data;
	/* Pending changes of names kept; negative: as the seed says. */
	long keep[MEMFS_MOUNTS_MAX];
};
/* Everything as SEED says. */
struct memfs_choice memfs_choose(uint64_t seed);
/* How many changes of names a power loss could lose on MOUNT. */
size_t memfs_nr_pending(struct memfs *fs, unsigned mount);

/* Descriptors and locks of the process are gone; nothing else is. */
void memfs_crash(struct memfs *fs);
/* Memory is gone: of what was pending, CHOICE says what is left. Another boot
 * id; mount ids are the same numbers again. */
void memfs_power_loss(struct memfs *fs, const struct memfs_choice *choice);
/* The same for one mount, which comes back under another mount id while the
 * machine lives; descriptors on it answer -EIO for ever. */
void memfs_remount(struct memfs *fs, unsigned mount,
    const struct memfs_choice *choice);
/* In the form of /proc/sys/kernel/random/boot_id. */
const char *memfs_boot_id(struct memfs *fs);

/* ---- for setting up and for looking; these can't fail ---- */

/* What these make lasts at once. Missing parents are made, mode 0777. */
void memfs_mkdirs(struct memfs *fs, const char *path);
void memfs_write(struct memfs *fs, const char *path, const char *text);
void memfs_write_bytes(struct memfs *fs, const char *path, const void *buf,
    size_t len);
void memfs_symlink(struct memfs *fs, const char *target, const char *path);
void memfs_set_owner(struct memfs *fs, const char *path, uint32_t uid,
    uint32_t gid);

/* Another process has PATH mapped, or has not any more: nothing of it is
 * dropped from memory. */
void memfs_map(struct memfs *fs, const char *path, bool mapped);

/* The content, NUL-terminated, to be freed; NULL when there is no such file.
 * LEN may be NULL. */
char *memfs_read(struct memfs *fs, const char *path, size_t *len);
bool memfs_exists(struct memfs *fs, const char *path);
/* Does PATH hold exactly TEXT? NULL: is there nothing? */
bool memfs_holds(struct memfs *fs, const char *path, const char *text);
/* Every path below PATH that ends in ".lock", sorted, each with a newline; to
 * be freed. */
char *memfs_list_locks(struct memfs *fs, const char *path);
/* The tree, what is pending, what was hit, for a message of libcheck; cut off
 * where that would be too long; to be freed. */
char *memfs_dump(struct memfs *fs);

#endif
