/*
 * Proves that related names are never with the store together, and that an
 * older update goes first: an update of refs/heads/a is admitted late, while a
 * younger transaction has refs/heads/a/b and refs/heads/a in a batch, and the
 * batch comes back without a decision.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static void setup(void)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 1000,
		.max_bytes = 64 * 1024 * 1024,
		.large = false };

	rig_setup(&cfg);
}

/* The rig fails the test if an order is wrong. */
static void older_comes_late(enum txn_again again)
{
	struct rig_txn old = { RIG_NAMES("refs/heads/a") };
	struct rig_txn whole = { RIG_NAMES("refs/heads/a/b", "refs/heads/a"),
		.ref_lock_timeout_ms = 1 };
	struct txn_update *locked;
	struct txn *older;

	rig_submit(&old);
	rig_run();
	older = rig_admissions;
	rig_submit(&whole);
	rig_run();
	rig_admit_one(older->next);
	rig_run();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_admit_one(older);
	rig_run();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_give_back("refs/heads/a/b", again);
	if (again == TXN_AGAIN_LOCKED) {
		rig_give_back("refs/heads/a", again);
		locked = rig_find(rig_batches, "refs/heads/a");
		locked->locked_path = strdup("refs/heads/a");
	}
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_run();
	rig_back_all();
}

CASE(.setup = setup, .teardown = rig_teardown);

TEST(test_older_goes_before_a_given_back_update)
{
	older_comes_late(TXN_AGAIN_LATER);
}

TEST(test_older_goes_before_a_locked_update)
{
	older_comes_late(TXN_AGAIN_LOCKED);
}
