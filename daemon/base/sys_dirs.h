/*
 * A table of system calls that keeps the directories of its last paths open,
 * so that a path below a descriptor costs one openat2 per directory and not
 * one per call. It stands on another table and keeps its rules (sys.h): a kept
 * directory was opened beneath its descriptor, and a call in it has a single
 * name.
 *
 * A kept directory may be removed and made again meanwhile. A call that makes
 * a name is then tried again in the new directory. A call that only looks
 * answers for the kept one: so ask under a lock that stands in the directory,
 * which then can't be removed, or where a name that came later does not
 * matter.
 *
 * One thread for the calls with a path; any thread for the other calls. The
 * descriptors that paths are given with must stay open until sys_dirs_forget().
 */
#ifndef BASE_SYS_DIRS_H
#define BASE_SYS_DIRS_H

#include "daemon/base/sys.h"
#include "proto/limits.h"

/* One of refs and one of logs, the directories above them, which are looked at
 * when one of these gets empty, and that of HEAD's log. */
#define SYS_DIRS_KEPT 6

struct sys_dirs {
	struct sys sys; /* the table to be called; first */
	const struct sys *below;
	struct sys_dirs_kept {
		int dirfd;
		int fd; /* owned; -1: none */
		size_t len;
		uint64_t last_used;
		char path[REFD_PATH_MAX];
	} kept[SYS_DIRS_KEPT];
	uint64_t nr_calls;
};

/* BELOW is borrowed. DIRS stays where it is until sys_dirs_forget(). */
void sys_dirs_init(struct sys_dirs *dirs, const struct sys *below);
/* Closes what is kept; DIRS may go on being used. */
void sys_dirs_forget(struct sys_dirs *dirs);

#endif
