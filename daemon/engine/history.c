/*
 * Questions about history: handed to the store, which may keep one for as long
 * as its client wants to wait.
 *
 * Failure modes:
 *	out of memory, or very many already	busy
 *	the client goes first			the store is told that nobody
 *						waits, and gives it back
 *	stopping				those that wait come back, and
 *						in the end none are taken
 */
#include <stdlib.h>

#include <utlist.h>

#include "daemon/engine/state.h"

/* In the store's hands: some kilobytes each. */
#define ASKS_MAX 16384

static bool copy_peer(const struct txn_peer *from, struct txn_peer *to)
{
	size_t size = from->nr_gids * sizeof(*from->gids);

	*to = *from;
	to->gids = malloc(size + 1);
	if (to->gids == NULL)
		return false;
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

void engine_history(struct engine *e, struct refd_request *req,
    const struct txn_peer *peer, int64_t now_ns, engine_answer_fn *fn,
    void *arg)
{
	uint32_t wait_ms =
	    req->deadline_ms != 0 ? req->deadline_ms : REFD_WATCH_MS;
	struct store_history *ask;
	struct asker *a;

	if (ask_is_too_late(e, req, fn, arg))
		return;
	if (e->nr_asks >= ASKS_MAX) {
		ask_refuse(req, REFD_BUSY, "too many questions wait", fn, arg);
		return;
	}
	a = askers_add(&e->askers, fn, arg, req->request_id);
	ask = a != NULL ? make_ask(req, peer) : NULL;
	if (ask == NULL) {
		if (a != NULL)
			askers_drop(&e->askers, a);
		ask_refuse(req, REFD_BUSY, "out of memory", fn, arg);
		return;
	}
	ask->arg = a;
	ask->deadline_ns = now_ns + (int64_t)wait_ms * 1000000;
	LIST_INSERT_HEAD(&e->asks, ask, in_engine);
	e->nr_asks++;
	e->store.history(e->store.ctx, ask);
}

void history_told(struct engine *e, struct store_history *ask)
{
	LIST_REMOVE(ask, in_engine);
	e->nr_asks--;
	askers_answer(&e->askers, ask->arg, &ask->answer);
	store_history_free(ask);
}

void history_forget(struct engine *e)
{
	struct store_history *ask;

	LIST_FOREACH(ask, &e->asks, in_engine)
		if (asker_is_mute(ask->arg))
			atomic_store(&ask->is_dropped, true);
}
