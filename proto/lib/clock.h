/*
 * The clocks of the programs, in milliseconds. The daemon has its own in
 * daemon/base/sys.h, because its tests stop them. Any thread.
 */
#ifndef PROTO_LIB_CLOCK_H
#define PROTO_LIB_CLOCK_H

#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>

/* A deadline that never comes. */
#define CLOCK_FOREVER UINT64_MAX

/* Of one clock of the system. */
static inline uint64_t clock_read_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Nobody can set this clock, so waits and pauses use this clock. */
static inline uint64_t clock_now_ms(void)
{
	return clock_read_ms(CLOCK_MONOTONIC);
}

/* Since 1970. */
static inline uint64_t clock_wall_ms(void)
{
	return clock_read_ms(CLOCK_REALTIME);
}

/* TIMEOUT_MS from now, without a limit if TIMEOUT_MS is negative. */
static inline uint64_t clock_deadline_ms(int timeout_ms)
{
	if (timeout_ms < 0)
		return CLOCK_FOREVER;
	return clock_now_ms() + (unsigned)timeout_ms;
}

/* The timeout for poll(2): -1 for no limit, 0 after the deadline. */
static inline int clock_left_ms(uint64_t deadline)
{
	uint64_t now = clock_now_ms();

	if (deadline == CLOCK_FOREVER)
		return -1;
	if (deadline <= now)
		return 0;
	return deadline - now > INT_MAX ? INT_MAX : (int)(deadline - now);
}

/* Sleeps for MS, but not beyond DEADLINE. */
static inline void clock_nap(unsigned ms, uint64_t deadline)
{
	int left = clock_left_ms(deadline);

	if (left >= 0 && (unsigned)left < ms)
		ms = (unsigned)left;
	poll(NULL, 0, (int)ms);
}

#endif
