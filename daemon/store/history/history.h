/*
 * History: what the journal knows of the past, searched and told; its index
 * kept up; what is too old taken out of both.
 *
 * One thread, the historian's (historian.c); every call may block, but is to
 * do no more than some milliseconds' work and come back. The journal must not
 * be reopened meanwhile. Nothing logs.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "daemon/store/repos/repo.h"
#include "daemon/store/store.h"

struct history;

struct history_config {
	const struct sys *sys;
	const char *dir; /* the state directory; as all here, borrowed */
	struct journal *journal;
	const struct repos *repos;
	struct rights *rights;    /* NULL: none */
	int64_t retention_ms;     /* 0: for ever */
	uint64_t retention_bytes; /* 0: no limit */
};

/* NULL when out of memory. Opens nothing yet. */
struct history *history_new(const struct history_config *cfg);
void history_free(struct history *h);
/* 0: none can be had; then it is as good, but slower. */
uint64_t history_indexed(const struct history *h);

/*
 * Fills in ASK's answer from what is up to VISIBLE, an LSN: everything up to
 * there is durable, and published. A question that takes longer has some of
 * its answer, and where to go on. False: a WATCH of which there is nothing
 * yet; its position has moved behind what is there.
 */
bool history_answer(struct history *h, struct store_history *ask,
    uint64_t visible);
/* What is answered when it need not wait any more. */
void history_answer_empty(struct history *h, struct store_history *ask);

/*
 * Calls CB for those of LIST, which wait, that one of the rows in *HEARD < lsn
 * <= VISIBLE may be for: each row is looked at once for all of them. CB may
 * take it out of the list. *HEARD becomes the last row that was looked at, or
 * VISIBLE. 0, or a negative errno: then it is none's fault, and to be tried
 * again.
 */
int history_listen(struct history *h, uint64_t *heard, uint64_t visible,
    struct store_history **list, void (*cb)(void *arg, struct store_history *),
    void *arg);

/* Indexes some more rows. 1: there are more; 0: it is up to VISIBLE. */
int history_index(struct history *h, uint64_t visible);
/* Takes out some of what is too old or too much. HISTORY_MORE: there is more;
 * 0; JOURNAL_UNKNOWN: the journal must be reopened. */
#define HISTORY_MORE 2
int history_trim(struct history *h);

#endif
