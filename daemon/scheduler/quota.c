/*
 * Happy path:
 *	put_off		0: the transaction may come in
 *	take		the transaction counts until it is decided
 *	give		it counts no more
 *
 * Failure modes:
 *	the share is used up	busy, with a time that grows with the queue
 *	out of memory		busy
 */
#include "daemon/scheduler/quota.h"

#include <assert.h>
#include <stdlib.h>

/* The time to retry grows with the number of waiting refs. */
#define AFTER_MIN_MS      50
#define AFTER_MAX_MS      2000
#define REFS_PER_MS       20
#define IS_NEARLY_ALL(nr) ((nr) - (nr) / 8)

static struct quota_key key_of(enum quota_kind kind, uint64_t id)
{
	struct quota_key key = { (uint64_t)kind, id };

	_Static_assert(sizeof(key) == 2 * sizeof(uint64_t), "hashed as bytes");
	return key;
}

static struct quota *find(const struct quotas *s, enum quota_kind kind,
    uint64_t id)
{
	struct quota_key key = key_of(kind, id);
	struct quota *quota;

	HASH_FIND(hh, s->head, &key, sizeof(key), quota);
	return quota;
}

static bool is_session(const struct txn *txn)
{
	return txn->req.verb == REFD_VERB_SESSION;
}

/* ---- clients ---- */

static struct quota_client *find_client(const struct quotas *s,
    const struct quota *quota, const void *client)
{
	struct quota_client_key key = { quota, client };
	struct quota_client *found;

	_Static_assert(sizeof(key) == 2 * sizeof(void *), "hashed as bytes");
	HASH_FIND(hh, s->clients, &key, sizeof(key), found);
	return found;
}

static bool take_client(struct quotas *s, struct quota *quota,
    const void *client)
{
	struct quota_client *of = find_client(s, quota, client);

	if (of == NULL) {
		of = calloc(1, sizeof(*of));
		if (of == NULL)
			return false;
		of->key.quota = quota;
		of->key.client = client;
		HASH_ADD(hh, s->clients, key, sizeof(of->key), of);
		if (of->hh.tbl == NULL) {
			free(of);
			return false;
		}
		quota->clients++;
	}
	of->requests++;
	return true;
}

static void give_client(struct quotas *s, struct quota *quota,
    const void *client)
{
	struct quota_client *of = find_client(s, quota, client);

	if (--of->requests > 0)
		return;
	quota->clients--;
	HASH_DEL(s->clients, of);
	free(of);
}

/* ---- is a limit exceeded? ---- */

static bool passes(uint64_t has, uint64_t more, uint64_t limit)
{
	return limit != 0 && has + more > limit;
}

static bool is_over(const struct quota *quota, const struct quota_limits *l,
    const struct txn *txn, bool is_new_client)
{
	if (passes(quota->requests, 1, l->requests) ||
	    passes(quota->refs, txn->nr_updates, l->refs) ||
	    passes(quota->bytes, txn->req.bytes, l->bytes) ||
	    passes(quota->clients, is_new_client, l->clients))
		return true;
	return is_session(txn) && quota->sessions > 0 &&
	    (passes(quota->sessions, 1, l->sessions) ||
		passes(quota->locks, txn->nr_updates, l->locks));
}

/* With MORE bytes, nearly all are held, and half of them by QUOTA. */
static bool has_half(const struct quota *quota, struct quota_memory all,
    size_t more)
{
	return all.held + more > IS_NEARLY_ALL(all.max) &&
	    quota->bytes > all.max / 2;
}

static uint32_t after_ms(const struct quota *quota)
{
	size_t ms = quota->refs / REFS_PER_MS;

	if (ms < AFTER_MIN_MS)
		return AFTER_MIN_MS;
	return ms > AFTER_MAX_MS ? AFTER_MAX_MS : (uint32_t)ms;
}

static bool is_free(const struct quota_config *cfg, uint64_t uid)
{
	return uid == 0 || uid == cfg->own_uid;
}

uint32_t quota_put_off(const struct quotas *s, const struct quota_config *cfg,
    enum quota_kind kind, uint64_t id, const struct txn *txn,
    const void *client, struct quota_memory all)
{
	const struct quota_limits *limits = &cfg->of_user;
	const struct quota *quota = find(s, kind, id);
	bool is_new_client = false;

	if (quota == NULL || (kind == QUOTA_USER && is_free(cfg, id)))
		return 0;
	if (kind == QUOTA_REPO) {
		limits = &txn->limits;
		is_new_client = find_client(s, quota, client) == NULL;
	}
	if (is_over(quota, limits, txn, is_new_client) ||
	    has_half(quota, all, txn->req.bytes))
		return after_ms(quota);
	return 0;
}

static void drop_if_empty(struct quotas *s, struct quota *quota)
{
	if (quota->requests + quota->questions > 0)
		return;
	HASH_DEL(s->head, quota);
	free(quota);
}

/* NULL: out of memory. */
static struct quota *get(struct quotas *s, enum quota_kind kind, uint64_t id)
{
	struct quota *quota = find(s, kind, id);

	if (quota != NULL)
		return quota;
	quota = calloc(1, sizeof(*quota));
	if (quota == NULL)
		return NULL;
	quota->key = key_of(kind, id);
	HASH_ADD(hh, s->head, key, sizeof(quota->key), quota);
	if (quota->hh.tbl != NULL)
		return quota;
	free(quota);
	return NULL;
}

struct quota *quota_take(struct quotas *s, enum quota_kind kind, uint64_t id,
    const struct txn *txn, const void *client)
{
	struct quota *quota = get(s, kind, id);

	if (quota == NULL)
		return NULL;
	if (kind == QUOTA_REPO && !take_client(s, quota, client)) {
		drop_if_empty(s, quota);
		return NULL;
	}
	quota->requests++;
	quota->refs += txn->nr_updates;
	quota->bytes += txn->req.bytes;
	if (is_session(txn)) {
		quota->sessions++;
		quota->locks += txn->nr_updates;
	}
	return quota;
}

bool quota_is_used(const struct quotas *s, enum quota_kind kind, uint64_t id)
{
	return find(s, kind, id) != NULL;
}

void quota_give(struct quotas *s, struct quota *quota, const struct txn *txn,
    const void *client)
{
	if (quota == NULL)
		return;
	assert(quota->requests > 0);
	quota->refs -= txn->nr_updates;
	quota->bytes -= txn->req.bytes;
	if (is_session(txn)) {
		quota->sessions--;
		quota->locks -= txn->nr_updates;
	}
	if (quota->key.kind == QUOTA_REPO)
		give_client(s, quota, client);
	quota->requests--;
	drop_if_empty(s, quota);
}

/* ---- questions ---- */

bool quota_may_ask(const struct quotas *s, const struct quota_config *cfg,
    uint32_t uid, size_t bytes, struct quota_memory all)
{
	const struct quota *quota = find(s, QUOTA_USER, uid);

	return quota == NULL || is_free(cfg, uid) ||
	    (!passes(quota->bytes, bytes, cfg->of_user.bytes) &&
		!has_half(quota, all, bytes));
}

struct quota *quota_take_question(struct quotas *s, uint32_t uid, size_t bytes)
{
	struct quota *quota = get(s, QUOTA_USER, uid);

	if (quota == NULL)
		return NULL;
	quota->questions++;
	quota->bytes += bytes;
	return quota;
}

void quota_give_question(struct quotas *s, struct quota *quota, size_t bytes)
{
	assert(quota->questions > 0);
	quota->questions--;
	quota->bytes -= bytes;
	drop_if_empty(s, quota);
}

size_t quota_questions(const struct quotas *s, uint32_t uid)
{
	const struct quota *quota = find(s, QUOTA_USER, uid);

	return quota != NULL ? quota->questions : 0;
}

void quota_done(struct quotas *s)
{
	struct quota_client *of, *of_next;
	struct quota *quota, *next;

	HASH_ITER(hh, s->clients, of, of_next) {
		HASH_DEL(s->clients, of);
		free(of);
	}
	HASH_ITER(hh, s->head, quota, next) {
		HASH_DEL(s->head, quota);
		free(quota);
	}
}
