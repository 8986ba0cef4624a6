/*
 * <socket>.replayed, which tells clients what git may write while the daemon
 * is away: the boot in which recovery was done, and the repositories whose
 * refs await it even so.
 *
 *	<boot id>
 *	awaits <uuid, as <common-dir>/refd/id has it>
 *	...
 *
 * In a tmpfs the file itself proves the boot, and clients ignore the id
 * (docs/decisions/008-replayed-marker.md).
 *
 * Any thread; blocks; what fails is in the log.
 */
#ifndef SERVICE_MARKER_H
#define SERVICE_MARKER_H

#include <pthread.h>

#include "daemon/base/sys.h"

struct marker {
	const struct sys *sys;
	char *path;
	pthread_mutex_t mutex;
};

/* 0 or -ENOMEM. */
int marker_init(struct marker *marker, const struct sys *sys,
    const char *socket_path);
void marker_done(struct marker *marker);

/* 0 or negative errno. */
int marker_remove(struct marker *marker);
/* Replaces it. AWAITING: lines, or "". Where that fails there is none, so that
 * nobody goes by an older one. */
void marker_write(struct marker *marker, const char *awaiting);

#endif
