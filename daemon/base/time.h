/*
 * Nanoseconds, and the struct timespec of the system for them. Any thread;
 * nothing blocks or fails.
 *
 * The functions read the clock of the machine, also if a test has a clock of
 * its own in struct sys, because pthread_cond_timedwait() uses the result.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* From 1901 to 2255. A file may have any time, and nanoseconds end in 2262. A
 * time that wraps would make a young lock the oldest of all. So a time outside
 * counts as the nearest one inside. Both bounds leave room to add some years,
 * or to subtract the present. */
#define TIME_FIRST_S INT64_C(-2147483648)
#define TIME_LAST_S  INT64_C(9000000000)

static inline int64_t time_ns(struct timespec ts)
{
	if (ts.tv_sec < TIME_FIRST_S)
		return TIME_FIRST_S * NS_PER_S;
	if (ts.tv_sec >= TIME_LAST_S)
		return TIME_LAST_S * NS_PER_S;
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static inline struct timespec time_spec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S,
		.tv_nsec = ns % NS_PER_S };
}

static inline int64_t time_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return time_ns(now);
}

/* CLOCK_MONOTONIC, NS from now. */
static inline struct timespec time_after(int64_t ns)
{
	return time_spec(time_now_ns(CLOCK_MONOTONIC) + ns);
}

/* For waits until a time of time_after(), because a wall clock that is set back
 * must not stop a thread. */
static inline void time_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

#endif
