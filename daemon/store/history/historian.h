/*
 * The historian: answers questions about history, ends the watches of new
 * records, indexes the journal and trims it.
 *
 *	historian_ask() -> questions -> a worker -> struct completions
 *
 * A worker does one turn at a time. Any thread may call each function, unless
 * its comment says otherwise, and blocks for no longer than the mutex. The
 * mutex guards the questions that come and what other threads are told. The
 * loop waits for this mutex, so under the mutex the historian takes only locks
 * inside other modules, and calls no callback.
 */
#ifndef STORE_HISTORIAN_H
#define STORE_HISTORIAN_H

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/parts.h"

/* One turn at a time, because struct history has no lock, and the index has a
 * single writer. Other work leaves one worker to history. */
#define HISTORIAN_WORKERS  1
#define HISTORIAN_RESERVED 1

struct historian;

/* Before workers_start(). CFG is borrowed until historian_free(). NULL: out of
 * memory. */
struct historian *historian_new(const struct store_parts *cfg);
/* NULL is fine. After historian_stop() and workers_stop(). Blocks for the sync
 * of the closing index. */
void historian_free(struct historian *h);

/* Hands ASK over, which comes back once through COMPLETIONS. */
void historian_ask(struct historian *h, struct store_question *ask);
/* From now on every watch comes back at once, and after a second every
 * question. workers_stop() waits for them. */
void historian_stop(struct historian *h);
/* Begins a turn if a watch waits, because pipeline_visible_lsn() may have
 * become higher. */
void historian_note_commit(struct historian *h);

/* Fills in watching, indexed_lsn, trimmed_lsn and head. */
void historian_stats(struct historian *h, struct store_stats *stats);
/* Adds the current turn to PROGRESS (store_progress()). */
void historian_progress(struct historian *h, int64_t before_ns,
    struct store_progress *progress);

#endif
