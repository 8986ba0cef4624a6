/*
 * Proves the way of the gate's requests through the scheduler. A look holds no
 * name and waits for none. A committed transaction of git gets the values that
 * the look had found, and goes the way of any transaction, also at the second
 * attempt of git. The inner transaction of a deletion gets an answer at once.
 * Notes have a limit, and belong to a uid; the largest user loses notes first,
 * and a request looks at few. Nothing of a gate is recorded later.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/scheduler/state.h"
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

#define NAMES RIG_NAMES("refs/heads/a", "refs/heads/b")

static const struct rig_txn prepared = { .gate = REFD_GATE_PREPARED,
	.gate_key = 'k',
	.deletes = true,
	NAMES };
static const struct rig_txn committed = { .gate = REFD_GATE_COMMITTED,
	.gate_key = 'k',
	.deletes = true,
	NAMES };
static const struct rig_txn aborted = { .gate = REFD_GATE_ABORTED,
	.gate_key = 'k',
	.deletes = true,
	NAMES };

static void look(const struct rig_txn *t)
{
	struct rig_ask *ask = rig_go(t);

	rig_expect_batch(BATCH_LOOK, 2);
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PONG);
}

/* Was the transaction in admission told a value? */
static bool has_value(void)
{
	const struct txn *txn = rig_admissions;

	return txn->before != NULL && txn->before[1].is_known &&
	    txn->before[1].oid.bytes[0] == 'L';
}

CASE(.setup = rig_setup_roomy, .teardown = rig_teardown);

TEST(git_changes_what_was_looked_at)
{
	struct rig_ask *ask;

	look(&prepared);
	ask = rig_submit(&committed);
	ck_assert(has_value());
	rig_admit_all();
	rig_expect_batch(BATCH_WHOLE, 2);
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* Git has the locks for which the update waits. */
TEST(a_look_waits_for_no_name)
{
	rig_go_one("refs/heads/a");
	ck_assert_ptr_nonnull(rig_batches);
	rig_give_back("refs/heads/a", TXN_AGAIN_LOCKED);
	rig_back(rig_batches);
	rig_run();
	look(&prepared);
	rig_pass(1000 * RIG_MS);
	rig_back_all();
}

TEST(the_inner_transaction_is_answered_at_once)
{
	struct rig_ask *ask;

	look(&prepared);
	look(&prepared);
	ask = rig_submit(&committed);
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
	ask = rig_submit(&committed);
	ck_assert_uint_eq(ask->nr_answers, 0);
	ck_assert(has_value());
	rig_admit_all();
	rig_back_all();
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
}

/* The client lost the connection, and sends the same request once more. */
TEST(a_repeated_request_is_not_an_inner_transaction)
{
	struct rig_txn again = prepared;
	struct rig_ask *ask;

	again.id = 900;
	look(&again);
	look(&again);
	ask = rig_submit(&committed);
	ck_assert_uint_eq(ask->nr_answers, 0);
	rig_admit_all();
	rig_back_all();
	rig_expect_results(ask, REFD_COMMITTED, REFD_OK);
}

/* The inner transaction has only the deletions. */
TEST(an_inner_transaction_with_fewer_lines)
{
	struct rig_txn inner = prepared, part = prepared;
	struct rig_ask *ask;

	inner.gate_key = 'i';
	part.gate_key = 'p'; /* a second part of the whole */
	look(&inner);
	look(&prepared);
	look(&part);
	inner.gate = part.gate = REFD_GATE_COMMITTED;
	ask = rig_submit(&inner);
	rig_expect_results(ask, REFD_REJECTED, REFD_ABORTED);
	rig_submit(&committed);
	ck_assert(has_value());
	rig_admit_all();
	rig_back_all();
	rig_submit(&part);
	ck_assert(has_value());
	rig_admit_all();
	rig_back_all();
}

/* Git 2.39 aborts once more than it prepares. */
TEST(an_aborted_inner_transaction, .times = 3)
{
	struct rig_ask *ask;
	int i;

	look(&prepared);
	for (i = 0; i < _i; i++) {
		ask = rig_submit(&aborted);
		ck_assert_int_eq(ask->kind, REFD_ANSWER_PONG);
	}
	look(&prepared);
	ask = rig_submit(&committed);
	ck_assert_uint_eq(ask->nr_answers, _i == 0);
	rig_admit_all();
	rig_back_all();
}

/* The client tells only of aborted deletions. */
TEST(git_tries_an_aborted_update_again)
{
	struct rig_txn update = prepared;

	update.deletes = false;
	look(&update);
	look(&update);
	update.gate = REFD_GATE_COMMITTED;
	ck_assert_uint_eq(rig_submit(&update)->nr_answers, 0);
	ck_assert(has_value());
	rig_admit_all();
	rig_back_all();
}

TEST(notes_belong_to_a_user_and_a_key)
{
	struct rig_txn other = committed;

	look(&prepared);
	other.uid = 1;
	rig_submit(&other);
	ck_assert(!has_value());
	rig_admit_all();
	rig_back_all();
	other = committed;
	other.gate_key = 'l';
	rig_submit(&other);
	ck_assert(!has_value());
	rig_admit_all();
	rig_back_all();
	other = committed;
	other.nr = 1;
	rig_submit(&other);
	ck_assert(!has_value());
	rig_admit_all();
	rig_back_all();
}

TEST(what_was_recorded_is_the_value_before)
{
	look(&prepared);
	rig_submit(&committed);
	rig_admit_all();
	rig_apply(rig_batches);
	rig_find(rig_batches, "refs/heads/b")->found.bytes[0] = 'N';
	rig_find(rig_batches, "refs/heads/b")->has_found = true;
	rig_back(rig_batches);
	rig_run();
	rig_submit(&committed);
	ck_assert_int_eq(rig_admissions->before[1].oid.bytes[0], 'N');
	rig_admit_all();
	rig_back_all();
}

TEST(a_refused_look)
{
	struct rig_ask *ask = rig_submit(&prepared);

	rig_refuse(rig_admissions, REFD_DENIED, "no");
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_DENIED);
	ck_assert_str_eq(ask->text, "no");
	rig_submit(&committed);
	ck_assert(!has_value());
	rig_admit_all();
	rig_back_all();
}

TEST(a_failure_is_not_recorded_later)
{
	struct rig_ask *ask = rig_go(&committed);
	struct txn_slice *slice = &rig_batches->slices[0];

	txn_decide(slice->updates[0], REFD_ABORTED, NULL);
	txn_decide(slice->updates[1], REFD_IO, NULL);
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(ask->outcome, REFD_REJECTED);
	ck_assert(scheduler_is_idle(rig_scheduler));
}

/* The oldest note goes. */
TEST(notes_have_a_limit)
{
	struct gate gate = { .bytes = 0 };
	struct txn_update *updates = calloc(100000, sizeof(*updates));
	struct txn txn = { .updates = updates, .nr_updates = 100000 };
	int i;

	for (i = 0; i < 20; i++) {
		txn.req.gate_key.bytes[1] = (uint8_t)i;
		gate_note(&gate, &txn, 1, 0);
		ck_assert_uint_le(gate.bytes, (size_t)16 << 20);
	}
	gate_fill(&gate, &txn);
	ck_assert_ptr_nonnull(txn.before);
	free(txn.before);
	txn.before = NULL;
	txn.req.gate_key.bytes[1] = 0;
	gate_fill(&gate, &txn);
	ck_assert_ptr_null(txn.before);
	gate_done(&gate);
	free(updates);
}

#define FLOOD 100000
/* The most notes that a request may look at. */
#define STEPS 200

/* Note number I of a user; each process of git has NR notes. */
static struct txn *numbered(uint32_t uid, uint32_t i, uint32_t nr)
{
	static struct txn_update update;
	static struct txn txn;

	txn = (struct txn){ .updates = &update,
		.nr_updates = 1,
		.peer = { .uid = uid } };
	i++;
	memcpy(txn.req.gate_key.bytes, &(uint32_t){ i / nr }, 4);
	memcpy(txn.req.gate_key.bytes + 8, &i, 4);
	return &txn;
}

/* Many notes of a process, or of many processes, in one repository. */
TEST(a_request_looks_at_few_notes, .times = 2)
{
	const uint32_t nr = _i == 0 ? 1 : FLOOD + 1;
	struct gate gate = { .bytes = 0 };
	struct txn *txn = numbered(1, 0, 1);
	uint64_t before = 0;
	uint32_t i;

	txn->req.gate_key.bytes[4] = 'o';
	gate_note(&gate, txn, 1, 0);
	for (i = 0; i < FLOOD; i++) {
		gate_note(&gate, numbered(2, i, nr), 2, 0);
		ck_assert_uint_le(gate.steps - before, STEPS);
		before = gate.steps;
	}
	txn = numbered(2, FLOOD - 50, nr);
	ck_assert_int_eq(gate_is_nested(&gate, txn), _i == 1);
	ck_assert_uint_le(gate.steps - before, STEPS);
	before = gate.steps;
	gate_fill(&gate, txn);
	ck_assert_ptr_nonnull(txn->before);
	free(txn->before);
	gate_recorded(&gate, txn);
	ck_assert(!gate_is_open(&gate, 3, 0, 1));
	ck_assert(gate_is_open(&gate, 2, 0, 1));
	ck_assert_uint_le(gate.steps - before, STEPS);
	gate_done(&gate);
}

/* A flood of other users costs nobody's old values. */
TEST(the_largest_user_loses_notes)
{
	struct gate gate = { .bytes = 0 };
	struct txn *txn;
	uint32_t i;

	gate_note(&gate, numbered(1000, 7, 1), 1, 0);
	for (i = 0; i < FLOOD; i++) {
		gate_note(&gate, numbered(2, i, 1), 2, 0);
		gate_note(&gate, numbered(3, i, 1), 2, 0);
	}
	ck_assert_uint_le(gate.bytes, (size_t)16 << 20);
	txn = numbered(1000, 7, 1);
	gate_fill(&gate, txn);
	ck_assert_ptr_nonnull(txn->before);
	free(txn->before);
	gate_done(&gate);
}

TEST(a_killed_git_is_open_for_a_minute)
{
	struct gate gate = { .bytes = 0 };
	struct txn txn = { .nr_updates = 0 };

	gate_note(&gate, &txn, 1, 5);
	ck_assert(gate_is_open(&gate, 1, 5, 6));
	ck_assert(!gate_is_open(&gate, 2, 5, 6));
	ck_assert(!gate_is_open(&gate, 1, 4, 6));
	ck_assert(gate_is_open(&gate, 1, 5, 4 + GATE_OPEN_NS));
	ck_assert(!gate_is_open(&gate, 1, 5, 5 + GATE_OPEN_NS));
	gate_done(&gate);
}
