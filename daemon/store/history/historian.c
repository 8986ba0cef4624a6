/*
 * The historian: the thread that answers questions about history, tells those
 * who wait, and keeps history up. Whatever it does, it does in turns of some
 * milliseconds, so that nobody waits for long behind another.
 *
 * Happy path:
 *	ask	waits in a queue, users in turn (history_queue.h); a turn is
 *		one question, which is answered from journal and index as far as
 *		the turn's time goes: the client asks for the rest. A watch of
 *		which there is nothing yet waits in a list
 *	commit	wakes it, where somebody waits: new rows are read once for all
 *		of them, at most each LISTEN_NS
 *	tick	the index, what is to be trimmed
 *
 * What is told is durable and published: every window that could have written
 * a lower LSN is over. Rows that nobody flushed, of weak modes or of rejections,
 * are flushed for those who ask, once a second at most.
 *
 * What fails:
 *	the journal awaits being reopened	who asked is told; who waits
 *						waits on
 *	a damaged row				said once; index and trimming
 *						end before it
 *	a trim that can't be known		the journal is brought back
 *						(commit_log.c)
 *	nobody waits for an answer any more	the question goes before its
 *						turn, unanswered
 *	the daemon stops			those who wait are answered; very
 *						many questions are refused, to be
 *						asked of the next daemon
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/history/history.h"
#include "daemon/store/history/history_queue.h"
#include "daemon/store/store_internal.h"

#define MS_NS     1000000LL
#define LISTEN_NS (5 * MS_NS)
#define TICK_NS   (1000 * MS_NS)
#define FLUSH_NS  (1000 * MS_NS)
/* All questions are looked through for those that nobody waits for. */
#define SWEEP_NS (10 * MS_NS)
/* So long after the daemon began to stop questions are answered. */
#define STOP_NS (1000 * MS_NS)
/* Between two slices, so that they take no more than a part of a processor and
 * of the disk: there may be millions of rows to index. The longer one while
 * somebody commits. */
#define INDEX_PAUSE_NS      (5 * MS_NS)
#define INDEX_LONG_PAUSE_NS (20 * MS_NS)
#define TRIM_PAUSE_NS       (10 * MS_NS)
/* So many rows are worth a slice before the tick. */
#define INDEX_ROWS 500

struct historian {
	struct store *store;
	struct history *history;
	struct history_queue queue;    /* questions */
	char path[REFD_PATH_MAX];      /* of the question in turn */
	struct store_history *waiting; /* watches */
	uint64_t seen;                 /* what was visible at the last slice */
	bool is_indexed;               /* all of that */
	uint64_t heard;                /* all that wait were told up to here */
	int64_t heard_ns;              /* when */
	int64_t flush_ns, sweep_ns;    /* not before */
	int64_t stop_ns;           /* when the stop was seen; 0: it was not */
	int64_t index_ns, trim_ns; /* when it is time again */
	bool is_damage_told;
};

struct store_history *store_history_new(struct refd_request *req,
    struct txn_peer *peer)
{
	struct store_history *ask = calloc(1, sizeof(*ask));

	if (ask == NULL)
		return NULL;
	ask->req = *req;
	memset(req, 0, sizeof(*req));
	ask->peer = *peer;
	memset(peer, 0, sizeof(*peer));
	return ask;
}

void store_history_free(struct store_history *ask)
{
	if (ask == NULL)
		return;
	refd_request_done(&ask->req);
	refd_answer_done(&ask->answer);
	free(ask->peer.gids);
	free(ask);
}

/* Every window that may have a lower LSN is over. */
static uint64_t visible_lsn(struct store *s)
{
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

static bool is_stopping(struct store *s)
{
	bool stops;

	pthread_mutex_lock(&s->mutex);
	stops = s->history_stops || s->stopping;
	pthread_mutex_unlock(&s->mutex);
	return stops;
}

/* Else it would not be told before somebody else is promised something.
 * Returns when it is time again. */
static int64_t make_last(struct historian *me, int64_t now_ns)
{
	struct store *s = me->store;

	if (!journal_is_unflushed(s->journal))
		return TICK_NS;
	if (now_ns < me->flush_ns)
		return me->flush_ns - now_ns;
	me->flush_ns = now_ns + FLUSH_NS;
	commit_log_wait(s->log, NULL, COMMIT_LOG_DURABLE);
	return FLUSH_NS;
}

/* ---- questions ---- */

static bool is_over(const struct store_history *ask, int64_t now_ns)
{
	return ask->deadline_ns <= now_ns || atomic_load(&ask->is_dropped);
}

static void refuse(struct historian *me, struct store_history *ask,
    enum refd_status status, const char *text)
{
	refd_answer_done(&ask->answer);
	ask->answer = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = text };
	store_told(me->store, ask);
}

static void queue_up(struct historian *me, struct store_history *ask)
{
	if (history_queue_put(&me->queue, ask) < 0)
		refuse(me, ask, BUSY(MEMORY));
}

/* Those that nobody waits for go first, or they would keep others out. */
static void sweep(struct historian *me, int64_t now_ns)
{
	struct store_history *gone = NULL, *ask, *next;

	if (now_ns < me->sweep_ns)
		return;
	me->sweep_ns = now_ns + SWEEP_NS;
	history_queue_take_dropped(&me->queue, &gone);
	DL_FOREACH_SAFE(gone, ask, next)
		refuse(me, ask, BUSY(QUESTIONS));
}

/* Answers ASK, or lets it wait. */
static void take_in(struct historian *me, struct store_history *ask,
    uint64_t visible)
{
	struct store *s = me->store;

	if (history_answer(me->history, ask, visible)) {
		store_told(s, ask);
		return;
	}
	if (is_stopping(s) || is_over(ask, SYS(s->sys, now_mono))) {
		history_answer_empty(me->history, ask);
		store_told(s, ask);
		return;
	}
	if (me->waiting == NULL)
		me->heard = visible;
	DL_APPEND(me->waiting, ask);
	pthread_mutex_lock(&s->mutex);
	s->stats.watching++;
	pthread_mutex_unlock(&s->mutex);
}

static void leave(struct historian *me, struct store_history *ask)
{
	struct store *s = me->store;

	DL_DELETE(me->waiting, ask);
	pthread_mutex_lock(&s->mutex);
	s->stats.watching--;
	pthread_mutex_unlock(&s->mutex);
}

static void concerns(void *arg, struct store_history *ask)
{
	struct historian *me = arg;

	leave(me, ask);
	queue_up(me, ask);
}

/* Returns how long nothing more is to be heard. */
static int64_t listen_now(struct historian *me, uint64_t visible,
    int64_t now_ns)
{
	if (me->waiting == NULL || visible <= me->heard)
		return TICK_NS;
	if (now_ns - me->heard_ns < LISTEN_NS)
		return LISTEN_NS - (now_ns - me->heard_ns);
	me->heard_ns = now_ns;
	history_listen(me->history, &me->heard, visible, &me->waiting, concerns,
	    me);
	return LISTEN_NS;
}

/* Those that waited long enough; returns when the next one will have. */
static int64_t dismiss(struct historian *me, int64_t now_ns)
{
	bool stops = is_stopping(me->store);
	struct store_history *ask, *next;
	int64_t wait_ns = TICK_NS;

	DL_FOREACH_SAFE(me->waiting, ask, next) {
		if (stops || is_over(ask, now_ns)) {
			leave(me, ask);
			history_answer_empty(me->history, ask);
			store_told(me->store, ask);
		} else if (ask->deadline_ns - now_ns < wait_ns) {
			wait_ns = ask->deadline_ns - now_ns;
		}
	}
	return wait_ns;
}

/* ---- upkeep ---- */

static int64_t index_now(struct historian *me, uint64_t visible, int64_t now_ns)
{
	uint64_t indexed = history_indexed(me->history);
	int64_t pause_ns = TICK_NS;
	bool is_busy = visible != me->seen;

	if (now_ns < me->index_ns &&
	    (!me->is_indexed || visible < indexed + INDEX_ROWS))
		return me->index_ns - now_ns;
	me->seen = visible;
	me->is_indexed = !history_index(me->history, visible);
	if (!me->is_indexed)
		pause_ns = is_busy ? INDEX_LONG_PAUSE_NS : INDEX_PAUSE_NS;
	me->index_ns = now_ns + pause_ns;
	return pause_ns;
}

static void tell_damage(struct historian *me)
{
	char *why = NULL;

	if (!me->is_damage_told)
		why = journal_damage(me->store->journal);
	if (why == NULL)
		return;
	store_tell(me->store, STORE_JOURNAL_DAMAGED, me->store->state_dir, why);
	me->is_damage_told = true;
	free(why);
}

static int64_t trim_now(struct historian *me, int64_t now_ns)
{
	int r;

	if (now_ns < me->trim_ns)
		return me->trim_ns - now_ns;
	r = history_trim(me->history);
	tell_damage(me);
	if (r == JOURNAL_UNKNOWN)
		commit_log_mend(me->store->log);
	me->trim_ns = now_ns + (r == HISTORY_MORE ? TRIM_PAUSE_NS : TICK_NS);
	return me->trim_ns - now_ns;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Some of all there is to do. Returns when to come back at the latest;
 * *LISTENS: a commit before then is of interest. */
static int64_t work(struct historian *me, bool *listens)
{
	struct store *s = me->store;
	int64_t now_ns = SYS(s->sys, now_mono), wait_ns = TICK_NS, deaf_ns;
	uint64_t visible;

	if (me->waiting != NULL)
		wait_ns = make_last(me, now_ns);
	visible = visible_lsn(s);
	deaf_ns = listen_now(me, visible, now_ns);
	*listens = me->waiting != NULL && deaf_ns == TICK_NS;
	wait_ns = least(wait_ns, deaf_ns);
	wait_ns = least(wait_ns, dismiss(me, now_ns));
	wait_ns = least(wait_ns, index_now(me, visible, now_ns));
	return least(wait_ns, trim_now(me, now_ns));
}

/* Under MUTEX. */
static void wait_for(struct store *s, int64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_cond_timedwait(&s->history_cond, &s->mutex, &until);
}

/* Those that wait for a turn can be very many. */
static bool stops_without(struct historian *me, int64_t now_ns)
{
	if (!is_stopping(me->store))
		return false;
	if (me->stop_ns == 0)
		me->stop_ns = now_ns;
	return now_ns - me->stop_ns > STOP_NS;
}

/* One turn. */
static void take_ask(struct historian *me)
{
	struct store *s = me->store;
	int64_t now_ns = SYS(s->sys, now_mono);
	struct store_history *ask;

	sweep(me, now_ns);
	ask = history_queue_take(&me->queue);
	if (ask == NULL)
		return;
	/* A copy: ASK is gone once it is answered. */
	if (ask->req.git_dir != NULL) {
		snprintf(me->path, sizeof(me->path), "%s", ask->req.git_dir);
		stage_begin(s, &s->answering, me->path);
	}
	if (stops_without(me, now_ns)) {
		refuse(me, ask, BUSY(STOPPING));
		return;
	}
	make_last(me, now_ns);
	take_in(me, ask, visible_lsn(s));
}

static void note_lsns(struct historian *me)
{
	struct store *s = me->store;

	s->stats.indexed_lsn = history_indexed(me->history);
	s->stats.trimmed_lsn = journal_trimmed(s->journal);
}

/* All that came, in the order in which it came. Under MUTEX. */
static void take_over(struct historian *me)
{
	struct store *s = me->store;
	struct history_fifo came = s->to_tell;
	struct store_history *ask;

	s->to_tell.head = NULL;
	pthread_mutex_unlock(&s->mutex);
	while ((ask = history_fifo_take(&came)) != NULL)
		queue_up(me, ask);
	pthread_mutex_lock(&s->mutex);
}

static void *history_main(void *arg)
{
	struct store *s = ((struct historian *)arg)->store;
	struct historian *me = arg;
	bool listens;
	int64_t wait_ns;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		take_over(me);
		if (s->stopping && s->to_tell.head == NULL &&
		    history_queue_is_empty(&me->queue))
			break;
		pthread_mutex_unlock(&s->mutex);
		stage_begin(s, &s->answering, s->state_dir);
		take_ask(me);
		stage_begin(s, &s->answering, s->state_dir);
		wait_ns = work(me, &listens);
		stage_end(s, &s->answering);
		pthread_mutex_lock(&s->mutex);
		note_lsns(me);
		s->history_listens = listens;
		if (!s->history_woken && !s->stopping &&
		    s->to_tell.head == NULL &&
		    history_queue_is_empty(&me->queue))
			wait_for(s, wait_ns);
		s->history_woken = false;
	}
	pthread_mutex_unlock(&s->mutex);
	dismiss(me, INT64_MAX);
	history_free(me->history);
	free(me);
	return NULL;
}

int history_start(struct store *s)
{
	const struct history_config cfg = { .sys = s->sys,
		.dir = s->state_dir,
		.journal = s->journal,
		.repos = &s->repos,
		.rights = &s->rights,
		.retention_ms = s->cfg.retention_ms,
		.retention_bytes = s->cfg.retention_bytes };
	struct historian *me = calloc(1, sizeof(*me));
	int r = -1;

	if (me == NULL)
		return -1;
	me->store = s;
	me->history = history_new(&cfg);
	if (me->history != NULL)
		r = pthread_create(&s->history_thread, NULL, history_main, me);
	if (r == 0)
		return 0;
	history_free(me->history);
	free(me);
	return -1;
}

/* ---- handing over ---- */

void store_history(struct store *s, struct store_history *ask)
{
	pthread_mutex_lock(&s->mutex);
	history_fifo_put(&s->to_tell, ask);
	pthread_cond_signal(&s->history_cond);
	pthread_mutex_unlock(&s->mutex);
}

void store_history_stop(struct store *s)
{
	pthread_mutex_lock(&s->mutex);
	s->history_stops = s->history_woken = true;
	pthread_cond_signal(&s->history_cond);
	pthread_mutex_unlock(&s->mutex);
}
