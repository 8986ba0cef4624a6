/*
 * The batches in work, and the hand-over to the workers.
 *
 * Happy path of a batch: store_apply() puts the batch into the queue,
 * begin_batch() sets the floor, apply_batch() locks, commits and publishes, and
 * hand_back() clears the floor and hands the batch back. One flush serves all
 * rows before it, so the commit gathers other batches, appends the rows to the
 * commit log, and waits for the flush that they share.
 *
 * Failures: if no worker is free, the batch waits. commit_log.h tells the fate
 * of the rows. A dead log takes no rows, so the updates are answered `unknown`.
 */
#include "daemon/store/pipeline/pipeline_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/time.h"
#include "daemon/store/files/format/packed.h"

#define GATHER_MAX_NS (10 * 1000 * 1000)

/* ---- a batch in work ---- */

/* Under MUTEX. A slot is free, because the source permits PIPELINE_BATCHES
 * workers, the scheduler sends one batch at a time the direct way, and one
 * thread applies the rows of other machines. */
static struct commit_slot *begin_batch(struct pipeline *p, struct batch *b)
{
	/* A rejection has no repository, so its batch only writes to the log.
	 * The paths stay valid until the batch has come back. */
	const struct repo *repo = b->slices[0].txn->repo;
	struct commit_slot *slot = p->slots;
	size_t i;

	while (slot->batch != NULL)
		slot++;
	*slot = (struct commit_slot){
		.batch = b,
		/* No record of the batch exists yet, so all get higher LSNs. */
		.floor = journal_last_lsn(p->journal) + 1,
		.shared_floor = journal_shared_lsn(p->journal) + 1,
		.work = { repo != NULL ? repo->path : p->cfg->state_dir,
		    SYS(p->cfg->sys, now_mono) },
		.is_prepared = b->is_prepared,
	};
	for (i = 1; i < b->nr_slices && !slot->has_more; i++)
		slot->has_more = b->slices[i].txn->repo != repo;
	p->nr_locking += !b->is_prepared;
	return slot;
}

/* applier.prepared */
static void batch_prepared(void *arg, struct batch *b)
{
	struct pipeline *p = arg;
	bool wake;
	size_t i;

	mutex_lock(&p->mutex);
	p->has_refused = false;
	if (--p->nr_locking == 0)
		pthread_cond_broadcast(&p->gathered);
	/* Has store_takes() become true? */
	wake = p->nr_preparing-- == PIPELINE_PREPARERS;
	for (i = 0; i < PIPELINE_SLOTS; i++) {
		if (p->slots[i].batch != b)
			continue;
		p->slots[i].is_prepared = true;
		p->slots[i].work.since_ns = SYS(p->cfg->sys, now_mono);
	}
	mutex_unlock(&p->mutex);
	if (wake)
		p->cfg->config->wake(p->cfg->config->wake_arg);
}

/* applier.is_awaited */
static bool is_awaited(void *arg)
{
	struct pipeline *p = arg;
	bool is_it;

	mutex_lock(&p->mutex);
	is_it = p->has_refused || p->nr_gathering > 0;
	mutex_unlock(&p->mutex);
	return is_it;
}

/* The last row of other machines up to which every batch has ended. Under
 * MUTEX. */
static uint64_t ended_shared(const struct pipeline *p)
{
	uint64_t lsn = journal_shared_lsn(p->journal);
	size_t i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].batch != NULL &&
		    p->slots[i].shared_floor <= lsn)
			lsn = p->slots[i].shared_floor - 1;
	return lsn;
}

static void end_batch(struct pipeline *p, struct commit_slot *slot,
    struct batch *b)
{
	uint64_t lsn;

	b->done_ns = SYS(p->cfg->sys, now_mono);
	if (!b->is_prepared)
		batch_prepared(p, b);
	mutex_lock(&p->mutex);
	memset(slot, 0, sizeof(*slot));
	p->nr_ended++;
	lsn = ended_shared(p);
	mutex_unlock(&p->mutex);
	/* Only now the refs have the rows, so another machine can copy them. */
	REPLICA(p->cfg->replica, ended, b, lsn);
}

/* The floor is cleared before the batch is handed back, so that a client finds
 * an answered update in history. */
static void hand_back(struct pipeline *p, struct commit_slot *slot,
    struct batch *b)
{
	const size_t nr = batch_nr_updates(b);

	end_batch(p, slot, b);
	completions_put_batch(p->cfg->completions, b);
	p->cfg->committed(p->cfg->store, nr);
}

/* work_source.work */
static bool apply_next(void *arg)
{
	struct commit_slot *slot = NULL;
	struct pipeline *p = arg;
	struct batch *b;

	mutex_lock(&p->mutex);
	b = batch_fifo_take(&p->to_apply);
	if (b != NULL)
		slot = begin_batch(p, b);
	if (p->to_apply.head != NULL)
		workers_wake(p->cfg->workers, &p->source);
	mutex_unlock(&p->mutex);
	if (b == NULL)
		return false;
	apply_batch(&p->applier, b);
	hand_back(p, slot, b);
	return true;
}

/* ---- the shared flush ---- */

/* One flush serves all rows before it, so a batch waits while other batches
 * take their locks. The wait is no longer than a flush takes, because otherwise
 * a flush for this batch alone would be faster. */
static void gather(struct pipeline *p)
{
	int64_t ns = journal_flush_ns(p->journal);
	struct timespec until;

	if (ns > GATHER_MAX_NS)
		ns = GATHER_MAX_NS;
	until = time_after(ns);
	mutex_lock(&p->mutex);
	p->nr_gathering++;
	while (p->nr_locking > 0 &&
	    mutex_wait_until(&p->gathered, &p->mutex, &until) == 0)
		;
	p->nr_gathering--;
	mutex_unlock(&p->mutex);
}

int pipeline_append(struct replica *replica, struct journal_row *rows,
    size_t nr, bool flush)
{
	struct pipeline *p = replica->host->pipeline;

	if (flush)
		gather(p);
	return commit_log_commit(p->cfg->log, rows, nr,
	    flush ? COMMIT_LOG_DURABLE : COMMIT_LOG_LOCAL);
}

int pipeline_commit(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	struct pipeline *p = arg;

	if (store_fatal(p->cfg->store) != NULL)
		return JOURNAL_UNKNOWN;
	/* A single machine: pipeline_append() above. */
	return REPLICA(p->cfg->replica, append, rows, nr, flush);
}

/* ---- opening ---- */

static void defer_line(void *arg, const struct repo *repo)
{
	deferred_add_line(((struct pipeline *)arg)->cfg->deferred, repo);
}

static void left(void *arg, const struct repo *repo, uint64_t token)
{
	deferred_add_locks(((struct pipeline *)arg)->cfg->deferred, repo,
	    token);
}

static void defer_update(void *arg, uint64_t lsn, uint32_t index)
{
	struct pipeline *p = arg;

	REPLICA(p->cfg->replica, unfinished);
	deferred_add_update(p->cfg->deferred, lsn, index);
}

static void init_applier(struct pipeline *p)
{
	struct applier *ap = &p->applier;

	ap->sys = p->cfg->sys;
	ap->repos = p->cfg->repos;
	ap->journal = p->journal;
	ap->durability = p->cfg->config->durability;
	ap->replica = p->cfg->replica;
	ap->prepare_max_ns = p->cfg->config->prepare_max_ns;
	ap->packed_least = PACKED_LEAST;
	/* Without memory for a flusher, a batch syncs the files one by one. */
	ap->flusher = flusher_new(p->cfg->sys, p->cfg->workers);
	/* Unique for the journal's life, because each start has its own number
	 * above the counter. */
	atomic_init(&ap->next_token,
	    journal_this_start(p->journal) << JOURNAL_TOKEN_BITS | 1);
	ap->commit = pipeline_commit;
	ap->prepared = batch_prepared;
	ap->is_awaited = is_awaited;
	ap->defer_line = defer_line;
	ap->left = left;
	ap->defer_update = defer_update;
	ap->arg = p;
}

struct pipeline *pipeline_new(const struct store_parts *cfg)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->cfg = cfg;
	p->journal = commit_log_journal(cfg->log);
	init_applier(p);
	mutex_init(&p->mutex, MUTEX_FLOORS);
	time_cond_init(&p->gathered);
	p->source = (struct work_source){ .work = apply_next,
		.arg = p,
		.most = PIPELINE_BATCHES,
		.reserved = PIPELINE_RESERVED };
	workers_add(cfg->workers, &p->source);
	return p;
}

void pipeline_free(struct pipeline *p)
{
	if (p == NULL)
		return;
	pthread_cond_destroy(&p->gathered);
	mutex_destroy(&p->mutex);
	flusher_free(p->applier.flusher);
	free(p);
}

/* ---- handing over ---- */

void store_apply(struct store *store, struct batch *b)
{
	struct pipeline *p = store_parts(store)->pipeline;

	/* The end of a session, and a gate's look, take no locks, so nobody
	 * waits for them. A batch of a session comes here twice, and may keep
	 * the mark of the first time, so the mark is set in any case. */
	b->is_prepared = b->session == BATCH_COMMIT ||
	    b->session == BATCH_ABORT || b->session == BATCH_LOOK;
	mutex_lock(&p->mutex);
	if (!b->is_prepared)
		p->nr_preparing++;
	batch_fifo_put(&p->to_apply, b);
	mutex_unlock(&p->mutex);
	/* Without MUTEX, because the woken worker needs the mutex at once. */
	workers_wake(p->cfg->workers, &p->source);
}

bool store_takes(struct store *store)
{
	struct pipeline *p = store_parts(store)->pipeline;
	bool takes;

	mutex_lock(&p->mutex);
	takes = p->nr_preparing < PIPELINE_PREPARERS;
	p->has_refused = !takes;
	mutex_unlock(&p->mutex);
	return takes;
}

uint64_t pipeline_next_token(struct pipeline *p)
{
	return atomic_fetch_add(&p->applier.next_token, 1);
}

static struct commit_slot *apply_now(struct pipeline *p, struct batch *b)
{
	struct commit_slot *slot;

	mutex_lock(&p->mutex);
	p->nr_preparing++;
	slot = begin_batch(p, b);
	mutex_unlock(&p->mutex);
	apply_batch(&p->applier, b);
	return slot;
}

void pipeline_apply_here(struct pipeline *p, struct batch *b)
{
	b->slices[0].txn->times.admitted_ns = SYS(p->cfg->sys, now_mono);
	hand_back(p, apply_now(p, b), b);
}

void pipeline_apply_rows(struct pipeline *p, struct txn_slice *slices,
    size_t nr)
{
	struct batch b = { .slices = slices, .nr_slices = nr };

	end_batch(p, apply_now(p, &b), &b);
	p->cfg->committed(p->cfg->store, batch_nr_updates(&b));
}

/* ---- questions ---- */

/* LSN, or the highest LSN below all floors. Under MUTEX. */
static uint64_t below_floors(const struct pipeline *p, uint64_t lsn)
{
	size_t i;

	for (i = 0; i < PIPELINE_SLOTS; i++)
		if (p->slots[i].floor != 0 && p->slots[i].floor - 1 < lsn)
			lsn = p->slots[i].floor - 1;
	return lsn;
}

uint64_t pipeline_visible_lsn(struct pipeline *p)
{
	uint64_t lsn;

	mutex_lock(&p->mutex);
	lsn = below_floors(p, journal_durable_lsn(p->journal));
	mutex_unlock(&p->mutex);
	return lsn;
}

/* Reads the last LSN and the floors under one lock, so that a batch that begins
 * later gets higher LSNs. */
uint64_t pipeline_ended_lsn(struct pipeline *p)
{
	uint64_t lsn;

	mutex_lock(&p->mutex);
	lsn = below_floors(p, journal_last_lsn(p->journal));
	mutex_unlock(&p->mutex);
	return lsn;
}

uint64_t pipeline_batches(struct pipeline *p)
{
	uint64_t nr;

	mutex_lock(&p->mutex);
	nr = p->nr_ended;
	mutex_unlock(&p->mutex);
	return nr;
}

void pipeline_progress(struct pipeline *p, int64_t before_ns,
    struct store_progress progress[STORE_STAGES])
{
	struct store_progress *prepare = &progress[STORE_STAGE_PREPARE];
	struct store_progress *commit = &progress[STORE_STAGE_COMMIT];
	size_t reach = workers_reach(p->cfg->workers, &p->source);
	const struct commit_slot *slot;
	struct store_progress *of;

	mutex_lock(&p->mutex);
	for (slot = p->slots; slot < p->slots + PIPELINE_SLOTS; slot++) {
		of = slot->is_prepared ? commit : prepare;
		if (stage_add(of, &slot->work, before_ns))
			of->has_more = slot->has_more;
	}
	mutex_unlock(&p->mutex);
	/* Both stages share the workers, so the commit has only the workers
	 * that are not stuck in preparing. */
	commit->nr_threads =
	    reach > prepare->nr_stuck + 1 ? reach - prepare->nr_stuck : 1;
}
