/*
 * Proves that the scheduler handles bad conditions: vanished clients, callbacks
 * that call back, overload, names that need much memory, replaced repositories,
 * draining and stopping.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn one = { RIG_NAMES("refs/heads/a") };
static const struct rig_txn both = { .atomic = true,
	RIG_NAMES("refs/heads/a", "refs/heads/b") };

/* ---- clients ---- */

CASE(.setup = rig_setup_roomy, .teardown = rig_teardown);

TEST(test_forgotten_client)
{
	struct rig_client gone, stays;
	struct rig_txn t = one;
	struct rig_ask *ask;

	t.client = &gone;
	rig_submit(&t);
	t.id = rig_last_id();
	rig_submit(&t);
	t.client = &stays;
	ask = rig_submit(&t);
	rig_forget(&gone);
	rig_admit_all();
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	rig_forget(&gone);
}

/* A callback may make every call that a connection makes. */
static struct rig_client shy;
static unsigned nr_from_callback;

static void submit_and_forget(struct rig_ask *ask)
{
	struct rig_txn t = one;

	if (nr_from_callback++ > 0)
		return;
	t.id = rig_last_id(); /* the id that is being answered */
	rig_submit(&t);
	t.id = 0;
	rig_submit(&t);
	ck_assert_int_eq(rig_query(0, rig_last_id(), 0)->kind,
	    REFD_ANSWER_PENDING);
	rig_forget(&shy);
	/* Runs nothing, but asks to be called again. */
	ck_assert(
	    scheduler_run(rig_scheduler, rig_now, rig_wall_ms) <= rig_now);
	(void)ask;
}

TEST(test_callbacks_may_call_in)
{
	struct rig_txn t = one;

	nr_from_callback = 0;
	rig_submit(&t);
	t.id = rig_last_id();
	t.client = &shy;
	rig_submit(&t);
	rig_on_answer = submit_and_forget;
	rig_admit_all();
	rig_back_all();
	ck_assert_uint_gt(nr_from_callback, 1);
	rig_on_answer = NULL;
}

/* ---- pressure ---- */

TEST(test_too_much_is_busy)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.bytes = 2000000; /* permitted alone, at any size */
	rig_go(&t);
	t.bytes = 1;
	ask = rig_submit(&t);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ask->statuses[1], REFD_BUSY);
	ck_assert_str_eq(ask->text, busy_cause_text(BUSY_WAITING));
	rig_back_all();
	t.bytes = 600000;
	rig_submit(&t);
	t.bytes = 400001;
	ck_assert_uint_eq(rig_submit(&t)->nr_answers, 1);
	t.bytes = 400000;
	ck_assert_uint_eq(rig_submit(&t)->nr_answers, 0);
}

/* After a lack of memory, the store has no text. */
TEST(test_no_memory_is_a_cause)
{
	struct rig_txn t = both;
	struct rig_ask *ask = rig_submit(&t);

	rig_refuse(rig_admissions, REFD_BUSY, NULL);
	ck_assert_int_eq(ask->statuses[0], REFD_BUSY);
	ck_assert_str_eq(ask->text, busy_cause_text(BUSY_MEMORY));
	t.nr = 0;
	ask = rig_submit(&t);
	rig_refuse(rig_admissions, REFD_BUSY, NULL);
	ck_assert_int_eq(ask->refused, REFD_BUSY);
	ck_assert_str_eq(ask->text, busy_cause_text(BUSY_MEMORY));
}

TEST(test_deep_names_are_busy_not_eaten)
{
	static const struct rig_config cfg = { .committers = 1,
		.batch_refs = 100,
		.max_bytes = 1000000 };
	const char *names[100];
	struct rig_txn t = { .names = names, .nr = 100 };
	struct rig_ask *ask;
	char *p;
	size_t i, k;

	rig_teardown();
	rig_setup(&cfg);
	for (i = 0; i < 100; i++) {
		p = calloc(1, REFD_REFNAME_MAX + 1);
		k = (size_t)sprintf(p, "refs/%zu", i);
		for (; k + 2 < REFD_REFNAME_MAX; k += 2)
			memcpy(p + k, "/a", 2);
		names[i] = p;
	}
	ask = rig_go(&t);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_PARTIAL);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[99], REFD_BUSY);
	for (i = 0; i < 100; i++)
		free((char *)(uintptr_t)names[i]);
	/* Now there is room again. */
	ask = rig_go(&both);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

/* ---- a replaced repository ---- */

TEST(test_reopened)
{
	struct rig_txn t = { RIG_NAMES("refs/x", "refs/y") };
	struct rig_ask *ask = rig_go(&t), *behind = rig_go(&one);
	int i;

	for (i = 0; i < 3; i++) {
		rig_find(rig_batches, "refs/y")->again = TXN_AGAIN_REOPEN;
		rig_back_all();
		ck_assert_ptr_nonnull(rig_admissions);
		ck_assert(rig_admissions->readmitted);
		ck_assert_ptr_null(rig_admissions->repo);
		rig_admit_all();
	}
	ck_assert_int_eq(behind->outcome, REFD_COMMITTED);
	rig_find(rig_batches, "refs/y")->again = TXN_AGAIN_REOPEN;
	rig_back_all();
	ck_assert_ptr_null(rig_admissions);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_BUSY);
}

/* A name above comes back while the name below may go. */
TEST(test_reopened_goes_behind_younger_names)
{
	struct rig_txn above = { RIG_NAMES("refs/heads/a") },
		       below = { RIG_NAMES("refs/heads/a/b") };
	struct rig_ask *second;

	rig_go(&above);
	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_REOPEN;
	rig_back(rig_batches);
	rig_run();
	rig_takes = false;
	second = rig_submit(&below);
	rig_admit_one(rig_admissions->next);
	rig_run();
	rig_admit_all();
	rig_takes = true;
	rig_run();
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a/b"));
	ck_assert_ptr_null(rig_find(rig_batches, "refs/heads/a"));
	rig_back_all();
	ck_assert_int_eq(second->outcome, REFD_COMMITTED);
	rig_pass(1000 * RIG_MS);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a"));
	rig_back_all();
}

TEST(test_reopened_keep_their_order)
{
	struct rig_txn t = { RIG_NAMES("refs/heads/a") };
	struct rig_ask *first = rig_go(&t), *second = rig_go(&t);

	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_REOPEN;
	rig_back(rig_batches);
	rig_run();
	/* The second update could go while the first was away, but not when
	 * both are back. */
	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_REOPEN;
	rig_back(rig_batches);
	rig_run();
	ck_assert_ptr_nonnull(rig_admissions->next);
	rig_admit_all();
	ck_assert_ptr_eq(rig_batches->slices[0].txn, first->txn);
	rig_back_all();
	rig_pass(100 * RIG_MS);
	rig_back_all();
	ck_assert_int_eq(second->outcome, REFD_COMMITTED);
}

/* ---- stopping ---- */

TEST(test_drain_finishes_what_is_there)
{
	struct rig_ask *first = rig_go(&one), *second = rig_go(&both), *late;

	scheduler_drain(rig_scheduler);
	late = rig_submit(&one);
	ck_assert_int_eq(late->statuses[0], REFD_BUSY);
	ck_assert(!scheduler_is_idle(rig_scheduler));
	rig_back_all();
	rig_pass(100 * RIG_MS);
	rig_back_all();
	ck_assert_int_eq(first->outcome, REFD_COMMITTED);
	ck_assert_int_eq(second->outcome, REFD_COMMITTED);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* A client with endless queries does not prevent the stop. */
TEST(test_drain_is_not_for_questions)
{
	struct rig_ask *first = rig_go(&one), *asks;

	scheduler_drain(rig_scheduler);
	asks = rig_query(0, 900, 0);
	ck_assert_uint_eq(asks->nr_answers, 0);
	rig_back_all();
	rig_pass(100 * RIG_MS);
	rig_found(rig_lookups, false);
	rig_run();
	ck_assert_int_eq(first->outcome, REFD_COMMITTED);
	ck_assert_int_eq(asks->kind, REFD_ANSWER_NEVER_SEEN);
	ck_assert(scheduler_is_idle(rig_scheduler));
	asks = rig_query(0, 900, 0);
	ck_assert_int_eq(asks->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(asks->refused, REFD_BUSY);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_hurry_gives_up_what_waits)
{
	struct rig_txn xy = { RIG_NAMES("refs/x", "refs/y") };
	struct rig_ask *in = rig_go(&one), *waits = rig_go(&both), *comes;
	struct rig_ask *half = rig_go(&xy);

	comes = rig_submit(&both);
	scheduler_hurry(rig_scheduler);
	rig_run();
	ck_assert_uint_eq(in->nr_answers, 0);
	ck_assert_int_eq(waits->statuses[0], REFD_BUSY);
	rig_admit_all();
	ck_assert_int_eq(comes->statuses[0], REFD_BUSY);
	rig_find(rig_batches->next, "refs/y")->again = TXN_AGAIN_LATER;
	rig_back_all();
	ck_assert_int_eq(in->outcome, REFD_COMMITTED);
	ck_assert_int_eq(half->statuses[0], REFD_OK);
	ck_assert_int_eq(half->statuses[1], REFD_BUSY);
	/* The aborts are recorded before the end. */
	rig_back_all();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_free_with_transactions_waiting)
{
	struct scheduler_stats stats;

	/* A lock is held, so nothing is in the store. */
	rig_go(&one);
	rig_go(&both);
	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_LOCKED;
	rig_back(rig_batches);
	rig_run();
	ck_assert_ptr_null(rig_batches);
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.waiting, 2);
	scheduler_free(rig_scheduler);
	rig_scheduler = NULL;
	ck_assert_uint_eq(rig_nr_released, 2);
}

TEST(test_stats)
{
	struct scheduler_stats stats;

	rig_go(&both);
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.in_store, 1);
	ck_assert_uint_eq(stats.waiting, 0);
	rig_back_all();
	rig_submit(&both);
	rig_refuse(rig_admissions, REFD_DENIED, "no");
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.transactions, 2);
	ck_assert_uint_eq(stats.committed, 1);
	ck_assert_uint_eq(stats.rejected, 1);
	ck_assert_uint_eq(stats.refs_ok, 2);
	ck_assert_uint_eq(stats.refs_failed, 2);
	ck_assert_uint_eq(stats.batches, 1);
	ck_assert_uint_eq(scheduler_measure(rig_scheduler)->batch_refs.max, 2);
	/* A replayed transaction was counted the first time. */
	rig_submit(&one);
	rig_admissions->replayed = true;
	rig_admit_all();
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.transactions, 2);
	ck_assert(scheduler_is_idle(rig_scheduler));
}
