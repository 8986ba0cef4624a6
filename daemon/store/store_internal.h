/*
 * Inside the store: its threads and what they share. Private to them.
 *
 *	lanes		admissions, look-ups; the only readers of objects, one
 *			at most in a repository; open and close repositories
 *	barriers	syncfs for objects that are new, a file system each
 *	committers	windows, one each (pipeline/pipeline.h)
 *	flusher		a few that sync files for the committers
 *	checkpointer	SQLite's checkpoints, lines that are owed
 *	syncs		syncfs for what was published, a file system each
 *	historian	questions about history, its index, what is trimmed
 *
 * Each thread takes its work from a queue. It puts the result on a completion
 * queue (completions.h) or on the queue of another thread.
 *
 * The order of the locks. A thread that holds a lock takes only locks of lower
 * lines. Two locks of one line are never held together.
 *	deferred.rows, then deferred.telling	deferred/deferred.h
 *	fs.objects_sync, fs.checkpoint, doubts.lacking_lock
 *				held during disk I/O
 *	barriers.mutex				barrier.h
 *	store.mutex, repos.mutex
 *	checkpointer.mutex
 *	pipeline.mutex
 *	deferred.mutex, historian.mutex, completions.mutex, and locks inside
 *				other modules
 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "daemon/store/admission/admission_queues.h"
#include "daemon/store/barrier.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/fifos.h"
#include "daemon/store/admission/txid_filter.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/recovery/recover.h"
#include "daemon/store/stages.h"
#include "daemon/store/store.h"

struct checkpointer;
struct historian;

struct store {
	const struct sys *sys;
	struct store_config cfg;
	char *state_dir;
	char **roots;
	int state_fd, state_lock_fd;
	char boot_id[40];

	struct repos repos;
	struct doubts *doubts; /* repos has it too */
	struct rights rights;
	struct barriers barriers;
	struct completions completions;

	struct deferred *deferred; /* has locks of its own: deferred.h */

	struct commit_log *log;
	struct journal *journal; /* LOG's */
	/* Of who has is_sorting. */
	struct journal_reader *reader; /* NULL: to be opened */
	struct txid_filter txid_filter;
	struct pipeline *pipeline;
	struct historian *historian; /* has its own mutex, within all others */
	struct checkpointer *checkpointer; /* has its own mutex */

	/* Everything below: under MUTEX. */
	pthread_mutex_t mutex;
	pthread_cond_t lane_cond;
	struct txn_fifo to_admit, to_discard;
	struct query_fifo to_look_up;
	bool stopping, started;
	struct admission_queues admission;
	size_t nr_lanes;    /* that have begun */
	bool is_sorting;    /* a lane thread looks ids up */
	int64_t sorting_ns; /* since when */
	int64_t trim_ns;    /* when idle repositories are closed next */
	char *fatal;
	struct store_stats stats;

	pthread_t lane_threads[ADMISSION_WORKERS];
};

/* store.c */
void store_set_fatal(struct store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* commit_log_config.failed */
void store_log_failed(void *store, const char *why);

/* lane.c */
void lane_begin(struct store *s); /* before its threads */
void *lane_main(void *arg);
/* SLOT is about to look at PATH, which is the caller's until it lets go. */
void lane_begin_at(struct store *s, size_t slot, const char *path);
/* It is about to work in REPO; false: another does. */
bool lane_claim(struct store *s, size_t slot, const struct repo *repo);
void lane_let_go(struct store *s, size_t slot);
/* lane_retry.c: retries some repositories, as SLOT. */
void lane_retry_some(struct store *s, size_t slot);
/* admit_end.c: TXN is about to be given back from the lane or the barrier. */
void admit_end(struct store *s, struct txn *txn);
/* admit.c, lane thread. 1, 0 or negative errno. */
int admit_has_object(void *arg, struct repo *repo, const struct refd_oid *oid);

/* lookup.c: the lane thread's too. 0, negative errno, or CB's. */
int lookup_rows(struct store *s, int64_t uid, const struct refd_txid *txid,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/* What M of ROW is answered as, and with which words; borrowed. */
enum refd_status lookup_status(struct store *s, const struct journal_row *row,
    const struct record_member *m, const char **text);
/* The largest id that the journal has. 0 or negative errno. */
int lookup_newest(struct store *s, struct refd_txid *newest);
/* Fills QUERY's answer in and gives it back. */
void lookup_answer(struct store *s, struct store_query *query);

void store_tell(const struct store *s, enum store_event event,
    const char *place, const char *why);

/* store_open_doubts.c. Makes s->doubts, for s->repos too. 0, or negative errno and
 * *WHY. *WARNING is freed if there is a new one. */
int store_open_doubts(struct store *s, char **warning, char **why);
/* store_open.c. Make s->deferred, then s->pipeline, then s->checkpointer, once
 * the log is open. 0, -ENOMEM. */
int store_open_deferred(struct store *s);
int store_open_pipeline(struct store *s);
int store_open_checkpointer(struct store *s);

#endif
