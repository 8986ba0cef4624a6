/*
 * Proves how the scheduler waits for foreign locks: how often and how long, by
 * the client's wish or by default, and with which final answer. No other work
 * waits.
 */
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn one = { RIG_NAMES("refs/heads/a") };
static const struct rig_txn both = { RIG_NAMES("refs/heads/a",
    "refs/heads/b") };

/* The batch comes back. A foreign lock on NAME stopped this update only. */
static void locked(const char *name)
{
	rig_give_back(name, TXN_AGAIN_LOCKED);
	rig_back_all();
}

/* ---- foreign locks ---- */

CASE(.setup = rig_setup_one_committer, .teardown = rig_teardown);

TEST(test_lock_is_tried_again)
{
	static const int waits_ms[] = { 1, 1, 2, 4, 8, 16, 32, 50, 50 };
	struct rig_ask *ask = rig_go(&one);
	size_t i;

	for (i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
		locked("refs/heads/a");
		ck_assert_ptr_null(rig_batches);
		ck_assert_int_eq(rig_next, rig_now + waits_ms[i] * RIG_MS);
		rig_pass(waits_ms[i] * RIG_MS);
		ck_assert_ptr_nonnull(rig_batches);
	}
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

/* The scheduler's text about a lock. */
#define LOCKED(name, path) "\1locked\1" name "\1" path
#define PACKED(path)       "\1packed-locked\1" path

/* Returns NAME because PATH is locked. */
static void locked_at(const char *name, const char *path)
{
	struct txn_update *u = rig_find(rig_batches, name);

	ck_assert_ptr_null(u->locked_path);
	u->locked_path = strdup(path);
	locked(name);
}

/* Retries as long as the scheduler does; returns the time. */
static int64_t retry_until_answered(struct rig_ask *ask, const char *name)
{
	int64_t start = rig_now;

	while (ask->nr_answers == 0) {
		locked(name);
		if (ask->nr_answers == 0)
			rig_pass(rig_next - rig_now);
	}
	return rig_now - start;
}

TEST(test_lock_is_given_up)
{
	struct rig_ask *ask = rig_go(&both);

	/* The other update is long done and doesn't wait. */
	ck_assert_int_eq(retry_until_answered(ask, "refs/heads/b"),
	    1000 * RIG_MS);
	ck_assert_int_eq(ask->outcome, REFD_PARTIAL);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_LOCKED);
	ck_assert_str_eq(ask->text,
	    LOCKED("refs/heads/b", "/srv/0.git/refs/heads/b.lock"));
	/* The batch is over, and the name is free. */
	ask = rig_go(&both);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

static const struct {
	uint32_t ref_ms, packed_ms; /* timeout plus 1; 0: default */
	const char *path;
	int64_t wait_ms;
	const char *text;
} timeouts[] = {
	{ 0, 0, "HEAD", 1000, LOCKED("HEAD", "/srv/0.git/HEAD.lock") },
	{ 101, 0, "worktrees/w/HEAD", 100,
	    LOCKED("HEAD", "/srv/0.git/worktrees/w/HEAD.lock") },
	{ 0, 51, "refs/heads/a", 1000,
	    LOCKED("refs/heads/a", "/srv/0.git/refs/heads/a.lock") },
	{ 101, 51, "packed-refs", 50, PACKED("/srv/0.git/packed-refs.lock") },
	{ 101, 0, "packed-refs", 1000, PACKED("/srv/0.git/packed-refs.lock") },
	/* A single try. */
	{ 1, 0, "refs/heads/a", 0,
	    LOCKED("refs/heads/a", "/srv/0.git/refs/heads/a.lock") },
	{ 0, 1, "packed-refs", 0, PACKED("/srv/0.git/packed-refs.lock") },
	{ UINT32_MAX, 0, "refs/heads/a", 30000,
	    LOCKED("refs/heads/a", "/srv/0.git/refs/heads/a.lock") },
};

TEST(test_lock_timeouts_of_the_client,
    .times = sizeof(timeouts) / sizeof(timeouts[0]))
{
	struct rig_txn t = one;
	int64_t start = rig_now;
	struct rig_ask *ask;

	t.ref_lock_timeout_ms = timeouts[_i].ref_ms;
	t.packed_refs_timeout_ms = timeouts[_i].packed_ms;
	ask = rig_go(&t);
	while (ask->nr_answers == 0) {
		locked_at("refs/heads/a", timeouts[_i].path);
		if (ask->nr_answers == 0)
			rig_pass(rig_next - rig_now);
	}
	ck_assert_int_eq(rig_now - start, timeouts[_i].wait_ms * RIG_MS);
	ck_assert_int_eq(ask->statuses[0], REFD_LOCKED);
	ck_assert_str_eq(ask->text, timeouts[_i].text);
}

TEST(test_lock_and_deadline)
{
	struct rig_txn t = one;
	struct rig_ask *ask;

	t.deadline_ms = 20;
	ask = rig_go(&t);
	locked("refs/heads/a");
	rig_pass(1 * RIG_MS);
	locked("refs/heads/a");
	rig_now += 19 * RIG_MS;
	rig_run();
	ck_assert_int_eq(ask->statuses[0], REFD_LOCKED);
}

TEST(test_lock_of_an_atomic)
{
	struct rig_txn t = both;
	struct rig_ask *ask;
	int64_t start = rig_now;

	t.atomic = true;
	ask = rig_go(&t);
	while (ask->nr_answers == 0) {
		ck_assert_uint_eq(rig_count(rig_batches), 2);
		rig_give_back("refs/heads/a", TXN_AGAIN_LATER);
		rig_give_back("refs/heads/b", TXN_AGAIN_LOCKED);
		rig_back_all();
		if (ask->nr_answers == 0)
			rig_pass(rig_next - rig_now);
	}
	ck_assert_int_eq(rig_now - start, 1000 * RIG_MS);
	ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
	ck_assert_int_eq(ask->statuses[1], REFD_LOCKED);
}

/* The store returns all updates as locked, because of one lock. */
TEST(test_given_back_with_one_that_is_locked, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;
	int64_t start = rig_now;

	t.atomic = _i == 0;
	t.session = _i == 1;
	ask = rig_go(&t);
	while (ask->nr_answers == 0 && rig_count(rig_batches) == 2) {
		rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
		locked_at("refs/heads/b", "HEAD");
		if (rig_batches == NULL && ask->nr_answers == 0)
			rig_pass(rig_next - rig_now);
	}
	ck_assert_int_eq(rig_now - start, 1000 * RIG_MS);
	if (t.session)
		rig_back_all();
	ck_assert_int_eq(ask->statuses[0], _i == 0 ? REFD_ABORTED : REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_LOCKED);
}

TEST(test_lock_that_was_let_go_of)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	/* First one lock stands, then the other, which decides the answer. */
	t.atomic = true;
	ask = rig_go(&t);
	rig_give_back("refs/heads/b", TXN_AGAIN_LATER);
	locked("refs/heads/a");
	while (ask->nr_answers == 0) {
		rig_pass(rig_next - rig_now);
		if (rig_batches == NULL)
			continue;
		rig_give_back("refs/heads/a", TXN_AGAIN_LATER);
		locked("refs/heads/b");
	}
	ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
	ck_assert_int_eq(ask->statuses[1], REFD_LOCKED);
}

TEST(test_lock_holds_up_nobody_else)
{
	struct rig_ask *held = rig_go(&one), *behind = rig_go(&one), *other;

	locked("refs/heads/a");
	other = rig_go(&(struct rig_txn){ RIG_NAMES("refs/heads/b") });
	ck_assert_uint_eq(rig_count(rig_batches), 1);
	rig_back_all();
	ck_assert_uint_eq(other->nr_answers, 1);
	/* A later update doesn't overtake. */
	ck_assert_ptr_null(rig_batches);
	rig_pass(1 * RIG_MS);
	ck_assert_ptr_eq(rig_batches->slices[0].txn, held->txn);
	rig_back_all();
	ck_assert_uint_eq(behind->nr_answers, 0);
	rig_back_all();
	ck_assert_uint_eq(behind->nr_answers, 1);
}

TEST(test_cancel_wakes_the_next)
{
	struct rig_ask *held = rig_go(&one), *behind;
	uint64_t id = rig_last_id();

	behind = rig_go(&one);
	locked("refs/heads/a");
	rig_cancel(0, id);
	rig_run();
	ck_assert_int_eq(held->statuses[0], REFD_ABORTED);
	/* The later update never met the lock and does not wait. */
	ck_assert_ptr_eq(rig_batches->slices[0].txn, behind->txn);
	rig_back_all();
	ck_assert_int_eq(behind->outcome, REFD_COMMITTED);
}
