/*
 * Acting as another: what a daemon of root's does in a repository it does as
 * the one to whom that belongs. Files it makes are his, and a link that
 * somebody has planted there leads no further than he gets by himself.
 *
 * Of the calling thread's file accesses alone (setfsuid(2)); descriptors that
 * are open stay what they are. Never blocks, where it does not say so.
 */
#ifndef BASE_SYS_AS_H
#define BASE_SYS_AS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/sys.h"

struct sys_who {
	uint32_t uid, gid;
};

static inline bool sys_who_eq(struct sys_who a, struct sys_who b)
{
	return a.uid == b.uid && a.gid == b.gid;
}

/* The process itself. */
extern const struct sys_who sys_self;

/* UID, with GID where the system counts UID among that group, else with UID's
 * own: it is to get no rights that it has not. Asks for accounts, so it may
 * block; any thread. */
struct sys_who sys_who_of(uint32_t uid, uint32_t gid);

/* Before there are threads. Nothing is changed for anybody but root; root
 * lets go of its groups. Where that can't be had (a container without
 * CAP_SETUID and CAP_SETGID), root acts as nobody but itself. */
void sys_as_init(void);

/* True: sys_as() does something. */
bool sys_as_possible(void);

/* Returns who it was before, to be given back. Nothing where it is not
 * possible; root's own group stays what it is. */
struct sys_who sys_as(struct sys_who who);

/* openat(2) to read and write, O_CREAT and mode 0600 added, as the one to
 * whom the directory that PATH is in belongs: what root makes in the state
 * directory of another account that one's daemon can use. Blocks. */
int sys_make_theirs(const struct sys *sys, int dirfd, const char *path,
    int flags);

#endif
