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
#ifndef SCHEDULER_SHARES_H
#define SCHEDULER_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/txn.h"

enum share_kind { SHARE_USER, SHARE_REPO };

struct shares_config {
	struct share_limits of_user;
	uint32_t own_uid;
};

/* No padding: it is hashed as bytes. */
struct share_key {
	uint64_t kind, id;
};

struct share {
	struct share_key key;
	size_t requests, refs, bytes, sessions, locks, clients;
	UT_hash_handle hh;
};

/* A client that has something in a repository. No padding, as above. */
struct share_client_key {
	const struct share *share;
	const void *client;
};
struct share_client {
	struct share_client_key key;
	size_t requests;
	UT_hash_handle hh;
};

/* Zero-initialised is empty. */
struct shares {
	struct share *head;
	struct share_client *clients; /* of repositories */
};

/* Milliseconds after which TXN, which CLIENT sent, may come again; 0: it may
 * come in. HELD of MAX bytes are taken, by all. */
uint32_t shares_put_off(const struct shares *s, const struct shares_config *cfg,
    enum share_kind kind, uint64_t id, const struct txn *txn,
    const void *client, size_t held, size_t max);
/* TXN is in. NULL: out of memory. */
struct share *shares_take(struct shares *s, enum share_kind kind, uint64_t id,
    const struct txn *txn, const void *client);
/* TXN is out; SHARE may be NULL. */
void shares_give(struct shares *s, struct share *share, const struct txn *txn,
    const void *client);
/* How long TXN may wait, or be prepared, where it would like WANTED_NS. */
int64_t shares_wait_ns(const struct shares_config *cfg, const struct txn *txn,
    int64_t wanted_ns);
void shares_done(struct shares *s);

#endif
