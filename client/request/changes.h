/*
 * A growing list of updates, which owns its strings. One thread.
 */
#ifndef CLIENT_REQUEST_CHANGES_H
#define CLIENT_REQUEST_CHANGES_H

#include "proto/arena.h"
#include "proto/message.h"

/* Empty when zero-initialised. */
struct changes {
	struct refd_update *updates;
	size_t nr, size;
	struct refd_arena *strings;
};

/* Copies U and its strings. */
void changes_add(struct changes *c, const struct refd_update *u);
void changes_clear(struct changes *c);
void changes_done(struct changes *c);

#endif
