/*
 * The flushes in progress, for reports about a disk that hangs. Flushes of
 * SQLite are not included (store_stuck_ns()).
 *
 * Any thread; nothing blocks.
 */
#ifndef BASE_FLUSHING_H
#define BASE_FLUSHING_H

#include <stdbool.h>
#include <stdint.h>

struct flushing {
	int64_t since_ns; /* monotonic */
	int fd;           /* perhaps closed and reused by now */
};

/* The flush that began first, or false if there is none. */
bool flushing_oldest(struct flushing *oldest);

#endif
