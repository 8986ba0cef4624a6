/*
 * Proves the way of a session up to its end. A session is alone in its batch,
 * gets prepared, and is announced; then no other work waits for it in the
 * scheduler. Other tests decide, lock or refuse updates instead. The rig checks
 * the batches of sessions: one transaction, complete, and every prepared
 * session ended once. (End: test_scheduler_session_end.)
 */
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn both = { .session = true,
	RIG_NAMES("refs/heads/a", "refs/heads/b") };
static const struct rig_txn empty = { .session = true };

/* ---- the happy path ---- */

CASE(.setup = rig_setup_roomy, .teardown = rig_teardown);

TEST(test_prepared_and_committed, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask, *commit;

	t.atomic = _i;
	ask = rig_go(&t);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_batches->slices[0].txn->rewrites_packed = true;
	rig_find(rig_batches, "refs/heads/b")->final_name =
	    strdup("refs/heads/c");
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	ck_assert_uint_eq(ask->nr, 2);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_OK);
	ck_assert_str_eq(ask->text, "refs/heads/c");
	ck_assert(ask->rewrites_packed);
	ck_assert(!scheduler_is_idle(rig_scheduler));

	commit = rig_commit(0, rig_last_id());
	ck_assert_uint_eq(commit->nr_answers, 0);
	rig_expect_batch(BATCH_COMMIT, 2);
	rig_expect_results(commit, REFD_COMMITTED, REFD_OK);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_prepared_and_aborted)
{
	struct rig_ask *end;
	uint64_t id;

	rig_prepare(&both);
	id = rig_last_id();
	end = rig_abort(0, id);
	rig_expect_batch(BATCH_ABORT, 2);
	rig_expect_results(end, REFD_REJECTED, REFD_ABORTED);
	ck_assert_str_eq(end->text, "its client aborted it");
	/* The outcome is not yet recorded, and the scheduler answers. */
	rig_expect_results(rig_commit(0, id), REFD_REJECTED, REFD_ABORTED);
	rig_expect_results(rig_query(0, id, 0), REFD_REJECTED, REFD_ABORTED);
	rig_go(&(struct rig_txn){ .repo = 1, RIG_NAMES("refs/x") });
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	rig_back_all();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

static void note_lock(void *arg, const struct scheduler_lock *lock)
{
	char *all = arg;

	ck_assert_int_eq(lock->kind, SCHEDULER_LOCK_HELD);
	ck_assert_int_eq(lock->age_ns, 3 * RIG_MS);
	ck_assert_uint_lt(strlen(all) + strlen(lock->path), 90);
	strcat(strcat(all, " "), lock->path);
}

/* By the name of its lock. */
TEST(test_what_it_holds_is_told)
{
	char all[100] = "";

	rig_go(&both);
	rig_find(rig_batches, "refs/heads/b")->final_name =
	    strdup("refs/heads/c");
	rig_expect_batch(BATCH_PREPARE, 2);
	scheduler_locks(rig_scheduler, rig_now + 3 * RIG_MS, note_lock, all);
	ck_assert_str_eq(all, " refs/heads/a refs/heads/c");
	rig_abort(0, rig_last_id());
	rig_back_all();
	all[0] = '\0';
	scheduler_locks(rig_scheduler, rig_now, note_lock, all);
	ck_assert_str_eq(all, "");
}

TEST(test_names_are_let_go_of)
{
	struct rig_ask *behind, *later;

	rig_go(&both);
	behind = rig_go_one("refs/heads/a/x");
	ck_assert_ptr_null(rig_batches->next);
	rig_expect_batch(BATCH_PREPARE, 2);
	/* No update waits in a queue for the session: its locks suffice. */
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a/x"));
	later = rig_go_one("refs/heads/b");
	ck_assert_ptr_nonnull(rig_find(rig_batches->next, "refs/heads/b"));
	rig_find(rig_batches, "refs/heads/a/x")->again = TXN_AGAIN_LOCKED;
	rig_back_all();
	rig_commit(0, rig_last_id() - 2);
	rig_back_all();
	rig_pass(1 * RIG_MS);
	rig_back_all();
	ck_assert_int_eq(behind->outcome, REFD_COMMITTED);
	ck_assert_int_eq(later->outcome, REFD_COMMITTED);
}

static void keep(struct replica_txn *kept)
{
	(void)kept;
}

static struct replica_txn in_group = { .free = keep };

/* A row of a group can't be taken back, so no name above or below may come in
 * between. */
TEST(test_names_are_kept_in_a_group, .times = 2)
{
	struct rig_ask *behind, *commit;

	rig_go(&both);
	rig_batches->slices[0].txn->replica = &in_group;
	behind = rig_go_one("refs/heads/a/x");
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_ptr_null(rig_batches);
	if (_i == 0)
		commit = rig_commit(0, rig_last_id() - 1);
	else
		commit = rig_abort(0, rig_last_id() - 1);
	ck_assert_ptr_null(rig_batches->next);
	rig_expect_batch(_i == 0 ? BATCH_COMMIT : BATCH_ABORT, 2);
	ck_assert_uint_eq(commit->nr_answers, 1);
	ck_assert_ptr_nonnull(rig_find(rig_batches, "refs/heads/a/x"));
	rig_back_all();
	ck_assert_int_eq(behind->outcome, REFD_COMMITTED);
}

/* The locks would hold up the rows of the next leader. */
TEST(test_no_session_outlives_the_lead)
{
	struct rig_ask *ask, *commit;

	ask = rig_go(&both);
	rig_batches->slices[0].txn->replica = &in_group;
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	rig_pass(1000 * RIG_MS);
	ck_assert_ptr_null(rig_batches);
	rig_may_commit = false;
	rig_pass(100 * RIG_MS);
	/* Too late. */
	commit = rig_commit(0, rig_last_id());
	rig_expect_batch(BATCH_ABORT, 2);
	rig_expect_results(commit, REFD_REJECTED, REFD_BUSY);
}

TEST(test_ending_waits_for_no_committer)
{
	struct rig_ask *commit;
	size_t i;

	rig_prepare(&both);
	for (i = 0; i < 3; i++)
		rig_go_many((unsigned)i, false, "refs/tags/", 1);
	ck_assert_ptr_nonnull(rig_batches->next);
	ck_assert_ptr_null(rig_batches->next->next);
	commit = rig_commit(0, rig_last_id() - 3);
	ck_assert_ptr_nonnull(rig_batches->next->next);
	ck_assert_int_eq(rig_batches->next->next->session, BATCH_COMMIT);
	rig_apply(rig_batches->next->next);
	rig_back(rig_batches->next->next);
	rig_run();
	rig_expect_results(commit, REFD_COMMITTED, REFD_OK);
}

TEST(test_alone_in_its_batch)
{
	struct rig_txn t = both;

	rig_go_many(0, false, "refs/tags/", 1);
	rig_go_many(1, false, "refs/tags/", 1);
	rig_go_many(0, false, "refs/x", 1);
	rig_go(&t);
	t.repo = 1;
	rig_go(&t);
	rig_go_many(1, false, "refs/y", 1);
	rig_back_all();
	while (rig_batches != NULL) {
		ck_assert(rig_batches->session == BATCH_PREPARE ||
		    rig_find(rig_batches, "refs/heads/a") == NULL);
		rig_back_all();
	}
	ck_assert(!scheduler_is_idle(rig_scheduler));
}

TEST(test_goes_whole)
{
	struct rig_ask *ask;

	rig_go_one("refs/heads/b");
	ask = rig_go(&both);
	/* a is free, but not taken without b. */
	ck_assert_ptr_null(rig_batches->next);
	rig_back_all();
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
}

TEST(test_empty_session)
{
	struct rig_ask *ask = rig_go(&empty), *end;
	struct rig_client gone;
	struct rig_txn t = empty;

	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	ck_assert_uint_eq(ask->nr, 0);
	end = rig_commit(0, rig_last_id());
	rig_run();
	ck_assert_int_eq(end->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(end->outcome, REFD_COMMITTED);
	ck_assert(scheduler_is_idle(rig_scheduler));

	rig_go(&empty);
	end = rig_abort(0, rig_last_id());
	rig_run();
	ck_assert_int_eq(end->outcome, REFD_REJECTED);
	ck_assert(scheduler_is_idle(rig_scheduler));

	t.client = &gone;
	rig_go(&t);
	rig_forget(&gone);
	rig_run();
	ck_assert(scheduler_is_idle(rig_scheduler));
	ck_assert_ptr_null(rig_batches);
}

/* ---- sessions that are not prepared ---- */

TEST(test_decided_without_locks)
{
	struct rig_ask *ask = rig_go(&both);

	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_STALE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_STALE, NULL);
	rig_back_all();
	rig_expect_results(ask, REFD_REJECTED, REFD_STALE);
}

TEST(test_some_are_rejected)
{
	struct rig_ask *ask = rig_submit(&both), *commit;

	txn_decide(&rig_admissions->updates[0], REFD_BADNAME, "funny");
	rig_admit_all();
	/* The preparation records nothing. */
	rig_expect_batch(BATCH_PREPARE, 1);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	ck_assert_int_eq(ask->statuses[0], REFD_BADNAME);
	ck_assert_int_eq(ask->statuses[1], REFD_OK);
	ck_assert_str_eq(ask->text, "funny");
	commit = rig_commit(0, rig_last_id());
	rig_expect_batch(BATCH_COMMIT, 1);
	ck_assert_int_eq(commit->outcome, REFD_PARTIAL);
	ck_assert_int_eq(commit->statuses[0], REFD_BADNAME);
	/* Also during preparation. */
	ask = rig_go(&both);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_STALE, NULL);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	ck_assert_int_eq(ask->statuses[1], REFD_STALE);
	rig_commit(0, rig_last_id());
	rig_expect_batch(BATCH_COMMIT, 1);
}

TEST(test_locked_waits, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;
	int64_t start = rig_now;

	t.atomic = _i;
	t.ref_lock_timeout_ms = 101;
	ask = rig_go(&t);
	while (rig_now - start < 100 * RIG_MS) {
		rig_find(rig_batches, "refs/heads/b")->again = TXN_AGAIN_LOCKED;
		rig_expect_batch(BATCH_PREPARE, 2);
		ck_assert_uint_eq(ask->nr_answers, 0);
		rig_pass(rig_next - rig_now);
	}
	rig_find(rig_batches, "refs/heads/b")->again = TXN_AGAIN_LOCKED;
	rig_back_all();
	if (t.atomic) {
		ck_assert_int_eq(ask->outcome, REFD_REJECTED);
		ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
	} else {
		/* The other update goes on, as without a session. */
		rig_expect_batch(BATCH_PREPARE, 1);
		ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
		ck_assert_int_eq(ask->statuses[0], REFD_OK);
	}
	ck_assert_int_eq(ask->statuses[1], REFD_LOCKED);
}

TEST(test_admitted_again)
{
	struct rig_ask *ask = rig_go(&both);

	rig_find(rig_batches, "refs/heads/b")->again = TXN_AGAIN_REOPEN;
	rig_back_all();
	ck_assert(rig_admissions->readmitted);
	rig_admit_all();
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
}

TEST(test_refused, .times = 2)
{
	struct rig_txn t = _i == 0 ? both : empty;
	struct rig_ask *ask = rig_submit(&t);

	rig_admissions->refused = REFD_DENIED;
	rig_admissions->why = strdup("not yours");
	rig_admit_all();
	if (_i == 0)
		rig_expect_results(ask, REFD_REJECTED, REFD_DENIED);
	else
		ck_assert_int_eq(ask->refused, REFD_DENIED);
	ck_assert_str_eq(ask->text, "not yours");
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_replayed)
{
	struct rig_ask *ask = rig_submit(&both);

	rig_admissions->replayed = true;
	txn_acknowledge(&rig_admissions->updates[0]);
	txn_acknowledge(&rig_admissions->updates[1]);
	rig_admit_all();
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
	ck_assert_ptr_null(rig_batches);
}

/* A different verb under the id is different content, before and after the
 * decision. */
TEST(test_another_verb)
{
	struct rig_txn t = both;
	struct rig_ask *ask = rig_submit(&t);

	t.id = rig_last_id();
	t.session = false;
	ck_assert_int_eq(rig_submit(&t)->refused, REFD_BADREQUEST);
	rig_admit_all();
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_STALE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_STALE, NULL);
	rig_back_all();
	rig_expect_results(ask, REFD_REJECTED, REFD_STALE);
	ck_assert_int_eq(rig_submit(&t)->refused, REFD_BADREQUEST);
	ck_assert_ptr_null(rig_admissions);
}
