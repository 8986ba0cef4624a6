/*
 * History: searches and reports the past records of the journal, maintains
 * their index, and removes old records from both.
 *
 * One thread at a time, the worker in the historian's turn (historian.c). Every
 * call may block, but should return after some milliseconds of work, because
 * all clients wait for their turns. Another thread may reopen the journal
 * between two reads, because rows up to VISIBLE are durable and stay. Nothing
 * logs.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "daemon/store/parts.h"
#include "daemon/store/repos/repo.h"

struct history;
struct journal_chain;

/* Opens nothing yet, so the only failure is NULL: out of memory. CFG is
 * borrowed until history_free(), and may have no rights. */
struct history *history_new(const struct store_parts *cfg);
void history_free(struct history *h);
/* Rows up to here can be found, or none (0) without an index. */
uint64_t history_indexed(const struct history *h);
/* The chain of the indexed rows before the first damaged row, or NULL without
 * an index. */
const struct journal_chain *history_chain(const struct history *h);

/*
 * Fills in ASK's answer from the rows up to the LSN VISIBLE, because these rows
 * are durable and published. Only indexed rows are found, so call
 * history_index() before. If time runs out, or the index is still behind, the
 * answer is partial and has the next position. False: a WATCH without news; its
 * position has moved behind the present rows.
 */
bool history_answer(struct history *h, struct store_question *ask,
    uint64_t visible);
/* The answer to a watch that ends without news. */
void history_answer_empty(struct history *h, struct store_question *ask);

/* Watches without news, a list of utlist from which CONCERN may remove its
 * watch. */
struct history_watches {
	struct store_question *list;
	void (*concern)(void *arg, struct store_question *ask);
	void *arg;
};
/*
 * Indexes some more rows, for a few milliseconds. Each row is read only once
 * for index and watches, so this function also calls watches->concern() for
 * each watch that waits for such a row. Returns 1 if there are more rows, 0 if
 * the index is complete up to VISIBLE, or a negative errno if the index stays
 * behind.
 */
int history_index(struct history *h, uint64_t visible,
    struct history_watches *watches);
/* Deletes some rows beyond the retention. Returns 0, HISTORY_MORE if there are
 * more, or JOURNAL_UNKNOWN if the journal must be reopened. */
#define HISTORY_MORE 2
int history_trim(struct history *h);
/* By how much the clock is ahead of the time that the last history_trim()
 * believed. 0 if history is kept for ever, because no age then deletes a
 * row. */
int64_t history_clock_ahead_ms(const struct history *h);

#endif
