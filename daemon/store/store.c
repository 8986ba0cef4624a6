/*
 * The store's threads and the hand-over to and from the scheduler.
 *
 * The happy path of a transaction: store_admit -> lane -> (barrier) ->
 * admitted; its windows: store_apply -> a committer -> applied.
 *
 * What fails: a thread that can't be started fails store_start; a journal that can't be brought back makes
 * the store fatal: everything still comes back, as unknown or refused, and
 * the daemon has to go.
 */
#include "daemon/store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/checkpoint_sync.h"
#include "daemon/store/history/historian.h"
#include "daemon/store/store_internal.h"

/* ---- completions ---- */

/* Under MUTEX. True: store_takes() has become true. */
static bool one_less_prepares(struct store *s)
{
	if (--s->nr_preparing == 0)
		pthread_cond_broadcast(&s->gathered_cond);
	return s->nr_preparing + 1 == STORE_PREPARERS;
}

/* A committer's. */
void store_prepared(void *store, struct window *w)
{
	struct store *s = store;
	struct commit_slot *slot;
	bool wake;

	pthread_mutex_lock(&s->mutex);
	wake = one_less_prepares(s);
	for (slot = s->committers; slot < s->committers + STORE_COMMITTERS;
	    slot++) {
		if (slot->window != w)
			continue;
		slot->is_prepared = true;
		slot->work.since_ns = SYS(s->sys, now_mono);
	}
	pthread_mutex_unlock(&s->mutex);
	if (wake)
		s->cfg.wake(s->cfg.wake_arg);
}

static void store_applied(struct store *s, size_t lane, struct window *w)
{
	w->done_ns = SYS(s->sys, now_mono);
	pthread_mutex_lock(&s->mutex);
	if (!w->is_prepared)
		one_less_prepares(s);
	s->floors[lane] = 0;
	memset(&s->committers[lane], 0, sizeof(s->committers[lane]));
	s->stats.windows++;
	pthread_mutex_unlock(&s->mutex);
	completions_put_window(&s->completions, w);
	historian_note_commit(s->historian);
}

bool store_reap(struct store *s, struct store_done *done)
{
	memset(done, 0, sizeof(*done));
	if (completions_take(&s->completions, done))
		return true;
	done->told = historian_take(s->historian);
	return done->told != NULL;
}

/* ---- handing over ---- */

void store_admit(struct store *s, struct txn *txn)
{
	pthread_mutex_lock(&s->mutex);
	txn_fifo_put(&s->to_admit, txn);
	pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
}

void store_give_up(struct store *s, struct txn *txn)
{
	pthread_mutex_lock(&s->mutex);
	atomic_store(&txn->is_given_up, true);
	if (txn->queue != NULL) {
		admission_queues_remove(&s->admission, txn);
		txn_fifo_put(&s->to_admit, txn);
		pthread_cond_signal(&s->lane_cond);
	}
	pthread_mutex_unlock(&s->mutex);
	barriers_give_up(&s->barriers, txn);
}

void store_discard(struct store *s, struct txn *txn)
{
	pthread_mutex_lock(&s->mutex);
	txn_fifo_put(&s->to_discard, txn);
	pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
}

void store_lookup(struct store *s, struct store_query *query)
{
	pthread_mutex_lock(&s->mutex);
	query_fifo_put(&s->to_look_up, query);
	pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
}

void store_checkpoint(struct store *s, struct store_checkpoint *cp)
{
	pthread_mutex_lock(&s->mutex);
	cp->lsn = journal_last_lsn(s->journal);
	checkpoint_fifo_put(&s->to_checkpoint, cp);
	pthread_cond_signal(&s->tick_cond);
	pthread_mutex_unlock(&s->mutex);
}

void store_apply(struct store *s, struct window *w)
{
	/* The end of a session takes no locks. The window was here before and
	 * may still be marked. */
	w->is_prepared =
	    w->session == WINDOW_COMMIT || w->session == WINDOW_ABORT;
	pthread_mutex_lock(&s->mutex);
	if (!w->is_prepared)
		s->nr_preparing++;
	window_fifo_put(&s->to_apply, w);
	pthread_cond_signal(&s->commit_cond);
	pthread_mutex_unlock(&s->mutex);
}

bool store_takes(struct store *s)
{
	bool takes;

	pthread_mutex_lock(&s->mutex);
	takes = s->nr_preparing < STORE_PREPARERS;
	pthread_mutex_unlock(&s->mutex);
	return takes;
}

void store_history(struct store *s, struct store_history *ask)
{
	historian_ask(s->historian, ask);
}

void store_history_stop(struct store *s)
{
	historian_end_watches(s->historian);
}

const uint8_t *store_journal_id(const struct store *s)
{
	return journal_uuid(s->journal);
}

size_t store_committers(const struct store *s)
{
	(void)s;
	return STORE_COMMITTERS;
}

void store_release(struct store *s, struct repo *repo)
{
	repo_put(&s->repos, repo);
}

uint64_t store_repo_key(const struct repo *repo)
{
	return repo->id;
}

const char *store_repo_path(const struct repo *repo)
{
	return repo->path;
}

/* ---- threads ---- */

struct committer {
	struct store *store;
	size_t lane;
};

/* Under MUTEX. The names in W stay valid until W is back. A rejection has no
 * repository: its window only writes to the journal. */
static void note_window(struct store *s, size_t lane, const struct window *w)
{
	struct commit_slot *slot = &s->committers[lane];
	const struct repo *repo = w->parts[0].txn->repo;
	size_t i;

	slot->window = w;
	slot->is_prepared = w->is_prepared;
	slot->work = (struct stage_work){
		repo != NULL ? repo->path : s->state_dir,
		SYS(s->sys, now_mono),
	};
	for (i = 1; i < w->nr_parts && !slot->has_more; i++)
		slot->has_more = w->parts[i].txn->repo != repo;
}

static void *committer_main(void *arg)
{
	struct committer *me = arg;
	struct store *s = me->store;
	size_t lane = me->lane;
	struct window *w;

	free(me);
	pthread_mutex_lock(&s->mutex);
	for (;;) {
		w = window_fifo_take(&s->to_apply);
		if (w == NULL && s->stopping)
			break;
		if (w == NULL) {
			pthread_cond_wait(&s->commit_cond, &s->mutex);
			continue;
		}
		/* No record of this window can get a lower number. */
		s->floors[lane] = journal_last_lsn(s->journal) + 1;
		note_window(s, lane, w);
		pthread_mutex_unlock(&s->mutex);
		apply_window(&s->applier, w);
		store_applied(s, lane, w);
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

uint64_t store_visible_lsn(void *store)
{
	struct store *s = store;
	uint64_t lsn;
	size_t i;

	pthread_mutex_lock(&s->mutex);
	lsn = journal_lasting(s->journal);
	for (i = 0; i < STORE_COMMITTERS; i++)
		if (s->floors[i] != 0 && s->floors[i] - 1 < lsn)
			lsn = s->floors[i] - 1;
	pthread_mutex_unlock(&s->mutex);
	return lsn;
}

static int start_committer(struct store *s, size_t lane)
{
	struct committer *me;
	int r;

	me = malloc(sizeof(*me));
	if (me == NULL)
		return -ENOMEM;
	me->store = s;
	me->lane = lane;
	r = pthread_create(&s->commit_threads[lane], NULL, committer_main, me);
	if (r != 0)
		free(me);
	return -r;
}

/* How many of each were started. */
struct started {
	size_t lanes, committers;
	int checkpoint;
};

static void end_threads(struct store *s, const struct started *started)
{
	size_t i;

	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	pthread_cond_broadcast(&s->lane_cond);
	pthread_cond_broadcast(&s->commit_cond);
	pthread_cond_broadcast(&s->tick_cond);
	pthread_mutex_unlock(&s->mutex);
	for (i = 0; i < started->lanes; i++)
		pthread_join(s->lane_threads[i], NULL);
	barriers_stop(&s->barriers);
	if (started->checkpoint == 0)
		pthread_join(s->checkpoint_thread, NULL);
	checkpoint_syncs_end(s);
	historian_stop(s->historian);
	for (i = 0; i < started->committers; i++)
		pthread_join(s->commit_threads[i], NULL);
	txid_filter_done(&s->txid_filter);
	flusher_free(s->applier.flusher);
	s->applier.flusher = NULL;
	s->started = false;
}

int store_start(struct store *s)
{
	struct started started = { 0 };
	bool has_historian;
	int r;

	s->started = true;
	s->applier.flusher = flusher_new(s->sys);
	lane_begin(s);
	while (started.lanes < ADMISSION_WORKERS &&
	    pthread_create(&s->lane_threads[started.lanes], NULL, lane_main,
		s) == 0)
		started.lanes++;
	r = barriers_start(&s->barriers);
	started.checkpoint =
	    pthread_create(&s->checkpoint_thread, NULL, checkpoint_main, s);
	has_historian = historian_start(s->historian) == 0;
	while (started.committers < STORE_COMMITTERS &&
	    start_committer(s, started.committers) == 0)
		started.committers++;
	if (r == 0 && started.lanes == ADMISSION_WORKERS &&
	    started.checkpoint == 0 && has_historian &&
	    started.committers == STORE_COMMITTERS)
		return 0;
	end_threads(s, &started);
	return -EAGAIN;
}

int store_stop(struct store *s)
{
	int r = 0;

	if (s->started) {
		end_threads(s,
		    &(struct started){ .lanes = ADMISSION_WORKERS,
			.committers = STORE_COMMITTERS });
		r = checkpoint_once(s, true);
		/* Of one that turns out only now to have failed the records
		 * are put aside by the next one. */
		if (r < 0)
			r = checkpoint_once(s, true);
	}
	checkpoint_syncs_end(s);
	return r;
}

/* ---- what people see ---- */

void store_tell(const struct store *s, enum store_event event,
    const char *place, const char *why)
{
	if (s->cfg.event != NULL)
		s->cfg.event(event, place, why);
}

void store_set_fatal(struct store *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&s->mutex);
	if (s->fatal == NULL)
		s->fatal = strdup(text);
	pthread_mutex_unlock(&s->mutex);
	s->cfg.wake(s->cfg.wake_arg);
}

const char *store_fatal(struct store *s)
{
	const char *fatal;

	pthread_mutex_lock(&s->mutex);
	fatal = s->fatal;
	pthread_mutex_unlock(&s->mutex);
	return fatal;
}

int64_t store_stuck_ns(struct store *s)
{
	return commit_log_stuck_ns(s->log);
}

void store_stats(struct store *s, struct store_stats *stats)
{
	struct journal_stats journal;

	pthread_mutex_lock(&s->mutex);
	*stats = s->stats;
	pthread_mutex_unlock(&s->mutex);
	deferred_count(s->deferred, &stats->awaiting_repos,
	    &stats->awaiting_refs);
	barriers_count(&s->barriers, stats);
	journal_stats(s->journal, &journal);
	stats->last_lsn = journal_last_lsn(s->journal);
	stats->forgotten_lsn = journal_forgotten(s->journal);
	stats->flushes = journal.flushes;
	stats->wal_bytes = journal.wal_bytes;
	pthread_mutex_lock(&s->repos.mutex);
	stats->open_repos = s->repos.nr_open;
	pthread_mutex_unlock(&s->repos.mutex);
	historian_stats(s->historian, stats);
	stats->doubted_fs = doubts_count(s->doubts);
}
