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

/* Call before and after a flush. If all slots are in use, the flush is not
 * listed. */
int flushing_begin(int fd);
void flushing_end(int slot);

struct flushing {
	int64_t since_ns; /* monotonic */
	int fd;           /* perhaps closed and reused by now */
};

/* The flush that began first. False: there is none. */
bool flushing_oldest(struct flushing *oldest);

#endif
