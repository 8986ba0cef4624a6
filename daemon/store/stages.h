/*
 * The current work of the store's threads, and its start, so that a status can
 * report a thread that does not come back. Private to the store.
 *
 * Any thread; nothing blocks but the store's mutex.
 */
#ifndef STORE_STAGES_H
#define STORE_STAGES_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Zero-initialised: nothing. Under the store's mutex. */
struct stage_work {
	const char *path; /* borrowed until the work ends; NULL: nothing */
	int64_t since_ns; /* monotonic */
};

/* These take the mutex. */
void stage_begin(struct store *s, struct stage_work *work, const char *path);
void stage_end(struct store *s, struct stage_work *work);

#endif
