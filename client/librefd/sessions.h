/*
 * The sessions that are prepared on one connection. They end with it, so a
 * commit must never go out on another.
 *
 * One thread at a time; nothing blocks. Zero-initialised is none.
 */
#ifndef CLIENT_LIBREFD_SESSIONS_H
#define CLIENT_LIBREFD_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/txid.h"

struct sessions {
	struct refd_txid *ids; /* owned */
	size_t nr, size;
};

/* -ENOMEM. */
int refd_sessions_add(struct sessions *s, const struct refd_txid *id);
/* True, once, if it was there. */
bool refd_sessions_take(struct sessions *s, const struct refd_txid *id);
void refd_sessions_clear(struct sessions *s);
void refd_sessions_done(struct sessions *s);

#endif
