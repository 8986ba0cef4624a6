/*
 * Shared by the files of memfs; no other file includes this header.
 *
 *	memfs.c		the machine: clock, descriptors, faults, power
 *	memfs_set.c	settings and counters for tests
 *	memfs_tree.c	inodes, directories, the list of pending changes
 *	memfs_walk.c	paths
 *	memfs_data.c	content of files, in memory and on the disk
 *	memfs_names.c	calls of struct sys that make names
 *	memfs_inodes.c	calls of struct sys that read inodes or set modes
 *	memfs_fds.c	calls of struct sys that take a descriptor
 *	memfs_cut.c	crash, power loss, remount
 *	memfs_help.c	for tests: setup and inspection
 *
 * All functions except those of memfs.h run with the lock held.
 */
#ifndef TESTS_LIB_MEMFS_INTERNAL_H
#define TESTS_LIB_MEMFS_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "tests/lib/memfs.h"

#define MEMFS_PAGE     4096
#define MEMFS_LINK_MAX 65000 /* as ext4 */
#define MEMFS_SIZE_MAX ((size_t)1 << 30)
#define MEMFS_SYMLOOPS 40
#define MEMFS_NAME_MAX 255
#define MEMFS_PATH_MAX 4096
#define MEMFS_SHOWN    64
#define MEMFS_FIRST_FD 100000 /* above all kernel descriptors */

struct bytes {
	unsigned char *p;
	size_t len, room;
};

/* Flags of a file's page. */
enum {
	PAGE_TAKEN = 1, /* counts as a block */
	PAGE_DIRTY = 2, /* not written to the disk yet */
	PAGE_GHOST = 4  /* write-out failed; clean for the kernel */
};

struct dentry {
	struct dentry *next;
	struct inode *node;
	uint32_t hash;
	unsigned len;
	char name[];
};

struct inode {
	uint64_t ino;
	struct memfs_mount *mnt;
	uint32_t mode, uid, gid;
	unsigned links; /* names */
	unsigned opens; /* descriptors and directory streams */
	unsigned refs;  /* links, opens, pending changes */
	bool is_gone;   /* neither names nor opens: number and room freed */
	int64_t mtime, ctime;
	struct memfs_open *locker;
	/* directory */
	struct dentry **slots;
	size_t nr_slots, nr_names;
	unsigned nr_subdirs;
	struct inode *parent, *kept_parent;
	struct memfs_mount *covered; /* the mount here */
	/* symbolic link */
	char *target;
	/* file */
	struct bytes now, disk;
	unsigned char *pages;
	size_t nr_pages, nr_taken;
	size_t cut_to; /* the smallest size since the last sync */
	int64_t disk_mtime, disk_ctime;
	bool data_dirty, time_dirty, has_ghosts, is_listed;
	bool is_mapped; /* pages are never dropped */
	unsigned sync_errors;
	TAILQ_ENTRY(inode) dirty_link; /* in the list of dirty inodes */
};

/* The change of one name. */
struct mem_half {
	struct inode *dir, *old, *new;
	int64_t old_ctime;   /* of OLD, before the change */
	struct dentry *name; /* a copy, for name, len and hash */
};

/* A pending change: of one name, of two names by a rename (the new name first),
 * or of a mode. An fsync of HOME makes the change durable. */
struct mem_change {
	struct inode *home;
	unsigned nr;
	struct mem_half half[2];
	struct inode *node;
	uint32_t old_mode;
	bool is_marked;
};

struct memfs_mount {
	struct memfs *fs;
	unsigned index;
	uint64_t dev, fs_id, mount_id;
	struct inode *root, *point;
	struct mem_change *log;
	size_t nr_log, log_room;
	TAILQ_HEAD(, inode) dirty;
	uint64_t next_ino, *free_inos;
	size_t nr_free_inos, free_inos_room;
	int64_t blocks_left, inodes_left;
	bool has_block_limit, has_inode_limit;
	int dead;
};

struct memfs_proc {
	struct sys sys;
	struct memfs *fs;
	bool is_other;
	char shown[2 * MEMFS_SHOWN]; /* of memfs_enter_at() */
};

struct memfs_open {
	struct memfs_proc *proc;
	struct inode *node;
	int flags;
	bool is_dead; /* the mount is gone */
	bool sync_failed;
	unsigned errors_seen; /* of node->sync_errors */
	off_t pos;
	char path[MEMFS_SHOWN]; /* end of the path, for memfs_hit() */
};

struct sys_dir {
	TAILQ_ENTRY(sys_dir) link;
	struct memfs_proc *proc;
	struct inode *node; /* NULL: the mount is gone */
	size_t nr, pos;
	struct dir_name {
		char *name;
		uint64_t ino;
		unsigned char type;
	} *names;
};

enum memfs_power { POWER_ON, POWER_KILLED, POWER_CUT };

struct memfs_fault {
	bool is_armed, stays;
	bool is_after; /* the call takes effect first */
	int call;      /* MEMFS_NR_CALLS: any except close */
	unsigned long left;
	int err;
};

struct memfs {
	pthread_mutex_t lock;
	struct memfs_proc proc[2];
	struct memfs_proc *cur; /* the process of the call */
	struct memfs_mount *mounts[MEMFS_MOUNTS_MAX];
	unsigned nr_mounts;
	enum memfs_mode mode;
	uint64_t next_mount_id;
	int64_t wall, mono, step, tick;
	int64_t booted; /* on the monotonic clock */
	unsigned boot;
	char boot_id[40];
	bool hides_types;

	struct memfs_open **fds; /* [i] is descriptor first_fd + i */
	int first_fd, first_live_fd;
	size_t nr_fds, fds_room;
	unsigned long nr_open;
	unsigned max_fds;
	TAILQ_HEAD(, sys_dir) dirs;

	struct memfs_fault fault;
	bool stop_armed;
	enum memfs_power stop_how, power;
	unsigned long stop_left;
	bool between_armed;
	unsigned long between_left;
	void (*between)(struct memfs *fs, void *arg);
	void *between_arg;
	unsigned long nr_calls, nr_changes, calls_when_off;
	unsigned long bad_fds, bad_syncs;
	bool was_hit, faulted_now;
	int err_after; /* negative: the result of the present call */
	const char *call_name, *call_path; /* valid during the call */
	char hit[160];
};

/* ---- memfs.c ---- */

void *memfs_grow(void *array, size_t *room, size_t need, size_t size);
/* Always takes the lock; memfs_leave() releases it. */
int memfs_enter(const struct sys *sys, enum memfs_call call, const char *path,
    struct memfs **out);
/* For a path below DIRFD. Messages show the path of DIRFD in front, if DIRFD
 * was opened only for such calls (O_PATH). */
int memfs_enter_at(const struct sys *sys, enum memfs_call call, int dirfd,
    const char *path, struct memfs **out);
/* For a call without a path: messages show the path of the descriptor. */
int memfs_enter_fd(const struct sys *sys, enum memfs_call call, int fd,
    struct memfs **out);
int memfs_leave(struct memfs *fs, int r);
/* Call before every change of the disk. A negative result stops the machine
 * here. */
int memfs_change_begins(struct memfs *fs);
int64_t memfs_file_time(struct memfs *fs);
int memfs_fd_new(struct memfs *fs, struct inode *node, int flags);
int memfs_fd_get(struct memfs *fs, int fd, struct memfs_open **open);
void memfs_fd_drop(struct memfs *fs, size_t index);
void memfs_drop_all_fds(struct memfs *fs, struct memfs_proc *only);

/* ---- memfs_set.c ---- */

struct memfs_mount *memfs_mount_new(struct memfs *fs, struct inode *point);

/* ---- memfs_tree.c ---- */

struct inode *inode_new(struct memfs_mount *mnt, uint32_t mode);
void inode_get(struct inode *node);
void inode_put(struct inode *node);
/* After a name or a descriptor went: frees the inode if it is gone. */
void inode_settle(struct inode *node);
uint32_t inode_nlink(const struct inode *node);
struct dentry *dir_find(const struct inode *dir, const char *name, size_t len);
/* Sets a name, or removes it if NODE is NULL. Adds no pending change. */
void dir_set(struct inode *dir, const struct dentry *name, struct inode *node);
struct dentry *dentry_new(const char *name, size_t len);
/* Makes the change and adds it to the list. Takes over the names of the
 * halves. */
void change_names(struct inode *home, unsigned nr, struct mem_half *half);
void change_mode(struct inode *node, uint32_t mode);
/* Removes marked changes from the list, with all changes that must come before
 * them. */
void changes_last(struct memfs_mount *mnt);
void changes_mark_home(struct memfs_mount *mnt, const struct inode *home);
void changes_mark_from(struct memfs_mount *mnt, size_t first);
/* Undoes the newest changes until KEEP are left, and makes these durable. */
void changes_cut(struct memfs_mount *mnt, size_t keep);

/* ---- memfs_walk.c ---- */

enum walk_how {
	WALK_PARENT,   /* parent of a new or removed name; not followed */
	WALK_NOFOLLOW, /* an existing entry; still follows "link/" */
	WALK_FOLLOW,
	WALK_CREATE /* as WALK_FOLLOW; -EISDIR at "name/" */
};

/* The result of a path: NAME in DIR, with inode NODE or absent. If the last
 * component is ".", ".." or "/", DIR is NULL, and KIND is the component. */
struct where {
	struct inode *dir, *node;
	const char *name;
	size_t len;
	bool is_slashed; /* "name/" */
	enum { WHERE_NAME, WHERE_DOT, WHERE_DOTDOT, WHERE_ROOT } kind;
};

int walk(struct memfs *fs, int dirfd, const char *path, enum walk_how how,
    struct where *w);
/* Starts at any descriptor, and follows links anywhere. */
int walk_freely(struct memfs *fs, int dirfd, const char *path, struct where *w);
/* A call with two names, or with other arguments to check, looks up the
 * directories first, as sys_path.c does. */
int walk_parent(struct memfs *fs, int dirfd, const char *path);
/* To an existing inode; "name/" must be a directory. */
int walk_to(struct memfs *fs, int dirfd, const char *path, enum walk_how how,
    struct inode **node);
int inode_path(struct inode *node, char *buf, size_t size);

/* ---- memfs_data.c ---- */

size_t data_read(const struct inode *node, void *buf, size_t len, size_t off);
/* Reads as O_DIRECT: writes dirty pages out first. */
size_t data_read_disk(const struct inode *node, void *buf, size_t len,
    size_t off);
/* Returns the bytes written, fewer if the room ends; -ENOSPC, -EFBIG. */
ssize_t data_write(struct inode *node, const void *buf, size_t len, size_t off);
void data_truncate(struct inode *node, size_t size);
void data_touch(struct inode *node);
void data_sync(struct inode *node, bool with_time);
void data_sync_fails(struct inode *node);
void data_drop_clean(struct inode *node);
void data_cut(struct inode *node, enum memfs_data how, uint64_t *rng);
void data_free(struct inode *node);
uint64_t memfs_random(uint64_t *rng);

/* ---- memfs_cut.c ---- */

void memfs_boots(struct memfs *fs);

/* ---- memfs_names.c, memfs_inodes.c, memfs_fds.c ---- */

void memfs_names_table(struct sys *sys);
void memfs_inodes_table(struct sys *sys);
void memfs_fds_table(struct sys *sys);
void memfs_out_table(struct sys *sys);
/* The directory disappears under the stream; the stream is freed. */
void memfs_dir_strand(struct memfs *fs, struct sys_dir *dir);
void memfs_dir_free(struct memfs *fs, struct sys_dir *dir);

#endif
