/*
 * How much of what is in the engine's care is whose: by the peer's uid, and by
 * repository. One who has his share is told to come again later, so that what
 * others send finds room.
 *
 * Two rules. A limit of each kind, which only the daemon's own user and root
 * (as users) are free of. And of the memory for requests who has half of it
 * leaves the last eighth to others. The only one that somebody has may be of
 * any size, or it could never come in.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef ENGINE_SHARES_H
#define ENGINE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/txn.h"

enum share_kind { SHARE_USER, SHARE_REPO, NR_SHARE_KINDS };

/* 0: none. */
struct share_limits {
	size_t requests; /* transactions and sessions */
	size_t refs;     /* of all of them */
	size_t sessions;
};

struct shares_config {
	struct share_limits of[NR_SHARE_KINDS];
	uint32_t own_uid;
};

/* No padding: it is hashed as bytes. */
struct share_key {
	uint64_t kind, id;
};

struct share {
	struct share_key key;
	size_t requests, refs, sessions, bytes;
	UT_hash_handle hh;
};

/* Zero-initialised is empty. */
struct shares {
	struct share *head;
};

/* Milliseconds after which TXN may come again; 0: it may come in. HELD of MAX
 * bytes are taken, by all. */
uint32_t shares_put_off(const struct shares *s, const struct shares_config *cfg,
    enum share_kind kind, uint64_t id, const struct txn *txn, size_t held,
    size_t max);
/* TXN is in. NULL: out of memory. */
struct share *shares_take(struct shares *s, enum share_kind kind, uint64_t id,
    const struct txn *txn);
/* TXN is out; SHARE may be NULL. */
void shares_give(struct shares *s, struct share *share, const struct txn *txn);
void shares_done(struct shares *s);

#endif
