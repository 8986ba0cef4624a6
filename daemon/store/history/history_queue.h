/*
 * Questions about history that wait for their turn. A single user can send very
 * many questions, on many connections. So the users have turns, then the
 * connections of a user, and the questions of a connection come in order. Then
 * a question of a different user waits for at most one question of each user.
 *
 * One thread at a time, the worker in the historian's turn. Nothing blocks,
 * fails or logs. A call may look at all questions, because the queue is a
 * single list.
 */
#ifndef STORE_HISTORY_QUEUE_H
#define STORE_HISTORY_QUEUE_H

#include "daemon/store/store.h"

/* Zero-initialised is empty. */
struct history_queue {
	struct store_question *asks; /* in the order of arrival; of utlist */
	uint64_t turn;               /* of the last question taken */
};

void history_queue_put(struct history_queue *q, struct store_question *ask);
/* The next question, or NULL if the queue is empty. */
struct store_question *history_queue_take(struct history_queue *q);
/* Appends all questions without a waiting client to LIST (utlist). */
void history_queue_take_dropped(struct history_queue *q,
    struct store_question **list);
bool history_queue_is_empty(const struct history_queue *q);

#endif
