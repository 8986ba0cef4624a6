/*
 * The threads of the barrier (barrier.c).
 *
 * The happy path: a thread takes all waiting transactions of a file system.
 *
 * Failures: a disk hangs. The disk holds at most STORE_BARRIERS_OF_FS threads,
 * and a transaction that is given up still comes back at once.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/barrier_internal.h"

/* A batch that takes longer loses the exclusive use of its file system. */
#define STUCK_NS (5LL * 1000000000)

/* ---- the threads; all of these under MUTEX ---- */

/* The transactions of a file system are served together, by one thread. While
 * the thread is stuck, perhaps by an alternate on another file system, later
 * transactions may get a second thread. */
static bool may_serve(const struct store *s, const struct fs *fs,
    int64_t now_ns)
{
	const struct barrier_slot *slot;
	size_t nr = 0;

	for (slot = s->barriers; slot < s->barriers + STORE_BARRIERS; slot++) {
		if (slot->fs != fs)
			continue;
		if (now_ns - slot->since_ns < STUCK_NS)
			return false;
		nr++;
	}
	return nr < STORE_BARRIERS_OF_FS;
}

/* The order of REPO's transactions is kept: a batch with transactions of REPO
 * ends first. */
static bool is_served(const struct store *s, const struct repo *repo)
{
	const struct barrier_batch *b;
	size_t i;

	for (b = s->batches; b != NULL; b = b->next)
		for (i = 0; i < b->nr_waiters; i++)
			if (b->waiters[i].repo == repo)
				return true;
	return false;
}

/* Takes the permitted transactions of one file system; all other transactions
 * stay, in order. NULL: nothing to serve. */
static const struct fs *take_batch(struct store *s, struct txn_fifo *txns,
    int64_t now_ns, size_t *nr)
{
	struct txn_fifo all = { .head = NULL };
	const struct fs *fs = NULL;
	struct txn *txn;

	*nr = 0;
	txn_fifo_move(&all, &s->to_barrier);
	while ((txn = txn_fifo_take(&all)) != NULL) {
		if ((fs != NULL ? txn->repo->fs == fs :
				  may_serve(s, txn->repo->fs, now_ns)) &&
		    !is_served(s, txn->repo)) {
			fs = txn->repo->fs;
			txn_fifo_put(txns, txn);
			++*nr;
		} else {
			txn_fifo_put(&s->to_barrier, txn);
		}
	}
	return fs;
}

bool barrier_give_up(struct store *s, struct txn *given_up)
{
	struct txn_fifo all = { .head = NULL };
	bool waits = given_up->waiter != NULL;
	struct txn *txn;

	if (waits)
		given_up->waiter->txn = NULL;
	given_up->waiter = NULL;
	if (!waits)
		txn_fifo_move(&all, &s->to_barrier);
	while ((txn = txn_fifo_take(&all)) != NULL)
		if (txn == given_up)
			waits = true;
		else
			txn_fifo_put(&s->to_barrier, txn);
	if (waits)
		given_up->times.barrier_ns += SYS(s->sys, now_mono);
	return waits;
}

/* False: out of memory. The transactions go back unserved and refused. */
static bool begin_batch(struct barrier_batch *b, struct txn_fifo *txns,
    size_t nr)
{
	struct store *s = b->store;
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
		repo_hold(&s->repos, w->repo);
		txn->waiter = w;
	}
	b->next = s->batches;
	s->batches = b;
	return true;
}

/* False: no transaction can be served now. */
static bool serve_some(struct store *s, struct barrier_slot *slot)
{
	struct barrier_batch b = { .store = s }, **at = &s->batches;
	struct txn_fifo txns = { .head = NULL };
	int64_t now_ns = SYS(s->sys, now_mono);
	const struct fs *fs;
	size_t nr;
	bool has_begun;

	fs = take_batch(s, &txns, now_ns, &nr);
	if (fs == NULL)
		return false;
	*slot = (struct barrier_slot){ fs, txns.head->repo->path, now_ns };
	has_begun = begin_batch(&b, &txns, nr);
	if (s->to_barrier.head != NULL)
		pthread_cond_signal(&s->barrier_cond);
	pthread_mutex_unlock(&s->mutex);
	if (has_begun)
		barrier_serve(&b);
	else
		store_admitted(s, &txns);
	pthread_mutex_lock(&s->mutex);
	memset(slot, 0, sizeof(*slot));
	while (has_begun && *at != &b)
		at = &(*at)->next;
	if (has_begun)
		*at = b.next;
	free(b.waiters);
	return true;
}

static void wait_for_work(struct store *s)
{
	struct timespec until;

	if (s->to_barrier.head == NULL) {
		pthread_cond_wait(&s->barrier_cond, &s->mutex);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_cond_timedwait(&s->barrier_cond, &s->mutex, &until);
}

void *barrier_main(void *arg)
{
	struct store *s = arg;
	struct barrier_slot *slot;

	pthread_mutex_lock(&s->mutex);
	slot = &s->barriers[s->nr_barriers++];
	for (;;) {
		if (serve_some(s, slot))
			continue;
		if (s->to_barrier.head == NULL && s->stopping)
			break;
		wait_for_work(s);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}
