/*
 * Deferred redo: journal records that the refs on disk do not match yet, and
 * leftover locks of refd. One struct deferred belongs to one store, and
 * contains
 *
 *	repositories	in which a retry has work to do (enum deferred_state)
 *	updates		that were answered `unknown`: only a retry or the next
 *			start can finish them
 *	lowest LSN	of the records of such updates: a retry or the next
 *			start needs the record, so the checkpoint keeps it
 *	lacking		the number of these repositories that are present, but
 *			lack refs that other machines have
 *
 * Happy path: the struct is empty, because a start redoes everything that can
 * be redone before the daemon answers. An admission worker retries the rest
 * before each write to the repository (deferred_retry.h) and after each
 * checkpoint.
 *
 * Threads and locks: any thread may call any function here, unless the comment
 * of the function says otherwise. struct deferred has three mutexes:
 *
 *	rows	taken before every other lock of the daemon. The owner appends
 *		or reads deferred rows of the journal. A thread that appends
 *		such rows holds the mutex until the rows are durable.
 *	telling	taken after `rows`, before `mutex`. Held while the list of
 *		repositories is made and handed to store_config.awaiting.
 *	mutex	taken last: a thread may hold the mutex of the store or of the
 *		repositories. No callback is called under this mutex.
 *
 * deferred_publish() and the functions that call it block for as long as
 * store_config.awaiting does. No other function here blocks.
 *
 * Failure: only a lack of memory. A repository could then be written before its
 * redo, or an update be answered `ok` too early. So the store ends
 * (store_parts.fatal).
 */
#ifndef STORE_DEFERRED_H
#define STORE_DEFERRED_H

#include "daemon/store/journal/journal.h"
#include "daemon/store/parts.h"
#include "daemon/store/repos/repo.h"

/*
 * The work of a retry in one repository. A note never lowers the state: the
 * higher state of old and noted state counts. Only the end of a retry lowers
 * the state.
 *
 *	event				NOTHING	LOCKS	SEARCH	REDO
 *	a batch left locks		LOCKS	-	-	-
 *	locks could not be searched for	SEARCH	SEARCH	-	-
 *	members were deferred		REDO	REDO	REDO	-
 *	a retry ended; left: members	n/a	REDO	REDO	REDO
 *			     locks	n/a	LOCKS	LOCKS	LOCKS
 *			     nothing	n/a	NOTHING	NOTHING	NOTHING
 *	a retry failed			n/a	-	-	-
 *
 * In SEARCH and REDO a write to the repository waits for a retry.
 */
enum deferred_state {
	DEFERRED_NOTHING,
	DEFERRED_LOCKS,  /* leftover locks; no write waits for the retry */
	DEFERRED_SEARCH, /* no deferred members, but perhaps leftover locks */
	DEFERRED_REDO    /* members are deferred */
};

struct deferred;

/* CFG is borrowed until deferred_free(). The callbacks awaiting, found and
 * event of the configuration are not called under `mutex`. NULL: out of
 * memory. */
struct deferred *deferred_new(const struct store_parts *cfg);
/* After the threads of the store have ended. D may be NULL. */
void deferred_free(struct deferred *d);

/* ---- notes ---- */

/* At a start: NR members of REPO are deferred. NR is 0 if no member is
 * deferred, but recovery could not search REPO for locks of refd. ERR is the
 * error of the search, or 0. The error -EUSERS (the search does not end) is
 * remembered, so that the search is not repeated too often. No callback is
 * called. */
void deferred_note(struct deferred *d, const struct journal_repo *repo,
    uint64_t nr, int err);
/* REPO is noted with members, is there, and lacks refs that other machines
 * have. So this machine is no whole copy before a retry has redone them. */
void deferred_note_lacking(struct deferred *d, uint64_t repo);
/* While the daemon works: NR members of REPO were deferred because of WHY. The
 * first note after a complete retry is told by store_config.found. */
void deferred_add(struct deferred *d, const struct journal_repo *repo,
    uint64_t nr, const char *why);
/* One log line of REPO was deferred. */
void deferred_add_line(struct deferred *d, const struct repo *repo);
/* Batch TOKEN is over and left locks in REPO. The locks block only writers of
 * the same names, so no other write waits for the retry after the next
 * checkpoint, which removes the locks. */
void deferred_add_locks(struct deferred *d, const struct repo *repo,
    uint64_t token);
/* Update INDEX of row LSN is answered `unknown`, and its locks stand. The next
 * start cannot use the locks without the row, so the checkpoint keeps the
 * row. */
void deferred_add_update(struct deferred *d, uint64_t lsn, uint32_t index);

/* ---- questions ---- */

/* Must a retry precede a write to the repository REPO? */
bool deferred_blocks_writes(struct deferred *d, uint64_t repo);
/* Does REPO lack refs that other machines have? */
bool deferred_is_lacking(struct deferred *d, uint64_t repo);
/* How many repositories do? *SINCE_NS: since when there is one, monotonic; may
 * be NULL. */
size_t deferred_lacking(struct deferred *d, int64_t *since_ns);
/* Is update INDEX of ROW, or of the row that ROW copies, answered `unknown`? */
bool deferred_has_update(struct deferred *d, const struct journal_row *row,
    uint32_t index);
/* How many updates that were answered `unknown` have ended? A reader of rows
 * asks deferred_has_update(), which knows the end of an update, for example an
 * abort, before the reader has read the row of this end. So if the number has
 * changed meanwhile, the rows must be read again. */
uint64_t deferred_nr_ended(struct deferred *d);
/* The lowest LSN that a retry or the next start needs. 0: none. */
uint64_t deferred_lowest_lsn(struct deferred *d);
/* Counts the repositories in DEFERRED_REDO, and their members. */
void deferred_count(struct deferred *d, uint64_t *repos, uint64_t *members);
/* Passes the list of these repositories to store_config.awaiting. */
void deferred_publish(struct deferred *d);

/* ---- turns: the retries after a checkpoint ---- */

/* The checkpointer: lets an admission worker retry. False: nothing to retry. */
bool deferred_begin_turn(struct deferred *d);
/* For an admission worker. True: this worker has the turn, and must call
 * deferred_end_turn(). */
bool deferred_take_turn(struct deferred *d);
void deferred_end_turn(struct deferred *d);
/* The next repositories to retry, NR at most; the caller frees the paths. */
size_t deferred_next(struct deferred *d, struct journal_repo *repos, size_t nr);

#endif
