/*
 * Proves that a transaction goes to the store together with its batch, if
 * nothing else is at work and the repository is known. Its names are held
 * meanwhile. If the store did not apply the batch, the transaction goes the
 * ordinary way. A cancel, a deadline and a stop reach the transaction. The
 * quota of its repository is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

/* The scheduler learns the number of repository 1. */
static void setup(void)
{
	rig_setup_roomy();
	rig_go(&(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/x") });
	rig_back_all();
	rig_pass(1000 * RIG_MS);
}

/* In repository 1, while nothing else is at work. */
static struct rig_ask *submit_direct(const char *name)
{
	struct rig_ask *ask =
	    rig_submit(&(struct rig_txn){ .repo = 1, RIG_NAMES(name) });

	ck_assert_ptr_nonnull(rig_admissions);
	ck_assert_ptr_nonnull(rig_admissions->direct);
	ck_assert_uint_eq(rig_admissions->direct_repo, 1);
	return ask;
}

static void expect(const struct rig_ask *ask, enum refd_status status)
{
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_uint_eq(ask->nr, 1);
	ck_assert_int_eq(ask->statuses[0], status);
}

CASE(.name = "direct", .setup = setup, .teardown = rig_teardown);

TEST(admitted_and_applied)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");

	ck_assert(rig_admit_directly(rig_admissions));
	rig_back_all();
	expect(ask, REFD_OK);
	/* The scheduler leaves the name alone for a while, so plain git gets a
	 * turn. */
	ask = rig_submit(
	    &(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/a") });
	rig_admit_all();
	rig_back_all();
	expect(ask, REFD_OK);
}

TEST(not_applied)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");

	rig_admit_all();
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	ck_assert_ptr_null(rig_batches->slices[0].txn->direct);
	rig_back_all();
	expect(ask, REFD_OK);
}

TEST(refused)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");

	rig_refuse(rig_admissions, REFD_DENIED, "not today");
	expect(ask, REFD_DENIED);
	/* The name is free, and no name was used recently. */
	submit_direct("refs/heads/a");
}

/* While the store has A, no batch has A, whatever the store decides. If the
 * store does not apply A, A comes behind B. */
TEST(names_are_held, .times = 2)
{
	struct rig_ask *first = submit_direct("refs/heads/a"), *second, *third;
	struct txn *direct = rig_admissions;

	second = rig_submit(
	    &(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/a/b") });
	third = rig_submit(
	    &(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/c") });
	ck_assert_ptr_null(direct->next->direct);
	rig_admit_one(direct->next);
	rig_admit_one(direct->next);
	rig_run();
	/* C may go, and B waits for A. */
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/c"));
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	expect(third, REFD_OK);
	if (_i)
		ck_assert(rig_admit_directly(direct));
	else
		rig_admit_one(direct);
	rig_run();
	ck_assert_ptr_nonnull(
	    rig_find(rig_batches, _i ? "refs/heads/a" : "refs/heads/a/b"));
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	expect(_i ? first : second, REFD_OK);
	rig_pass(1000 * RIG_MS);
	rig_back_all();
	expect(_i ? second : first, REFD_OK);
}

TEST(deletions_wait, .times = 2)
{
	struct txn *direct;

	rig_submit(&(struct rig_txn){ .repo = 1,
	    .deletes = true,
	    RIG_NAMES("refs/heads/a") });
	direct = rig_admissions;
	ck_assert_ptr_nonnull(direct->direct);
	rig_submit(&(struct rig_txn){ .repo = 1,
	    .deletes = true,
	    RIG_NAMES("refs/heads/b") });
	rig_admit_one(direct->next);
	rig_run();
	ck_assert_ptr_null(rig_batches);
	if (_i)
		ck_assert(rig_admit_directly(direct));
	else
		rig_admit_one(direct);
	rig_run();
	rig_back_all();
	rig_pass(1000 * RIG_MS);
	rig_back_all();
}

TEST(cancelled, .times = 2)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");
	struct txn *txn = rig_admissions;

	rig_cancel(0, rig_last_id());
	ck_assert(txn->is_given_up);
	/* The cancel comes too late if the store has begun the batch. */
	atomic_store(&txn->is_given_up, !_i);
	if (_i)
		ck_assert(rig_admit_directly(txn));
	else
		rig_admit_one(txn);
	rig_run();
	rig_back_all();
	expect(ask, _i ? REFD_OK : REFD_ABORTED);
}

TEST(too_late)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");
	struct txn *txn = rig_admissions;

	rig_pass(40000 * RIG_MS);
	ck_assert(txn->is_given_up);
	rig_admit_all();
	expect(ask, REFD_DEADLINE);
}

TEST(stopped)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");
	struct txn *txn = rig_admissions;

	scheduler_hurry(rig_scheduler);
	ck_assert(txn->is_given_up);
	rig_admit_all();
	expect(ask, REFD_BUSY);
}

TEST(given_back)
{
	struct rig_ask *ask = submit_direct("refs/heads/a");

	ck_assert(rig_admit_directly(rig_admissions));
	rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
	rig_back(rig_batches);
	rig_run();
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_pass(1000 * RIG_MS);
	rig_back_all();
	expect(ask, REFD_OK);
}

static void expect_ordinary(const struct rig_txn *t)
{
	rig_submit(t);
	ck_assert_ptr_nonnull(rig_admissions);
	ck_assert_ptr_null(rig_admissions->direct);
	rig_admit_all();
	rig_back_all();
}

TEST(ordinary)
{
	expect_ordinary(&(struct rig_txn){ .repo = 2, RIG_NAMES("HEAD") });
	rig_pass(1000 * RIG_MS);
	expect_ordinary(
	    &(struct rig_txn){ .repo = 1, .session = true, RIG_NAMES("HEAD") });
	rig_pass(40000 * RIG_MS);
	expect_ordinary(&(struct rig_txn){ .repo = 1, RIG_NAMES("a b") });
	rig_pass(1000 * RIG_MS);
	expect_ordinary(
	    &(struct rig_txn){ .repo = 1, RIG_NAMES("HEAD", "HEAD") });
	rig_pass(1000 * RIG_MS);
	rig_takes = false;
	rig_submit(&(struct rig_txn){ .repo = 1, RIG_NAMES("HEAD") });
	ck_assert_ptr_null(rig_admissions->direct);
	rig_takes = true;
}

/* A repository may have one request at a time. */
static void setup_quota(void)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 10,
		.max_bytes = 8000,
		.quotas = { .own_uid = 77 },
		.of_repo = { .requests = 1 } };

	rig_setup(&cfg);
	rig_go(&(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/x") });
	rig_back_all();
	rig_pass(1000 * RIG_MS);
}

static struct suite_case quota = { .name = "quota",
	.setup = setup_quota,
	.teardown = rig_teardown };

/* Nothing is at work, but a transaction waits for a foreign lock. */
TEST(quota_is_kept, .in = &quota)
{
	struct rig_ask *locked = submit_direct("refs/heads/a"), *more;

	ck_assert(rig_admit_directly(rig_admissions));
	rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
	rig_back(rig_batches);
	rig_run();
	ck_assert_uint_eq(locked->nr_answers, 0);
	more = rig_submit(
	    &(struct rig_txn){ .repo = 1, RIG_NAMES("refs/heads/b") });
	ck_assert_ptr_nonnull(rig_admissions);
	ck_assert_ptr_null(rig_admissions->direct);
	rig_admit_all();
	ck_assert_uint_eq(more->nr_answers, 1);
	ck_assert_int_eq(more->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(more->refused, REFD_BUSY);
}

static void keep(struct replica_txn *kept)
{
	(void)kept;
}

static struct replica_txn in_group = { .free = keep };

/* The transactions of a group may wait for other nodes. So no batch is formed
 * for the direct way. */
TEST(no_direct_way_in_a_group)
{
	struct rig_ask *ask;
	int i;

	for (i = 0; i < 2; i++) {
		ask = rig_submit(
		    &(struct rig_txn){ .repo = 2, RIG_NAMES("refs/heads/a") });
		ck_assert_ptr_nonnull(rig_admissions);
		ck_assert_ptr_null(rig_admissions->direct);
		rig_admissions->replica = &in_group;
		rig_admit_all();
		rig_back_all();
		expect(ask, REFD_OK);
		rig_pass(1000 * RIG_MS);
	}
}
