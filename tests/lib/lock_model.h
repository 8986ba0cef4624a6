/*
 * A directory with a lock, and the processes in /proc, in memory: the model of
 * test_dead_lock. One thread.
 */
#ifndef TESTS_LIB_LOCK_MODEL_H
#define TESTS_LIB_LOCK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "daemon/store/refs/processes.h"

#define PIDS   8
#define INODES 32
#define FDS    8

/* IDMAPPED: in a namespace of root, with a mount that maps its user ids.
 * ROOTLESS: in a namespace of a user, which maps the owner of its lock.
 * STRANGER: in a namespace of another user, and holds nothing. */
enum kind {
	GIT,
	LIBRARY,
	IDMAPPED,
	ROOTLESS,
	STRANGER,
	SERVER,
	SECRET,
	SETUID,
	DAEMON,
	KINDS
};

struct life {
	uint64_t id; /* 0: no process has this number */
	uint64_t started;
	enum kind kind;
	uint32_t uid; /* of its files */
	bool is_zombie;
};

struct inode {
	uint64_t holder; /* life.id; 0: it released the lock */
	uint32_t uid;
	unsigned nlink, opens;
};

struct model {
	struct sys sys;
	uint64_t random, ids, ticks;
	int64_t clock;
	struct life lives[PIDS]; /* by pid - 1 */
	struct inode inodes[INODES];
	unsigned lock, pid_file, aside; /* inode numbers; 0: no such name */
	bool names_itself;              /* the holder has yet to */
	unsigned fds[FDS];
	struct {
		uint64_t id;
		char text[160];
	} proc;
	int next_pid;
	unsigned calls_per_event; /* at most; 2: much happens */
	uint64_t removed, kept, changed, moved, lost;
};

/* A new state of M for SEED; the counts stay. */
void lock_model_start(struct model *m, uint64_t seed);
/* A random number below N. */
unsigned lock_model_any(struct model *m, unsigned n);
process_ask lock_model_ask;
/* Did refd move a lock that a process holds? */
bool lock_model_is_moved(struct model *m);

#endif
