/*
 * Proves that no transaction goes long after the check of its objects, because
 * somebody may have removed objects while the transaction waited for a name,
 * for a lock, or for the end of a pause. The store then checks the objects once
 * more. Meanwhile the transaction keeps its place at all names, and goes right
 * after the check. Updates without their objects fail.
 */
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

#define A "refs/heads/a"
#define B "refs/heads/b"

/* For so long a check of one update counts, or of two. */
#define FRESH_ONE (1000 * RIG_MS + RIG_MS / 10)
#define FRESH_TWO (FRESH_ONE + RIG_MS / 10)

static const struct rig_txn one = { RIG_NAMES(A) };
static const struct rig_txn both = { RIG_NAMES(A, B) };

static void setup(void)
{
	rig_setup_roomy();
	rig_keeps_checks = true;
}

/* A transaction arrives. The store goes on to check others. */
static struct rig_ask *arrive(const struct rig_txn *t)
{
	struct rig_ask *ask = rig_submit(t);

	rig_admit_one(ask->txn);
	rig_run();
	return ask;
}

/* T has waited for a name, and the store checks its objects again. */
static struct rig_ask *check_again(const struct rig_txn *t)
{
	struct rig_ask *ask;

	rig_go(&both);
	ask = rig_go(t);
	rig_pass(FRESH_TWO + 1);
	rig_back_all();
	ck_assert_ptr_eq(rig_admissions, ask->txn);
	ck_assert_ptr_null(rig_admissions->next);
	ck_assert(ask->txn->readmitted);
	ck_assert_ptr_null(rig_batches);
	return ask;
}

CASE(.setup = setup, .teardown = rig_teardown);

TEST(test_a_long_wait_for_a_name)
{
	struct rig_ask *ask = check_again(&one);

	rig_admit_all();
	ck_assert_ptr_eq(rig_find(rig_batches, A)->txn, ask->txn);
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_uint_eq(rig_nr_released, 2);
}

TEST(test_a_short_wait_for_a_name)
{
	struct rig_ask *ask;

	rig_go(&one);
	ask = rig_go(&one);
	rig_pass(FRESH_ONE);
	rig_back_all();
	ck_assert_ptr_null(rig_admissions);
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

/* The length of a pause does not matter. */
TEST(test_a_pause)
{
	struct rig_ask *before, *meanwhile;

	rig_go(&one);
	before = rig_go(&one);
	scheduler_pause(rig_scheduler);
	meanwhile = rig_go(&(struct rig_txn){ RIG_NAMES(B) });
	rig_back_all();
	ck_assert_ptr_null(rig_admissions);
	scheduler_resume(rig_scheduler);
	rig_run();
	ck_assert_ptr_null(rig_batches);
	ck_assert_ptr_ne(rig_admissions, before->txn);
	ck_assert_ptr_eq(rig_admissions, meanwhile->txn);
	ck_assert_ptr_eq(rig_admissions->next, before->txn);
	rig_admit_all();
	rig_back_all();
	ck_assert_int_eq(before->statuses[0], REFD_OK);
	ck_assert_int_eq(meanwhile->statuses[0], REFD_OK);
	/* Resuming a daemon that is not paused changes nothing. */
	before = rig_go(&one);
	scheduler_resume(rig_scheduler);
	rig_back_all();
	ck_assert_int_eq(before->statuses[0], REFD_OK);
}

/* The check begins before the pause ends, so it may have found objects that are
 * gone at the end. The same holds if a stop ends the pause. */
TEST(test_a_pause_that_ends_during_a_check, .times = 2)
{
	struct rig_ask *ask;

	scheduler_pause(rig_scheduler);
	ask = rig_submit(&one);
	if (_i == 0)
		scheduler_resume(rig_scheduler);
	else
		scheduler_drain(rig_scheduler);
	rig_admit_all();
	ck_assert_ptr_eq(rig_admissions, ask->txn);
	rig_admit_all();
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

/* While git holds a lock, the store checks once in a second. */
TEST(test_a_long_wait_for_a_lock)
{
	struct rig_txn t = one;
	unsigned nr_checks = 0;
	struct rig_ask *ask;
	int i;

	t.ref_lock_timeout_ms = 10001;
	ask = rig_go(&t);
	for (i = 0; i < 500; i++) {
		if (rig_batches != NULL)
			rig_give_back(A, TXN_AGAIN_LOCKED);
		rig_back_all();
		nr_checks += rig_admissions != NULL;
		rig_admit_all();
		rig_pass(10 * RIG_MS);
	}
	ck_assert_uint_eq(nr_checks, 4);
	rig_pass(50 * RIG_MS);
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

/* Each row waits behind the rows before. */
TEST(test_it_keeps_its_place)
{
	struct rig_ask *first = check_again(&both), *later, *last;

	later = arrive(&one);
	last = arrive(&(struct rig_txn){ RIG_NAMES("refs/heads/b/c") });
	ck_assert_ptr_null(rig_batches);
	rig_admit_all();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back_all();
	ck_assert_int_eq(first->statuses[1], REFD_OK);
	rig_back_all();
	ck_assert_int_eq(later->statuses[0], REFD_OK);
	ck_assert_int_eq(last->statuses[0], REFD_OK);
}

/* Otherwise it could be checked again and again, and never go. */
TEST(test_it_goes_before_others)
{
	struct rig_ask *ask = check_again(&one);
	static const char *const prefixes[] = { "refs/x/", "refs/y/",
		"refs/z/" };
	const char **names;
	size_t i;

	rig_takes = false;
	for (i = 0; i < 3; i++) {
		names = rig_names(prefixes[i], 60);
		arrive(&(struct rig_txn){ .atomic = true,
		    .names = names,
		    .nr = 60 });
		rig_names_free(names, 60);
	}
	rig_admit_all();
	rig_takes = true;
	rig_run();
	ck_assert_ptr_nonnull(rig_find(rig_batches, A));
	ck_assert_ptr_eq(rig_find(rig_batches, A)->txn, ask->txn);
}

/* A transaction can wait at the barrier, after its check. This counts once. */
TEST(test_a_long_admission)
{
	struct rig_ask *ask = rig_submit(&one);

	rig_pass(FRESH_ONE + 1);
	rig_admit_all();
	ck_assert_ptr_eq(rig_admissions, ask->txn);
	rig_pass(FRESH_ONE + 1);
	rig_admit_all();
	ck_assert_ptr_null(rig_admissions);
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

TEST(test_an_object_is_gone, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.atomic = _i;
	ask = check_again(&t);
	txn_decide(&ask->txn->updates[1], REFD_NOOBJECT, "gone");
	rig_admit_all();
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], _i ? REFD_ABORTED : REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_NOOBJECT);
	ck_assert_int_eq(ask->outcome, _i ? REFD_REJECTED : REFD_PARTIAL);
}

TEST(test_all_objects_are_gone)
{
	struct rig_ask *ask = check_again(&one), *next = arrive(&one);

	txn_decide(&ask->txn->updates[0], REFD_NOOBJECT, "gone");
	rig_admit_all();
	ck_assert_int_eq(ask->statuses[0], REFD_NOOBJECT);
	rig_back_all();
	ck_assert_int_eq(next->statuses[0], REFD_OK);
}

TEST(test_the_repository_is_gone)
{
	struct rig_ask *ask = check_again(&one);

	rig_refuse(ask->txn, REFD_DENIED, "not today");
	ck_assert_int_eq(ask->statuses[0], REFD_DENIED);
	ck_assert_str_eq(ask->text, "not today");
}

/* The names of the other repository are different names. */
TEST(test_the_repository_is_another_one)
{
	struct rig_ask *ask = check_again(&one);

	rig_replace_repo(ask->txn, 5);
	rig_admit_all();
	ck_assert_ptr_null(rig_batches);
	ck_assert_ptr_eq(rig_admissions, ask->txn);
	ck_assert_ptr_null(ask->txn->repo);
	rig_admit_all();
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
}

TEST(test_the_deadline_passes_meanwhile)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.deadline_ms = 2000;
	ask = check_again(&t);
	rig_pass(1000 * RIG_MS);
	ck_assert_uint_eq(ask->nr_answers, 0);
	ck_assert(ask->txn->is_given_up);
	rig_admit_all();
	rig_expect_results(ask, REFD_REJECTED, REFD_DEADLINE);
}

TEST(test_it_is_cancelled_meanwhile)
{
	struct rig_ask *ask = check_again(&both);

	rig_cancel(0, rig_last_id());
	rig_admit_all();
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
}

TEST(test_a_session_is_checked_before_it_locks)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.session = true;
	ask = check_again(&t);
	rig_admit_all();
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	/* As in git, its client may take some time. */
	rig_pass(5000 * RIG_MS);
	rig_commit(0, rig_last_id());
	rig_run();
	rig_expect_batch(BATCH_COMMIT, 2);
}

/* Git has made the change, so its record must not fail. */
TEST(test_a_gate_is_not_checked)
{
	struct rig_txn t = one;

	rig_go(&one);
	t.gate = REFD_GATE_COMMITTED;
	t.gate_key = 'k';
	rig_go(&t);
	rig_pass(FRESH_TWO + 1);
	rig_back_all();
	ck_assert_ptr_null(rig_admissions);
	ck_assert_ptr_nonnull(rig_batches);
}

/* The check of many objects takes long, and must not be most of the work. */
TEST(test_many_updates_are_checked_less_often)
{
	struct rig_ask *ask;

	rig_go_one("refs/tags/1");
	ask = rig_go_many(0, false, "refs/tags/", 10000);
	rig_pass(1999 * RIG_MS);
	rig_back_all();
	ck_assert_ptr_null(rig_admissions);
	rig_pass(2 * RIG_MS);
	ck_assert_uint_eq(rig_count(rig_batches), 100);
	rig_back_all();
	ck_assert_ptr_eq(rig_admissions, ask->txn);
}
