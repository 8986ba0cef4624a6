/*
 * Recovery before serving, on a thread of its own, so that the loop can
 * already tell who connects that the daemon is recovering.
 *
 * The marker (marker.h) goes before recovery begins and comes when it is done:
 * without it clients never let git write to a served repository while the
 * daemon is away. It stays when the daemon ends.
 */
#ifndef NET_RECOVERY_H
#define NET_RECOVERY_H

#include <stdbool.h>

#include "daemon/net/marker.h"
#include "daemon/store/store.h"

struct recovery;

struct recovery_config {
	const struct sys *sys;
	struct store *store;
	struct marker *marker;   /* borrowed until the end */
	void (*wake)(void *arg); /* called by the thread when it is over */
	void *wake_arg;
};

/* 0 or negative errno, with what failed in the log. Blocks for the marker. */
int recovery_start(const struct recovery_config *cfg,
    struct recovery **recovery);

/* Recovers, starts the store, has it tell what awaits recovery even so; what
 * was found goes to the log. False: not over. *RESULT: 0, or the negative errno for which the
 * daemon can't serve. */
bool recovery_is_over(struct recovery *recovery, int *result);
/* How far it is, in records and repositories. TOTAL 0: not known yet. */
void recovery_progress(struct recovery *recovery, uint64_t *done,
    uint64_t *total);
/* For struct store_config: one finding, into the log. Any thread. */
void recovery_log_found(void *arg, const struct store_found *found);
/* Must be over. NULL is fine. */
void recovery_free(struct recovery *recovery);

/* Into the log: what a store that serves has to tell (store_config.event). */
void recovery_event(enum store_event event, const char *place, const char *why);

#endif
