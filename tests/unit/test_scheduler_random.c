/*
 * Proves the rules of the scheduler under random load. The store holds batches
 * for random times and returns any outcome. Pauses end, so that the store
 * checks objects again. Clients resend, cancel, query and go away. Sessions are
 * committed, aborted or left. Names conflict. The rig checks every batch (names
 * disjoint and unrelated, no overtaking, atomic transactions whole, sessions
 * alone and ended once, objects checked shortly before), and that every request
 * is answered once. The tests check that nothing waits without need, no update
 * happens twice, answers agree with the journal, and all work ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

#define SEEDS   24
#define STEPS   4000
#define IDS_MAX 4000
#define REPOS   3
#define NR_MAX  6

static const char *const pool[] = { "HEAD", "refs/heads", "refs/heads/a",
	"refs/heads/a/b", "refs/heads/a/b/c", "refs/heads/a-b", "refs/heads/b",
	"refs/heads/c", "refs/heads/c/d", "refs/tags/a", "refs/tags/b",
	"refs/tags/c", "refs/tags/d", "refs/tags/e", "refs/tags/e/f" };
#define POOL (sizeof(pool) / sizeof(pool[0]))

/* The request under an id, and the journal's record of the id. */
struct known {
	struct rig_txn t;
	const char *names[NR_MAX];
	enum refd_status recorded[NR_MAX]; /* PENDING: no record */
	unsigned nr_ok[NR_MAX];
	struct rig_ask *first;
	struct rig_ask *commit; /* first of a prepared session */
	bool holds;             /* holds locks */
	size_t place;           /* in held[] */
};

static struct known ids[IDS_MAX + 1];
static struct rig_client clients[5];
static uint64_t nr_ids;
static struct known *held[IDS_MAX]; /* prepared sessions */
static size_t nr_held;
static bool with_rest, is_narrow;

static unsigned rnd(unsigned n)
{
	return (unsigned)random() % n;
}

static bool chance(unsigned percent)
{
	return rnd(100) < percent;
}

static struct known *known_of(const struct txn *txn)
{
	uint64_t id;

	memcpy(&id, txn->req.txid.bytes + 8, sizeof(id));
	ck_assert_uint_le(id, nr_ids);
	return &ids[id];
}

/* ---- clients ---- */

static void submit(void)
{
	struct known *k = &ids[++nr_ids];
	unsigned i, start = rnd(POOL), step = 1 + rnd(3);

	memset(k, 0, sizeof(*k));
	k->t.repo = rnd(REPOS);
	k->t.uid = rnd(2);
	k->t.atomic = chance(30);
	k->t.session = chance(25);
	k->t.push = chance(30);
	k->t.deletes = chance(30);
	if (chance(20))
		k->t.ref_lock_timeout_ms = 1 + rnd(50);
	if (chance(20))
		k->t.packed_refs_timeout_ms = 1 + rnd(50);
	k->t.nr = 1 + rnd(NR_MAX);
	if (chance(3))
		k->t.nr = 0;
	k->t.bytes = 100;
	k->t.deadline_ms = chance(10) ? 1 + rnd(100) : 60000;
	k->t.client = &clients[rnd(5)];
	k->t.names = k->names;
	for (i = 0; i < k->t.nr; i++) {
		k->names[i] = pool[(start + i * step) % POOL];
		k->recorded[i] = REFD_PENDING;
	}
	k->first = rig_submit(&k->t);
	ck_assert_uint_eq(rig_last_id(), nr_ids);
}

static void resend(void)
{
	struct known *k = &ids[1 + rnd((unsigned)nr_ids)];
	struct rig_txn t = k->t;

	t.id = (uint64_t)(k - ids);
	rig_submit(&t);
}

/* Ends a session, prepared or not. */
static void end_session(struct known *k, bool commits)
{
	uint64_t id = (uint64_t)(k - ids);
	uint32_t uid = chance(90) ? k->t.uid : 0;
	bool holds = k->holds;
	struct rig_ask *ask;

	ask = commits ? rig_commit(uid, id) : rig_abort(uid, id);
	if (commits && holds && k->commit == NULL)
		k->commit = ask;
}

static void session_step(void)
{
	struct known *k = &ids[1 + rnd((unsigned)nr_ids)];

	if (nr_held > 0 && chance(80))
		k = held[rnd((unsigned)nr_held)];
	end_session(k, chance(70));
}

/* Some clients answer at once, and some never come back. */
static void prepared_is_told(struct rig_ask *ask)
{
	if (ask->kind != REFD_ANSWER_PREPARED)
		return;
	if (chance(40))
		end_session(&ids[ask->id], true);
	else if (chance(10))
		rig_forget(ask->client);
}

/* The store checks the objects of all waiting transactions again. */
static void pause_ends(void)
{
	scheduler_pause(rig_scheduler);
	scheduler_resume(rig_scheduler);
}

static void client_step(void)
{
	uint64_t id = nr_ids > 0 ? 1 + rnd((unsigned)nr_ids) : 0;

	if (id == 0 || (chance(60) && nr_ids < IDS_MAX))
		submit();
	else if (chance(35))
		session_step();
	else if (chance(50))
		resend();
	else if (chance(60))
		rig_query(rnd(2), id, 0);
	else if (chance(30))
		pause_ends();
	else if (chance(90))
		rig_cancel(ids[id].t.uid, id);
	else
		rig_forget(&clients[rnd(5)]);
}

/* ---- the store ---- */

/* Known in full or in part. An update without a record never happened. */
static bool replay(struct txn *txn, const struct known *k)
{
	bool is_known = false;
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		is_known = is_known || k->recorded[i] != REFD_PENDING;
	if (!is_known || txn->readmitted)
		return false;
	for (i = 0; i < txn->nr_updates; i++)
		txn->updates[i].status = k->recorded[i] != REFD_PENDING ?
		    k->recorded[i] :
		    REFD_ABORTED;
	txn_count(txn);
	txn->replayed = true;
	return true;
}

static void admission_step(struct txn *txn)
{
	struct known *k;
	size_t i;

	if (txn == NULL)
		return;
	k = known_of(txn);
	if (txn->repo != NULL && chance(5))
		rig_replace_repo(txn, REPOS);
	if (!replay(txn, k) && chance(3)) {
		txn->refused = REFD_DENIED;
		txn->why = strdup("not today");
		rig_admit(txn);
		return;
	}
	for (i = 0; i < txn->nr_updates && !txn->replayed; i++)
		if (txn->updates[i].status == REFD_PENDING && chance(3))
			txn_decide(&txn->updates[i], REFD_NOOBJECT, NULL);
	if (chance(30) || !rig_admit_directly(txn))
		rig_admit_one(txn);
}

/* The result of a batch for U is recorded if the commit SUCCEEDED. */
static void journal(struct txn_update *u, bool succeeded)
{
	struct known *k = known_of(u->txn);
	size_t i = (size_t)(u - u->txn->updates);

	if (u->status == REFD_PENDING || !succeeded)
		return;
	ck_assert(k->recorded[i] == REFD_PENDING);
	k->recorded[i] = u->status;
	u->recorded = true;
	if (u->status == REFD_OK)
		k->nr_ok[i]++;
}

/* Locked by a prepared session. */
static bool is_locked(const struct txn_update *u)
{
	const struct known *k = known_of(u->txn);
	size_t i, n;

	for (i = 0; i < nr_held; i++)
		for (n = 0; n < held[i]->t.nr; n++)
			if (held[i] != k && held[i]->t.repo == k->t.repo &&
			    strcmp(held[i]->names[n], u->ask->name) == 0)
				return true;
	return false;
}

static void fate(struct txn_update *u, bool calm)
{
	if (is_locked(u)) {
		u->again = TXN_AGAIN_LOCKED;
		return;
	}
	if (calm || chance(70))
		return;
	if (chance(30))
		txn_decide(u, REFD_STALE, NULL);
	else if (chance(50))
		u->again = TXN_AGAIN_LATER;
	else if (chance(90))
		u->again = TXN_AGAIN_LOCKED;
	else
		u->again = chance(50) ? TXN_AGAIN_REOPEN : TXN_AGAIN_ALONE;
	if (u->again == TXN_AGAIN_LOCKED && chance(50))
		u->locked_path = strdup(chance(50) ? "packed-refs" : "HEAD");
}

/* All updates share the fate of an update that fails or goes again. */
static void atomic_fate(struct txn_slice *slice)
{
	enum txn_again again = TXN_AGAIN_NO;
	bool failed = false;
	size_t i;

	for (i = 0; i < slice->nr; i++) {
		failed = failed || slice->updates[i]->status != REFD_PENDING;
		if (slice->updates[i]->again > again)
			again = slice->updates[i]->again;
	}
	for (i = 0; i < slice->nr; i++) {
		if (slice->updates[i]->status != REFD_PENDING)
			continue;
		if (failed)
			txn_decide(slice->updates[i], REFD_ABORTED, NULL);
		else if (slice->updates[i]->again == TXN_AGAIN_NO &&
		    again != TXN_AGAIN_NO)
			slice->updates[i]->again = TXN_AGAIN_LATER;
	}
}

static void hold(struct txn *txn)
{
	struct known *k = known_of(txn);

	txn->prepared = k;
	k->holds = true;
	k->place = nr_held;
	held[nr_held++] = k;
}

static void let_go(struct txn *txn)
{
	struct known *k = known_of(txn);

	ck_assert_ptr_eq(txn->prepared, k);
	txn->prepared = NULL;
	k->holds = false;
	held[k->place] = held[--nr_held];
	held[k->place]->place = k->place;
}

/* All or nothing. True: there is something to prepare. */
static bool prepares(const struct txn_slice *slice)
{
	bool any = false, again = false;
	size_t i;

	for (i = 0; i < slice->nr; i++) {
		any = any || slice->updates[i]->status == REFD_PENDING;
		again = again || slice->updates[i]->again != TXN_AGAIN_NO;
	}
	for (i = 0; i < slice->nr && again; i++)
		if (slice->updates[i]->status == REFD_PENDING &&
		    slice->updates[i]->again == TXN_AGAIN_NO)
			slice->updates[i]->again = TXN_AGAIN_LATER;
	return any && !again;
}

static void commit_slice(const struct txn_slice *slice, bool fails,
    bool unknown)
{
	size_t i;

	for (i = 0; i < slice->nr; i++) {
		struct txn_update *u = slice->updates[i];
		bool is_live =
		    u->status == REFD_PENDING && u->again == TXN_AGAIN_NO;

		if (is_live && fails)
			txn_decide(u, unknown ? REFD_UNKNOWN : REFD_NOSPACE,
			    NULL);
		else if (is_live)
			txn_acknowledge(u);
		journal(u, !fails);
	}
}

static void fates(struct txn_slice *slice, bool calm)
{
	size_t i;

	for (i = 0; i < slice->nr; i++)
		if (slice->updates[i]->in_batch)
			fate(slice->updates[i], calm);
	if (slice->txn->req.atomic)
		atomic_fate(slice);
}

static void batch_step(struct batch *b, bool calm)
{
	bool fails = !calm && chance(4), unknown = fails && chance(50);
	size_t i;

	for (i = 0; i < b->nr_slices; i++) {
		struct txn_slice *slice = &b->slices[i];

		if (b->session == BATCH_WHOLE || b->session == BATCH_PREPARE)
			fates(slice, calm);
		if (b->session == BATCH_WHOLE || b->session == BATCH_COMMIT)
			commit_slice(slice, fails, unknown);
		if (b->session == BATCH_PREPARE && prepares(slice))
			hold(slice->txn);
		if (b->session == BATCH_COMMIT || b->session == BATCH_ABORT)
			let_go(slice->txn);
	}
	if (with_rest) {
		b->locked_ns = rig_now - rnd(5) * RIG_MS;
		b->unlocked_ns = rig_now;
	}
	rig_back(b);
}

static void store_step(bool calm)
{
	struct batch *b = rig_batches;
	unsigned i;

	if (rig_lookups != NULL && chance(50))
		rig_found(rig_lookups, false);
	if (chance(50))
		admission_step(rig_admissions);
	for (i = rnd(3); b != NULL && i > 0; i--)
		b = b->next != NULL ? b->next : b;
	if (b != NULL && chance(60))
		batch_step(b, calm);
}

/* ---- judging ---- */

static void check_results(const struct known *k, const struct rig_ask *a)
{
	size_t i, ok = 0;

	ck_assert_int_eq(a->kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(a->nr, k->t.nr);
	for (i = 0; i < k->t.nr; i++) {
		ok += a->statuses[i] == REFD_OK;
		/* Never a false ok. */
		if (a->statuses[i] == REFD_OK)
			ck_assert_uint_eq(k->nr_ok[i], 1);
	}
	if (k->t.atomic)
		ck_assert(ok == 0 || ok == k->t.nr);
}

static void check_answers(const struct known *k)
{
	const struct rig_ask *a = k->first;
	size_t i, ok = 0;

	for (i = 0; i < k->t.nr; i++) {
		ck_assert_uint_le(k->nr_ok[i], 1);
		ok += k->nr_ok[i];
	}
	if (k->t.atomic)
		ck_assert(ok == 0 || ok == k->t.nr);
	/* A session's updates happen only by a commit, which tells so. */
	ck_assert(!k->holds);
	if (k->commit != NULL)
		check_results(k, k->commit);
	else if (k->t.session)
		ck_assert_uint_eq(ok, 0);
	if (a->is_forgotten)
		return;
	ck_assert_uint_eq(a->nr_answers, 1);
	/* This user had too much. The id may be admitted later. */
	if (a->kind == REFD_ANSWER_REFUSED && k->t.nr > 0) {
		ck_assert(is_narrow);
		ck_assert_int_eq(a->refused, REFD_BUSY);
		return;
	}
	if (k->t.session && a->kind == REFD_ANSWER_PREPARED)
		ck_assert_uint_eq(a->nr, k->t.nr);
	else if (k->t.nr > 0)
		check_results(k, a);
}

static void run_to_the_end(void)
{
	size_t i;

	for (i = 0; i < 100000 && !scheduler_is_idle(rig_scheduler); i++) {
		store_step(true);
		rig_pass(1 * RIG_MS);
	}
	ck_assert(scheduler_is_idle(rig_scheduler));
}

CASE(.seconds = 60);

TEST(test_random_load, .times = SEEDS)
{
	struct rig_config cfg = { .committers = 1 + (size_t)_i % 3,
		.batch_refs = 1 + (size_t)_i % 5 * 4,
		.max_bytes = _i % 4 == 0 ? 5000 : 1000000 };
	size_t i;

	is_narrow = _i % 4 == 0;
	if (_i % 8 == 0) {
		cfg.max_bytes = 1000000;
		cfg.quotas.of_user = (struct quota_limits){ .requests = 20,
			.refs = 60,
			.sessions = 4 };
		cfg.of_repo = (struct quota_limits){ .requests = 15,
			.refs = 50,
			.sessions = 3,
			.locks = 12,
			.clients = 3 };
	}
	rig_setup(&cfg);
	rig_keeps_checks = true;
	srandom((unsigned)_i + 1);
	nr_ids = nr_held = 0;
	rig_on_answer = prepared_is_told;
	with_rest = _i % 2 == 0;
	for (i = 0; i < STEPS; i++) {
		if (chance(40) && (i % 200 < 120 || rig_batches == NULL))
			client_step();
		else
			store_step(i % 1000 > 800);
		if (_i % 3 == 0)
			rig_takes = chance(70);
		if (chance(30))
			rig_now += rnd(3) * RIG_MS;
		rig_run();
		if (!with_rest && i % 4 == 0)
			rig_check_nothing_idles();
	}
	rig_takes = true;
	scheduler_drain(rig_scheduler);
	run_to_the_end();
	for (i = 1; i <= nr_ids; i++)
		check_answers(&ids[i]);
	rig_teardown();
}
