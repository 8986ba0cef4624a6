/*
 * Proves how long a batch takes locks. A batch alone has the whole time, so
 * that a large push needs few flushes. If the scheduler waits to hand over a
 * batch, or another batch waits to commit, the batch stops after a quarter of
 * the time: the remaining updates are given back, the rest is ok. Any batch
 * that takes no more locks wakes the scheduler.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"
#include "daemon/store/pipeline/pipeline_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define REFS 40

/* ---- a batch ---- */

/* Every look at the clock takes a millisecond. */
static int64_t slow_ns;

static int64_t slow_clock(const struct sys *sys)
{
	(void)sys;
	slow_ns += 1000000;
	return slow_ns;
}

static bool yes(void *arg)
{
	(void)arg;
	return true;
}

static bool no(void *arg)
{
	(void)arg;
	return false;
}

/* Returns how many of REFS new refs are given back, from the last on. */
static size_t given_back(int64_t max_ns, bool (*is_awaited)(void *arg),
    bool atomic)
{
	struct applier *ap = &w->store.pipeline->applier;
	struct sys sys = *ap->sys;
	char spec[REFS * 8] = "";
	size_t i, nr = 0;
	struct txn *txn;

	sys.now_mono = slow_clock;
	ap->sys = &sys;
	ap->prepare_max_ns = max_ns;
	ap->is_awaited = is_awaited;
	for (i = 0; i < REFS; i++)
		snprintf(spec + strlen(spec), 8, "%sr%02zu=1", i ? ";" : "", i);
	txn = world_apply(w, spec, atomic);
	for (i = 0; i < REFS; i++) {
		if (txn->updates[i].status == REFD_OK) {
			ck_assert_uint_eq(nr, 0);
			continue;
		}
		ck_assert_int_eq(txn->updates[i].again, TXN_AGAIN_LATER);
		nr++;
	}
	world_done(w, txn);
	wr_expect_locks("");
	return nr;
}

CASE(.setup = wr_setup, .teardown = wr_teardown);

TEST(a_batch_alone_takes_the_whole_time)
{
	ck_assert_uint_eq(given_back(60 * 1000000, no, false), 0);
}

TEST(a_batch_hurries_if_another_batch_waits)
{
	size_t nr = given_back(60 * 1000000, yes, false);

	ck_assert_uint_gt(nr, REFS / 4);
	ck_assert_uint_lt(nr, REFS);
}

TEST(even_alone_the_time_ends)
{
	size_t nr = given_back(15 * 1000000, no, false);

	ck_assert_uint_gt(nr, REFS / 4);
	ck_assert_uint_lt(nr, REFS);
}

TEST(an_atomic_transaction_is_locked_whole)
{
	ck_assert_uint_eq(given_back(15 * 1000000, yes, true), 0);
}

/* ---- who waits ---- */

/* A pipeline beside the world's, with workers that are never started. Its
 * commits reach the log through a replica of its own. */
static struct store beside;

static struct pipeline *new_pipeline(void)
{
	struct store_parts *parts = &beside.parts;
	static struct replica replica;

	*parts = *w->store.pipeline->cfg;
	replica = *parts->replica;
	replica.host = parts;
	parts->replica = &replica;
	parts->workers = workers_new(1);
	ck_assert_ptr_nonnull(parts->workers);
	parts->pipeline = pipeline_new(parts);
	ck_assert_ptr_nonnull(parts->pipeline);
	return parts->pipeline;
}

static void free_pipeline(struct pipeline *p)
{
	struct workers *workers = p->cfg->workers;

	pipeline_free(p);
	workers_free(workers);
}

static bool is_awaited(struct pipeline *p)
{
	return p->applier.is_awaited(p->applier.arg);
}

/* Two batches take locks, and the scheduler asks for a third. */
TEST(the_scheduler_waits)
{
	struct pipeline *p = new_pipeline();
	struct batch batches[PIPELINE_PREPARERS] = { { .nr_slices = 0 } };
	size_t i;

	for (i = 0; i < PIPELINE_PREPARERS; i++) {
		ck_assert(store_takes(&beside));
		store_apply(&beside, &batches[i]);
	}
	p->nr_locking = PIPELINE_PREPARERS;
	ck_assert(!is_awaited(p));
	ck_assert(!store_takes(&beside));
	ck_assert(is_awaited(p));
	/* A batch has its locks, so the third can be handed over. */
	p->applier.prepared(p->applier.arg, &batches[0]);
	ck_assert(!is_awaited(p));
	ck_assert(store_takes(&beside));
	free_pipeline(p);
}

static int nr_woken;

static void count_wakes(void *arg)
{
	(void)arg;
	nr_woken++;
}

static void count_nothing(void *arg, size_t nr)
{
	(void)arg;
	(void)nr;
}

/* The rows of another machine end without their locks, as without memory, and
 * no batch comes back that would wake the scheduler. */
TEST(an_end_without_locks_wakes_the_scheduler)
{
	struct pipeline *p = new_pipeline();
	struct store_config config = *p->cfg->config;
	static struct txn txn;
	struct txn_slice slice = { .txn = &txn };
	struct batch other = { .nr_slices = 0 };

	config.wake = count_wakes;
	beside.parts.config = &config;
	beside.parts.committed = count_nothing;
	p->applier.prepared = NULL;
	store_apply(&beside, &other);
	pipeline_apply_rows(p, &slice, 1);
	ck_assert_int_eq(nr_woken, 1);
	ck_assert(store_takes(&beside));
	free_pipeline(p);
}

struct committer {
	struct pipeline *p;
	atomic_bool stop;
};

static void *commit(void *arg)
{
	struct committer *c = arg;

	while (!atomic_load(&c->stop))
		c->p->applier.commit(c->p->applier.arg, NULL, 0, true);
	return NULL;
}

/* A batch takes locks, and another batch would share the flush. */
TEST(a_commit_waits)
{
	struct committer c = { .p = new_pipeline() };
	pthread_t thread;

	c.p->nr_locking = 1;
	c.p->journal->flush.took_ns = 1000000000;
	ck_assert(!is_awaited(c.p));
	pthread_create(&thread, NULL, commit, &c);
	while (!is_awaited(c.p))
		sched_yield();
	atomic_store(&c.stop, true);
	pthread_join(thread, NULL);
	ck_assert(!is_awaited(c.p));
	free_pipeline(c.p);
}
