/*
 * A pool of threads for work that blocks.
 *
 * A source of work has its own queue and lock, which the pool does not know.
 * The pool calls work() of a source on a thread of the pool. For each source
 * there is a maximum of threads, and a number of threads that stay free for it.
 * So work that hangs on a disk keeps the threads of its source, and never the
 * last threads of another source.
 *
 * A source calls workers_wake() after it has queued work. Work is never
 * overlooked, because the pool calls work() at least once after each
 * workers_wake(). If work() finds more work than it takes, it calls
 * workers_wake() for the rest.
 *
 * Threads: workers_wake() and workers_wake_at() from any thread, also under a
 * lock of the source. They never block on work. The lock of the pool is an
 * innermost lock, and no callback runs under it.
 */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workers;

struct work_source {
	/* Does one piece of work, on a thread of the pool and without a lock,
	 * so it may block. False: there was no work. */
	bool (*work)(void *arg);
	void *arg;
	size_t most;     /* threads at a time; at least RESERVED */
	size_t reserved; /* threads that other sources leave free */

	/* Private to workers.c, zero at first. */
	size_t nr_running;
	bool has_work;
	int64_t due_ns; /* CLOCK_MONOTONIC; 0: none */
	struct work_source *next;
};

/* Makes a pool of NR_THREADS threads, which do not run yet. NULL: no memory. */
struct workers *workers_new(size_t nr_threads);
/* Adds SOURCE behind earlier sources, because the pool serves the sources in
 * this order. Call before workers_start(). The reserved threads of all sources
 * must be fewer than the threads of the pool. SOURCE belongs to the caller, and
 * lives until workers_free(). */
void workers_add(struct workers *w, struct work_source *source);
/* 0, or -EAGAIN: not all threads could be started, and none runs. */
int workers_start(struct workers *w);

/* SOURCE has new work. */
void workers_wake(struct workers *w, struct work_source *source);
/* Calls work() of SOURCE at TIME_NS (CLOCK_MONOTONIC), even if nobody wakes
 * SOURCE. A later call replaces the time of an earlier call. */
void workers_wake_at(struct workers *w, struct work_source *source,
    int64_t time_ns);

/* The threads that SOURCE has and could still get now. If all of them hang,
 * SOURCE does no work. */
size_t workers_reach(struct workers *w, const struct work_source *source);

/* Waits until no source has work, and ends the threads, so it blocks as long as
 * the work does. Times of workers_wake_at() do not count. */
void workers_stop(struct workers *w);
/* After workers_stop(), or instead of workers_start(). */
void workers_free(struct workers *w);

#endif
