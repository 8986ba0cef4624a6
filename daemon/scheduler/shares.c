/*
 * Happy path:
 *	put off?	no
 *	take		counted, until it is decided
 *	give
 *
 * Failure modes:
 *	too much of his own waits	busy, with a time that grows with it
 *	out of memory			busy
 */
#include "daemon/scheduler/shares.h"

#include <assert.h>
#include <stdlib.h>

/* The more there is before it, the later. */
#define AFTER_MIN_MS      50
#define AFTER_MAX_MS      2000
#define REFS_PER_MS       20
#define NS_PER_MS         1000000
#define IS_NEARLY_ALL(nr) ((nr) - (nr) / 8)

static struct share_key key_of(enum share_kind kind, uint64_t id)
{
	struct share_key key = { (uint64_t)kind, id };

	_Static_assert(sizeof(key) == 2 * sizeof(uint64_t), "hashed as bytes");
	return key;
}

static struct share *find(const struct shares *s, enum share_kind kind,
    uint64_t id)
{
	struct share_key key = key_of(kind, id);
	struct share *share;

	HASH_FIND(hh, s->head, &key, sizeof(key), share);
	return share;
}

static bool is_session(const struct txn *txn)
{
	return txn->req.verb == REFD_VERB_SESSION;
}

/* ---- clients ---- */

static struct share_client *find_client(const struct shares *s,
    const struct share *share, const void *client)
{
	struct share_client_key key = { share, client };
	struct share_client *found;

	_Static_assert(sizeof(key) == 2 * sizeof(void *), "hashed as bytes");
	HASH_FIND(hh, s->clients, &key, sizeof(key), found);
	return found;
}

static bool take_client(struct shares *s, struct share *share,
    const void *client)
{
	struct share_client *of = find_client(s, share, client);

	if (of == NULL) {
		of = calloc(1, sizeof(*of));
		if (of == NULL)
			return false;
		of->key.share = share;
		of->key.client = client;
		HASH_ADD(hh, s->clients, key, sizeof(of->key), of);
		if (of->hh.tbl == NULL) {
			free(of);
			return false;
		}
		share->clients++;
	}
	of->requests++;
	return true;
}

static void give_client(struct shares *s, struct share *share,
    const void *client)
{
	struct share_client *of = find_client(s, share, client);

	if (--of->requests > 0)
		return;
	share->clients--;
	HASH_DEL(s->clients, of);
	free(of);
}

/* ---- is it too much? ---- */

static bool passes(uint64_t has, uint64_t more, uint64_t limit)
{
	return limit != 0 && has + more > limit;
}

static bool is_over(const struct share *share, const struct share_limits *l,
    const struct txn *txn, bool is_new_client)
{
	if (passes(share->requests, 1, l->requests) ||
	    passes(share->refs, txn->nr_updates, l->refs) ||
	    passes(share->bytes, txn->req.bytes, l->bytes) ||
	    passes(share->clients, is_new_client, l->clients))
		return true;
	return is_session(txn) && share->sessions > 0 &&
	    (passes(share->sessions, 1, l->sessions) ||
		passes(share->locks, txn->nr_updates, l->locks));
}

static bool has_half(const struct share *share, size_t held, size_t max)
{
	return held > IS_NEARLY_ALL(max) && share->bytes > max / 2;
}

static uint32_t after_ms(const struct share *share)
{
	size_t ms = share->refs / REFS_PER_MS;

	if (ms < AFTER_MIN_MS)
		return AFTER_MIN_MS;
	return ms > AFTER_MAX_MS ? AFTER_MAX_MS : (uint32_t)ms;
}

static bool is_free(const struct shares_config *cfg, uint64_t uid)
{
	return uid == 0 || uid == cfg->own_uid;
}

uint32_t shares_put_off(const struct shares *s, const struct shares_config *cfg,
    enum share_kind kind, uint64_t id, const struct txn *txn,
    const void *client, size_t held, size_t max)
{
	const struct share_limits *limits = &cfg->of_user;
	const struct share *share = find(s, kind, id);
	bool is_new_client = false;

	if (share == NULL || (kind == SHARE_USER && is_free(cfg, id)))
		return 0;
	if (kind == SHARE_REPO) {
		limits = &txn->limits;
		is_new_client = find_client(s, share, client) == NULL;
	}
	if (is_over(share, limits, txn, is_new_client) ||
	    has_half(share, held + txn->req.bytes, max))
		return after_ms(share);
	return 0;
}

int64_t shares_wait_ns(const struct shares_config *cfg, const struct txn *txn,
    int64_t wanted_ns)
{
	uint64_t ms = txn->limits.wait_ms, user_ms = cfg->of_user.wait_ms;

	if (user_ms != 0 && !is_free(cfg, txn->peer.uid) &&
	    (ms == 0 || user_ms < ms))
		ms = user_ms;
	if (ms == 0 || (uint64_t)(wanted_ns / NS_PER_MS) < ms)
		return wanted_ns;
	return (int64_t)ms * NS_PER_MS;
}

static void drop_if_empty(struct shares *s, struct share *share)
{
	if (share->requests > 0)
		return;
	HASH_DEL(s->head, share);
	free(share);
}

struct share *shares_take(struct shares *s, enum share_kind kind, uint64_t id,
    const struct txn *txn, const void *client)
{
	struct share *share = find(s, kind, id);

	if (share == NULL) {
		share = calloc(1, sizeof(*share));
		if (share == NULL)
			return NULL;
		share->key = key_of(kind, id);
		HASH_ADD(hh, s->head, key, sizeof(share->key), share);
		if (share->hh.tbl == NULL) {
			free(share);
			return NULL;
		}
	}
	if (kind == SHARE_REPO && !take_client(s, share, client)) {
		drop_if_empty(s, share);
		return NULL;
	}
	share->requests++;
	share->refs += txn->nr_updates;
	share->bytes += txn->req.bytes;
	if (is_session(txn)) {
		share->sessions++;
		share->locks += txn->nr_updates;
	}
	return share;
}

void shares_give(struct shares *s, struct share *share, const struct txn *txn,
    const void *client)
{
	if (share == NULL)
		return;
	assert(share->requests > 0);
	share->refs -= txn->nr_updates;
	share->bytes -= txn->req.bytes;
	if (is_session(txn)) {
		share->sessions--;
		share->locks -= txn->nr_updates;
	}
	if (share->key.kind == SHARE_REPO)
		give_client(s, share, client);
	share->requests--;
	drop_if_empty(s, share);
}

void shares_done(struct shares *s)
{
	struct share_client *of, *of_next;
	struct share *share, *next;

	HASH_ITER(hh, s->clients, of, of_next) {
		HASH_DEL(s->clients, of);
		free(of);
	}
	HASH_ITER(hh, s->head, share, next) {
		HASH_DEL(s->head, share);
		free(share);
	}
}
