/*
 * Recovery before serving, on a thread of its own, so that the loop can
 * already tell who connects that the daemon is recovering.
 *
 * <socket>.replayed holds the boot id once this boot's recovery is done:
 * without it clients never let git write to a served repository while the
 * daemon is away. It goes before recovery begins, comes when nothing awaits
 * replay, and stays when the daemon ends.
 */
#ifndef NET_RECOVERY_H
#define NET_RECOVERY_H

#include <stdbool.h>

#include "daemon/store/store.h"

struct recovery;

struct recovery_config {
	const struct sys *sys;
	struct store *store;
	const char *socket_path; /* borrowed until the end */
	void (*wake)(void *arg); /* called by the thread when it is over */
	void *wake_arg;
};

/* 0 or negative errno, with what failed in the log. Blocks for the marker. */
int recovery_start(const struct recovery_config *cfg,
    struct recovery **recovery);

/* Recovers, starts the store, writes the marker; what was found goes to the
 * log. False: not over. *RESULT: 0, or the negative errno for which the
 * daemon can't serve. */
bool recovery_is_over(struct recovery *recovery, int *result, uint64_t *parked);
/* Must be over. NULL is fine. */
void recovery_free(struct recovery *recovery);

#endif
