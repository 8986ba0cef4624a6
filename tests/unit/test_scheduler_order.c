/*
 * Proves the order of updates: arrival order per ref among many clients,
 * directory/file relations, atomic transactions as a whole, a pause after use,
 * and cuts of large transactions. The rig checks every batch for disjoint names
 * and overtaking. (Fairness: test_scheduler_fair.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

/* ---- order ---- */

CASE(.name = "order", .setup = rig_setup_committers, .teardown = rig_teardown);

TEST(test_64_clients_on_one_ref)
{
	struct rig_ask *asks[64];
	size_t i, k;

	for (i = 0; i < 64; i++)
		asks[i] = rig_go_one("refs/heads/main");
	for (i = 0; i < 64; i++) {
		ck_assert_uint_eq(rig_count(rig_batches), 1);
		ck_assert_ptr_null(rig_batches->next);
		rig_back_all();
		for (k = 0; k < 64; k++)
			ck_assert_uint_eq(asks[k]->nr_answers, k <= i);
	}
	ck_assert_uint_eq(rig_nr_batches, 64);
}

TEST(test_related_names_never_meet)
{
	struct rig_ask *asks[4];

	asks[0] = rig_go_one("refs/heads/a/b");
	asks[1] = rig_go_one("refs/heads/a");
	asks[2] = rig_go_one("refs/heads/a/b/c");
	asks[3] = rig_go_one("refs/heads/a-b");
	/* a waits for a/b, and a/b/c waits for both. a-b is not related. */
	ck_assert_ptr_nonnull(rig_find(rig_batches->next, "refs/heads/a-b"));
	ck_assert_ptr_null(rig_batches->next->next);
	rig_back_all();
	ck_assert_uint_eq(asks[0]->nr_answers, 1);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a"));
	rig_back_all();
	ck_assert_uint_eq(asks[1]->nr_answers, 1);
	ck_assert_uint_eq(asks[2]->nr_answers, 0);
	rig_back_all();
	ck_assert_uint_eq(asks[2]->nr_answers, 1);
}

TEST(test_related_names_of_a_push)
{
	struct rig_txn t = { .push = true,
		RIG_NAMES("refs/heads/a", "refs/heads/a/b", "refs/heads/a",
		    "refs/heads/c") };
	struct rig_ask *ask = rig_go(&t);

	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back_all();
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a/b"));
	rig_back_all();
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

/* In any order and with any other names, the store sees both related names. */
TEST(test_related_names_go_together, .times = 4)
{
	static const char *const names[][3] = {
		{ "refs/heads/a", "refs/heads/a/b", "refs/heads/c" },
		{ "refs/heads/a/b/c", "refs/heads/c", "refs/heads/a" },
	};
	struct rig_txn t = { .names = names[_i % 2], .nr = 3 };
	struct rig_ask *ask;

	t.atomic = t.push = _i >= 2;
	ask = rig_go(&t);
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

TEST(test_related_names_wait_for_each_other)
{
	struct rig_txn t = { RIG_NAMES("refs/heads/c", "refs/heads/q",
	    "refs/heads/q/r") };
	struct rig_ask *first = rig_go_one("refs/heads/q/x"), *ask, *behind;

	/* q is in use, so q/r doesn't go alone. */
	ask = rig_go(&t);
	behind = rig_go_one("refs/heads/q/r/s");
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	ck_assert_uint_eq(first->nr_answers, 1);
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	/* A returned update goes alone: the store has seen both. */
	rig_find(rig_batches, "refs/heads/q/r")->again = TXN_AGAIN_LATER;
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	ck_assert_ptr_eq(rig_batches->slices[0].txn, ask->txn);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	rig_back_all();
	ck_assert_int_eq(behind->outcome, REFD_COMMITTED);
}

TEST(test_related_names_are_not_cut)
{
	const char **names = rig_names("refs/heads/x/", 25);
	struct rig_txn t = { .names = names, .nr = 25 };
	struct rig_ask *ask;

	/* The last name is above the others, far beyond the ten of a batch. */
	free((char *)(uintptr_t)names[24]);
	names[24] = strdup("refs/heads/x");
	ask = rig_go(&t);
	ck_assert_uint_eq(rig_count(rig_batches), 25);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	rig_names_free(names, 25);
}

TEST(test_other_repositories_are_no_relation)
{
	struct rig_txn t = { RIG_NAMES("refs/heads/a") };

	rig_go_one("refs/heads/a");
	t.repo = 1;
	rig_go(&t);
	ck_assert_ptr_nonnull(rig_batches->next);
}

TEST(test_atomic_waits_whole_and_keeps_its_place)
{
	struct rig_txn t = { .atomic = true,
		RIG_NAMES("refs/heads/a", "refs/heads/b") };
	struct rig_ask *atomic, *behind;

	rig_go_one("refs/heads/b");
	atomic = rig_go(&t);
	behind = rig_go_one("refs/heads/a");
	/* a is free, but the atomic transaction came first. */
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	ck_assert_uint_eq(atomic->nr_answers, 1);
	ck_assert_uint_eq(behind->nr_answers, 0);
	rig_back_all();
	ck_assert_uint_eq(behind->nr_answers, 1);
}

TEST(test_crossed_atomics_do_not_deadlock)
{
	struct rig_txn ab = { .atomic = true, RIG_NAMES("refs/a", "refs/b") };
	struct rig_txn ba = { .atomic = true, RIG_NAMES("refs/b", "refs/a") };
	struct rig_ask *last = NULL;
	int i;

	for (i = 0; i < 10; i++) {
		rig_go(&ab);
		last = rig_go(&ba);
	}
	for (i = 0; i < 20; i++) {
		ck_assert_uint_eq(rig_count(rig_batches), 2);
		ck_assert_uint_eq(last->nr_answers, 0);
		rig_back_all();
	}
	ck_assert_uint_eq(last->nr_answers, 1);
}

TEST(test_no_memory_of_names_gone)
{
	rig_go_one("refs/heads/a");
	rig_back_all();
	/* A ref where a directory was. */
	rig_go_one("refs/heads");
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	rig_go_one("refs/heads/a");
	ck_assert_uint_eq(rig_count(rig_batches), 1);
}

/* ---- rest ---- */

TEST(test_rest_after_use)
{
	struct rig_ask *next;

	rig_go_one("refs/heads/a");
	next = rig_go_one("refs/heads/a");
	rig_now += 7 * RIG_MS;
	rig_batches->locked_ns = rig_now - 5 * RIG_MS;
	rig_batches->unlocked_ns = rig_now - 1 * RIG_MS;
	rig_back_all();
	/* Held for 4 ms, 1 ms ago. */
	ck_assert_ptr_null(rig_batches);
	ck_assert_int_eq(rig_next, rig_now + 3 * RIG_MS);
	rig_go_one("refs/heads/b");
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/b"));
	rig_back_all();
	rig_pass(3 * RIG_MS - 1);
	ck_assert_ptr_null(rig_batches);
	rig_pass(1);
	ck_assert_ptr_nonnull(rig_batches);
	rig_back_all();
	ck_assert_int_eq(next->outcome, REFD_COMMITTED);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* Names that no update waits for need no timers of their own. */
TEST(test_unused_names_end_their_rest_together)
{
	rig_pass(20 * RIG_MS - rig_now % (10 * RIG_MS));
	rig_go_one("refs/heads/a");
	rig_batches->locked_ns = rig_now - 2 * RIG_MS;
	rig_batches->unlocked_ns = rig_now;
	rig_back_all();
	rig_pass(1 * RIG_MS);
	rig_go_one("refs/heads/b");
	rig_batches->locked_ns = rig_now - 5 * RIG_MS;
	rig_batches->unlocked_ns = rig_now;
	rig_back_all();
	ck_assert_int_eq(rig_next, rig_now + 9 * RIG_MS);
	rig_pass(9 * RIG_MS);
	/* No later event is due. */
	ck_assert_int_eq(rig_next, INT64_MAX);
}

/* ---- batches ---- */

CASE(.name = "batches", .setup = rig_setup_one_committer,
    .teardown = rig_teardown);

TEST(test_idle_starts_at_once_and_load_gathers)
{
	size_t i;

	rig_go_one("refs/heads/first");
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	for (i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "refs/heads/%zu", i);
		rig_go_one(name);
	}
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 8);
}

TEST(test_cut_where_the_batch_is_full)
{
	struct rig_ask *ask = rig_go_many(0, false, "refs/heads/", 25);
	size_t i;

	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(rig_count(rig_batches), i < 2 ? 10 : 5);
		rig_back_all();
	}
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	ck_assert_uint_eq(ask->nr, 25);
}

TEST(test_atomic_may_exceed_alone)
{
	struct rig_ask *atomic;

	rig_go_one("refs/x");
	rig_go_one("refs/y");
	atomic = rig_go_many(0, true, "refs/heads/", 25);
	rig_go_one("refs/z");
	rig_back_all();
	/* The transaction does not fit behind y, so the next batch begins with
	 * it. */
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/y"));
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	ck_assert_uint_eq(rig_count(rig_batches), 25);
	rig_back_all();
	ck_assert_int_eq(atomic->outcome, REFD_COMMITTED);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/z"));
}

TEST(test_later_keep_their_order)
{
	struct rig_ask *asks[4];
	unsigned i;

	rig_go_one("refs/x");
	for (i = 0; i < 4; i++)
		asks[i] = rig_go_many(i + 1, false, "refs/heads/", 1);
	rig_back_all();
	for (i = 1; i < 4; i++)
		rig_batches->slices[i].updates[0]->again = TXN_AGAIN_LATER;
	rig_go_many(5, false, "refs/heads/", 1);
	rig_back_all();
	ck_assert_uint_eq(asks[0]->nr_answers, 1);
	/* The batch had time for one update, so the next batches have one, then
	 * two. */
	ck_assert_uint_eq(rig_batches->nr_slices, 1);
	ck_assert_ptr_eq(rig_batches->slices[0].txn, asks[1]->txn);
	rig_back_all();
	ck_assert_uint_eq(rig_batches->nr_slices, 2);
	ck_assert_ptr_eq(rig_batches->slices[0].txn, asks[2]->txn);
	ck_assert_ptr_eq(rig_batches->slices[1].txn, asks[3]->txn);
}

CASE(.name = "order", .setup = rig_setup_committers, .teardown = rig_teardown);

/* Deletions do not wait for packed-refs.lock in the store. All deletions of a
 * repository go in one batch at a time, and other updates go meanwhile. */
TEST(test_deletions_wait_for_each_other)
{
	struct rig_txn some = { .deletes = true,
		RIG_NAMES("refs/heads/a", "refs/heads/b") };
	struct rig_txn whole = { .deletes = true,
		.atomic = true,
		RIG_NAMES("refs/heads/c", "refs/heads/d") };
	struct rig_txn elsewhere = { .deletes = true,
		.repo = 1,
		RIG_NAMES("refs/heads/c") };
	struct rig_ask *asks[4];

	asks[0] = rig_go(&some);
	some.names = (const char *const[]){ "refs/heads/e", "refs/heads/f" };
	asks[1] = rig_go(&some);
	asks[2] = rig_go(&whole);
	ck_assert_ptr_null(rig_batches->next);
	rig_go_one("refs/heads/c/d");
	rig_go_one("refs/heads/g");
	ck_assert_ptr_nonnull(rig_find(rig_batches->next, "refs/heads/g"));
	rig_go(&elsewhere);
	ck_assert_ptr_nonnull(rig_batches->next->next);
	ck_assert_uint_eq(rig_count(rig_batches->next->next), 1);
	ck_assert_ptr_null(rig_batches->next->next->next);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_run();
	ck_assert_uint_eq(asks[0]->nr_answers, 1);
	/* All waiting deletions go together. */
	ck_assert_ptr_nonnull(rig_batches->next->next);
	ck_assert_uint_eq(rig_count(rig_batches->next->next), 4);
	rig_back_all();
	rig_back_all();
	ck_assert_int_eq(asks[1]->outcome, REFD_COMMITTED);
	ck_assert_int_eq(asks[2]->outcome, REFD_COMMITTED);
}

/* A deletion that comes back undone does not delay the others for ever. The
 * same holds for a prepared deletion. */
TEST(test_deletions_come_back)
{
	struct rig_txn t = { .deletes = true, RIG_NAMES("refs/heads/a") };
	struct rig_ask *ask;

	rig_go(&t);
	t.names = (const char *const[]){ "refs/heads/b" };
	ask = rig_go(&t);
	rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
	rig_back(rig_batches);
	rig_run();
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/b"));
	rig_back_all();
	ck_assert_uint_eq(ask->nr_answers, 1);
	rig_pass(60 * RIG_MS);
	rig_back_all();
	t.session = true;
	t.names = (const char *const[]){ "refs/heads/c" };
	rig_prepare(&t);
	t.session = false;
	t.names = (const char *const[]){ "refs/heads/d" };
	ask = rig_go(&t);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/d"));
	rig_back_all();
	ck_assert_uint_eq(ask->nr_answers, 1);
}
