/*
 * Reads back the objects of a store: are the objects written since a given time
 * on the disk, or in memory alone? The contents are read from the disk, and
 * compared with the checksums of git.
 *
 * Any thread. Blocks while the objects are read. Nothing logs.
 */
#ifndef STORE_READBACK_H
#define STORE_READBACK_H

#include "daemon/base/sys.h"
#include "proto/oid.h"

/* LOST is called for every file with different content on the disk. */
struct readback {
	const struct sys *sys;
	enum refd_object_format format;
	void (*lost)(void *arg, const char *path, const struct sys_stat *st);
	void *arg;
};

/*
 * Reads all files that changed at LIMIT or later below the directory FD. FD is
 * objects/ (NAME ""), or its directory NAME. 0, or a negative errno, and PATH
 * is the first file with this error:
 *	-EBADMSG	lost files: LOST was called for every lost file
 *	-EBUSY		another process has the file mapped: no result
 *	otherwise	the file could not be read
 */
int readback_objects(const struct readback *readback, int fd, const char *name,
    int64_t limit, char *path, size_t size);

#endif
