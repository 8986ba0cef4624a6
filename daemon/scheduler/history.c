/*
 * Questions about history. The store gets a question, and may keep a watch for
 * as long as its client wants to wait.
 *
 * Failure modes:
 *	out of memory, or very many questions	busy; a user with half of all
 *						questions cannot use the last
 *						eighth
 *	the client ends first			the store is told, and gives
 *						the question back
 *	stopping				waiting questions come back;
 *						in the end none is accepted
 */
#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/hash.h"
#include "daemon/scheduler/state.h"

/* Questions in the store's hands, some kilobytes each. */
#define ASKS_MAX 16384

/* A user with questions in the store's hands. */
struct ask_user {
	uint32_t uid;
	size_t nr;
	UT_hash_handle hh;
};

static struct ask_user *find_user(struct scheduler *e, uint32_t uid)
{
	struct ask_user *user;

	HASH_FIND(hh, e->ask_users, &uid, sizeof(uid), user);
	return user;
}

static bool count_in(struct scheduler *e, uint32_t uid)
{
	struct ask_user *user = find_user(e, uid);

	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return false;
		user->uid = uid;
		HASH_ADD(hh, e->ask_users, uid, sizeof(user->uid), user);
		if (user->hh.tbl == NULL) {
			free(user);
			return false;
		}
	}
	user->nr++;
	e->nr_asks++;
	return true;
}

static void count_out(struct scheduler *e, uint32_t uid)
{
	struct ask_user *user = find_user(e, uid);

	e->nr_asks--;
	if (--user->nr > 0)
		return;
	HASH_DEL(e->ask_users, user);
	free(user);
}

static bool is_full(struct scheduler *e, uint32_t uid)
{
	const struct ask_user *user;

	if (e->nr_asks < ASKS_MAX - ASKS_MAX / 8)
		return false;
	user = find_user(e, uid);
	return e->nr_asks >= ASKS_MAX ||
	    (user != NULL && user->nr > ASKS_MAX / 2);
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
	struct store_history *ask;
	struct waiter *a;

	if (ask_is_too_late(e, req, fn, arg))
		return;
	if (is_full(e, peer->uid)) {
		ask_refuse(req, BUSY(QUESTIONS), fn, arg);
		return;
	}
	a = waiter_add(&e->waiters, fn, arg, req->request_id);
	ask = a != NULL ? make_ask(req, peer) : NULL;
	if (ask == NULL || !count_in(e, peer->uid)) {
		store_history_free(ask);
		if (a != NULL)
			waiter_drop(&e->waiters, a);
		ask_refuse(req, BUSY(MEMORY), fn, arg);
		return;
	}
	ask->arg = a;
	ask->client = arg;
	ask->deadline_ns = now_ns + (int64_t)wait_ms * 1000000;
	LIST_INSERT_HEAD(&e->asks, ask, in_scheduler);
	e->store.history(e->store.ctx, ask);
}

void history_told(struct scheduler *e, struct store_history *ask)
{
	LIST_REMOVE(ask, in_scheduler);
	count_out(e, ask->peer.uid);
	waiter_answer(&e->waiters, ask->arg, &ask->answer);
	store_history_free(ask);
}

void history_forget(struct scheduler *e)
{
	struct store_history *ask;

	LIST_FOREACH(ask, &e->asks, in_scheduler)
		if (waiter_is_mute(ask->arg))
			atomic_store(&ask->is_dropped, true);
}
