/*
 * Proves the deadlines of transactions: how long every kind of work waits, and
 * the outcome afterwards. Also proves that outcomes without a record get one.
 * (Locks: test_scheduler_locks.)
 */
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn one = { RIG_NAMES("refs/heads/a") };
static const struct rig_txn both = { RIG_NAMES("refs/heads/a",
    "refs/heads/b") };

/* ---- deadlines ---- */

CASE(.setup = rig_setup_one_committer, .teardown = rig_teardown);

TEST(test_deadline_of_one_that_waits, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	rig_go(&one);
	t.deadline_ms = 50;
	t.atomic = _i;
	ask = rig_go(&t);
	ck_assert_int_eq(rig_next, rig_now + 50 * RIG_MS);
	rig_pass(50 * RIG_MS - 1);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_pass(1);
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	ck_assert_int_eq(ask->statuses[0], REFD_DEADLINE);
	ck_assert_int_eq(ask->statuses[1], REFD_DEADLINE);
}

TEST(test_default_deadline)
{
	struct rig_ask *ask;

	rig_go(&one);
	ask = rig_go(&one);
	rig_pass(30000 * RIG_MS - 1);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_pass(1);
	ck_assert_int_eq(ask->statuses[0], REFD_DEADLINE);
}

TEST(test_deadline_counts_until_the_batch_closes)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.deadline_ms = 50;
	ask = rig_go(&t);
	rig_pass(100 * RIG_MS);
	ck_assert_uint_eq(ask->nr_answers, 0);
	/* Updates that the store did are ok. The returned update is too
	 * late. */
	rig_give_back("refs/heads/b", TXN_AGAIN_LATER);
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_DEADLINE);
}

TEST(test_deadline_during_admission)
{
	struct rig_txn t = one;
	struct rig_ask *ask;

	t.deadline_ms = 50;
	ask = rig_submit(&t);
	rig_pass(50 * RIG_MS);
	/* The id may turn out to be known, so there is no answer yet. */
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_admit_all();
	ck_assert_int_eq(ask->statuses[0], REFD_DEADLINE);
	ck_assert_ptr_null(rig_batches);
	/* The next id is known: the first outcome counts. */
	ask = rig_submit(&t);
	rig_pass(50 * RIG_MS);
	rig_admissions->replayed = true;
	txn_acknowledge(&rig_admissions->updates[0]);
	rig_admit_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

/* ---- unrecorded outcomes ---- */

/* Rejects the whole batch without a commit, as the store would do. */
static void reject_batch(void)
{
	struct batch *b = rig_batches;
	size_t i, k;

	for (i = 0; i < b->nr_slices; i++)
		for (k = 0; k < b->slices[i].nr; k++)
			if (b->slices[i].updates[k]->in_batch)
				txn_decide(b->slices[i].updates[k], REFD_STALE,
				    NULL);
	rig_back(b);
	rig_run();
}

TEST(test_notes_ride_in_the_next_batch)
{
	struct rig_ask *ask = rig_go(&both);
	uint64_t id = rig_last_id();

	reject_batch();
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	/* The outcomes get no batch of their own, but stay. They hold nothing
	 * of their repository. */
	ck_assert_ptr_null(rig_batches);
	ck_assert_uint_eq(rig_nr_released, 1);
	ck_assert(!scheduler_is_idle(rig_scheduler));
	rig_go(&(struct rig_txn){ .repo = 1, RIG_NAMES("refs/x") });
	ck_assert_uint_eq(rig_batches->nr_slices, 2);
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	/* On the way to the journal, the outcomes still answer queries. */
	ck_assert_int_eq(rig_query(0, id, 0)->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(rig_cancel(0, id)->kind, REFD_ANSWER_RESULTS);
	rig_back_all();
	ck_assert(scheduler_is_idle(rig_scheduler));
	rig_query(0, id, 0);
	ck_assert_ptr_nonnull(rig_lookups);
}

TEST(test_recorded_leaves_nothing)
{
	rig_go(&both);
	rig_back_all();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_unknown_is_not_noted)
{
	struct rig_txn t = both;
	struct rig_ask *ask = rig_go(&t);

	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_UNKNOWN, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_UNKNOWN, NULL);
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(ask->outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert(scheduler_is_idle(rig_scheduler));
	/* The same for the other updates of an atomic transaction. */
	t.atomic = true;
	rig_go(&t);
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_UNKNOWN, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_ABORTED, NULL);
	rig_back(rig_batches);
	rig_run();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* The transaction did nothing, and may succeed later under the same id; or git
 * makes the change that refd does not support. */
TEST(test_a_passing_refusal_is_no_outcome, .times = 6)
{
	static const enum refd_status passing[] = { REFD_BUSY, REFD_DEADLINE,
		REFD_UNSUPPORTED };
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.atomic = _i >= 3;
	ask = rig_go(&t);
	txn_decide(rig_find(rig_batches, "refs/heads/a"),
	    t.atomic ? REFD_ABORTED : REFD_STALE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), passing[_i % 3],
	    NULL);
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_failing_journal_is_not_tried_for_ever)
{
	size_t i;

	rig_go(&both);
	reject_batch();
	scheduler_drain(rig_scheduler);
	rig_run();
	/* Tried once in its batch, once more alone; not recorded either
	 * time. */
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back(rig_batches);
	rig_run();
	for (i = 0; i < 3; i++)
		rig_run();
	ck_assert_ptr_null(rig_batches);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* Every update is rejected before it reaches a batch. */
static void reject_ten(void)
{
	size_t i;

	rig_submit(
	    &(struct rig_txn){ RIG_NAMES("refs/0", "refs/1", "refs/2", "refs/3",
		"refs/4", "refs/5", "refs/6", "refs/7", "refs/8", "refs/9") });
	for (i = 0; i < 10; i++)
		txn_decide(&rig_admissions->updates[i], REFD_NOOBJECT, NULL);
	rig_admit_all();
}

TEST(test_notes_of_their_own_batch)
{
	size_t i;

	for (i = 0; i < 100; i++) {
		reject_ten();
		ck_assert_ptr_null(rig_batches);
	}
	/* More than 1,000 outcomes wait: the surplus gets a batch. */
	reject_ten();
	ck_assert_uint_eq(rig_count(rig_batches), 10);
	ck_assert(!rig_batches->slices[0].updates[0]->in_batch);
	rig_back_all();
	ck_assert_ptr_null(rig_batches);
	scheduler_drain(rig_scheduler);
	rig_run();
	for (i = 0; i < 100; i++) {
		ck_assert(!scheduler_is_idle(rig_scheduler));
		rig_back_all();
	}
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_notes_that_hold_much_memory)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.bytes = 600000;
	rig_go(&t);
	reject_batch();
	/* Unrecorded outcomes would leave no room for other work. */
	ck_assert_ptr_nonnull(rig_batches);
	rig_back_all();
	ask = rig_go(&t);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

TEST(test_rejections_of_a_cut_transaction_ride_with_it)
{
	struct rig_txn t = { RIG_NAMES("refs/0", "refs/1", "refs/2", "refs/3",
	    "refs/4", "refs/5", "refs/6", "refs/7", "refs/8", "refs/9",
	    "refs/10", "refs/11") };

	rig_submit(&t);
	txn_decide(&rig_admissions->updates[11], REFD_NOOBJECT, NULL);
	rig_admit_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 1);
	ck_assert_uint_eq(rig_count(rig_batches), 11);
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* The deadline passes during admission. The answer is the deadline, whether the
 * store returns the transaction undone or admitted. */
TEST(late_while_it_is_admitted, .times = 2)
{
	struct rig_ask *ask =
	    rig_submit(&(struct rig_txn){ .deadline_ms = 100, RIG_NAMES("a") });
	struct txn *txn = rig_admissions;

	rig_pass(99 * RIG_MS);
	ck_assert(!atomic_load(&txn->is_given_up));
	rig_pass(1 * RIG_MS);
	ck_assert(atomic_load(&txn->is_given_up));
	ck_assert_uint_eq(ask->nr_answers, 0);
	if (_i == 0)
		rig_admit(txn);
	else
		rig_admit_one(txn);
	rig_run();
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->statuses[0], REFD_DEADLINE);
	ck_assert_ptr_null(rig_batches);
}

TEST(cancelled_while_it_is_admitted)
{
	struct rig_ask *ask = rig_submit(&(struct rig_txn){ RIG_NAMES("a") });
	struct txn *txn = rig_admissions;

	rig_cancel(0, rig_last_id());
	ck_assert(atomic_load(&txn->is_given_up));
	rig_admit(txn);
	rig_run();
	ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
}
