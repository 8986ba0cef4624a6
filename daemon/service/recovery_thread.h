/*
 * Runs the store's recovery on a thread of its own, before the daemon serves,
 * because the loop must not block. Meanwhile the loop tells clients that the
 * daemon is recovering.
 *
 * Without a marker (marker.h) clients never let git write to a served
 * repository while the daemon is away. So the marker is removed before recovery
 * begins, and written when recovery is over. The marker stays when the daemon
 * ends.
 */
#ifndef SERVICE_RECOVERY_THREAD_H
#define SERVICE_RECOVERY_THREAD_H

#include <stdbool.h>

#include "daemon/service/marker.h"
#include "daemon/store/store.h"

struct recovery_thread;

struct recovery_thread_config {
	const struct sys *sys;
	struct store *store;
	struct marker *marker;   /* borrowed until recovery_thread_free() */
	void (*wake)(void *arg); /* called by the thread at its end */
	void *wake_arg;
};

/* Removes the marker, which blocks, and starts the thread. The thread recovers
 * and starts the store, lets the store report what still awaits recovery, and
 * logs all findings. 0, or negative errno after a line in the log. */
int recovery_thread_start(const struct recovery_thread_config *cfg,
    struct recovery_thread **recovery);

/* False: still at work. *RESULT: 0, or the negative errno for which the daemon
 * cannot serve. */
bool recovery_thread_is_over(struct recovery_thread *recovery, int *result);
/* Records and repositories that are done, of how many. *TOTAL 0: not known
 * yet. */
void recovery_thread_progress(struct recovery_thread *recovery, uint64_t *done,
    uint64_t *total);
/* The thread must be over. NULL is fine. */
void recovery_thread_free(struct recovery_thread *recovery);

#endif
