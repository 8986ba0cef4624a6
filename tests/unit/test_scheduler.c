/*
 * Proves the answers of the scheduler: one per ref, by id and uid, to resends,
 * look-ups and cancels. (Order: test_scheduler_order; deadlines:
 * test_scheduler_time; locks: test_scheduler_locks; sessions:
 * test_scheduler_session; errors: test_scheduler_days.)
 */
#include <stdio.h>
#include <string.h>

#include "daemon/scheduler/state.h"
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static const struct rig_txn one = { RIG_NAMES("refs/heads/a") };
static const struct rig_txn both = { .atomic = true,
	RIG_NAMES("refs/heads/a", "refs/heads/b") };

/* ---- answers ---- */

CASE(.name = "answers", .setup = rig_setup_roomy, .teardown = rig_teardown);

TEST(test_results_are_per_ref_in_input_order)
{
	struct rig_txn t = { RIG_NAMES("refs/heads/c", "refs/heads/a",
	    "refs/heads/b") };
	struct rig_ask *ask = rig_go(&t);

	ck_assert_uint_eq(ask->nr_answers, 0);
	ck_assert_uint_eq(rig_count(rig_batches), 3);
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_STALE, "was x");
	rig_back_all();
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ask->outcome, REFD_PARTIAL);
	ck_assert_uint_eq(ask->nr, 3);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_STALE);
	ck_assert_int_eq(ask->statuses[2], REFD_OK);
	ck_assert_str_eq(ask->text, "was x");
}

TEST(test_refused_is_told_per_ref)
{
	struct rig_ask *ask = rig_submit(&both);

	rig_refuse(rig_admissions, REFD_NOREPO, "not below a root");
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	ck_assert_uint_eq(ask->nr, 2);
	ck_assert_int_eq(ask->statuses[0], REFD_NOREPO);
	ck_assert_int_eq(ask->statuses[1], REFD_NOREPO);
	ck_assert_str_eq(ask->text, "not below a root");
	ck_assert(scheduler_is_idle(rig_scheduler));
	/* Nothing was done under the id, so nothing is kept. */
	ask = rig_submit(&both);
	rig_refuse(rig_admissions, REFD_DENIED, "not yours");
	ck_assert_int_eq(ask->statuses[1], REFD_DENIED);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

TEST(test_rejected_at_admission, .times = 2)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.atomic = _i == 1;
	ask = rig_submit(&t);
	txn_decide(&rig_admissions->updates[0], REFD_BADNAME, "funny");
	rig_admit_all();
	if (t.atomic) {
		ck_assert_ptr_null(rig_batches);
		ck_assert_int_eq(ask->outcome, REFD_REJECTED);
		ck_assert_int_eq(ask->statuses[1], REFD_ABORTED);
	} else {
		/* The rejection goes along to be recorded. */
		ck_assert_uint_eq(rig_count(rig_batches), 2);
		rig_back_all();
		ck_assert_int_eq(ask->outcome, REFD_PARTIAL);
		ck_assert_int_eq(ask->statuses[1], REFD_OK);
		ck_assert(scheduler_is_idle(rig_scheduler));
	}
	ck_assert_int_eq(ask->statuses[0], REFD_BADNAME);
}

TEST(test_replayed_is_not_executed)
{
	struct rig_ask *ask = rig_submit(&both);

	rig_admissions->replayed = true;
	txn_acknowledge(&rig_admissions->updates[0]);
	txn_acknowledge(&rig_admissions->updates[1]);
	rig_admit_all();
	ck_assert_ptr_null(rig_batches);
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	ck_assert(scheduler_is_idle(rig_scheduler));
	/* If the journal knows only a part, the rest is not done now. */
	ask = rig_submit(&both);
	rig_admissions->replayed = true;
	txn_acknowledge(&rig_admissions->updates[0]);
	rig_admit_all();
	ck_assert_ptr_null(rig_batches);
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_UNKNOWN);
}

TEST(test_the_reason_of_io_is_told)
{
	rig_go(&both);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_IO, "no disk");
	rig_back_all();
	ck_assert_str_eq(rig_io, "1 refs/heads/b: no disk");
	rig_submit(&both);
	rig_refuse(rig_admissions, REFD_IO, "can't read config");
	ck_assert_str_eq(rig_io, "2 refs/heads/a: can't read config");
	rig_submit(&one);
	rig_admissions->replayed = true;
	txn_decide(&rig_admissions->updates[0], REFD_IO, "as before");
	rig_admit_all();
	ck_assert_str_eq(rig_io, "1 refs/heads/a: as before");
	rig_submit(&one);
	rig_refuse(rig_admissions, REFD_DENIED, "not yours");
	ck_assert_str_eq(rig_io, "1 refs/heads/a: as before");
}

/* The same for refd status, which tells the latest failure of each repository.
 * A user with any number of broken repositories hides none of another user. */
TEST(test_failed_repositories_are_kept)
{
	const struct measure_failed *rows =
	    scheduler_measure(rig_scheduler)->failed;
	struct measure *m = scheduler_measure(rig_scheduler);
	char repo[32];
	int i;

	rig_go(&both);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_IO, "no disk");
	rig_back_all();
	ck_assert_int_gt(rows[0].at_ns, 0);
	ck_assert_str_eq(rows[0].ref, "refs/heads/b");
	ck_assert_str_eq(rows[0].why, "no disk");
	ck_assert_int_eq(rows[1].at_ns, 0);
	measure_failed(m, rows[0].repo, "refs/heads/c", NULL, 1000, rig_now);
	ck_assert_str_eq(rows[0].ref, "refs/heads/c");
	ck_assert_str_eq(rows[0].why, "");
	ck_assert_int_eq(rows[1].at_ns, 0);
	for (i = 0; i < 1000; i++) {
		snprintf(repo, sizeof(repo), "/%d", i);
		measure_failed(m, repo, "HEAD", "broken", 1001, rig_now + i);
	}
	ck_assert_str_eq(rows[0].repo, "/999");
	ck_assert_str_eq(rows[MEASURE_FAILED - 2].repo, "/993");
	ck_assert_str_eq(rows[MEASURE_FAILED - 1].ref, "refs/heads/c");
	measure_failed(m, "/new", "HEAD", "broken", 1002, rig_now + i);
	ck_assert_str_eq(rows[0].repo, "/new");
	ck_assert_str_eq(rows[MEASURE_FAILED - 1].repo, "/993");
}

TEST(test_atomic_failure_aborts_siblings)
{
	struct rig_ask *ask = rig_go(&both);

	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_STALE, NULL);
	rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_LATER;
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
	ck_assert_int_eq(ask->statuses[1], REFD_STALE);
}

TEST(test_empty_transaction_is_committed)
{
	struct rig_txn t = { 0 };
	struct rig_ask *ask = rig_go(&t);

	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
	ck_assert_ptr_null(rig_batches);
}

TEST(test_empty_transaction_that_is_refused)
{
	struct rig_txn t = { 0 };
	struct rig_ask *ask = rig_submit(&t);

	/* No result could carry this answer. */
	rig_refuse(rig_admissions, REFD_NOREPO, "not below a root");
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_NOREPO);
	ck_assert_str_eq(ask->text, "not below a root");
	/* A cancelled transaction was not committed. */
	ask = rig_submit(&t);
	rig_cancel(0, rig_last_id());
	rig_admit_all();
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	scheduler_drain(rig_scheduler);
	ask = rig_submit(&t);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_BUSY);
}

TEST(test_a_name_twice_is_a_duplicate, .times = 2)
{
	struct rig_txn t = { .atomic = _i,
		RIG_NAMES("refs/heads/a", "refs/heads/a") };
	struct rig_ask *ask = rig_go(&t);

	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], _i ? REFD_ABORTED : REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_DUPLICATE);
	ck_assert_str_eq(ask->text,
	    "\1"
	    "duplicate"
	    "\1"
	    "refs/heads/a");
	/* The name is free again. */
	ask = rig_go(&one);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

/* ---- ids ---- */

TEST(test_resend_joins)
{
	struct rig_txn t = both;
	struct rig_ask *first, *again, *third;

	/* During admission, in a batch, and as an unrecorded outcome. */
	first = rig_submit(&t);
	t.id = rig_last_id();
	again = rig_submit(&t);
	ck_assert_uint_eq(again->nr_answers, 0);
	rig_admit_all();
	third = rig_submit(&t);
	ck_assert_uint_eq(rig_nr_batches, 1);
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_STALE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_ABORTED, NULL);
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(first->outcome, REFD_REJECTED);
	ck_assert_int_eq(again->outcome, REFD_REJECTED);
	ck_assert_int_eq(third->statuses[0], REFD_STALE);
	again = rig_submit(&t);
	ck_assert_uint_eq(again->nr_answers, 1);
	ck_assert_int_eq(again->statuses[1], REFD_ABORTED);
	ck_assert_ptr_null(rig_admissions);
}

TEST(test_other_content_is_refused)
{
	struct rig_txn t = one;
	struct rig_ask *ask;

	rig_submit(&t);
	t.id = rig_last_id();
	t.fill = 'x';
	ask = rig_submit(&t);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_BADREQUEST);
	ck_assert_str_eq(ask->text,
	    "transaction id was used for other content");
	/* The same bytes under another user are a different id. */
	t.uid = 7;
	ask = rig_go(&t);
	rig_back_all();
	rig_pass(100 * RIG_MS);
	rig_back_all();
	ck_assert_int_eq(ask->outcome, REFD_COMMITTED);
}

TEST(test_expired_is_never_executed)
{
	struct rig_txn t = both;
	struct rig_ask *ask;

	t.born_ms = -7 * 86400 * 1000LL - 1;
	ask = rig_submit(&t);
	ck_assert_ptr_null(rig_admissions);
	ck_assert_int_eq(ask->outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert_int_eq(ask->statuses[1], REFD_UNKNOWN);
	t.born_ms += 1;
	rig_submit(&t);
	ck_assert_ptr_nonnull(rig_admissions);
	/* The clock also runs between two runs. */
	rig_now += 1 * RIG_MS;
	ask = rig_submit(&t);
	ck_assert_int_eq(ask->outcome, REFD_OUTCOME_UNKNOWN);
}

/* The node has joined its group now, in the rig's time. */
static void setup_joined(void)
{
	const struct rig_config cfg = { .committers = 1,
		.batch_refs = 10,
		.max_bytes = 1000000,
		.joined_ms = 1700000000000 };

	rig_setup(&cfg);
	ck_assert_int_eq(cfg.joined_ms, rig_wall_ms);
}

static struct suite_case joined = { .name = "joined",
	.setup = setup_joined,
	.teardown = rig_teardown };

/* Only other nodes have the outcomes. */
TEST(test_an_id_from_before_the_join_is_never_executed, .in = &joined)
{
	struct rig_txn t = one;

	t.born_ms = -1;
	ck_assert_int_eq(rig_submit(&t)->outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert_ptr_null(rig_admissions);
	t.born_ms = 0;
	rig_submit(&t);
	ck_assert_ptr_nonnull(rig_admissions);
}

static enum refd_answer_kind queried(int64_t born_ms, bool found)
{
	struct rig_ask *ask = rig_query(3, 99, born_ms);

	rig_found(rig_lookups, found);
	return ask->kind;
}

/* The clock of another machine may be ahead, as for a new transaction. */
TEST(test_an_id_from_before_the_join_is_not_never_seen, .in = &joined)
{
	ck_assert_int_eq(queried(-1, false), REFD_ANSWER_EXPIRED);
	ck_assert_int_eq(queried(3600 * 1000LL - 1, false),
	    REFD_ANSWER_EXPIRED);
	ck_assert_int_eq(queried(3600 * 1000LL, false), REFD_ANSWER_NEVER_SEEN);
	ck_assert_int_eq(queried(-1, true), REFD_ANSWER_RESULTS);
}

/* Admission looks for the id in the journal, and refuses a new one. */
TEST(test_an_id_of_the_future_is_marked)
{
	struct rig_txn t = one;

	t.born_ms = 3600 * 1000LL;
	rig_submit(&t);
	ck_assert(!rig_admissions->is_from_future);
	rig_go(&t);
	t.born_ms += 1;
	rig_submit(&t);
	ck_assert(rig_admissions->is_from_future);
}

TEST(test_queries)
{
	struct rig_txn t = both;
	struct rig_ask *ask;
	uint64_t id;

	t.uid = 5;
	rig_submit(&t);
	id = rig_last_id();
	ck_assert_int_eq(rig_query(5, id, 0)->kind, REFD_ANSWER_PENDING);
	ck_assert_int_eq(rig_query(0, id, 0)->kind, REFD_ANSWER_PENDING);
	ask = rig_query(6, id, 0);
	ck_assert_uint_eq(ask->nr_answers, 0);
	ck_assert_uint_ne(rig_lookups->peer.uid, 0);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_NEVER_SEEN);
	rig_admit_all();
	ck_assert_int_eq(rig_query(5, id, 0)->kind, REFD_ANSWER_PENDING);
	txn_decide(rig_find(rig_batches, "refs/heads/a"), REFD_STALE, NULL);
	txn_decide(rig_find(rig_batches, "refs/heads/b"), REFD_ABORTED, NULL);
	rig_back(rig_batches);
	rig_run();
	/* Answered, but not yet recorded. */
	ask = rig_query(5, id, 0);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ask->statuses[0], REFD_STALE);
}

TEST(test_queries_of_the_store)
{
	struct rig_ask *ask = rig_query(0, 99, 0);

	ck_assert_uint_eq(rig_lookups->peer.uid, 0);
	rig_found(rig_lookups, true);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ask = rig_query(3, 99, -8 * 86400 * 1000LL);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_EXPIRED);
	ask = rig_query(3, 99, 0);
	question_refuse(rig_lookups, REFD_IO, "the journal could not be read");
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_IO);
}

TEST(test_look_up_races_with_submit)
{
	struct rig_ask *ask = rig_query(0, 1, 0);

	/* Not in the journal, but now in the scheduler. */
	rig_submit(&one);
	ck_assert_uint_eq(rig_last_id(), 1);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PENDING);
}

/* A row that is not durable yet may be found. */
TEST(test_look_up_finds_a_row_in_flight, .times = 2)
{
	struct rig_ask *ask = rig_query(0, 1, 0);

	rig_submit(&one);
	ck_assert_uint_eq(rig_last_id(), 1);
	if (_i == 0) {
		rig_found(rig_lookups, true);
		ck_assert_int_eq(ask->kind, REFD_ANSWER_PENDING);
		return;
	}
	/* The transaction is gone before the answer is there. */
	rig_admit_all();
	rig_back_all();
	ck_assert_ptr_null(rig_scheduler->table.head);
	rig_found(rig_lookups, true);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_found(rig_lookups, true);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
}

/* A question waits for an earlier one of its user. When its turn comes, the
 * transaction is in flight, and the journal may have only some of its rows. */
TEST(test_a_question_waits_for_its_look_up)
{
	struct rig_ask *first = rig_query(0, 99, 0), *second, *other;

	second = rig_query(0, 1, 0);
	other = rig_query(7, 98, 0);
	rig_submit(&one);
	ck_assert_uint_eq(rig_last_id(), 1);
	ck_assert_ptr_nonnull(rig_lookups->next);
	rig_found(rig_lookups->next, false);
	ck_assert_uint_eq(other->nr_answers, 1);
	ck_assert_uint_eq(first->nr_answers + second->nr_answers, 0);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(first->kind, REFD_ANSWER_NEVER_SEEN);
	ck_assert_int_eq(second->kind, REFD_ANSWER_PENDING);
	ck_assert_ptr_null(rig_lookups);
}

static unsigned nr_more;

static void asks_more(struct rig_ask *ask)
{
	(void)ask;
	if (nr_more > 0) {
		nr_more--;
		rig_query(0, 200 + nr_more, 0);
	}
}

/* The table has the answers to the questions that wait, and each callback asks
 * once more. */
TEST(test_callbacks_ask_more)
{
	size_t i;

	rig_query(0, 99, 0);
	for (i = 0; i < 3; i++)
		rig_query(0, 1, 0);
	rig_submit(&one);
	nr_more = 5;
	rig_on_answer = asks_more;
	while (rig_lookups != NULL)
		rig_found(rig_lookups, false);
	rig_on_answer = NULL;
	ck_assert_uint_eq(nr_more, 0);
}

/* One client has gone away. The other asks until there is no room. */
TEST(test_very_many_questions)
{
	static struct rig_client gone, stays;
	struct rig_ask *ask;
	size_t nr = 0;

	do {
		nr++;
		ask = rig_query_of(nr % 2 == 0 ? &gone : &stays, 5, 1000 + nr);
	} while (ask->nr_answers == 0);
	ck_assert_int_eq(ask->refused, REFD_BUSY);
	ck_assert_uint_gt(nr, 500);
	ck_assert_uint_lt(nr, 10000);
	/* Others find room. */
	ask = rig_query(6, 99, 0);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_forget(&gone);
	scheduler_drain(rig_scheduler);
	while (rig_lookups != NULL)
		rig_found(rig_lookups, false);
	ck_assert(scheduler_is_idle(rig_scheduler));
	ck_assert_int_eq(ask->kind, REFD_ANSWER_NEVER_SEEN);
}

/* The hook of a push was killed, and git said "rejected". */
TEST(test_the_last_client_is_gone)
{
	static struct rig_client gone;
	const struct rig_txn mine = { RIG_NAMES("refs/x"), .client = &gone },
			     gate = { RIG_NAMES("refs/g"), .client = &gone,
				     .gate = REFD_GATE_COMMITTED };
	struct rig_ask *ask;
	uint64_t id;

	/* Waits behind another transaction: never begun. */
	rig_go(&(struct rig_txn){ RIG_NAMES("refs/x") });
	rig_go(&mine);
	id = rig_last_id();
	rig_forget(&gone);
	rig_back_all();
	ck_assert_ptr_null(rig_batches);
	/* Nothing was done, and the id has no outcome: sent again, it counts
	 * as new. */
	ck_assert(scheduler_is_idle(rig_scheduler));
	ask = rig_go(&(struct rig_txn){ RIG_NAMES("refs/x"), .id = id });
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	/* During admission. */
	rig_submit(&mine);
	rig_forget(&gone);
	rig_admit_all();
	ck_assert_ptr_null(rig_batches);
	/* In a batch: an update that comes back undecided ends. */
	rig_go(&(
	    struct rig_txn){ RIG_NAMES("refs/x", "refs/y"), .client = &gone });
	rig_forget(&gone);
	rig_find(rig_batches, "refs/y")->again = TXN_AGAIN_LATER;
	rig_back_all();
	ck_assert_ptr_null(rig_batches);
	/* The same id waits on a second connection. */
	rig_submit(&mine);
	id = rig_last_id();
	rig_submit(&(struct rig_txn){ RIG_NAMES("refs/x"), .id = id });
	rig_forget(&gone);
	rig_admit_all();
	ck_assert_ptr_nonnull(rig_batches);
	rig_back_all();
	/* Git makes the change of a gate. */
	rig_submit(&gate);
	rig_forget(&gone);
	rig_admit_all();
	ck_assert_ptr_nonnull(rig_batches);
	rig_back_all();
}

/* ---- cancel ---- */

TEST(test_cancel_of_one_that_waits)
{
	struct rig_ask *ask, *cancel;

	rig_go(&one);
	ask = rig_go(&both);
	cancel = rig_cancel(0, rig_last_id());
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(cancel->statuses[0], REFD_ABORTED);
	rig_run();
	ck_assert_int_eq(ask->statuses[1], REFD_ABORTED);
	ck_assert_str_eq(ask->text, "cancelled");
}

TEST(test_cancel_of_one_in_the_store)
{
	struct rig_ask *ask = rig_submit(&one), *cancel;

	/* During admission: the transaction never enters a batch. */
	cancel = rig_cancel(0, rig_last_id());
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_PENDING);
	rig_admit_all();
	ck_assert_int_eq(ask->statuses[0], REFD_ABORTED);
	/* In a batch: updates that come back undecided are cancelled. */
	ask = rig_go(&(struct rig_txn){ RIG_NAMES("refs/x", "refs/y") });
	cancel = rig_cancel(0, rig_last_id());
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_PENDING);
	rig_find(rig_batches, "refs/y")->again = TXN_AGAIN_LATER;
	rig_back_all();
	ck_assert_int_eq(ask->statuses[0], REFD_OK);
	ck_assert_int_eq(ask->statuses[1], REFD_ABORTED);
	/* An unknown id. */
	cancel = rig_cancel(0, 4711);
	rig_found(rig_lookups, false);
	ck_assert_int_eq(cancel->kind, REFD_ANSWER_NEVER_SEEN);
}
