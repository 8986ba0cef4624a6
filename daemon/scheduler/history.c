/*
 * Questions about history. The store gets a question, and may keep a watch for
 * as long as its client wants to wait.
 *
 * Failure modes:
 *	out of memory, or no room (ask.c)	busy
 *	the client ends first			the store is told, and gives
 *						the question back
 *	stopping				waiting questions come back;
 *						in the end none is accepted
 */
#include <stdlib.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

/* What a question holds while it waits. */
static size_t bytes_of(const struct refd_request *req,
    const struct txn_peer *peer)
{
	return sizeof(struct store_history) + req->bytes +
	    peer->nr_gids * sizeof(*peer->gids);
}

static bool copy_peer(const struct txn_peer *from, struct txn_peer *to)
{
	size_t size = from->nr_gids * sizeof(*from->gids);

	*to = *from;
	to->gids = malloc(size + 1);
	if (to->gids == NULL)
		return false;
	if (size > 0)
		memcpy(to->gids, from->gids, size);
	return true;
}

static struct store_history *make_ask(struct refd_request *req,
    const struct txn_peer *peer)
{
	struct store_history *ask;
	struct txn_peer copy;

	if (!copy_peer(peer, &copy))
		return NULL;
	ask = store_history_new(req, &copy);
	if (ask == NULL)
		free(copy.gids);
	return ask;
}

void scheduler_history(struct scheduler *e, struct refd_request *req,
    const struct txn_peer *peer, int64_t now_ns, scheduler_answer_fn *fn,
    void *arg)
{
	uint32_t wait_ms =
	    req->deadline_ms != 0 ? req->deadline_ms : REFD_WATCH_MS;
	const size_t bytes = bytes_of(req, peer);
	struct quota *quota = NULL;
	struct store_history *ask;
	struct waiter *a;

	if (ask_is_too_late(e, req, fn, arg))
		return;
	if (!ask_has_room(e, peer->uid, bytes)) {
		ask_refuse(req, BUSY(QUESTIONS), fn, arg);
		return;
	}
	a = waiter_add(&e->waiters, fn, arg, req->request_id);
	ask = a != NULL ? make_ask(req, peer) : NULL;
	if (ask != NULL)
		quota = ask_begin(e, peer->uid, bytes);
	if (quota == NULL) {
		store_history_free(ask);
		if (a != NULL)
			waiter_drop(&e->waiters, a);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	waiter_tell_forgotten(a, &ask->is_dropped);
	ask->arg = a;
	ask->quota = quota;
	ask->client = arg;
	ask->deadline_ns = now_ns + (int64_t)wait_ms * 1000000;
	store_history(e->store, ask);
}

void history_told(struct scheduler *e, struct store_history *ask)
{
	const size_t bytes = bytes_of(&ask->req, &ask->peer);

	ask_end(e, ask->quota, bytes);
	waiter_answer(&e->waiters, ask->arg, &ask->answer);
	store_history_free(ask);
}
