/*
 * The processes of this machine, for the question which of them may hold a
 * lock file.
 *
 * A process may hold a lock only if the owner of the lock is one of the four
 * user ids of the process: open(2) takes the owner of a new file from them. So
 * a lock whose owner has no process has no holder. Exceptions may hold any
 * lock:
 *
 *	a process in another user namespace	a mount may map its user ids
 *	a file server (NFS, SMB, virtiofs)	holds locks of other machines
 *	a process that cannot be read
 *
 * refd-daemon holds only locks that are hard links (token.h), so it may hold
 * no lock with a single name.
 *
 * A process is known by its number and its time of start. The time of start
 * counts from the boot, so no clock that can be set is involved.
 *
 * One thread; every call may block. Nothing logs.
 */
#ifndef STORE_PROCESSES_H
#define STORE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct process {
	long pid;
	uint64_t started; /* in ticks since the boot; 0: unknown */
	uint32_t uids[4];
	char name[16];
	bool may_hold_any;
};

struct processes {
	struct process *list; /* in the order of PID */
	size_t nr, size;
};

/* NULL, or the reason why processes_find() does not see all processes of the
 * machine: a static text, to follow "refd". */
const char *processes_hidden(const struct sys *sys);
/* Lists every process that runs during the whole call, except ended processes
 * with unread status (zombies) and process SELF. ALL is empty before; free it
 * with processes_done(). 0 or negative errno. */
int processes_find(const struct sys *sys, long self, struct processes *all);
/* Removes from ALL every process that is not in NOW, a later list: it has
 * ended. */
void processes_keep(struct processes *all, const struct processes *now);
/* May P hold a lock file of UID with a single name? */
bool process_may_hold(const struct process *p, uint32_t uid);
void processes_done(struct processes *all);

#endif
