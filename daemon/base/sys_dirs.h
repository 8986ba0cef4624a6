/*
 * A table of system calls that keeps the directories of recent paths open, so
 * that a path below a descriptor costs one openat2 per directory and not per
 * call. The table stands on another table and keeps the rules of sys.h: a kept
 * directory was opened beneath its descriptor, and a call in the directory has
 * a single name.
 *
 * A kept directory may be removed and created again meanwhile. A call that
 * creates a name is then tried again in the new directory. But a call that only
 * reads answers for the kept directory. So read only where a stale answer does
 * no harm, or under a lock file in the directory, which then cannot be removed.
 *
 * One thread for the calls with a path, because the kept directories have no
 * lock; any thread for the other calls. The descriptors passed with paths must
 * stay open until sys_dirs_forget().
 */
#ifndef BASE_SYS_DIRS_H
#define BASE_SYS_DIRS_H

#include "daemon/base/sys.h"

/* How many directories are kept. An update needs the directory of the ref, the
 * directory of its log, the directories above both, because a removal may leave
 * these empty, and the directory of HEAD's log. */
#define SYS_DIRS_KEPT 6

struct sys_dirs {
	struct sys sys; /* the table to be called; first member */
	const struct sys *below;
	struct sys_dirs_kept {
		int dirfd;
		int fd;     /* owned; -1: none */
		char *path; /* owned, unless FD is -1 */
		size_t len;
		uint64_t last_used;
	} kept[SYS_DIRS_KEPT];
	uint64_t nr_calls;
};

/* BELOW is borrowed, and DIRS must not move until sys_dirs_forget(). */
void sys_dirs_init(struct sys_dirs *dirs, const struct sys *below);
/* Closes all kept directories, but DIRS may still be used. */
void sys_dirs_forget(struct sys_dirs *dirs);

#endif
