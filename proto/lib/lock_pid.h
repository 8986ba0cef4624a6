/*
 * The age of a lock file of another program, and the process that holds the
 * lock, as far as files and /proc show. This is no proof, because git closes a
 * lock and still holds the lock, and processes of other users may be invisible.
 * So nobody removes a lock for this reason (decision 019).
 *
 * Git names the process that took "<file>.lock" in "<file>~pid.lock", if
 * core.lockfilePid is set (git 2.54 and later: create_lock_pid_file() and
 * read_lock_pid() of git's lockfile.c). Git makes the file after the lock, and
 * removes the file before the lock. If the process is killed, both files stay.
 * No ref has "~" in its name, so the file is never the lock of a ref.
 *
 * The file is hostile input. Its owner can write any number, so a process that
 * runs is named only if the process has the same owner as the file.
 *
 * Any thread; opening, reading and searching block.
 */
#ifndef PROTO_LIB_LOCK_PID_H
#define PROTO_LIB_LOCK_PID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

#define LOCK_PID_SUFFIX "~pid.lock"
/* A longer file is malformed. */
#define LOCK_PID_BYTES 32

enum lock_verdict {
	HOLDER_UNKNOWN,
	HOLDER_HAS_OPEN, /* the process has the lock open */
	HOLDER_RUNS,     /* git named the process, which runs */
	HOLDER_ENDED     /* git named the process, which has ended */
};

/* Zero-initialised is unknown. */
struct lock_holder {
	enum lock_verdict verdict;
	long pid; /* 0: unknown */
};

/* Is FILE such a file, and so no lock? */
bool lock_pid_is(const char *file);
/* The length of <file> in NAME, "<file>.lock"; 0: NAME is no lock. */
size_t lock_file_len(const char *name);
/* The path of the file beside LOCK, "<file>.lock". -EINVAL: LOCK has a
 * different form. -ENAMETOOLONG. */
int lock_pid_path(char path[REFD_PATH_MAX], const char *lock);
/* Opens the file beside LOCK. Negative: there is none. */
int lock_pid_open(const char *lock);

/* The process in the file open as FD, which is closed, and the owner of the
 * file. 0: malformed, or FD is negative because there is no file. */
long lock_pid_read(int fd, uid_t *owner);
/* The holder that git named in the file open as FD, as above. */
struct lock_holder lock_pid_named(int fd);
/* The holder of the lock with the numbers DEV and INO: a visible process that
 * has the lock open, or else as lock_pid_named(FD). */
struct lock_holder lock_pid_find(uint64_t dev, uint64_t ino, int fd);
/* The start of a process in clock ticks since the boot, from STAT, the content
 * of its file stat in /proc. A process is known by its number and its start. 0:
 * malformed. */
uint64_t lock_pid_started(const char *stat);
/* The first visible process for which IS is true; 0: none. PROC is its
 * directory in /proc. */
long lock_pid_search(bool (*is)(const char *proc, const void *arg),
    const void *arg);

/* The age of a lock since SINCE_S, in seconds; 0 if the clock is behind. People
 * remove a lock because of its age, so it may look too young, but not too old:
 * SINCE_S is the ctime, which no tool can set. Unsigned, because a hostile file
 * system tells any time. */
uint64_t lock_age_s(int64_t now_s, int64_t since_s);

#endif
