/*
 * Quotas: the waiting requests of each user (by the peer's uid) and of each
 * repository. If the share is used up, the client is told to come again later,
 * so that requests of other users find room. A question about history counts
 * for its user, because it holds memory while it waits.
 *
 * There are two rules:
 *
 * - Every count has a limit. As users, root and the daemon's own user are
 *   exempt. The limits of a repository come with each transaction.
 * - A user or a repository with half of the request memory cannot use the last
 *   eighth of this memory.
 *
 * The first request of a user or a repository always passes, whatever its size.
 * Otherwise a very large request could never come in.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_QUOTA_H
#define SCHEDULER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash.h"
#include "daemon/store/txn.h"

struct store_question;

enum quota_kind { QUOTA_USER, QUOTA_REPO };

struct quota_config {
	struct quota_limits of_user;
	uint32_t own_uid;
};

/* No padding: hashed as bytes. */
struct quota_key {
	uint64_t kind, id;
};

struct quota {
	struct quota_key key;
	size_t requests, refs, bytes, sessions, locks, clients;
	size_t questions; /* not in REQUESTS */
	/* Questions about ids that wait, while one is looked up or told
	 * (ask.c). */
	struct store_question *to_look_up;
	bool is_looked_up;
	UT_hash_handle hh;
};

/* A client with requests in a repository. No padding, as above. */
struct quota_client_key {
	const struct quota *quota;
	const void *client;
};
struct quota_client {
	struct quota_client_key key;
	size_t requests;
	UT_hash_handle hh;
};

/* Empty if zero-initialised. */
struct quotas {
	struct quota *head;
	struct quota_client *clients; /* for quotas of repositories */
};

/* The bytes that all requests together take, and may take. */
struct quota_memory {
	size_t held, max;
};

/* May TXN of CLIENT come in? 0: yes; otherwise the milliseconds until the next
 * try. */
uint32_t quota_put_off(const struct quotas *s, const struct quota_config *cfg,
    enum quota_kind kind, uint64_t id, const struct txn *txn,
    const void *client, struct quota_memory all);
/* Counts TXN. NULL: out of memory. */
struct quota *quota_take(struct quotas *s, enum quota_kind kind, uint64_t id,
    const struct txn *txn, const void *client);
/* Does the quota count any transaction? */
bool quota_is_used(const struct quotas *s, enum quota_kind kind, uint64_t id);
/* Takes TXN off QUOTA, which may be NULL. */
void quota_give(struct quotas *s, struct quota *quota, const struct txn *txn,
    const void *client);
/* The same for a question of user UID, which holds BYTES. */
bool quota_may_ask(const struct quotas *s, const struct quota_config *cfg,
    uint32_t uid, size_t bytes, struct quota_memory all);
struct quota *quota_take_question(struct quotas *s, uint32_t uid, size_t bytes);
void quota_give_question(struct quotas *s, struct quota *quota, size_t bytes);
size_t quota_questions(const struct quotas *s, uint32_t uid);
void quota_done(struct quotas *s);

#endif
