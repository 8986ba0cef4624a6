/*
 * How much of what is in the scheduler's care is whose: by the peer's uid, and
 * by repository. One who has his share is told to come again later, so that
 * what others send finds room.
 *
 * Two rules. A limit of each kind, which only the daemon's own user and root
 * (as users) are free of; a repository's come with each transaction. And of the
 * memory for requests who has half of it leaves the last eighth to others. The
 * only one that somebody has may be of any size, or it could never come in.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_QUOTA_H
#define SCHEDULER_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/txn.h"

enum quota_kind { QUOTA_USER, QUOTA_REPO };

struct quota_config {
	struct quota_limits of_user;
	uint32_t own_uid;
};

/* No padding: it is hashed as bytes. */
struct quota_key {
	uint64_t kind, id;
};

struct quota {
	struct quota_key key;
	size_t requests, refs, bytes, sessions, locks, clients;
	UT_hash_handle hh;
};

/* A client that has something in a repository. No padding, as above. */
struct quota_client_key {
	const struct quota *quota;
	const void *client;
};
struct quota_client {
	struct quota_client_key key;
	size_t requests;
	UT_hash_handle hh;
};

/* Zero-initialised is empty. */
struct quotas {
	struct quota *head;
	struct quota_client *clients; /* of repositories */
};

/* Milliseconds after which TXN, which CLIENT sent, may come again; 0: it may
 * come in. HELD of MAX bytes are taken, by all. */
uint32_t quota_put_off(const struct quotas *s, const struct quota_config *cfg,
    enum quota_kind kind, uint64_t id, const struct txn *txn,
    const void *client, size_t held, size_t max);
/* TXN is in. NULL: out of memory. */
struct quota *quota_take(struct quotas *s, enum quota_kind kind, uint64_t id,
    const struct txn *txn, const void *client);
/* Does any transaction count there? */
bool quota_is_used(const struct quotas *s, enum quota_kind kind, uint64_t id);
/* TXN is out; SHARE may be NULL. */
void quota_give(struct quotas *s, struct quota *quota, const struct txn *txn,
    const void *client);
/* How long TXN may wait, or be prepared, where it would like WANTED_NS. */
int64_t quota_wait_ns(const struct quota_config *cfg, const struct txn *txn,
    int64_t wanted_ns);
void quota_done(struct quotas *s);

#endif
