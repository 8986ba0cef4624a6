/*
 * Proves that a repository with reftables is in one batch at a time, rests for
 * as long as its lock was held, and waits with one timer for a foreign lock.
 * Other repositories go on meanwhile.
 */
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static struct rig_ask *go(unsigned repo, const char *name)
{
	return rig_go(&(struct rig_txn){ .repo = repo, RIG_NAMES(name) });
}

/* Gives the oldest batch back; its lock was held for the last NS. */
static void back(int64_t ns)
{
	struct batch *b = rig_batches;

	b->locked_ns = rig_now - ns;
	b->unlocked_ns = rig_now;
	rig_apply(b);
	rig_back(b);
	rig_run();
}

CASE(.setup = rig_setup_committers, .teardown = rig_teardown);

TEST(one_batch_at_a_time)
{
	struct rig_ask *asks[3];

	asks[0] = go(RIG_ALONE, "refs/heads/a");
	asks[1] = go(RIG_ALONE, "refs/heads/b");
	asks[2] = go(RIG_ALONE, "refs/heads/c");
	ck_assert_uint_eq(rig_nr_batches, 1);
	/* Another repository goes on. */
	go(0, "refs/heads/a");
	go(0, "refs/heads/b");
	ck_assert_uint_eq(rig_nr_batches, 3);
	back(0);
	/* Both waiting updates go together. */
	ck_assert_uint_eq(rig_nr_batches, 4);
	ck_assert_ptr_nonnull(
	    rig_find(rig_batches->next->next, "refs/heads/b"));
	ck_assert_ptr_nonnull(
	    rig_find(rig_batches->next->next, "refs/heads/c"));
	rig_back_all();
	rig_back_all();
	rig_back_all();
	ck_assert_int_eq(asks[0]->outcome, REFD_COMMITTED);
	ck_assert_int_eq(asks[1]->outcome, REFD_COMMITTED);
	ck_assert_int_eq(asks[2]->outcome, REFD_COMMITTED);
}

TEST(the_repository_rests)
{
	rig_pass(1000 * RIG_MS);
	go(RIG_ALONE, "refs/heads/a");
	go(RIG_ALONE, "refs/heads/b");
	back(5 * RIG_MS);
	ck_assert_uint_eq(rig_nr_batches, 1);
	ck_assert_int_eq(rig_next, rig_now + 5 * RIG_MS);
	/* A newcomer rests too, also if nobody else waits. */
	go(RIG_ALONE, "refs/heads/c");
	ck_assert_uint_eq(rig_nr_batches, 1);
	rig_pass(5 * RIG_MS);
	ck_assert_uint_eq(rig_nr_batches, 2);
	back(5 * RIG_MS);
	go(RIG_ALONE, "refs/heads/d");
	ck_assert_uint_eq(rig_nr_batches, 2);
	rig_pass(5 * RIG_MS);
	ck_assert_uint_eq(rig_nr_batches, 3);
	rig_back_all();
}

TEST(a_lock_has_one_timer)
{
	struct rig_ask *ask = go(RIG_ALONE, "refs/heads/a");

	rig_find(rig_batches, "refs/heads/a")->locked_path =
	    strdup("reftable/tables.list");
	rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
	rig_back_all();
	ck_assert_int_eq(rig_next, rig_now + RIG_MS);
	/* A newcomer waits with the others, and then goes with them. */
	go(RIG_ALONE, "refs/heads/b");
	ck_assert_ptr_null(rig_batches);
	rig_pass(RIG_MS);
	ck_assert_uint_eq(rig_nr_batches, 2);
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

TEST(the_direct_way)
{
	struct rig_ask *ask;

	/* The scheduler learns the number of the repository. */
	go(RIG_ALONE, "refs/heads/a");
	rig_back_all();
	ask = rig_submit(
	    &(struct rig_txn){ .repo = RIG_ALONE, RIG_NAMES("refs/heads/b") });
	ck_assert_ptr_nonnull(ask->txn->direct);
	rig_submit(
	    &(struct rig_txn){ .repo = RIG_ALONE, RIG_NAMES("refs/heads/c") });
	ck_assert(rig_admit_directly(ask->txn));
	rig_admit_all();
	ck_assert_uint_eq(rig_nr_batches, 2);
	rig_back_all();
	ck_assert_uint_eq(rig_nr_batches, 3);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}
