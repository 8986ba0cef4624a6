/*
 * The historian: answers questions about history, ends watches, and maintains
 * the index and the retention of history. A worker of the pool does one turn of
 * some milliseconds, so that no client waits long for another client.
 *
 * Happy path:
 *	ask	waits in a queue, users in turn (history_queue.h). A turn first
 *		indexes new rows, so that a question finds every change that
 *		was visible when it came, and then answers one question, until
 *		the turn's time is over: the client asks for the rest. A watch
 *		without news waits in a list
 *	commit	begins a turn, if a watch waits: new rows are indexed, and
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
 *	the disk of a repository hangs		a look at rights there holds all
 *						of history. Other work goes on,
 *						because the worker is kept for
 *						history
 *	the client is gone			the question is refused before
 *						its turn; nobody reads the
 *						refusal
 *	the daemon stops			watches are answered; of very
 *						many questions the rest is
 *						refused, for the next daemon
 *	out of memory				the store does not open. A
 *						hand-over allocates nothing
 */
#include "daemon/store/history/historian.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/mutex.h"
#include "daemon/base/time.h"
#include "daemon/store/history/history.h"
#include "daemon/store/history/history_queue.h"
#include "daemon/store/journal/commit_log.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/stages.h"

#define MS_NS     1000000LL
#define LISTEN_NS (5 * MS_NS)
#define TICK_NS   (1000 * MS_NS)
#define DAY_MS    (24 * 3600 * 1000LL)
#define FLUSH_NS  (1000 * MS_NS)
/* How often the queue is searched for questions without a client. */
#define SWEEP_NS (10 * MS_NS)
/* For this time after a stop began, questions are still answered. */
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
	const struct store_parts *cfg;
	struct work_source source; /* a turn */

	/* Only for the worker in turn, so they need no lock. */
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

	atomic_bool is_stopping; /* no watch waits any more */
	atomic_bool listens;     /* a commit is worth a turn */
	atomic_uint_fast64_t nr_watches;

	struct mutex mutex;
	/* Everything below: under MUTEX. */
	struct store_question *asked; /* a list of utlist */
	struct stage_work work;
	uint64_t indexed_lsn, trimmed_lsn;
	struct journal_chain chain;
};

static void begin_work(struct historian *h, const char *path)
{
	mutex_lock(&h->mutex);
	h->work = (struct stage_work){ path, SYS(h->cfg->sys, now_mono) };
	mutex_unlock(&h->mutex);
}

/* Flushes the rows that nobody has flushed, because otherwise the rows would
 * stay invisible until another caller needs durability. Returns the time until
 * the next call. */
static int64_t flush_rows(struct historian *h, int64_t now_ns)
{
	if (!journal_is_unflushed(h->cfg->journal))
		return TICK_NS;
	if (now_ns < h->flush_ns)
		return h->flush_ns - now_ns;
	h->flush_ns = now_ns + FLUSH_NS;
	commit_log_wait(h->cfg->log, NULL, COMMIT_LOG_DURABLE);
	return FLUSH_NS;
}

/* ---- questions ---- */

static bool is_over(const struct store_question *ask, int64_t now_ns)
{
	return ask->deadline_ns <= now_ns || atomic_load(&ask->is_dropped);
}

static void refuse_question(struct historian *h, struct store_question *ask,
    enum refd_status status, const char *text)
{
	question_refuse(ask, status, text);
	completions_put_question(h->cfg->completions, ask);
}

/* ASK is a watch, and in no list. */
static void end_watch(struct historian *h, struct store_question *ask)
{
	history_answer_empty(h->history, ask);
	completions_put_question(h->cfg->completions, ask);
}

/* Drops questions without a client first, since they would keep other questions
 * out. */
static void drop_abandoned(struct historian *h, int64_t now_ns)
{
	struct store_question *gone = NULL, *ask, *next;

	if (now_ns < h->sweep_ns)
		return;
	h->sweep_ns = now_ns + SWEEP_NS;
	history_queue_take_dropped(&h->queue, &gone);
	DL_FOREACH_SAFE(gone, ask, next)
		refuse_question(h, ask, BUSY(QUESTIONS));
}

/* Answers ASK, or puts a watch into the list. */
static void answer_or_list(struct historian *h, struct store_question *ask,
    uint64_t visible)
{
	if (history_answer(h->history, ask, visible)) {
		completions_put_question(h->cfg->completions, ask);
	} else if (atomic_load(&h->is_stopping) ||
	    is_over(ask, SYS(h->cfg->sys, now_mono))) {
		end_watch(h, ask);
	} else {
		DL_APPEND(h->watches.list, ask);
		atomic_fetch_add(&h->nr_watches, 1);
	}
}

static void leave(struct historian *h, struct store_question *ask)
{
	DL_DELETE(h->watches.list, ask);
	atomic_fetch_sub(&h->nr_watches, 1);
}

static void concerns(void *arg, struct store_question *ask)
{
	struct historian *h = arg;

	leave(h, ask);
	history_queue_put(&h->queue, ask);
}

/* Ends the watches whose time is over, and returns the end of the next
 * watch. */
static int64_t end_old_watches(struct historian *h, int64_t now_ns)
{
	bool stops = atomic_load(&h->is_stopping);
	struct store_question *ask, *next;
	int64_t wait_ns = TICK_NS;

	DL_FOREACH_SAFE(h->watches.list, ask, next) {
		if (stops || is_over(ask, now_ns)) {
			leave(h, ask);
			end_watch(h, ask);
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

static void index_some(struct historian *h, uint64_t visible, int64_t now_ns)
{
	const bool is_busy = visible != h->seen;
	int64_t pause_ns = TICK_NS;
	int r;

	h->seen = visible;
	r = history_index(h->history, visible, &h->watches);
	h->is_indexed = r == 0;
	if (r > 0)
		pause_ns = is_busy ? INDEX_LONG_PAUSE_NS : INDEX_PAUSE_NS;
	h->indexed_ns = now_ns;
	h->index_ns = now_ns + pause_ns;
}

/* Without a watch, only some hundred new rows are worth a slice before the
 * tick. If a watch waits, a single row is, because the watch may be about this
 * row. */
static int64_t index_now(struct historian *h, uint64_t visible, int64_t now_ns)
{
	const uint64_t enough = h->watches.list != NULL ? 1 : INDEX_ROWS;

	if (h->is_indexed && visible >= h->seen + enough)
		h->index_ns = least(h->index_ns, h->indexed_ns + LISTEN_NS);
	if (now_ns >= h->index_ns)
		index_some(h, visible, now_ns);
	return h->index_ns - now_ns;
}

static void tell(const struct historian *h, enum store_event event,
    const char *why)
{
	const struct store_config *config = h->cfg->config;

	if (config->event != NULL)
		config->event(event, h->cfg->state_dir, why);
}

static void tell_damage(struct historian *h)
{
	char *why = NULL;

	if (!h->is_damage_told)
		why = journal_damage(h->cfg->journal);
	if (why == NULL)
		return;
	tell(h, STORE_JOURNAL_DAMAGED, why);
	h->is_damage_told = true;
	free(why);
}

/* Once for each jump of the clock, since the clock is ahead at every tick until
 * the retention has followed. */
static void tell_clock(struct historian *h)
{
	int64_t days = history_clock_ahead_ms(h->history) / DAY_MS;
	char why[32];

	if (days > 0 && !h->is_clock_told) {
		snprintf(why, sizeof(why), "%lld days", (long long)days);
		tell(h, STORE_CLOCK_AHEAD, why);
	}
	h->is_clock_told = days > 0;
}

static int64_t trim_now(struct historian *h, int64_t now_ns)
{
	int r;

	if (now_ns < h->trim_ns)
		return h->trim_ns - now_ns;
	r = history_trim(h->history);
	tell_damage(h);
	tell_clock(h);
	if (r == JOURNAL_UNKNOWN)
		commit_log_mend(h->cfg->log);
	h->trim_ns = now_ns + (r == HISTORY_MORE ? TRIM_PAUSE_NS : TICK_NS);
	return h->trim_ns - now_ns;
}

/* Does some of the upkeep, and not all, because a question may wait. Returns
 * when to come back at the latest, without a commit of interest. */
static int64_t keep_up(struct historian *h)
{
	int64_t now_ns = SYS(h->cfg->sys, now_mono);
	int64_t wait_ns = TICK_NS;
	uint64_t visible;

	/* Before VISIBLE is read, so that no later commit is missed. */
	atomic_store(&h->listens, h->watches.list != NULL);
	if (h->watches.list != NULL)
		wait_ns = flush_rows(h, now_ns);
	visible = pipeline_visible_lsn(h->cfg->pipeline);
	wait_ns = least(wait_ns, index_now(h, visible, now_ns));
	wait_ns = least(wait_ns, end_old_watches(h, now_ns));
	/* If the index is behind, its time comes first. */
	if (h->watches.list == NULL || !h->is_indexed || h->seen < visible)
		atomic_store(&h->listens, false);
	return least(wait_ns, trim_now(h, now_ns));
}

/* The queue can be very long, so a daemon that stops answers only for a
 * second. */
static bool must_refuse(struct historian *h, int64_t now_ns)
{
	if (!atomic_load(&h->is_stopping))
		return false;
	if (h->stop_ns == 0)
		h->stop_ns = now_ns;
	return now_ns - h->stop_ns > STOP_NS;
}

static void answer_next(struct historian *h)
{
	int64_t now_ns = SYS(h->cfg->sys, now_mono);
	struct store_question *ask;
	uint64_t visible;

	drop_abandoned(h, now_ns);
	ask = history_queue_take(&h->queue);
	if (ask == NULL)
		return;
	/* A copy, because ASK may be freed right after the answer. */
	if (ask->req.git_dir != NULL) {
		snprintf(h->path, sizeof(h->path), "%s", ask->req.git_dir);
		begin_work(h, h->path);
	}
	if (must_refuse(h, now_ns)) {
		refuse_question(h, ask, BUSY(STOPPING));
		return;
	}
	flush_rows(h, now_ns);
	visible = pipeline_visible_lsn(h->cfg->pipeline);
	index_some(h, visible, now_ns);
	answer_or_list(h, ask, visible);
}

/* Under MUTEX. */
static void note_lsns(struct historian *h)
{
	const struct journal_chain *chain = history_chain(h->history);

	if (chain != NULL)
		h->chain = *chain;
	h->indexed_lsn = history_indexed(h->history);
	h->trimmed_lsn = journal_trimmed(h->cfg->journal);
}

/* Takes all new questions into the queue, in the order of arrival. */
static void take_new(struct historian *h)
{
	struct store_question *came, *ask, *next;

	mutex_lock(&h->mutex);
	came = h->asked;
	h->asked = NULL;
	mutex_unlock(&h->mutex);
	DL_FOREACH_SAFE(came, ask, next)
		history_queue_put(&h->queue, ask);
}

/* Ends the turn. True: there are more questions. */
static bool end_turn(struct historian *h)
{
	bool has_more;

	mutex_lock(&h->mutex);
	h->work.path = NULL;
	note_lsns(h);
	has_more = h->asked != NULL || !history_queue_is_empty(&h->queue);
	mutex_unlock(&h->mutex);
	return has_more;
}

/* work_source.work: one turn. */
static bool work_some(void *arg)
{
	struct historian *h = arg;
	int64_t wait_ns;

	take_new(h);
	begin_work(h, h->cfg->state_dir);
	answer_next(h);
	begin_work(h, h->cfg->state_dir);
	wait_ns = keep_up(h);
	if (end_turn(h))
		return true;
	workers_wake_at(h->cfg->workers, &h->source,
	    time_now_ns(CLOCK_MONOTONIC) + wait_ns);
	return false;
}

/* ---- calls of other threads. The pool is woken without MUTEX, which the woken
 * worker needs at once. ---- */

void historian_ask(struct historian *h, struct store_question *ask)
{
	mutex_lock(&h->mutex);
	DL_APPEND(h->asked, ask);
	mutex_unlock(&h->mutex);
	workers_wake(h->cfg->workers, &h->source);
}

void historian_stop(struct historian *h)
{
	atomic_store(&h->is_stopping, true);
	workers_wake(h->cfg->workers, &h->source);
}

void historian_note_commit(struct historian *h)
{
	if (atomic_load(&h->listens))
		workers_wake(h->cfg->workers, &h->source);
}

void historian_stats(struct historian *h, struct store_stats *stats)
{
	stats->watching = atomic_load(&h->nr_watches);
	mutex_lock(&h->mutex);
	stats->indexed_lsn = h->indexed_lsn;
	stats->trimmed_lsn = h->trimmed_lsn;
	if (h->chain.lsn > 0)
		journal_chain_text(journal_uuid(h->cfg->journal), &h->chain,
		    stats->head);
	mutex_unlock(&h->mutex);
}

void historian_progress(struct historian *h, int64_t before_ns,
    struct store_progress *progress)
{
	mutex_lock(&h->mutex);
	stage_add(progress, &h->work, before_ns);
	mutex_unlock(&h->mutex);
}

struct historian *historian_new(const struct store_parts *cfg)
{
	struct historian *h = calloc(1, sizeof(*h));

	if (h != NULL)
		h->history = history_new(cfg);
	if (h == NULL || h->history == NULL) {
		free(h);
		return NULL;
	}
	h->cfg = cfg;
	h->watches.concern = concerns;
	h->watches.arg = h;
	mutex_init(&h->mutex, MUTEX_JOBS);
	h->source = (struct work_source){ .work = work_some,
		.arg = h,
		.most = HISTORIAN_WORKERS,
		.reserved = HISTORIAN_RESERVED };
	workers_add(cfg->workers, &h->source);
	/* The first turn indexes what came before the start. */
	workers_wake(cfg->workers, &h->source);
	return h;
}

void historian_free(struct historian *h)
{
	if (h == NULL)
		return;
	history_free(h->history);
	mutex_destroy(&h->mutex);
	free(h);
}
