/*
 * The historian: one thread that answers questions about history, ends the
 * watches of new records, indexes the journal and trims it.
 *
 *	historian_ask() -> questions -> thread -> struct completions
 *
 * The struct has its own mutex and condition. The mutex guards the queue and
 * all requests of other threads. The loop waits for this mutex, so under the
 * mutex the historian takes only locks inside the journal, and calls no
 * callback.
 *
 * Any thread may call each function, except historian_new(), _start(), _stop()
 * and _free(), which are for the thread that opens and closes the store. Only
 * historian_stop() blocks for longer than the mutex, because the thread first
 * answers or refuses the questions that wait.
 */
#ifndef STORE_HISTORIAN_H
#define STORE_HISTORIAN_H

#include "daemon/store/completions.h"
#include "daemon/store/history/history.h"
#include "daemon/store/journal/commit_log.h"
#include "daemon/store/store.h"

struct historian;

/* All pointers are borrowed until historian_free(). The historian's thread
 * calls the callbacks without a lock. */
struct historian_config {
	struct history_config history;
	struct commit_log *log; /* of HISTORY's journal */
	/* The highest LSN up to which every record is durable or rejected, and
	 * published. */
	uint64_t (*visible)(void *arg);
	void *visible_arg;
	struct completions *completions;
	/* As in store_config; may be NULL. */
	void (
	    *event)(enum store_event event, const char *place, const char *why);
};

/* NULL: out of memory. */
struct historian *historian_new(const struct historian_config *cfg);
/* Starts the thread, at most once, and returns 0 or -1. */
int historian_start(struct historian *h);
/* Waits until the thread has answered or refused every question and has ended.
 * Does nothing unless the thread was started. */
void historian_stop(struct historian *h);
/* NULL is fine, but the thread must not run, because the thread uses H. */
void historian_free(struct historian *h);

/* Hands ASK over, which comes back once through COMPLETIONS. */
void historian_ask(struct historian *h, struct store_question *ask);
/* The daemon stops, so every watch comes back now, and a later watch at
 * once. */
void historian_end_watches(struct historian *h);
/* Wakes the thread if a watch waits, because visible() may have become
 * higher. */
void historian_note_commit(struct historian *h);

/* Fills in watching, indexed_lsn, trimmed_lsn and head. */
void historian_stats(struct historian *h, struct store_stats *stats);
/* Adds the thread's current work to PROGRESS (store_progress()). */
void historian_progress(struct historian *h, int64_t before_ns,
    struct store_progress *progress);

#endif
