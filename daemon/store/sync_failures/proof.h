/*
 * Whether the objects of a store that were written since a moment are on the
 * disk, and not in memory alone: read from there, and held against the sums
 * that git gives them.
 *
 * Any thread; blocks for as long as it takes to read them; nothing logs.
 */
#ifndef STORE_PROOF_H
#define STORE_PROOF_H

#include "daemon/base/sys.h"

/* Told of each file that is not on the disk as it was written. */
struct proof {
	const struct sys *sys;
	void (*lost)(void *arg, const char *path, const struct sys_stat *st);
	void *arg;
};

/*
 * All below FD, which is objects/ (NAME ""), or what objects/ has by NAME, that
 * changed at LIMIT or later. 0, or a negative errno and in PATH the first file
 * that it is about:
 *	-EBADMSG	not on the disk as it was written; LOST was told of all
 *	-EBUSY		another process has it mapped: nobody can tell
 *	another one	could not be read
 */
int proof_of_objects(const struct proof *proof, int fd, const char *name,
    int64_t limit, char *path, size_t size);

#endif
