/*
 * Proves what a batch does for the gate. Git's values and deletions, which git
 * has not synced, survive a power loss that comes after the answer, and a crash
 * at any time loses and undoes nothing. Only the disk decides which value is
 * recorded. A ref that did not change has no record. Foreign locks stop
 * nothing, locks of refd do. A look takes no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define X      WORLD_REPO "/refs/heads/x"
#define X_LOCK X ".lock"
#define ONES   "3131313131313131313131313131313131313131\n"
#define FIVES  "3535353535353535353535353535353535353535\n"

/* The value of every ref before; 0: not known. */
static char before;

static struct txn *gate(const char *spec)
{
	struct txn *txn = world_begin(w, spec, false);
	size_t i;

	if (txn == NULL)
		return NULL;
	txn->req.gate = REFD_GATE_COMMITTED;
	txn->before = calloc(txn->nr_updates, sizeof(*txn->before));
	for (i = 0; i < txn->nr_updates; i++) {
		txn->before[i].is_known = before != 0;
		txn->before[i].oid = world_oid(before != 0 ? before : '0');
	}
	world_batch(w, &txn, 1);
	return txn;
}

/* The status of the only update. FOUND: the value that was read. */
static void expect(const char *spec, enum refd_status status, char found)
{
	const struct refd_oid oid = world_oid(found);
	struct txn *txn = gate(spec);

	ck_assert_int_eq(txn->updates[0].status, status);
	ck_assert(txn->updates[0].has_found);
	ck_assert(refd_oid_eq(&txn->updates[0].found, &oid));
	ck_assert_ptr_null(world_litter(w));
	world_done(w, txn);
}

static void setup(void)
{
	wr_setup_mounted();
	before = '0';
	wr_ok("first=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
}

/* A power loss can bring back a lock of git, which stops recovery until
 * somebody removes the lock (refd locks --clear-dead). */
static void start_without_locks(void)
{
	char *locks;

	wr_start();
	locks = memfs_list_locks(w->fs, WORLD_REPO);
	if (*locks != '\0') {
		ck_assert_uint_gt(w->deferred, 0);
		wr_unlink(X_LOCK);
		ck_assert_int_eq(world_retry(w), 0);
	}
	free(locks);
	ck_assert_uint_eq(w->deferred, 0);
}

CASE(.setup = setup, .teardown = wr_teardown, .seconds = 60);

/* The journal fails while git has the lock of the ref. */
TEST(a_dead_journal_ends_nothing)
{
	struct txn *txn;

	scripted_git_writes(w, X, ONES);
	memfs_write(w->fs, X_LOCK, "");
	store_log_failed(&w->store, "is dead");
	txn = gate("x=1");
	ck_assert_int_eq(txn->updates[0].status, REFD_UNKNOWN);
	world_done(w, txn);
}

/* ---- durable ---- */

TEST(a_value_of_git_survives, .times = 40)
{
	scripted_git_writes(w, X, ONES);
	expect("x=1", REFD_OK, '1');
	wr_power_loss((enum memfs_data)(_i % 5), _i / 5);
	start_without_locks();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

TEST(a_move_of_git_survives, .times = 40)
{
	wr_ok("x=2");
	ck_assert_int_eq(world_checkpoint(w), 0);
	before = '2';
	scripted_git_writes(w, X, ONES);
	expect("x=1", REFD_OK, '1');
	wr_power_loss((enum memfs_data)(_i % 5), _i / 5);
	start_without_locks();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

TEST(a_deletion_of_git_survives, .times = 40)
{
	wr_ok("x=2");
	ck_assert_int_eq(world_checkpoint(w), 0);
	before = '2';
	wr_unlink(X);
	expect("-x", REFD_OK, '0');
	wr_power_loss((enum memfs_data)(_i % 5), _i / 5);
	start_without_locks();
	ck_assert_int_eq(world_ref(w, "x"), '0');
}

/* A later write of git is durable, and has no record. */
TEST(a_later_value_stays)
{
	scripted_git_writes(w, X, ONES);
	expect("x=1", REFD_OK, '1');
	scripted_git_writes(w, X, FIVES);
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_start();
	ck_assert_int_eq(world_ref(w, "x"), '5');
}

/* Every change of the disk during the batch may be the last one. */
TEST(a_crash_undoes_nothing, .times = 2)
{
	const bool deletes = _i;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		setup();
		wr_ok("x=2");
		before = '2';
		if (deletes)
			wr_unlink(X);
		else
			scripted_git_writes(w, X, ONES);
		memfs_crash_at(w->fs, n);
		world_done(w, gate(deletes ? "-x" : "x=1"));
		hit = memfs_was_hit(w->fs);
		memfs_crash(w->fs);
		world_crash(w);
		wr_start();
		ck_assert_int_eq(world_ref(w, "x"), deletes ? '0' : '1');
		ck_assert_ptr_null(world_litter(w));
	}
	ck_assert_uint_gt(n, 3);
}

/* ---- the disk decides ---- */

TEST(a_false_value_is_not_recorded)
{
	scripted_git_writes(w, X, FIVES);
	expect("x=1", REFD_OK, '5');
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "x"), '5');
	expect("-x", REFD_OK, '5');
	ck_assert_int_eq(world_ref(w, "x"), '5');
	expect("y=1", REFD_ABORTED, '0');
	ck_assert_int_eq(world_ref(w, "y"), '0');
	before = 0;
	expect("y=1", REFD_OK, '0');
	ck_assert_int_eq(world_ref(w, "y"), '0');
}

TEST(an_unchanged_ref_is_not_recorded)
{
	struct journal *journal = commit_log_journal(w->store.log);
	const uint64_t lsn = journal_last_lsn(journal);

	before = '1';
	expect("first=1", REFD_ABORTED, '1');
	expect("-first", REFD_ABORTED, '1');
	before = '0';
	expect("-none", REFD_ABORTED, '0');
	ck_assert_uint_eq(journal_last_lsn(journal), lsn);
}

TEST(a_symbolic_ref_is_not_followed)
{
	wr_ok("s>first");
	/* Git's line for the ref at the end comes too. */
	expect("s=1", REFD_ABORTED, '1');
	expect("s>first", REFD_OK, '1');
	expect("s>x", REFD_OK, '1');
	ck_assert_int_eq(world_ref(w, "s"), '>');
	ck_assert_int_eq(world_ref(w, "first"), '1');
}

/* ---- locks ---- */

TEST(foreign_locks_stop_nothing)
{
	struct txn *txn;

	scripted_git_writes(w, X, ONES);
	memfs_write(w->fs, X_LOCK, "");
	txn = gate("x=1;first/below=1");
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_eq(txn->updates[1].status, REFD_ABORTED);
	world_done(w, txn);
	wr_expect_file(X_LOCK, "");
	wr_unlink(X_LOCK);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	start_without_locks();
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

TEST(a_session_is_waited_for)
{
	struct txn *session = world_session(w, "x=2", false), *txn;

	scripted_git_writes(w, WORLD_REPO "/refs/heads/y", ONES);
	txn = gate("x=1;y=1");
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_LOCKED);
	ck_assert_int_eq(txn->updates[1].status, REFD_OK);
	world_session_end(w, session, true);
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_eq(txn->updates[0].found.bytes[0], '2');
	world_done(w, txn);
	world_done(w, session);
}

static void expect_look(const struct txn *txn, size_t i, bool known, char value)
{
	const struct refd_oid oid = world_oid(value);

	ck_assert_int_eq(txn->updates[i].status, REFD_ABORTED);
	ck_assert_int_eq(txn->updates[i].has_found, known);
	if (known)
		ck_assert(refd_oid_eq(&txn->updates[i].found, &oid));
}

TEST(a_look_reads_under_gits_locks)
{
	struct txn *txn;

	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3434343434343434343434343434343434343434 refs/heads/p\n");
	wr_ok("s>first");
	memfs_write(w->fs, X_LOCK, "");
	txn = world_begin(w, "first=2;p=2;s=2;x=2;first/below=2", false);
	txn->req.gate = REFD_GATE_PREPARED;
	world_run(w, &txn, 1, BATCH_LOOK);
	ck_assert(txn->is_looked);
	expect_look(txn, 0, true, '1');
	expect_look(txn, 1, true, '4');
	expect_look(txn, 2, false, '0');
	expect_look(txn, 3, true, '0');
	expect_look(txn, 4, true, '0');
	world_done(w, txn);
	wr_expect_locks(X_LOCK "\n");
}
