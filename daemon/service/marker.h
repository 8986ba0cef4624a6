/*
 * The marker <socket>.replayed tells clients which repositories git may write
 * while the daemon is away. The marker has the id of the boot in which recovery
 * was done, and the repositories that still await recovery:
 *
 *	<boot id>
 *	awaits <uuid, as in <common-dir>/refd/id>
 *	...
 *
 * A tmpfs is empty after a boot, so there the file itself proves the boot, and
 * clients ignore the id (docs/decisions/008-replayed-marker.md).
 *
 * Any thread; blocks. Failures are logged.
 */
#ifndef SERVICE_MARKER_H
#define SERVICE_MARKER_H

#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"

struct marker {
	const struct sys *sys;
	char *path;
	struct mutex mutex;
};

/* 0 or -ENOMEM. */
int marker_init(struct marker *marker, const struct sys *sys,
    const char *socket_path);
void marker_done(struct marker *marker);

/* 0 or negative errno. */
int marker_remove(struct marker *marker);
/* Replaces the marker. AWAITING: the lines of repositories, or "". If this
 * fails, the marker is removed, because an old marker would let git write to
 * repositories that await recovery. */
void marker_write(struct marker *marker, const char *awaiting);

#endif
