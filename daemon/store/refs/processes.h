/*
 * The processes of this machine, for the question which of them may hold a
 * lock file.
 *
 * A process may hold a lock only if the owner of the lock is one of the four
 * user ids of the process: open(2) takes the owner of a new file from them, so
 * a lock whose owner has no process has no holder. A process in another user
 * namespace may also take any user id that the namespace maps, so it may hold
 * the locks of these. Exceptions may hold any lock:
 *
 *	a process in a namespace of root	a mount of root may map its ids
 *	a file server of root (NFS, SMB)	holds locks of other machines
 *	a process that cannot be read
 *
 * Only root can make an exception, because a user who can make one could keep
 * the locks of all users. So a file server is known by the file of its program,
 * since a link can give a program of root any name. A namespace is known by its
 * maker. Only root can read the file and the maker, and the list is made with
 * the rights of the owner of the repository, so the list asks root
 * (process_ask).
 *
 * refd-daemon holds only locks that are hard links (token.h), so it may hold
 * no lock with a single name.
 *
 * A process is known by its number and its time of start, which counts from the
 * boot, so no clock that can be set is involved.
 *
 * One thread; every call may block. Nothing logs.
 */
#ifndef STORE_PROCESSES_H
#define STORE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct uid_range {
	uint32_t first, nr;
};

struct process {
	long pid;
	uint64_t started; /* in ticks since the boot; 0: unknown */
	uint32_t uids[4];
	char name[16];
	/* The ids mapped by the user namespace, or none in the first
	 * namespace. */
	struct uid_range *mapped;
	size_t nr_mapped, mapped_size;
	bool may_hold_any;
};

struct processes {
	struct process *list; /* in the order of PID */
	size_t nr, size;
};

enum process_doubt {
	PROCESS_SERVES, /* is its program a file server? */
	/* Did root make the user namespace of the process, or a namespace
	 * around that namespace? The first namespace of the machine does not
	 * count. */
	PROCESS_IN_NAMESPACE,
};

/* True: yes, or unknown. */
typedef bool process_ask(const struct sys *sys, enum process_doubt doubt,
    long pid);

/* The answer of a process that may read everything. */
process_ask processes_answer;
/* NULL, or the reason why processes_find() does not see all processes of the
 * machine: a static text, to follow "refd". */
const char *processes_hidden(const struct sys *sys);
/* The same, but only whether this process runs in a container. */
const char *processes_in_container(const struct sys *sys);
/* Is a file server of root set up on this machine? It need not run yet, because
 * its clients hold locks through restarts of the machine. True if unknown. */
bool processes_serve_files(const struct sys *sys);
/* Lists every process that runs during the whole call, except ended processes
 * with unread status (zombies) and process SELF. ALL is empty before, and is
 * freed by processes_done(). ASK is called where a doubt remains. 0 or negative
 * errno. */
int processes_find(const struct sys *sys, long self, process_ask *ask,
    struct processes *all);
/* Removes from ALL every process that is not in NOW, a later list, because the
 * process has ended. */
void processes_keep(struct processes *all, const struct processes *now);
/* May P hold a lock file of UID with a single name? */
bool process_may_hold(const struct process *p, uint32_t uid);
void processes_done(struct processes *all);

#endif
