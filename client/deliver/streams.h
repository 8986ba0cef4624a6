/*
 * The order of deliveries. A receiver is an endpoint at work. A stream is the
 * waiting changes of one repository for one receiver:
 *
 *	IDLE -> READY -> BUSY -> READY	another change waits
 *	                     \-> IDLE	no change waits
 *	                     \-> PAUSED -> READY  after a failure
 *
 * A receiver gets the changes of a repository in their order, so at most one
 * change of a stream is being delivered. Ready streams take turns, so that a
 * long stream delays no other. The changes themselves are in the outbox. One
 * thread; nothing blocks.
 */
#ifndef CLIENT_DELIVER_STREAMS_H
#define CLIENT_DELIVER_STREAMS_H

#include <uthash.h>

#include "client/deliver/endpoints.h"
#include "client/deliver/outbox.h"

enum stream_state { STREAM_IDLE, STREAM_READY, STREAM_BUSY, STREAM_PAUSED };

struct stream {
	struct receiver *to;
	char *repo;
	uint64_t nr, bytes; /* that wait */
	bool drops;         /* a gap stands for the changes that came last */
	enum stream_state state;
	uint64_t due_ms;            /* PAUSED: until then */
	struct stream *prev, *next; /* READY and PAUSED */
	UT_hash_handle hh;
};

struct receiver {
	const struct endpoint *endpoint;
	int64_t id; /* in the outbox */
	struct outbox_position position;
	uint64_t bytes; /* that wait, of all streams */
	bool is_full;   /* takes nothing from the feed */
	uint64_t dead;  /* dead letters */
	uint64_t running;
	uint64_t told_ms;       /* last report of a failure; 0: none */
	struct stream *streams; /* by repo */
	struct stream *ready, *paused;
};

/* The stream of REPO, made if necessary, and borrowed until the stream is
 * idle. */
struct stream *streams_of(struct receiver *to, const char *repo);
/* NR changes with BYTES came. */
void streams_add(struct stream *s, uint64_t nr, uint64_t bytes);
/* NR changes with BYTES wait, whatever was known before. */
void streams_set(struct stream *s, uint64_t nr, uint64_t bytes);
/* The next ready stream becomes busy. NULL if none is ready. */
struct stream *streams_take(struct receiver *to);
/* The busy stream S got rid of a change with BYTES, and is freed if it is
 * idle. */
void streams_done(struct stream *s, uint64_t bytes);
/* The busy stream S pauses until DUE_MS. */
void streams_pause(struct stream *s, uint64_t due_ms);
/* Paused streams whose time has come become ready. Returns the time of the
 * first of the others, or UINT64_MAX. */
uint64_t streams_wake(struct receiver *to, uint64_t now_ms);
/* Frees all streams. */
void streams_free(struct receiver *to);

#endif
