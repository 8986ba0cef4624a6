/*
 * The clocks of the programs, in milliseconds. The daemon has its own in
 * daemon/base/sys.h, because its tests stop them. Any thread.
 */
#ifndef PROTO_LIB_CLOCK_H
#define PROTO_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Of one clock of the system. */
static inline int64_t clock_read_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* For waits and pauses: nobody can set this clock. */
static inline int64_t clock_now_ms(void)
{
	return clock_read_ms(CLOCK_MONOTONIC);
}

/* Since 1970. */
static inline uint64_t clock_wall_ms(void)
{
	return (uint64_t)clock_read_ms(CLOCK_REALTIME);
}

#endif
