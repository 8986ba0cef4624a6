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
#include "daemon/engine/shares.h"

#include <assert.h>
#include <stdlib.h>

/* The more there is before it, the later. */
#define AFTER_MIN_MS      50
#define AFTER_MAX_MS      2000
#define REFS_PER_MS       20
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

static bool passes(size_t has, size_t more, size_t limit)
{
	return limit != 0 && has + more > limit;
}

static bool is_over(const struct share *share, const struct share_limits *l,
    const struct txn *txn)
{
	return passes(share->requests, 1, l->requests) ||
	    passes(share->refs, txn->nr_updates, l->refs) ||
	    (is_session(txn) && passes(share->sessions, 1, l->sessions));
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

uint32_t shares_put_off(const struct shares *s, const struct shares_config *cfg,
    enum share_kind kind, uint64_t id, const struct txn *txn, size_t held,
    size_t max)
{
	const struct share *share = find(s, kind, id);

	if (share == NULL ||
	    (kind == SHARE_USER && (id == 0 || id == cfg->own_uid)))
		return 0;
	if (is_over(share, &cfg->of[kind], txn) ||
	    has_half(share, held + txn->req.bytes, max))
		return after_ms(share);
	return 0;
}

struct share *shares_take(struct shares *s, enum share_kind kind, uint64_t id,
    const struct txn *txn)
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
	share->requests++;
	share->refs += txn->nr_updates;
	share->sessions += is_session(txn);
	share->bytes += txn->req.bytes;
	return share;
}

void shares_give(struct shares *s, struct share *share, const struct txn *txn)
{
	if (share == NULL)
		return;
	assert(share->requests > 0);
	share->refs -= txn->nr_updates;
	share->sessions -= is_session(txn);
	share->bytes -= txn->req.bytes;
	if (--share->requests > 0)
		return;
	HASH_DEL(s->head, share);
	free(share);
}

void shares_done(struct shares *s)
{
	struct share *share, *next;

	HASH_ITER(hh, s->head, share, next) {
		HASH_DEL(s->head, share);
		free(share);
	}
}
