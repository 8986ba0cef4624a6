/*
 * Questions about history that wait for their turn: users in turn, the
 * connections of a user in turn, the questions of a connection in order. So
 * however much one user asks on however many connections, a question of
 * another user waits for one question of each user at most.
 *
 * One thread, the historian's. Nothing blocks or logs.
 */
#ifndef STORE_HISTORY_QUEUE_H
#define STORE_HISTORY_QUEUE_H

#include "daemon/store/store.h"

/* Zero-initialised is empty. */
struct history_queue {
	struct history_user *users; /* whose turn it is comes first */
};

/* 0 or -ENOMEM: then ASK is still the caller's. */
int history_queue_put(struct history_queue *q, struct store_history *ask);
/* The next one; NULL: there is none. */
struct store_history *history_queue_take(struct history_queue *q);
/* All for which nobody waits any more, behind those of LIST (utlist). Looks at
 * each. */
void history_queue_take_dropped(struct history_queue *q,
    struct store_history **list);
bool history_queue_is_empty(const struct history_queue *q);

#endif
