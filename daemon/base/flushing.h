/*
 * Which flushes the kernel has not come back from: what is said of a disk that
 * hangs. SQLite's are not among them (store_stuck_ns()).
 *
 * Any thread; nothing blocks.
 */
#ifndef BASE_FLUSHING_H
#define BASE_FLUSHING_H

#include <stdbool.h>
#include <stdint.h>

/* Around the call. More at once than there is room for are not seen. */
int flushing_begin(int fd);
void flushing_end(int slot);

struct flushing {
	int64_t since_ns; /* monotonic */
	int fd;           /* whoever has it open may be done with it by now */
};

/* The one that was begun first; false: there is none. */
bool flushing_oldest(struct flushing *oldest);

#endif
