/*
 * The sessions that are prepared on a connection. They end with the connection,
 * so a commit must never be sent on another connection.
 *
 * One thread at a time; nothing blocks. Zero-initialised is empty.
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
/* Removes ID. Returns true if it was there. */
bool refd_sessions_take(struct sessions *s, const struct refd_txid *id);
void refd_sessions_clear(struct sessions *s);
void refd_sessions_done(struct sessions *s);

#endif
