/*
 * Proves how a session ends: who may commit or abort it, and when; what happens
 * after the client is gone or the time is over; resends, cancels, callbacks and
 * stops. (Preparation: test_scheduler_session.)
 */
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn one = { RIG_NAMES("refs/heads/a") };
static const struct rig_txn both = { .session = true,
	RIG_NAMES("refs/heads/a", "refs/heads/b") };
static const struct rig_txn empty = { .session = true };

/* ---- who may end a session, and when ---- */

CASE(.setup = rig_setup_roomy, .teardown = rig_teardown);

TEST(test_ended_by_whom, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;
	uint64_t id;

	t.uid = 5;
	rig_prepare(&t);
	id = rig_last_id();
	/* The same bytes under another user are a different id. */
	ask = rig_commit(6, id);
	ck_assert_uint_ne(rig_lookups->peer.uid, 0);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_NEVER_SEEN);
	ask = rig_commit(_i == 0 ? 5 : 0, id);
	rig_expect_batch(BATCH_COMMIT, 2);
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
}

TEST(test_ended_too_early)
{
	struct rig_ask *ask, *end;
	int i;

	/* During admission, while waiting, during preparation. */
	rig_go_one("refs/heads/a");
	ask = rig_submit(&both);
	for (i = 0; i < 3; i++) {
		end = (i == 1 ? rig_abort : rig_commit)(0, rig_last_id());
		ck_assert_int_eq(end->kind, REFD_ANSWER_REFUSED);
		ck_assert_int_eq(end->refused, REFD_BADREQUEST);
		ck_assert_str_eq(end->text, "it is not a prepared session");
		if (i == 0)
			rig_admit_all();
		else if (i == 1)
			rig_back_all();
	}
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	/* A transaction without a session can't be ended. */
	rig_go_one("refs/x");
	end = rig_commit(0, rig_last_id());
	ck_assert_int_eq(end->refused, REFD_BADREQUEST);
}

TEST(test_ended_unknown)
{
	struct rig_ask *end = rig_commit(0, 4711);

	rig_found(rig_lookups, false);
	ck_assert_int_eq(end->kind, REFD_ANSWER_NEVER_SEEN);
	end = rig_abort(0, 4711);
	rig_found(rig_lookups, true);
	ck_assert_int_eq(end->kind, REFD_ANSWER_RESULTS);
}

TEST(test_ended_twice, .times = 2)
{
	struct rig_ask *ends[3];
	size_t i;

	/* The first end counts, and all clients get its answer. */
	rig_prepare(&both);
	ends[0] = (_i == 0 ? rig_commit : rig_abort)(0, rig_last_id());
	ends[1] = rig_commit(0, rig_last_id());
	ends[2] = rig_abort(0, rig_last_id());
	ck_assert_int_eq(rig_query(0, rig_last_id(), 0)->kind,
	    REFD_ANSWER_PENDING);
	ck_assert_int_eq(rig_cancel(0, rig_last_id())->kind,
	    REFD_ANSWER_PENDING);
	rig_expect_batch(_i == 0 ? BATCH_COMMIT : BATCH_ABORT, 2);
	if (_i == 1)
		ck_assert_str_eq(ends[0]->text, "its client aborted it");
	for (i = 0; i < 3; i++)
		rig_expect_results(ends[i],
		    _i == 0 ? REFD_COMMITTED : REFD_REJECTED,
		    _i == 0 ? REFD_OK : REFD_ABORTED);
}

TEST(test_query_while_prepared)
{
	rig_prepare(&both);
	ck_assert_int_eq(rig_query(0, rig_last_id(), 0)->kind,
	    REFD_ANSWER_PENDING);
}

TEST(test_commit_fails)
{
	struct rig_ask *commit;

	rig_prepare(&both);
	commit = rig_commit(0, rig_last_id());
	rig_batches->slices[0].txn->prepared = NULL;
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_NOSPACE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_NOSPACE, NULL);
	rig_back(rig_batches);
	rig_run();
	rig_expect_results(commit, REFD_REJECTED, REFD_NOSPACE);
	/* Tried once more, then given up. */
	scheduler_drain(rig_scheduler);
	rig_run();
	ck_assert_uint_eq(rig_count(rig_batches), 2);
	rig_back(rig_batches);
	rig_run();
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_resend)
{
	struct rig_client first, second;
	struct rig_txn t = both;
	struct rig_ask *ask, *again;

	t.client = &first;
	ask = rig_submit(&t);
	t.id = rig_last_id();
	t.client = &second;
	again = rig_submit(&t);
	rig_admit_all();
	rig_back_all();
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	ck_assert_int_eq(again->kind, REFD_ANSWER_PREPARED);
	/* The session now belongs to the second client. */
	rig_forget(&first);
	ck_assert_ptr_null(rig_batches);
	t.client = &first;
	again = rig_submit(&t);
	rig_run();
	ck_assert_uint_eq(again->nr_answers, 1);
	ck_assert_int_eq(again->kind, REFD_ANSWER_PREPARED);
	/* The same updates without a session are a different request. */
	t.session = false;
	again = rig_submit(&t);
	ck_assert_int_eq(again->refused, REFD_BADREQUEST);
	/* A resend while the session ends gets the results. */
	rig_commit(0, t.id);
	t.session = true;
	again = rig_submit(&t);
	rig_expect_batch(BATCH_COMMIT, 2);
	rig_expect_results(again, REFD_COMMITTED, REFD_OK);
}

TEST(test_cancelled)
{
	struct rig_ask *ask, *cancel;

	/* While the session waits. */
	rig_go_one("refs/heads/a");
	ask = rig_go(&both);
	rig_cancel(0, rig_last_id());
	rig_run();
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
	rig_back_all();
	/* During preparation: the abort follows as soon as the session is
	 * prepared. */
	ask = rig_go(&both);
	cancel = rig_cancel(0, rig_last_id());
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_PENDING);
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_expect_batch(BATCH_ABORT, 2);
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
	ck_assert_str_eq(ask->text, "cancelled");
	/* After preparation. */
	rig_prepare(&both);
	cancel = rig_cancel(0, rig_last_id());
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_PENDING);
	rig_expect_batch(BATCH_ABORT, 2);
}

/* ---- given up ---- */

TEST(test_client_is_gone)
{
	struct rig_client gone, stays;
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.client = &gone;
	rig_prepare(&t);
	t.client = &stays;
	t.repo = 1;
	rig_prepare(&t);
	rig_forget(&gone);
	rig_expect_batch(BATCH_ABORT, 2);
	ck_assert_ptr_null(rig_batches);
	ask = rig_commit(0, rig_last_id() - 1);
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
	ck_assert_str_eq(ask->text, "its client is gone");
	ask = rig_commit(0, rig_last_id());
	rig_back_all();
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
}

TEST(test_client_goes_before_it_is_prepared)
{
	struct rig_client gone;
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.client = &gone;
	/* During admission. */
	rig_submit(&t);
	rig_forget(&gone);
	rig_admit_all();
	ck_assert_ptr_null(rig_batches);
	/* While the session waits. */
	rig_go_one("refs/heads/a");
	rig_go(&t);
	rig_forget(&gone);
	rig_back_all();
	ck_assert_ptr_null(rig_batches);
	/* During preparation: a prepared session is aborted ... */
	rig_go(&t);
	rig_forget(&gone);
	rig_expect_batch(BATCH_PREPARE, 2);
	rig_expect_batch(BATCH_ABORT, 2);
	/* ... and a session that was not prepared is not tried again. */
	rig_go(&t);
	rig_forget(&gone);
	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_LOCKED;
	rig_back_all();
	ck_assert_ptr_null(rig_batches);
	ask = rig_commit(0, rig_last_id());
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
}

TEST(test_client_goes_while_it_is_committed)
{
	struct rig_client gone;
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.client = &gone;
	rig_prepare(&t);
	rig_commit(0, rig_last_id());
	rig_forget(&gone);
	ask = rig_commit(0, rig_last_id());
	rig_expect_batch(BATCH_COMMIT, 2);
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
}

TEST(test_prepared_for_too_long)
{
	struct rig_ask *ask;
	struct rig_txn t = both;

	/* The transaction's own deadline has no effect here. */
	t.deadline_ms = 50;
	rig_prepare(&t);
	ck_assert_int_eq(rig_next, rig_now + 20000 * RIG_MS);
	rig_pass(20000 * RIG_MS - 1);
	ck_assert_ptr_null(rig_batches);
	rig_pass(1);
	/* The commit comes too late. */
	ask = rig_commit(0, rig_last_id());
	rig_expect_batch(BATCH_ABORT, 2);
	rig_expect_results(ask, REFD_REJECTED, REFD_DEADLINE);
	ck_assert_str_eq(ask->text, "it was prepared for too long");
	rig_expect_results(rig_commit(0, rig_last_id()), REFD_REJECTED,
	    REFD_DEADLINE);
}

TEST(test_empty_for_too_long)
{
	struct rig_ask *ask;

	rig_go(&empty);
	rig_pass(20000 * RIG_MS);
	ask = rig_commit(0, rig_last_id());
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_NEVER_SEEN);
}

TEST(test_drain)
{
	struct rig_ask *ask, *waits;

	rig_prepare(&both);
	scheduler_drain(rig_scheduler);
	rig_run();
	ck_assert(!scheduler_is_idle(rig_scheduler));
	waits = rig_submit(&both);
	ck_assert_int_eq(waits->statuses[0], REFD_BUSY);
	ask = rig_commit(0, rig_last_id() - 1);
	rig_expect_batch(BATCH_COMMIT, 2);
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_hurry)
{
	struct rig_txn t = both;
	struct rig_ask *asks[4];

	rig_prepare(&t);
	rig_go(&empty);
	t.repo = 1;
	rig_prepare(&t);
	asks[3] = rig_commit(0, rig_last_id());
	t.repo = 2;
	asks[0] = rig_go(&t);
	t.repo = 3;
	asks[1] = rig_submit(&t);
	asks[2] = rig_submit(&empty);
	scheduler_hurry(rig_scheduler);
	rig_admit_all();
	while (rig_batches != NULL)
		rig_back_all();
	rig_expect_results(asks[0], REFD_REJECTED, REFD_ABORTED);
	ck_assert_str_eq(asks[0]->text, "the daemon is stopping");
	rig_expect_results(asks[1], REFD_REJECTED, REFD_ABORTED);
	ck_assert_int_eq(asks[2]->outcome, REFD_REJECTED);
	/* The commit was sent in time. */
	rig_expect_results(asks[3], REFD_COMMITTED, REFD_OK);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* ---- callbacks, numbers ---- */

static struct rig_client shy;

/* The first of three waiters disconnects in its callback. */
static void goes_when_told(struct rig_ask *ask)
{
	if (ask->kind == REFD_ANSWER_PREPARED && ask->client == &shy)
		rig_forget(&shy);
}

static void commits_when_told(struct rig_ask *ask)
{
	if (ask->kind == REFD_ANSWER_PREPARED && ask->client == &shy)
		rig_commit(0, rig_last_id());
}

TEST(test_callbacks_may_end_it, .times = 2)
{
	struct rig_client other;
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.client = &shy;
	rig_submit(&t);
	t.id = rig_last_id();
	t.client = &other;
	ask = rig_submit(&t);
	t.client = &shy;
	rig_submit(&t);
	rig_on_answer = _i == 0 ? commits_when_told : goes_when_told;
	rig_admit_all();
	rig_expect_batch(BATCH_PREPARE, 2);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_expect_batch(_i == 0 ? BATCH_COMMIT : BATCH_ABORT, 2);
	rig_expect_results(ask, _i == 0 ? REFD_COMMITTED : REFD_REJECTED,
	    _i == 0 ? REFD_OK : REFD_ABORTED);
}

TEST(test_stats)
{
	struct scheduler_stats stats;

	rig_prepare(&both);
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.prepared, 1);
	ck_assert_uint_eq(stats.waiting + stats.in_store, 0);
	rig_commit(0, rig_last_id());
	rig_back_all();
	rig_prepare(&both);
	rig_abort(0, rig_last_id());
	rig_back_all();
	rig_go(&empty);
	rig_pass(20000 * RIG_MS);
	rig_go(&one);
	rig_back_all();
	scheduler_stats(rig_scheduler, &stats);
	ck_assert_uint_eq(stats.prepared, 0);
	ck_assert_uint_eq(stats.sessions_prepared, 3);
	ck_assert_uint_eq(stats.sessions_committed, 1);
	ck_assert_uint_eq(stats.sessions_aborted, 2);
	ck_assert_uint_eq(stats.transactions, 4);
	ck_assert_uint_eq(stats.committed, 2);
	ck_assert_uint_eq(stats.rejected, 2);
}
