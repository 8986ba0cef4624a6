/*
 * The state of refd-deliver on disk: for every endpoint the position in the
 * feed, the changes that wait, the dead letters, and counters. An SQLite
 * database in the state directory.
 *
 *	outbox_begin -> outbox_add, outbox_delivered, ... -> outbox_commit
 *
 * After outbox_commit() all of it is durable. refd-deliver must not go on
 * without a record of a delivery, so a failure of the database ends the
 * program.
 *
 * One thread; every call may block. Several processes may have the same
 * database open; only one of them may deliver.
 */
#ifndef CLIENT_DELIVER_OUTBOX_H
#define CLIENT_DELIVER_OUTBOX_H

#include "proto/lib/cli.h"
#include "proto/message.h"

struct outbox;

/* A place in the feed, which is not known before the first answer. */
struct outbox_position {
	bool is_known;
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	struct refd_position at;
};

/* A waiting change or a dead letter. The strings are owned by the row, or
 * borrowed for a call that gets the row. */
struct outbox_row {
	int64_t seq;    /* the order of all rows */
	char *endpoint; /* the name; only of a dead letter */
	char *id;       /* of the delivery */
	char *event;    /* "change" or "gap" */
	char *repo;     /* empty: none */
	char *body;
	size_t len;
	uint64_t failures;
	uint64_t time_ms; /* wall clock; when the change came */
	/* Only of a dead letter. */
	uint64_t died_ms;
	char *error;
};

/* The counters of an endpoint. */
struct outbox_counts {
	int64_t endpoint;
	const char *name;
	struct outbox_position position;
	uint64_t delivered, failed, died, gaps, took_ms; /* since ever */
	uint64_t waiting, waiting_bytes, dead;           /* now */
	uint64_t oldest_ms; /* wall clock, of the oldest waiting; 0: none */
};

/* Opens the database in DIR, which must exist without MAY_CREATE. */
struct outbox *outbox_open(const char *dir, bool may_create);
void outbox_close(struct outbox *o);

void outbox_begin(struct outbox *o);
void outbox_commit(struct outbox *o);

/* ---- of the service ---- */

/* Finds the endpoint NAME, or makes it without a position. */
int64_t outbox_endpoint(struct outbox *o, const char *name,
    struct outbox_position *position);
void outbox_move(struct outbox *o, int64_t endpoint,
    const struct outbox_position *to);
void outbox_add(struct outbox *o, int64_t endpoint,
    const struct outbox_row *row);
/* The first waiting row of REPO. False if none waits. */
bool outbox_head(struct outbox *o, int64_t endpoint, const char *repo,
    struct outbox_row *row);
void outbox_row_done(struct outbox_row *row);
/* Forgets the row. */
void outbox_delivered(struct outbox *o, int64_t endpoint, int64_t seq,
    uint64_t took_ms);
/* Records a failure. DIED_MS is the time at which the row became a dead letter,
 * or 0 if the row waits. */
void outbox_failed(struct outbox *o, int64_t endpoint, int64_t seq,
    const char *error, uint64_t died_ms);
/* Calls FN for every repository with waiting rows. */
typedef void outbox_stream_fn(void *arg, int64_t endpoint, const char *repo,
    uint64_t nr, uint64_t bytes);
void outbox_each_stream(struct outbox *o, outbox_stream_fn *fn, void *arg);
/* Has another process changed the database since the last call? */
bool outbox_changed(struct outbox *o);

/* ---- of the administrator ---- */

typedef void outbox_counts_fn(void *arg, const struct outbox_counts *counts);
void outbox_each_endpoint(struct outbox *o, outbox_counts_fn *fn, void *arg);
/* Dead letters of the endpoint NAME, or of all endpoints if NAME is NULL. */
typedef void outbox_row_fn(void *arg, const struct outbox_row *row);
void outbox_each_dead(struct outbox *o, const char *name, outbox_row_fn *fn,
    void *arg);
/* Dead letters of NAME with the id, or all of them if ID is NULL, wait again,
 * or are deleted. Return the number of rows. */
uint64_t outbox_retry(struct outbox *o, const char *name, const char *id);
uint64_t outbox_drop(struct outbox *o, const char *name, const char *id);
/* Deletes the endpoint with all of its rows. */
void outbox_forget(struct outbox *o, const char *name);

#endif
