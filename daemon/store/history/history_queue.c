/*
 * Each question stores when its user, and its connection, had their last turn.
 * So the queue needs no table of users. But a user or connection without a
 * waiting question counts as served now.
 *
 * Happy path:
 *	put	with the turns of the other questions of the user and connection
 *	take	the question with the oldest turn of a user, then of a
 *		connection, then the oldest question; the other questions of the
 *		user and connection get the present turn
 */
#include "daemon/store/history/history_queue.h"

#include <utlist.h>

static bool is_of_user(const struct store_question *a,
    const struct store_question *b)
{
	return a->peer.uid == b->peer.uid;
}

static bool is_of_client(const struct store_question *a,
    const struct store_question *b)
{
	return is_of_user(a, b) && a->client == b->client;
}

void history_queue_put(struct history_queue *q, struct store_question *ask)
{
	const struct store_question *other = ask;

	ask->user_turn = ask->client_turn = q->turn;
	DL_APPEND(q->asks, ask);
	/* From the end, because a client that sends very many questions sends
	 * them at once. So the last question of the same client is near. */
	while (other != q->asks) {
		other = other->prev;
		if (is_of_user(other, ask))
			ask->user_turn = other->user_turn;
		if (is_of_client(other, ask)) {
			ask->client_turn = other->client_turn;
			break;
		}
	}
}

static bool is_before(const struct store_question *a,
    const struct store_question *b)
{
	return a->user_turn != b->user_turn ? a->user_turn < b->user_turn :
					      a->client_turn < b->client_turn;
}

struct store_question *history_queue_take(struct history_queue *q)
{
	struct store_question *best = q->asks, *ask;

	DL_FOREACH(q->asks, ask) {
		if (is_before(ask, best))
			best = ask;
	}
	if (best == NULL)
		return NULL;
	DL_DELETE(q->asks, best);
	q->turn++;
	DL_FOREACH(q->asks, ask) {
		if (is_of_user(ask, best))
			ask->user_turn = q->turn;
		if (is_of_client(ask, best))
			ask->client_turn = q->turn;
	}
	return best;
}

void history_queue_take_dropped(struct history_queue *q,
    struct store_question **list)
{
	struct store_question *ask, *next;

	DL_FOREACH_SAFE(q->asks, ask, next) {
		if (!atomic_load(&ask->is_dropped))
			continue;
		DL_DELETE(q->asks, ask);
		DL_APPEND(*list, ask);
	}
}

bool history_queue_is_empty(const struct history_queue *q)
{
	return q->asks == NULL;
}
