/*
 * The thread of the checkpointer, and the calls of other threads.
 *
 * The happy path: the thread sleeps for an interval, or until a question or
 * many updates come. Then it runs a round, and answers the questions that the
 * round decides.
 *
 * Failures: a failed round is repeated after the next interval, and the askers
 * are told. A sync that hangs blocks neither the thread nor other file systems,
 * because workers run the syncs.
 */
#include "daemon/base/time.h"
#include "daemon/store/checkpoint/checkpointer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/store/deferred/deferred_fs.h"

/* The end of a batch may take so long. */
#define BATCH_NS (2 * 1000 * 1000)

/*
 * So many updates begin a round before its time, because a sync of very many
 * files would keep the processors busy, and all writers of the file system
 * waiting: 16 clients with 6,000 updates a second waited up to 70 ms. But every
 * sync costs flushes, so a round is followed by a pause of five times the
 * length of the round, and of at least a part of the interval.
 */
#define MANY_UPDATES 256
#define PAUSE_ROUNDS 5
#define PAUSE_SHARE  20

/* ---- the time ---- */

/* A weaker mode promises that an answered update is durable after the interval
 * of this mode, so then this interval counts. A reload changes both
 * intervals. */
struct timespec checkpointer_deadline(struct checkpointer *c)
{
	bool is_weak = rights_weakest(c->cfg->rights) < REFD_DURABILITY_JOURNAL;

	return time_after(
	    is_weak ? c->durability_interval_ns : c->checkpoint_interval_ns);
}

/* After a round: the earliest time of the next round. Under MUTEX. */
static struct timespec after_pause(struct checkpointer *c)
{
	int64_t ns = PAUSE_ROUNDS * c->took_ns;

	if (ns < c->checkpoint_interval_ns / PAUSE_SHARE)
		ns = c->checkpoint_interval_ns / PAUSE_SHARE;
	if (ns > c->checkpoint_interval_ns)
		ns = c->checkpoint_interval_ns;
	return time_after(ns);
}

/* Waits for the next round, which is due at *NEXT if the last round left a sync
 * behind. Under MUTEX. */
static void wait_for_round(struct checkpointer *c, struct timespec *next)
{
	struct timespec earliest = after_pause(c);

	if (c->asked.head == NULL) {
		if (checkpoint_sync_has_ended(c))
			*next = checkpointer_deadline(c);
		if (c->nr_published < MANY_UPDATES)
			mutex_wait_until(&c->cond, &c->mutex, next);
		while (c->nr_published >= MANY_UPDATES && !c->stopping &&
		    c->asked.head == NULL &&
		    mutex_wait_until(&c->cond, &c->mutex, &earliest) == 0)
			;
	}
	*next = checkpointer_deadline(c);
}

/* The questions wait for a batch to end. Under MUTEX. */
static void wait_for_batches(struct checkpointer *c)
{
	const struct timespec until = time_after(BATCH_NS);

	mutex_wait_until(&c->cond, &c->mutex, &until);
}

/* ---- the thread ---- */

/* Runs a round if it is time, or if somebody ASKED. *BATCHES is the number of
 * ended batches at the begin of the last round. If no batch has ended since, no
 * commit has written the note of forgotten rows, so this round writes the note
 * itself. */
static void run_round(struct checkpointer *c, bool asked, uint64_t *batches)
{
	uint64_t before = *batches;
	int r = 0;

	*batches = pipeline_batches(c->cfg->pipeline);

	if (deferred_begin_turn(c->cfg->deferred))
		c->cfg->retry(c->cfg->store);
	checkpointer_set_work(c, &c->work, c->cfg->state_dir);
	fs_sync_watch_clock(c->cfg->repos);
	if (asked || !checkpoint_may_wait(c))
		r = checkpointer_once(c, asked || *batches == before);
	if (asked)
		checkpoint_answer(c, r);
	fs_sync_tell_unmarked(c->cfg->repos);
	/* After a crash, the records of a failed file system may be lost. Until
	 * the records are deferred, only the marks of sync_failures.h show the
	 * failure, so the records are deferred at once, and not at the next
	 * round. */
	if (r < 0)
		deferred_fs_let_go(c->cfg->deferred);
	checkpointer_set_work(c, &c->work, NULL);
}

static void *checkpointer_main(void *arg)
{
	struct checkpointer *c = arg;
	bool asked, waits = false;
	struct timespec next = { 0 };
	uint64_t batches = 0;

	mutex_lock(&c->mutex);
	while (!c->stopping) {
		if (waits)
			wait_for_batches(c);
		else
			wait_for_round(c, &next);
		if (c->stopping)
			break;
		asked = c->asked.head != NULL;
		c->nr_published = 0;
		mutex_unlock(&c->mutex);
		run_round(c, asked, &batches);
		mutex_lock(&c->mutex);
		waits = c->asked.head != NULL;
	}
	mutex_unlock(&c->mutex);
	return NULL;
}

/* ---- calls of other threads ---- */

void checkpointer_set_work(struct checkpointer *c, struct stage_work *work,
    const char *path)
{
	mutex_lock(&c->mutex);
	*work = (struct stage_work){ path, SYS(c->cfg->sys, now_mono) };
	mutex_unlock(&c->mutex);
}

void checkpointer_set_intervals(struct checkpointer *c, int64_t checkpoint_ns,
    int64_t durability_ns)
{
	mutex_lock(&c->mutex);
	c->checkpoint_interval_ns = checkpoint_ns;
	c->durability_interval_ns = durability_ns;
	pthread_cond_signal(&c->cond);
	mutex_unlock(&c->mutex);
}

void checkpointer_published(struct checkpointer *c, size_t nr)
{
	bool is_enough;

	mutex_lock(&c->mutex);
	c->nr_published += nr;
	is_enough = c->nr_published >= MANY_UPDATES &&
	    c->nr_published - nr < MANY_UPDATES;
	mutex_unlock(&c->mutex);
	if (is_enough)
		pthread_cond_signal(&c->cond);
}

void checkpointer_ask(struct checkpointer *c, struct store_question *cp)
{
	mutex_lock(&c->mutex);
	cp->lsn = journal_last_lsn(c->journal);
	question_fifo_put(&c->asked, cp);
	pthread_cond_signal(&c->cond);
	mutex_unlock(&c->mutex);
}

void checkpointer_stats(struct checkpointer *c, struct store_stats *stats)
{
	mutex_lock(&c->mutex);
	stats->checkpoints = c->nr_done;
	stats->checkpoint_failures = c->nr_failed;
	stats->checkpoint_ns = c->done_ns;
	stats->checkpoint_took_ns = c->took_ns;
	stats->journal_bytes = c->journal_bytes;
	mutex_unlock(&c->mutex);
}

void checkpointer_progress(struct checkpointer *c, int64_t before_ns,
    struct store_progress *progress)
{
	const struct fs_sync *sync;

	mutex_lock(&c->mutex);
	stage_add(progress, &c->work, before_ns);
	for (sync = c->syncs; sync != NULL; sync = sync->next)
		stage_add(progress, &sync->work, before_ns);
	mutex_unlock(&c->mutex);
}

struct checkpointer *checkpointer_new(const struct store_parts *cfg)
{
	struct checkpointer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->cfg = cfg;
	c->journal = commit_log_journal(cfg->log);
	c->wal_copied_ns = SYS(cfg->sys, now_mono);
	mutex_init(&c->mutex, MUTEX_CHECKPOINTER);
	time_cond_init(&c->cond);
	c->source = (struct work_source){ .work = checkpoint_sync_next,
		.arg = c,
		.most = CHECKPOINTER_SYNCS,
		.reserved = CHECKPOINTER_RESERVED };
	workers_add(cfg->workers, &c->source);
	return c;
}

void checkpointer_free(struct checkpointer *c)
{
	if (c == NULL)
		return;
	checkpoint_sync_end(c);
	pthread_cond_destroy(&c->cond);
	mutex_destroy(&c->mutex);
	free(c);
}

int checkpointer_start(struct checkpointer *c)
{
	/* The thread reads this member, so the member is set before the
	 * start. */
	c->is_started = true;
	if (pthread_create(&c->thread, NULL, checkpointer_main, c) == 0)
		return 0;
	c->is_started = false;
	return -EAGAIN;
}

void checkpointer_stop(struct checkpointer *c)
{
	mutex_lock(&c->mutex);
	c->stopping = true;
	pthread_cond_broadcast(&c->cond);
	mutex_unlock(&c->mutex);
	if (c->is_started)
		pthread_join(c->thread, NULL);
	c->is_started = false;
	checkpoint_sync_end(c);
}
