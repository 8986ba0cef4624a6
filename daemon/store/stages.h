/*
 * The current work of the store's threads, and its start, so that a status can
 * report a thread that does not come back. Private to the store.
 *
 * Any thread; blocks only for a mutex.
 */
#ifndef STORE_STAGES_H
#define STORE_STAGES_H

#include <stdbool.h>
#include <stdint.h>

struct store_progress;

/* Protected by the mutex of the struct around it, and all zero without work. */
struct stage_work {
	const char *path; /* borrowed until the work ends; NULL: nothing */
	int64_t since_ns; /* monotonic */
};

/* Adds WORK, under its lock, to its stage in P (store_progress()). Work that
 * has lasted since BEFORE_NS or longer is stuck. True: P names WORK now,
 * because no other work of the stage has lasted longer. */
bool stage_add(struct store_progress *p, const struct stage_work *work,
    int64_t before_ns);

#endif
