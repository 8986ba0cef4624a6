/*
 * Proves that a turn of the loop has little work, also for an atomic
 * transaction of twenty thousand refs: the store puts the updates into the
 * batch, the batch comes back in parts, and the names wake in parts. Meanwhile
 * small transactions pass. Nor has a turn much work if the name above waits
 * with very many names below, or if very many deletions wait for each other.
 * Large answers, and answers of many clients, are sent in parts. A transaction
 * that ends outside of batches, and a session, are done in parts too.
 */
#include "daemon/scheduler/state.h"
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

#define NR 20000
/* The greatest number of updates in a turn. */
#define AT_ONCE 1100

static void setup(void)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 1000,
		.max_bytes = 64 * 1024 * 1024,
		.large = true };

	rig_setup(&cfg);
}

static uint64_t most_steps;

static void turn(void)
{
	const uint64_t *steps = &rig_scheduler->ref_queues.steps;
	const uint64_t before = *steps;

	rig_next = scheduler_run(rig_scheduler, rig_now, rig_wall_ms);
	if (*steps - before > most_steps)
		most_steps = *steps - before;
}

/* Until the next turn, if there is one. */
static void wait_for_turn(void)
{
	if (rig_next > rig_now && rig_next != INT64_MAX)
		rig_now = rig_next;
}

/* Turn by turn, with a store that does everything at once, until ASK has an
 * answer. */
static void run_until(const struct rig_ask *ask)
{
	unsigned i;

	most_steps = 0;
	for (i = 0; ask->nr_answers == 0; i++) {
		ck_assert_uint_lt(i, 100 * NR / AT_ONCE);
		while (rig_admissions != NULL)
			rig_admit_one(rig_admissions);
		while (rig_batches != NULL) {
			rig_apply(rig_batches);
			rig_back(rig_batches);
		}
		turn();
		if (rig_admissions == NULL && rig_batches == NULL)
			wait_for_turn();
	}
}

static size_t count_in_batch(const struct txn *txn)
{
	size_t i, nr = 0;

	for (i = 0; i < txn->nr_updates; i++)
		nr += txn->updates[i].in_batch;
	return nr;
}

CASE(.setup = setup, .teardown = rig_teardown);

TEST(test_the_store_lays_out_a_large_batch)
{
	struct rig_ask *large;

	rig_most_taken = 0;
	large = rig_go_many(0, true, "refs/heads/", NR);
	ck_assert_uint_eq(rig_count(rig_batches), NR);
	ck_assert_uint_le(rig_most_taken, AT_ONCE);
	rig_back_all();
	ck_assert_int_eq(large->outcome, REFD_COMMITTED);
}

TEST(test_a_large_batch_comes_back_in_parts)
{
	struct rig_ask *large = rig_go_many(0, true, "refs/heads/", NR), *small;
	struct rig_txn t = { RIG_NAMES("refs/heads/x"), .repo = 1 };
	size_t before = NR, now;

	ck_assert_uint_eq(count_in_batch(large->txn), NR);
	small = rig_go(&t);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	turn();
	ck_assert_uint_eq(small->nr_answers, 1);
	ck_assert_uint_ge(count_in_batch(large->txn), NR - AT_ONCE);
	while ((now = count_in_batch(large->txn)) > 0) {
		ck_assert_uint_le(before - now, AT_ONCE);
		ck_assert_uint_lt(now, before);
		ck_assert_int_eq(rig_next, rig_now);
		ck_assert_uint_eq(large->nr_parts, 0);
		before = now;
		turn();
	}
	rig_run();
	ck_assert_int_eq(large->outcome, REFD_COMMITTED);
}

/* Names whose locks were held rest for as long. Then all rests end at once. */
TEST(test_names_wake_in_parts)
{
	struct rig_ask *large = rig_go_many(0, true, "refs/heads/", NR);
	unsigned nr_turns = 0;

	rig_apply(rig_batches);
	rig_batches->locked_ns = rig_now - 1000 * RIG_MS;
	rig_batches->unlocked_ns = rig_now;
	rig_back(rig_batches);
	rig_run();
	ck_assert_int_eq(large->outcome, REFD_COMMITTED);
	ck_assert_int_ge(rig_next, rig_now + 1000 * RIG_MS);
	rig_now = rig_next;
	do {
		turn();
		nr_turns++;
	} while (rig_next <= rig_now);
	ck_assert_uint_ge(nr_turns, NR / AT_ONCE);
}

/* All updates of the batch stay undecided, and the daemon stops meanwhile. */
TEST(test_the_daemon_stops_in_between)
{
	struct rig_ask *large = rig_go_many(0, true, "refs/heads/", NR);
	size_t i;

	for (i = 0; i < NR; i++)
		large->txn->updates[i].again = TXN_AGAIN_LOCKED;
	rig_back(rig_batches);
	turn();
	scheduler_hurry(rig_scheduler);
	ck_assert(!scheduler_is_idle(rig_scheduler));
	rig_run();
	ck_assert_int_eq(large->outcome, REFD_REJECTED);
	ck_assert_int_eq(large->statuses[NR - 1], REFD_BUSY);
}

static struct rig_ask *submit_many(const char *prefix, bool atomic,
    bool deletes)
{
	const char **names = rig_names(prefix, NR);
	struct rig_txn t = { .names = names,
		.nr = NR,
		.atomic = atomic,
		.deletes = deletes };
	struct rig_ask *ask = rig_submit(&t);

	rig_names_free(names, NR);
	return ask;
}

/* The names below come before, or behind, the name above. */
TEST(test_a_name_above_very_many, .times = 4)
{
	const struct rig_txn above = { RIG_NAMES("refs/heads/a") };
	struct rig_ask *last = NULL;
	int i;

	for (i = 0; i < 3; i++) {
		if (i > 0 || _i % 2 == 0)
			submit_many("refs/heads/a/", _i / 2, false);
		last = rig_submit(&above);
	}
	run_until(last);
	ck_assert_uint_le(most_steps, 6 * AT_ONCE);
}

/* The name above waits for a lock, again and again. */
TEST(test_a_locked_name_above_very_many)
{
	const struct rig_txn above = { RIG_NAMES("refs/heads/a") };
	struct rig_ask *ask = rig_go(&above), *many;
	unsigned nr = 0;

	many = rig_go_many(0, false, "refs/heads/a/", NR);
	most_steps = 0;
	while (ask->nr_answers == 0) {
		rig_find(rig_batches, "refs/heads/a")->again = TXN_AGAIN_LOCKED;
		rig_back(rig_batches);
		turn();
		wait_for_turn();
		turn();
		nr++;
	}
	ck_assert_uint_gt(nr, 10);
	run_until(many);
	ck_assert_uint_le(most_steps, 6 * AT_ONCE);
}

TEST(test_very_many_deletions_wait, .times = 2)
{
	struct rig_ask *last;

	submit_many("refs/heads/a/", _i, true);
	submit_many("refs/heads/b/", _i, true);
	last = submit_many("refs/heads/c/", _i, true);
	rig_takes = false;
	rig_admit_all();
	rig_takes = true;
	run_until(last);
	ck_assert_uint_le(most_steps, 6 * AT_ONCE);
}

/* ---- answers ---- */

static struct refd_result results[NR];

/* The store has found a large transaction. */
static void look_up_large(struct store_question *q)
{
	size_t i;

	for (i = 0; i < NR; i++)
		results[i] = (struct refd_result){ .name = "refs/heads/a",
			.status = REFD_STALE };
	q->answer.results = results;
	q->answer.nr_results = q->answer.nr_updates = NR;
	rig_looked_up(q, true);
}

TEST(test_a_large_answer_comes_in_parts)
{
	struct rig_ask *asks[10], *other;
	size_t i, before;

	for (i = 0; i < 10; i++)
		asks[i] = rig_query(1, 1000, 0);
	/* The others wait, also for the time of the answer. */
	ck_assert_ptr_nonnull(rig_lookups);
	ck_assert_ptr_null(rig_lookups->next);
	look_up_large(rig_lookups);
	other = rig_query(2, 2000, 0);
	ck_assert_ptr_nonnull(rig_lookups);
	ck_assert_ptr_null(rig_lookups->next);
	rig_looked_up(rig_lookups, false);
	before = 0;
	for (i = 0; asks[0]->nr_answers == 0; i++) {
		turn();
		ck_assert_uint_eq(other->nr_answers, 1);
		ck_assert_uint_le(asks[0]->nr - before, AT_ONCE);
		ck_assert_uint_eq(asks[1]->nr, 0);
		ck_assert(rig_next <= rig_now || asks[0]->nr_answers > 0);
		before = asks[0]->nr;
	}
	ck_assert_uint_eq(asks[0]->nr, NR);
	ck_assert_uint_ge(i, NR / AT_ONCE);
	rig_run();
	while (rig_lookups != NULL) {
		look_up_large(rig_lookups);
		rig_run();
	}
	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(asks[i]->nr, NR);
}

/* A rejection that is not recorded yet is in no journal. */
static struct rig_ask *reject_many(unsigned repo)
{
	struct rig_ask *large = rig_go_many(repo, true, "refs/heads/", NR);
	size_t i;

	for (i = 0; i < NR; i++)
		txn_decide(&large->txn->updates[i], REFD_STALE, NULL);
	return large;
}

static size_t count_results(struct rig_ask *const *asks, size_t nr_asks)
{
	size_t i, nr = 0;

	for (i = 0; i < nr_asks; i++)
		nr += asks[i]->nr;
	return nr;
}

/* Rejections that are not recorded yet are in no journal. Meanwhile a batch
 * takes them along. */
TEST(test_large_rejections_are_asked_for)
{
	struct rig_ask *asks[10], *large[2];
	size_t i, nr, before = 0;

	for (i = 0; i < 2; i++)
		large[i] = reject_many((unsigned)i);
	while (rig_batches != NULL)
		rig_back(rig_batches);
	rig_takes = false;
	rig_run();
	for (i = 0; i < 10; i++)
		asks[i] = rig_query(0, large[(i + 1) % 2]->id, 0);
	ck_assert_ptr_null(rig_lookups);
	for (i = 0; before < 10 * NR; i++) {
		rig_takes = i >= 3;
		if (i == 10)
			rig_back_all();
		turn();
		nr = count_results(asks, 10);
		if (i != 10)
			ck_assert_uint_le(nr - before, AT_ONCE);
		ck_assert(nr > before || i == 10);
		before = nr;
	}
	rig_back_all();
	ck_assert_ptr_null(rig_scheduler->table.head);
}

TEST(test_very_many_clients_wait)
{
	struct rig_txn t = { RIG_NAMES("refs/heads/x"), .id = 5000 };
	struct rig_ask *asks[NR];
	size_t i, nr = 0, before;

	for (i = 0; i < NR; i++)
		asks[i] = rig_submit(&t);
	rig_admit_all();
	rig_apply(rig_batches);
	rig_back(rig_batches);
	while (nr < NR) {
		turn();
		for (before = nr; nr < NR && asks[nr]->nr_answers == 1; nr++)
			;
		ck_assert_uint_gt(nr, before);
		ck_assert_uint_le(nr - before, AT_ONCE);
	}
}

/* ---- ends, and sessions ---- */

/* Turn by turn, until ASK has an answer. In a turn few updates of TXN are
 * decided, few names are looked at, and few results are told. */
static void end_in_parts(struct rig_ask *ask, const struct txn *txn)
{
	const uint64_t *steps = &rig_scheduler->ref_queues.steps;
	size_t decided, told;
	uint64_t looked_at;
	unsigned nr_turns = 0;

	while (ask->nr_answers == 0) {
		decided = txn->nr_decided;
		looked_at = *steps;
		told = ask->nr;
		turn();
		ck_assert_uint_le(ask->nr - told, AT_ONCE);
		ck_assert_uint_le(*steps - looked_at, 6 * AT_ONCE);
		if (ask->nr_answers == 0)
			ck_assert_uint_le(txn->nr_decided - decided, AT_ONCE);
		ck_assert(rig_next <= rig_now || ask->nr_answers > 0);
		nr_turns++;
	}
	ck_assert_uint_ge(nr_turns, NR / AT_ONCE);
}

TEST(test_a_large_refusal, .times = 2)
{
	struct rig_ask *ask = submit_many("refs/heads/", _i, false);
	struct txn *txn = rig_admissions;

	txn->refused = REFD_DENIED;
	rig_admit(txn);
	end_in_parts(ask, txn);
	ck_assert_int_eq(ask->statuses[NR - 1], REFD_DENIED);
}

/* At its arrival: the id is too old, or the daemon is stopping. Nothing is
 * done, so one answer says so for all refs. */
TEST(test_a_large_one_is_turned_away, .times = 2)
{
	struct rig_txn t = { .names = rig_names("refs/heads/", NR),
		.nr = NR,
		.born_ms = _i ? 0 : -90 * 86400 * 1000LL };
	struct rig_ask *ask;

	if (_i)
		scheduler_drain(rig_scheduler);
	ask = rig_submit(&t);
	rig_names_free((const char **)t.names, NR);
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_uint_eq(ask->nr, 0);
	ck_assert_int_eq(ask->refused, _i ? REFD_BUSY : REFD_UNKNOWN);
	ck_assert_ptr_null(rig_admissions);
}

/* The first update finds a lock. The deadline passes, or the client cancels. */
TEST(test_a_large_one_ends, .times = 4)
{
	const bool is_atomic = _i % 2, is_cancelled = _i / 2;
	struct rig_ask *ask = rig_go_many(0, is_atomic, "refs/heads/", NR);
	struct txn *txn = ask->txn;
	size_t i;

	rig_give_back("refs/heads/0", TXN_AGAIN_LOCKED);
	for (i = 1; i < NR && is_atomic; i++)
		txn->updates[i].again = TXN_AGAIN_LATER;
	if (!is_atomic)
		rig_apply(rig_batches);
	rig_takes = false;
	rig_back(rig_batches);
	rig_run();
	if (is_cancelled)
		rig_cancel(0, ask->id);
	else
		rig_now += 60000 * RIG_MS;
	end_in_parts(ask, txn);
	ck_assert_int_eq(ask->statuses[0],
	    is_cancelled ? REFD_ABORTED : REFD_LOCKED);
	ck_assert_int_eq(ask->statuses[NR - 1],
	    is_cancelled || is_atomic ? REFD_ABORTED : REFD_DEADLINE);
	rig_takes = true;
}

static struct rig_ask *prepare_many(struct rig_txn *t)
{
	struct rig_ask *ask;

	t->names = rig_names("refs/heads/", NR);
	t->nr = NR;
	t->session = true;
	ask = rig_submit(t);
	t->id = ask->id;
	rig_admit_all();
	rig_apply(rig_batches);
	rig_back(rig_batches);
	return ask;
}

/* Two clients ask for the same large result of a transaction or of a session
 * again and again. */
TEST(test_nobody_keeps_others_waiting, .times = 2)
{
	struct rig_txn t = { 0 };
	struct rig_ask *large[2], *found, *again[2] = { NULL };
	size_t i, k;

	large[0] = _i ? prepare_many(&t) : reject_many(0);
	large[1] = reject_many(1);
	while (!_i && rig_batches != NULL)
		rig_back(rig_batches);
	found = rig_query(1, 1000, 0);
	look_up_large(rig_lookups);
	rig_takes = false;
	if (_i)
		rig_back(rig_batches);
	for (i = 0; large[1]->nr_answers == 0 || found->nr_answers == 0; i++) {
		ck_assert_uint_lt(i, 10 * NR / AT_ONCE);
		for (k = 0; k < 2; k++)
			if (again[k] == NULL || again[k]->nr_answers > 0)
				again[k] = _i ? rig_submit(&t) :
						rig_query(0, large[0]->id, 0);
		turn();
	}
	if (_i)
		rig_names_free((const char **)t.names, NR);
	rig_takes = true;
	rig_run();
	rig_back_all();
}

/* Prepared, and told; then committed or aborted. */
TEST(test_a_large_session, .times = 2)
{
	struct rig_txn t = { 0 };
	struct rig_ask *ask = prepare_many(&t), *again, *end;
	size_t nr = 0;

	end_in_parts(ask, ask->txn);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	again = rig_submit(&t);
	rig_names_free((const char **)t.names, NR);
	end_in_parts(again, ask->txn);
	ck_assert_int_eq(again->kind, REFD_ANSWER_PREPARED);
	end = _i ? rig_abort(0, ask->id) : rig_commit(0, ask->id);
	rig_apply(rig_batches);
	ck_assert_uint_eq(rig_count(rig_batches), NR);
	for (; nr < NR; nr++)
		ck_assert(ask->txn->updates[nr].in_batch);
	rig_back(rig_batches);
	end_in_parts(end, ask->txn);
	ck_assert_int_eq(end->statuses[NR - 1], _i ? REFD_ABORTED : REFD_OK);
}

/* Committed, cancelled, or too late, while the client is being told; or the
 * client is gone. */
TEST(test_a_large_session_ends_early, .times = 4)
{
	static struct rig_client client;
	struct rig_txn t = { .client = &client };
	struct rig_ask *ask = prepare_many(&t), *first = NULL, *second = NULL;

	rig_names_free((const char **)t.names, NR);
	while (ask->nr_parts == 0)
		turn();
	if (_i == 0)
		first = rig_commit(0, ask->id);
	else if (_i == 1)
		second = rig_cancel(0, ask->id);
	else if (_i == 2)
		rig_now += 3600 * 1000 * RIG_MS;
	else
		rig_forget(&client);
	if (_i < 3) {
		ck_assert_ptr_null(rig_batches);
		end_in_parts(ask, ask->txn);
		ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	} else {
		turn();
	}
	ck_assert_int_eq(rig_batches->session,
	    _i == 0 ? BATCH_COMMIT : BATCH_ABORT);
	/* The first end counts. */
	if (_i == 0)
		second = rig_abort(0, ask->id);
	rig_back_all();
	if (second != NULL)
		ck_assert_uint_eq(second->nr_answers, 1);
	if (first != NULL)
		ck_assert_int_eq(first->outcome, REFD_COMMITTED);
	ck_assert_ptr_null(rig_scheduler->sessions);
}
