/*
 * Reads back the objects of a store: are the objects that were written since
 * some time on the disk, and not in memory alone? Their contents are read from
 * the disk, and compared with the checksums that git gives them.
 *
 * Any thread. Blocks while the objects are read. Nothing logs.
 */
#ifndef STORE_READBACK_H
#define STORE_READBACK_H

#include "daemon/base/sys.h"

/* LOST is called for each file that is not on the disk as it was written. */
struct readback {
	const struct sys *sys;
	void (*lost)(void *arg, const char *path, const struct sys_stat *st);
	void *arg;
};

/*
 * Reads all files that changed at LIMIT or later below the directory FD. FD is
 * objects/ (NAME ""), or its directory NAME. 0, or a negative errno, and PATH is
 * the first file with that error:
 *	-EBADMSG	not on the disk as it was written; LOST was told of all
 *	-EBUSY		another process has it mapped: nobody can tell
 *	another one	could not be read
 */
int readback_objects(const struct readback *readback, int fd, const char *name,
    int64_t limit, char *path, size_t size);

#endif
