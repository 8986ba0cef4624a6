/*
 * The current work of the store's threads, and its start, so that a status can
 * report a thread that does not come back. Private to the store.
 *
 * Any thread; nothing blocks but a mutex.
 */
#ifndef STORE_STAGES_H
#define STORE_STAGES_H

#include <stdbool.h>
#include <stdint.h>

struct store_progress;

/* Zero-initialised: nothing. Under the mutex of the struct that holds it. */
struct stage_work {
	const char *path; /* borrowed until the work ends; NULL: nothing */
	int64_t since_ns; /* monotonic */
};

/* Adds WORK to its stage in P (store_progress()). Under the lock of WORK. Work
 * since BEFORE_NS or earlier is stuck. True: P names WORK now, because no other
 * work of the stage has lasted longer. */
bool stage_add(struct store_progress *p, const struct stage_work *work,
    int64_t before_ns);

#endif
