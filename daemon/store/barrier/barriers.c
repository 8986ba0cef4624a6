/*
 * The queue of the barrier (barrier.c), and its work on the pool of workers.
 *
 * The happy path: a worker takes all waiting transactions of a file system,
 * because one sync can serve them all.
 *
 * Failures: if a disk hangs, the disk holds at most BARRIERS_OF_FS workers, so
 * that other disks are served. A transaction that is given up still comes back
 * at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/probe.h"
#include "daemon/store/barrier/barrier_internal.h"
#include "daemon/store/stages.h"

/* After this time a batch loses the exclusive use of its file system. */
#define STUCK_NS (5LL * 1000000000)
/* The time until the next look for a batch that is stuck. */
#define LOOK_NS (1LL * 1000000000)

/* ---- the work; all of these under MUTEX ---- */

/* The transactions of a file system are served together, by one worker, because
 * they share the sync. While the worker is stuck, perhaps by an alternate on
 * another file system, later transactions may get a second worker. */
static bool may_serve(const struct barriers *bs, const struct fs *fs,
    int64_t now_ns)
{
	const struct barrier_slot *slot;
	size_t nr = 0;

	for (slot = bs->slots; slot < bs->slots + BARRIERS_WORKERS; slot++) {
		if (slot->fs != fs)
			continue;
		if (now_ns - slot->since_ns < STUCK_NS)
			return false;
		nr++;
	}
	return nr < BARRIERS_OF_FS;
}

/* The order of REPO's transactions is kept, so a batch with transactions of
 * REPO has to end first. */
static bool is_served(const struct barriers *bs, const struct repo *repo)
{
	const struct barrier_batch *b;
	size_t i;

	for (b = bs->batches; b != NULL; b = b->next)
		for (i = 0; i < b->nr_waiters; i++)
			if (b->waiters[i].repo == repo)
				return true;
	return false;
}

/* Takes the permitted transactions of one file system; all other transactions
 * stay, in order. NULL: nothing to serve. */
static const struct fs *take_batch(struct barriers *bs, struct txn_fifo *txns,
    int64_t now_ns, size_t *nr)
{
	struct txn_fifo all = { .head = NULL };
	const struct fs *fs = NULL;
	struct txn *txn;

	*nr = 0;
	txn_fifo_move(&all, &bs->waiting);
	while ((txn = txn_fifo_take(&all)) != NULL) {
		if ((fs != NULL ? txn->repo->fs == fs :
				  may_serve(bs, txn->repo->fs, now_ns)) &&
		    !is_served(bs, txn->repo)) {
			fs = txn->repo->fs;
			txn_fifo_put(txns, txn);
			++*nr;
		} else {
			txn_fifo_put(&bs->waiting, txn);
		}
	}
	return fs;
}

/* The completion queue gets the transactions before MUTEX is released, because
 * otherwise an admission could see no waiting transaction of the repository,
 * and a later transaction could overtake. Returns the batch to apply after
 * MUTEX is released, or NULL. */
static struct batch *give_back(struct barriers *bs, struct txn_fifo *txns)
{
	struct txn *txn;

	for (txn = txns->head; txn != NULL; txn = txn->next) {
		txn->repo->waiting_barrier--;
		txn->is_at_barrier = false;
	}
	return completions_put_txns(bs->cfg->completions, txns);
}

/* False: TXN is in no batch, and waits for no batch. */
static bool remove_txn(struct barriers *bs, struct txn *given_up)
{
	struct txn_fifo all = { .head = NULL };
	bool waits = given_up->waiter != NULL;
	struct txn *txn;

	if (waits)
		given_up->waiter->txn = NULL;
	given_up->waiter = NULL;
	if (!waits)
		txn_fifo_move(&all, &bs->waiting);
	while ((txn = txn_fifo_take(&all)) != NULL)
		if (txn == given_up)
			waits = true;
		else
			txn_fifo_put(&bs->waiting, txn);
	return waits;
}

/* False: out of memory, so the transactions go back unserved and refused. */
static bool begin_batch(struct barrier_batch *b, struct txn_fifo *txns,
    size_t nr)
{
	const struct store_parts *cfg = b->cfg;
	struct barrier_waiter *w;
	struct txn *txn;

	b->waiters = calloc(nr, sizeof(*b->waiters));
	if (b->waiters == NULL) {
		for (txn = txns->head; txn != NULL; txn = txn->next)
			txn->refused = busy_cause_count(BUSY_MEMORY);
		return false;
	}
	while ((txn = txn_fifo_take(txns)) != NULL) {
		w = &b->waiters[b->nr_waiters++];
		w->txn = txn;
		w->repo = txn->repo;
		w->fanout = txn_fanout(txn);
		repo_hold(cfg->repos, w->repo);
		txn->waiter = w;
	}
	b->next = b->barriers->batches;
	b->barriers->batches = b;
	return true;
}

/* False: no transaction can be served now. *DIRECT is as give_back() says. */
static bool serve_some(struct barriers *bs, struct barrier_slot *slot,
    struct batch **direct)
{
	struct barrier_batch b = { .barriers = bs, .cfg = bs->cfg },
			     **at = &bs->batches;
	int64_t now_ns = SYS(bs->cfg->sys, now_mono);
	struct txn_fifo txns = { .head = NULL };
	const struct fs *fs;
	size_t nr;
	bool has_begun;

	fs = take_batch(bs, &txns, now_ns, &nr);
	if (fs == NULL)
		return false;
	*slot = (struct barrier_slot){ fs, txns.head->repo->path, now_ns };
	has_begun = begin_batch(&b, &txns, nr);
	if (bs->waiting.head != NULL)
		workers_wake(bs->cfg->workers, &bs->source);
	if (has_begun) {
		mutex_unlock(&bs->mutex);
		barrier_serve(&b, &txns);
		mutex_lock(&bs->mutex);
		bs->nr_served += b.nr_waiters;
		bs->nr_syncs += b.syncs;
		bs->nr_fsyncs += b.fsyncs;
	}
	*direct = give_back(bs, &txns);
	memset(slot, 0, sizeof(*slot));
	while (has_begun && *at != &b)
		at = &(*at)->next;
	if (has_begun)
		*at = b.next;
	free(b.waiters);
	return true;
}

/* work_source.work. The source permits as many workers as there are slots. */
static bool barrier_work(void *arg)
{
	struct barriers *bs = arg;
	struct barrier_slot *slot = bs->slots;
	struct batch *direct = NULL;
	bool did;

	mutex_lock(&bs->mutex);
	while (slot->fs != NULL)
		slot++;
	did = serve_some(bs, slot, &direct);
	/* The transactions wait for a batch that may be stuck, so a worker
	 * looks again later. */
	if (!did && bs->waiting.head != NULL)
		workers_wake_at(bs->cfg->workers, &bs->source,
		    SYS(bs->cfg->sys, now_mono) + LOOK_NS);
	/* This worker looks for the next barrier batch only after DIRECT, so a
	 * second worker is woken. */
	if (direct != NULL && bs->waiting.head != NULL)
		workers_wake(bs->cfg->workers, &bs->source);
	mutex_unlock(&bs->mutex);
	if (direct != NULL)
		pipeline_apply_here(bs->cfg->pipeline, direct);
	return did;
}

/* ---- the interface ---- */

/* Under MUTEX. A transaction that is given up never goes the direct way. */
static void return_given_up(struct barriers *bs, struct txn *txn)
{
	struct txn_fifo back = { .head = NULL };

	txn->times.barrier_ns += SYS(bs->cfg->sys, now_mono);
	PROBE_BARRIER_END(&txn->req.txid, txn->repo_id, txn->times.barrier_ns,
	    -ECANCELED);
	txn_fifo_put(&back, txn);
	give_back(bs, &back);
}

/* barriers_give_up() may have been called before, while the transaction was in
 * no queue and could not be found. So is_given_up is read here. */
void barriers_put(struct barriers *bs, struct txn_fifo *txns)
{
	struct txn *txn;

	if (txns->head == NULL)
		return;
	mutex_lock(&bs->mutex);
	while ((txn = txn_fifo_take(txns)) != NULL) {
		txn->is_at_barrier = true;
		txn->repo->waiting_barrier++;
		if (atomic_load(&txn->is_given_up))
			return_given_up(bs, txn);
		else
			txn_fifo_put(&bs->waiting, txn);
	}
	mutex_unlock(&bs->mutex);
	workers_wake(bs->cfg->workers, &bs->source);
}

bool barriers_has(struct barriers *bs, const struct repo *repo)
{
	bool has;

	mutex_lock(&bs->mutex);
	has = repo->waiting_barrier > 0;
	mutex_unlock(&bs->mutex);
	return has;
}

void barriers_give_up(struct barriers *bs, struct txn *txn)
{
	mutex_lock(&bs->mutex);
	if (txn->is_at_barrier && remove_txn(bs, txn))
		return_given_up(bs, txn);
	mutex_unlock(&bs->mutex);
}

void barriers_count(struct barriers *bs, struct store_stats *stats)
{
	mutex_lock(&bs->mutex);
	stats->barriers = bs->nr_served;
	stats->barrier_syncs = bs->nr_syncs;
	stats->barrier_fsyncs = bs->nr_fsyncs;
	stats->barrier_copies = bs->nr_copied;
	mutex_unlock(&bs->mutex);
}

void barriers_progress(struct barriers *bs, struct store_progress *progress,
    int64_t before_ns)
{
	size_t i;

	mutex_lock(&bs->mutex);
	for (i = 0; i < BARRIERS_WORKERS; i++)
		stage_add(&progress[STORE_STAGE_BARRIER],
		    &(struct stage_work){ bs->slots[i].path,
			bs->slots[i].since_ns },
		    before_ns);
	mutex_unlock(&bs->mutex);
}

void barriers_init(struct barriers *bs, const struct store_parts *cfg)
{
	*bs = (struct barriers){ .cfg = cfg };
	bs->source = (struct work_source){ .work = barrier_work,
		.arg = bs,
		.most = BARRIERS_WORKERS,
		.reserved = BARRIERS_RESERVED };
	mutex_init(&bs->mutex, MUTEX_BARRIERS);
	workers_add(cfg->workers, &bs->source);
}

void barriers_done(struct barriers *bs)
{
	mutex_destroy(&bs->mutex);
}
