/*
 * Proves that nobody holds a lock file, and removes it.
 *
 * A lock is dead if it is older than this boot (this_boot.h), or by the second
 * proof, which uses no clock:
 *	1. Open the lock. The open descriptor keeps the inode, so the inode
 *	   number is not used again.
 *	2. List all processes (processes.h). The holder took the lock before
 *	   step 1, so a living holder is in the list.
 *	3. List them again, until each process that may hold a lock of this
 *	   owner has ended.
 * Then nobody holds the lock with this inode.
 *
 * The file "<file>~pid.lock" proves nothing: git goes on without it if an old
 * file of this name exists, so it may name another process. As in git, a lock
 * belongs to the process that took it, and to no child of the process.
 *
 * One thread; every call may block; 0 or negative errno; nothing logs.
 */
#ifndef STORE_DEAD_LOCK_H
#define STORE_DEAD_LOCK_H

#include "daemon/base/sys.h"
#include "daemon/store/refs/processes.h"
#include "daemon/store/refs/this_boot.h"

/* The name in the git-dir of a lock while it is removed. */
#define DEAD_LOCK_ASIDE "refd-dead-lock"

struct dead_lock {
	int dirfd;  /* borrowed */
	char *path; /* below DIRFD, with ".lock" */
	int fd;
	struct sys_stat st;
};

/* Opens the lock PATH below DIRFD. -ENOENT: it is gone. -EMLINK: it has several
 * names, as the locks of refd do. -EINVAL: no regular file. On failure L needs
 * no close. */
int dead_lock_open(struct dead_lock *l, const struct sys *sys, int dirfd,
    const char *path);
/* NULL: L is dead, because it is older than this boot. Otherwise a static text,
 * to follow "because", with the reason why this is not proved. */
const char *dead_lock_not_older(const struct dead_lock *l,
    const struct sys *sys, const struct this_boot *boot);
/* The first process that may hold L, and the number of such processes in *NR.
 * ALL was listed after dead_lock_open(), and processes_keep() has removed the
 * processes that ended since. NULL: L is dead. */
const struct process *dead_lock_holder(const struct dead_lock *l,
    const struct processes *all, size_t *nr);
/* Does the path of L still lead to L? 0; -ESTALE: no. */
int dead_lock_check(const struct dead_lock *l, const struct sys *sys);
/*
 * Removes the dead lock L and its "<file>~pid.lock". GIT_DIR is the common dir,
 * whose flock the caller holds, so no other process of refd removes locks
 * there. -ESTALE: the path leads to another lock, which stays. -EBUSY: another
 * program removed L at the same moment, so this call has moved the next lock,
 * and could not put this lock back. The next lock is then DEAD_LOCK_ASIDE in
 * GIT_DIR.
 */
int dead_lock_remove(const struct dead_lock *l, const struct sys *sys,
    int git_dir);
void dead_lock_close(struct dead_lock *l, const struct sys *sys);

#endif
