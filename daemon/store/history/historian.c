/*
 * The historian: the thread that answers questions about history, ends watches,
 * and maintains the index and the retention of history. All work is done in
 * turns of some milliseconds, so that no client waits long for another client.
 *
 * Happy path:
 *	ask	waits in a queue, users in turn (history_queue.h). A turn first
 *		indexes new rows, so that a question finds every change that
 *		was visible when it came, and then answers one question, until
 *		the turn's time is over: the client asks for the rest. A watch
 *		without news waits in a list
 *	commit	wakes the thread, if a watch waits: new rows are indexed, and
 *		compared with all watches, at most each LISTEN_NS
 *	tick	indexing, trimming
 *
 * All answers are durable and published, because every batch that could have
 * written a lower LSN has ended. Nobody flushes the rows of weak modes and of
 * rejections, so the historian flushes these rows for questions, at most once a
 * second.
 *
 * Failures:
 *	the journal awaits being reopened	a question fails; a watch waits
 *						on
 *	a damaged row				reported once; trimming ends
 *						before the row, and so does an
 *						answer that comes to the row
 *	a trim with an unknown outcome		the journal is opened again
 *						(commit_log.c)
 *	the client is gone			the question is dropped before
 *						its turn, unanswered
 *	the daemon stops			watches are answered; of very
 *						many questions the rest is
 *						refused, for the next daemon
 */
#include "daemon/store/history/historian.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/mutex.h"
#include "daemon/base/time.h"
#include "daemon/store/history/history_queue.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/stages.h"

#define MS_NS     1000000LL
#define LISTEN_NS (5 * MS_NS)
#define TICK_NS   (1000 * MS_NS)
#define DAY_MS    (24 * 3600 * 1000LL)
#define FLUSH_NS  (1000 * MS_NS)
/* How often the queue is searched for questions without a client. */
#define SWEEP_NS (10 * MS_NS)
/* So long after the daemon began to stop questions are answered. */
#define STOP_NS (1000 * MS_NS)
/* There may be millions of rows to index, so pauses between slices leave a part
 * of a processor and of the disk to other work. During commits the longer pause
 * applies. */
#define INDEX_PAUSE_NS      (5 * MS_NS)
#define INDEX_LONG_PAUSE_NS (20 * MS_NS)
#define TRIM_PAUSE_NS       (10 * MS_NS)
/* So many rows are worth a slice before the tick. */
#define INDEX_ROWS 500

struct historian {
	struct historian_config cfg;
	bool is_started; /* the owner's */
	pthread_t thread;

	/* Only the thread uses these, so they need no lock. */
	struct history *history;
	struct history_queue queue;     /* questions */
	char path[REFD_PATH_MAX];       /* of the question in turn */
	struct history_watches watches; /* without news */
	/* the last visible LSN at the last slice of the index */
	uint64_t seen;
	bool is_indexed;            /* up to `seen` */
	int64_t indexed_ns;         /* when */
	int64_t flush_ns, sweep_ns; /* not before */
	int64_t stop_ns;            /* when the stop was seen; 0: not stopped */
	int64_t index_ns, trim_ns;  /* the next time */
	bool is_damage_told, is_clock_told;

	/* Everything below: under MUTEX. */
	struct mutex mutex;
	pthread_cond_t cond;
	struct store_question *asked; /* a list of utlist */
	bool is_stopping;
	bool ends_watches; /* no watch waits any more */
	bool listens;      /* a commit is worth waking the thread for */
	bool is_woken;     /* the thread may not wait */
	struct stage_work work;
	uint64_t nr_watches, indexed_lsn, trimmed_lsn;
	struct journal_chain chain;
};

/* ---- shared with other threads ---- */

static void begin_work(struct historian *me, const char *path)
{
	mutex_lock(&me->mutex);
	me->work.path = path;
	me->work.since_ns = SYS(me->cfg.history.sys, now_mono);
	mutex_unlock(&me->mutex);
}

static void count_watches(struct historian *me, int more)
{
	mutex_lock(&me->mutex);
	me->nr_watches += (uint64_t)more;
	mutex_unlock(&me->mutex);
}

static uint64_t visible_lsn(struct historian *me)
{
	return me->cfg.visible(me->cfg.visible_arg);
}

static bool watches_end(struct historian *me)
{
	bool end;

	mutex_lock(&me->mutex);
	end = me->ends_watches || me->is_stopping;
	mutex_unlock(&me->mutex);
	return end;
}

/* Flushes the rows that nobody has flushed, because otherwise the rows would
 * stay invisible until another caller needs durability. Returns the time until
 * the next call. */
static int64_t flush_rows(struct historian *me, int64_t now_ns)
{
	if (!journal_is_unflushed(me->cfg.history.journal))
		return TICK_NS;
	if (now_ns < me->flush_ns)
		return me->flush_ns - now_ns;
	me->flush_ns = now_ns + FLUSH_NS;
	commit_log_wait(me->cfg.log, NULL, COMMIT_LOG_DURABLE);
	return FLUSH_NS;
}

/* ---- questions ---- */

static bool is_over(const struct store_question *ask, int64_t now_ns)
{
	return ask->deadline_ns <= now_ns || atomic_load(&ask->is_dropped);
}

static void refuse_question(struct historian *me, struct store_question *ask,
    enum refd_status status, const char *text)
{
	question_refuse(ask, status, text);
	completions_put_question(me->cfg.completions, ask);
}

/* Drops questions without a client first, since they would keep other questions
 * out. */
static void drop_abandoned(struct historian *me, int64_t now_ns)
{
	struct store_question *gone = NULL, *ask, *next;

	if (now_ns < me->sweep_ns)
		return;
	me->sweep_ns = now_ns + SWEEP_NS;
	history_queue_take_dropped(&me->queue, &gone);
	DL_FOREACH_SAFE(gone, ask, next)
		refuse_question(me, ask, BUSY(QUESTIONS));
}

/* Answers ASK, or puts a watch into the list. */
static void answer_or_list(struct historian *me, struct store_question *ask,
    uint64_t visible)
{
	if (history_answer(me->history, ask, visible)) {
		completions_put_question(me->cfg.completions, ask);
		return;
	}
	if (watches_end(me) ||
	    is_over(ask, SYS(me->cfg.history.sys, now_mono))) {
		history_answer_empty(me->history, ask);
		completions_put_question(me->cfg.completions, ask);
		return;
	}
	DL_APPEND(me->watches.list, ask);
	count_watches(me, 1);
}

static void leave(struct historian *me, struct store_question *ask)
{
	DL_DELETE(me->watches.list, ask);
	count_watches(me, -1);
}

static void concerns(void *arg, struct store_question *ask)
{
	struct historian *me = arg;

	leave(me, ask);
	history_queue_put(&me->queue, ask);
}

/* Ends the watches whose time is over, and returns the end of the next
 * watch. */
static int64_t end_old_watches(struct historian *me, int64_t now_ns)
{
	bool stops = watches_end(me);
	struct store_question *ask, *next;
	int64_t wait_ns = TICK_NS;

	DL_FOREACH_SAFE(me->watches.list, ask, next) {
		if (stops || is_over(ask, now_ns)) {
			leave(me, ask);
			history_answer_empty(me->history, ask);
			completions_put_question(me->cfg.completions, ask);
		} else if (ask->deadline_ns - now_ns < wait_ns) {
			wait_ns = ask->deadline_ns - now_ns;
		}
	}
	return wait_ns;
}

/* ---- upkeep ---- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void index_some(struct historian *me, uint64_t visible, int64_t now_ns)
{
	const bool is_busy = visible != me->seen;
	int64_t pause_ns = TICK_NS;
	int r;

	me->seen = visible;
	r = history_index(me->history, visible, &me->watches);
	me->is_indexed = r == 0;
	if (r > 0)
		pause_ns = is_busy ? INDEX_LONG_PAUSE_NS : INDEX_PAUSE_NS;
	me->indexed_ns = now_ns;
	me->index_ns = now_ns + pause_ns;
}

/* Without a watch, only some hundred new rows are worth a slice before the
 * tick. If a watch waits, a single row is, because the watch may be about this
 * row. */
static int64_t index_now(struct historian *me, uint64_t visible, int64_t now_ns)
{
	const uint64_t enough = me->watches.list != NULL ? 1 : INDEX_ROWS;

	if (me->is_indexed && visible >= me->seen + enough)
		me->index_ns = least(me->index_ns, me->indexed_ns + LISTEN_NS);
	if (now_ns >= me->index_ns)
		index_some(me, visible, now_ns);
	return me->index_ns - now_ns;
}

static void tell_damage(struct historian *me)
{
	char *why = NULL;

	if (!me->is_damage_told)
		why = journal_damage(me->cfg.history.journal);
	if (why == NULL)
		return;
	if (me->cfg.event != NULL)
		me->cfg.event(STORE_JOURNAL_DAMAGED, me->cfg.history.dir, why);
	me->is_damage_told = true;
	free(why);
}

/* Once for each jump of the clock, since the clock is ahead at every tick until
 * the retention has followed. */
static void tell_clock(struct historian *me)
{
	int64_t days = history_clock_ahead_ms(me->history) / DAY_MS;
	char why[32];

	if (days > 0 && !me->is_clock_told && me->cfg.event != NULL) {
		snprintf(why, sizeof(why), "%lld days", (long long)days);
		me->cfg.event(STORE_CLOCK_AHEAD, me->cfg.history.dir, why);
	}
	me->is_clock_told = days > 0;
}

static int64_t trim_now(struct historian *me, int64_t now_ns)
{
	int r;

	if (now_ns < me->trim_ns)
		return me->trim_ns - now_ns;
	r = history_trim(me->history);
	tell_damage(me);
	tell_clock(me);
	if (r == JOURNAL_UNKNOWN)
		commit_log_mend(me->cfg.log);
	me->trim_ns = now_ns + (r == HISTORY_MORE ? TRIM_PAUSE_NS : TICK_NS);
	return me->trim_ns - now_ns;
}

/* Does some of the upkeep, and not all, because a question may wait. Returns
 * when to come back at the latest; *LISTENS: a commit before then is of
 * interest. */
static int64_t work(struct historian *me, bool *listens)
{
	int64_t now_ns = SYS(me->cfg.history.sys, now_mono);
	int64_t wait_ns = TICK_NS;
	uint64_t visible;

	if (me->watches.list != NULL)
		wait_ns = flush_rows(me, now_ns);
	visible = visible_lsn(me);
	wait_ns = least(wait_ns, index_now(me, visible, now_ns));
	wait_ns = least(wait_ns, end_old_watches(me, now_ns));
	*listens =
	    me->watches.list != NULL && me->is_indexed && me->seen >= visible;
	return least(wait_ns, trim_now(me, now_ns));
}

/* Under MUTEX. */
static void wait_for(struct historian *me, int64_t ns)
{
	const struct timespec until = time_after(ns);

	mutex_wait_until(&me->cond, &me->mutex, &until);
}

/* The queue can be very long, so a daemon that stops answers only for a
 * second. */
static bool must_refuse(struct historian *me, int64_t now_ns)
{
	if (!watches_end(me))
		return false;
	if (me->stop_ns == 0)
		me->stop_ns = now_ns;
	return now_ns - me->stop_ns > STOP_NS;
}

/* One turn. */
static void answer_next(struct historian *me)
{
	int64_t now_ns = SYS(me->cfg.history.sys, now_mono);
	struct store_question *ask;
	uint64_t visible;

	drop_abandoned(me, now_ns);
	ask = history_queue_take(&me->queue);
	if (ask == NULL)
		return;
	/* A copy, because ASK may be freed as soon as it has its answer. */
	if (ask->req.git_dir != NULL) {
		snprintf(me->path, sizeof(me->path), "%s", ask->req.git_dir);
		begin_work(me, me->path);
	}
	if (must_refuse(me, now_ns)) {
		refuse_question(me, ask, BUSY(STOPPING));
		return;
	}
	flush_rows(me, now_ns);
	visible = visible_lsn(me);
	index_some(me, visible, now_ns);
	answer_or_list(me, ask, visible);
}

/* Under MUTEX. */
static void note_lsns(struct historian *me)
{
	const struct journal_chain *chain = history_chain(me->history);

	if (chain != NULL)
		me->chain = *chain;
	me->indexed_lsn = history_indexed(me->history);
	me->trimmed_lsn = journal_trimmed(me->cfg.history.journal);
}

/* Takes all new questions into the queue, in the order of arrival. */
static void take_new(struct historian *me)
{
	struct store_question *came, *ask, *next;

	mutex_lock(&me->mutex);
	came = me->asked;
	me->asked = NULL;
	mutex_unlock(&me->mutex);
	DL_FOREACH_SAFE(came, ask, next)
		history_queue_put(&me->queue, ask);
}

/* No question waits. Under MUTEX. */
static bool has_none(const struct historian *me)
{
	return me->asked == NULL && history_queue_is_empty(&me->queue);
}

/* Ends a turn, and without work waits WAIT_NS for the next turn. False: the
 * thread must end. */
static bool next_turn(struct historian *me, bool listens, int64_t wait_ns)
{
	bool goes_on;

	mutex_lock(&me->mutex);
	me->work.path = NULL;
	note_lsns(me);
	me->listens = listens;
	if (!me->is_woken && !me->is_stopping && has_none(me))
		wait_for(me, wait_ns);
	me->is_woken = false;
	goes_on = !me->is_stopping || !has_none(me);
	mutex_unlock(&me->mutex);
	return goes_on;
}

/* The thread; ARG is the historian. */
static void *historian_main(void *arg)
{
	struct historian *me = arg;
	int64_t wait_ns;
	bool listens;

	do {
		take_new(me);
		begin_work(me, me->cfg.history.dir);
		answer_next(me);
		begin_work(me, me->cfg.history.dir);
		wait_ns = work(me, &listens);
	} while (next_turn(me, listens, wait_ns));
	end_old_watches(me, INT64_MAX);
	history_free(me->history);
	me->history = NULL;
	return NULL;
}

/* ---- starting, ending and handing over ---- */

/*
 * Starts and ends the historian's thread, and hands questions over.
 *
 * Happy path:
 *	ask	the question goes into a list; the thread wakes
 *	commit	the thread wakes, if a watch waits
 *
 * Failures: out of memory, or no thread. Both fail the start of the store. To
 * hand over allocates nothing, so no question is lost for want of memory.
 */

struct historian *historian_new(const struct historian_config *cfg)
{
	struct historian *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->cfg = *cfg;
	mutex_init(&h->mutex, MUTEX_FLOORS);
	time_cond_init(&h->cond);
	return h;
}

int historian_start(struct historian *h)
{
	h->history = history_new(&h->cfg.history);
	h->watches.concern = concerns;
	h->watches.arg = h;
	if (h->history != NULL)
		h->is_started =
		    pthread_create(&h->thread, NULL, historian_main, h) == 0;
	if (h->is_started)
		return 0;
	history_free(h->history);
	h->history = NULL;
	return -1;
}

void historian_stop(struct historian *h)
{
	if (!h->is_started)
		return;
	mutex_lock(&h->mutex);
	h->is_stopping = true;
	pthread_cond_signal(&h->cond);
	mutex_unlock(&h->mutex);
	pthread_join(h->thread, NULL);
	h->is_started = false;
}

void historian_free(struct historian *h)
{
	if (h == NULL)
		return;
	pthread_cond_destroy(&h->cond);
	mutex_destroy(&h->mutex);
	free(h);
}

/* ---- handing over ---- */

void historian_ask(struct historian *h, struct store_question *ask)
{
	mutex_lock(&h->mutex);
	DL_APPEND(h->asked, ask);
	pthread_cond_signal(&h->cond);
	mutex_unlock(&h->mutex);
}

void historian_end_watches(struct historian *h)
{
	mutex_lock(&h->mutex);
	h->ends_watches = h->is_woken = true;
	pthread_cond_signal(&h->cond);
	mutex_unlock(&h->mutex);
}

void historian_note_commit(struct historian *h)
{
	mutex_lock(&h->mutex);
	if (h->listens) {
		h->is_woken = true;
		pthread_cond_signal(&h->cond);
	}
	mutex_unlock(&h->mutex);
}

void historian_stats(struct historian *h, struct store_stats *stats)
{
	mutex_lock(&h->mutex);
	stats->watching = h->nr_watches;
	stats->indexed_lsn = h->indexed_lsn;
	stats->trimmed_lsn = h->trimmed_lsn;
	if (h->chain.lsn > 0)
		journal_chain_text(journal_uuid(h->cfg.history.journal),
		    &h->chain, stats->head);
	mutex_unlock(&h->mutex);
}

void historian_progress(struct historian *h, int64_t before_ns,
    struct store_progress *progress)
{
	mutex_lock(&h->mutex);
	stage_add(progress, &h->work, before_ns);
	mutex_unlock(&h->mutex);
}
