/*
 * Proves recovery after a crash if somebody has removed all locks of refd
 * before the daemon came back, as git's message suggests. Every update that is
 * `ok` by its id is there, and no value that git wrote meanwhile is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/stack_txn_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world_rig.h"

#define MAIN   "refs/heads/main"
#define PACKED WORLD_REPO "/packed-refs"
#define X      WORLD_REPO "/refs/heads/x"
#define ONES   "3131313131313131313131313131313131313131"
#define FIVES  "3535353535353535353535353535353535353535\n"

static const struct {
	const char *before, *spec;
	char packed; /* the ref in packed-refs before; '\0': none */
	char was, value;
} kinds[] = { { "x=1", "x=2:1", '\0', '1', '2' },
	{ "y=1", "x=2:0", '\0', '0', '2' }, { "x=1", "-x:1", '\0', '1', '0' },
	{ "y=1", "-x:1", 'x', '1', '0' }, { "y=1", "x=2:1", 'x', '1', '2' },
	{ "y=1", "x=2:0;a=2:0;b=2:0;c=2:0", 'z', '0', '2' } };
#define NR_KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))
#define PACKING  (NR_KINDS - 1) /* makes lines of packed-refs */

/* As git's, with one ref of value 1. */
static void write_packed(char name)
{
	char text[128];

	snprintf(text, sizeof(text),
	    "# pack-refs with: peeled fully-peeled sorted \n" ONES
	    " refs/heads/%c\n",
	    name);
	memfs_write(w->fs, PACKED, text);
}

static const char *litter(void)
{
	const char *name = world_litter(w);

	return name != NULL ? name : "";
}

/* Another thread syncs the file system when refd is killed. Recovery then
 * counts the sync as failed. */
static bool is_syncing;

/* The transaction of KIND is killed at change N. False: it ended before. */
static bool crash_at(struct scripted_txn *h, int kind, bool atomic,
    unsigned long n)
{
	struct txn *txn;
	bool hit;

	world_free(w);
	wr_setup_apart();
	ck_assert_int_eq(world_stop(w), 0);
	w->packed_least = kind == PACKING ? 3 : 0;
	wr_start();
	wr_ok(kinds[kind].before);
	if (kinds[kind].packed != '\0')
		write_packed(kinds[kind].packed);
	memfs_advance(w->fs, 1000000000);
	txn = world_begin(w, kinds[kind].spec, atomic);
	h->w = w;
	h->txid = txn->req.txid;
	if (is_syncing)
		ck_assert_int_eq(sync_failures_begin(w->store.sync_failures,
				     txn->repo->fs->mount, 0),
		    0);
	memfs_crash_at(w->fs, n);
	world_batch(w, &txn, 1);
	hit = memfs_was_hit(w->fs);
	world_done(w, txn);
	memfs_crash(w->fs);
	return hit;
}

CASE(.name = "recover_unlocked", .setup = wr_setup_apart,
    .teardown = wr_teardown, .seconds = 60);

/* Nobody wrote meanwhile: each recorded update is redone. */
TEST(removed_locks, .times = 4 * NR_KINDS)
{
	const int kind = _i / 4;
	struct scripted_txn h = { .w = NULL };
	enum refd_status status;
	unsigned long n, nr_redone = 0;
	bool hit = true;

	is_syncing = _i % 4 >= 2;
	for (n = 0; hit; n++) {
		hit = crash_at(&h, kind, _i % 2, n);
		wr_remove_locks();
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		nr_redone += w->found[STORE_ROLLED_FORWARD];
		status = scripted_status(&h, 0);
		if (status != REFD_PENDING)
			ck_assert_int_eq(status, REFD_OK);
		ck_assert_int_eq(world_ref(w, "x"),
		    status == REFD_OK ? kinds[kind].value : kinds[kind].was);
		if (world_has_log(w, "x") && status == REFD_OK)
			ck_assert_int_eq(world_log_count(w, "x",
					     kinds[kind].was,
					     kinds[kind].value),
			    1);
		ck_assert_str_eq(litter(), "");
	}
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_gt(nr_redone, 0);
}

/* Git wrote meanwhile, so its value stays. The update is ok only if it was
 * published before. */
TEST(removed_locks_and_a_write, .times = 4 * NR_KINDS)
{
	const int kind = _i / 4;
	struct scripted_txn h = { .w = NULL };
	enum refd_status status;
	unsigned long n, nr_aborted = 0;
	bool hit = true;
	char was;

	is_syncing = _i % 4 >= 2;
	for (n = 0; hit; n++) {
		hit = crash_at(&h, kind, _i % 2, n);
		wr_remove_locks();
		was = world_ref(w, "x");
		memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads");
		scripted_git_writes(w, X, FIVES);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_int_eq(world_ref(w, "x"), '5');
		status = scripted_status(&h, 0);
		ck_assert(status != REFD_OK || was == kinds[kind].value);
		nr_aborted += status == REFD_CONFLICT;
		ck_assert_str_eq(litter(), "");
	}
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_gt(nr_aborted, 0);
}

/* Somebody removes packed-refs.new too, so that git can pack again. Then a line
 * of packed-refs is only ok if it stands, or if nobody wrote packed-refs since
 * and recovery redoes the line. */
TEST(removed_new_packed_refs, .times = 6)
{
	enum { NOBODY_WRITES, GIT_REWRITES, GIT_WRITES_X, NR_WRITERS };
	const int writer = _i % NR_WRITERS;
	struct scripted_txn h = { .w = NULL };
	unsigned long n, nr[UINT8_MAX + 1] = { 0 };
	enum refd_status status;
	bool hit = true;
	char was;

	for (n = 0; hit; n++) {
		hit = crash_at(&h, PACKING, _i / NR_WRITERS, n);
		wr_remove_locks();
		if (memfs_exists(w->fs, PACKED ".new"))
			wr_unlink(PACKED ".new");
		was = world_ref(w, "x");
		memfs_advance(w->fs, 1000000000);
		if (writer == GIT_REWRITES)
			write_packed('z');
		memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads");
		if (writer == GIT_WRITES_X)
			scripted_git_writes(w, X, FIVES);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		status = scripted_status(&h, 0);
		nr[status]++;
		if (writer != GIT_REWRITES && was == '2')
			ck_assert_int_eq(status, REFD_OK);
		if (writer == NOBODY_WRITES)
			ck_assert_int_eq(world_ref(w, "x"),
			    status == REFD_OK ? '2' : '0');
		else if (hit)
			ck_assert(status != REFD_OK || was == '2');
		ck_assert_str_eq(litter(), "");
	}
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_gt(nr[REFD_OK], 0);
	ck_assert((nr[REFD_CONFLICT] > 0) == (writer != NOBODY_WRITES));
}

/* A published update stays ok, whatever git made of the ref since. */
TEST(published_updates, .times = 2)
{
	struct scripted_txn h = { .w = NULL };
	unsigned long n = 0;

	while (crash_at(&h, 0, false, n))
		n++;
	while (n > 0) {
		crash_at(&h, 0, false, --n);
		if (world_ref(w, "x") != '2')
			break;
		wr_remove_locks();
		if (_i == 0)
			scripted_git_writes(w, X, FIVES);
		else
			wr_unlink(X);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_int_eq(world_ref(w, "x"), _i == 0 ? '5' : '0');
		ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
	}
	ck_assert_uint_gt(n, 0);
}

/* If a start is killed, the next start must decide the same. */
TEST(a_killed_start, .times = NR_KINDS)
{
	struct scripted_txn h = { .w = NULL };
	unsigned long n = 0, at;
	bool hit = true;

	do {
		crash_at(&h, _i, false, n++);
		wr_remove_locks();
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
	} while (w->found[STORE_ROLLED_FORWARD] == 0);
	for (at = 0; hit; at++) {
		crash_at(&h, _i, false, n - 1);
		wr_remove_locks();
		world_crash(w);
		memfs_crash_at(w->fs, at);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
		ck_assert_int_eq(world_ref(w, "x"), kinds[_i].value);
		ck_assert_str_eq(litter(), "");
	}
	ck_assert_uint_gt(at, 10);
}

/* ---- something else stands on the way ---- */

#define OUTSIDE "/srv/outside"

/* Another writer puts a link out of the repository, or a ref, in the place of
 * DIR. OUTSIDE gets what was there. */
static void replace(const char *dir, bool by_link)
{
	wr_rename(dir, OUTSIDE);
	if (by_link)
		memfs_symlink(w->fs, OUTSIDE, dir);
	else
		memfs_write(w->fs, dir, FIVES);
}

/* The update of a ref below is given up. No other work waits. Git can put a ref
 * there too, once the locks are gone. */
TEST(the_ref_s_directory_is_replaced, .times = 2)
{
	const struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/d/x", '1', '2');
	struct scripted_txn h = { .w = w };

	wr_ok("d/x=1");
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	wr_remove_locks();
	replace(WORLD_REPO "/refs/heads/d", _i == 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_CONFLICT);
	ck_assert(memfs_holds(w->fs, OUTSIDE "/x", ONES "\n"));
	ck_assert(!memfs_exists(w->fs, OUTSIDE "/x.lock"));
	ck_assert_str_eq(litter(), "");
	wr_ok("y=1");
}

/* The update of another ref would add a line to the symbolic ref's log. The
 * line is lost, and the update is redone. */
TEST(the_symref_s_directory_is_replaced, .times = 2)
{
	struct record_member m[] = {
		scripted_member(RECORD_WRITE, "refs/heads/x", '0', '2'),
		scripted_member(RECORD_LOG, "refs/remotes/o/HEAD", '0', '2'),
	};
	struct scripted_txn h = { .w = w };

	m[0].answers = true;
	memfs_write(w->fs, WORLD_REPO "/refs/remotes/o/HEAD",
	    "ref: refs/heads/x\n");
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), -EAGAIN);
	wr_remove_locks();
	replace(WORLD_REPO "/refs/remotes/o", _i == 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert(!memfs_exists(w->fs, OUTSIDE "/HEAD.lock"));
	ck_assert_str_eq(litter(), "");
	wr_ok("y=1");
}

/* ---- reftables ---- */

/* A transaction of main, from 1 to 2, is killed at change N. The locks are
 * removed. False: it ended before. The id of the repository is durable, as the
 * barrier makes it before each first transaction. */
static bool crash_tables_at(unsigned long n, bool has_log)
{
	struct record_member m = stack_txn_member(0, "", MAIN, '2');
	struct repo *repo;
	bool hit;

	m.log = has_log;

	repo = world_repo(w, WORLD_REPO);
	scripted_sync(w);
	if (is_syncing)
		ck_assert_int_eq(sync_failures_begin(w->store.sync_failures,
				     repo->fs->mount, 0),
		    0);
	repo_put(&w->store.repos, repo);
	memfs_crash_at(w->fs, n);
	stack_txn_apply(&stx, &m, 1);
	hit = memfs_was_hit(w->fs);
	memfs_crash(w->fs);
	wr_remove_locks();
	world_crash(w);
	return hit;
}

enum tables_writer { NOBODY, WRITES_ANOTHER, WRITES_MAIN, TABLES_WRITERS };

/* Somebody writes, and the disk has it. Then perhaps power is lost with outcome
 * SEED. */
static void start_tables(enum tables_writer writer, uint64_t seed, char was)
{
	struct memfs_choice choice = memfs_choose(seed);

	if (writer == WRITES_ANOTHER)
		stack_txn_git_ref(w, "refs/heads/x", '1', '5');
	else if (writer == WRITES_MAIN)
		stack_txn_git_ref(w, MAIN, was, '5');
	if (writer != NOBODY)
		scripted_sync(w);
	if (seed > 0)
		memfs_power_loss(w->fs, &choice);
	wr_start();
}

#define TABLES_CUTS 8

CASE(.name = "tables", .setup = stx_setup, .teardown = wr_teardown,
    .seconds = 300);

/* After a power loss nobody can tell a value that was never published from a
 * value that git replaced, so there git writes another ref only. */
TEST(removed_locks_of_tables, .times = 2 * TABLES_WRITERS)
{
	const enum tables_writer writer = _i % TABLES_WRITERS;
	const uint64_t cuts = writer == WRITES_MAIN ? 0 : TABLES_CUTS;
	unsigned long n, nr[UINT8_MAX + 1] = { 0 };
	enum refd_status status;
	uint64_t seed;
	bool hit = true;
	char was;

	is_syncing = _i >= TABLES_WRITERS;
	for (n = 0; hit; n++)
		for (seed = 0; seed <= cuts; seed += sweep_step()) {
			world_free(w);
			stx_setup();
			hit = crash_tables_at(n, true);
			was = stack_txn_value(w, "", MAIN, NULL);
			start_tables(writer, seed, was);
			status = scripted_status(&stx.h, 0);
			nr[status]++;
			ck_assert(hit || status == REFD_OK);
			if (writer == WRITES_MAIN)
				ck_assert_int_eq(status == REFD_OK, was == '2');
			stx_expect(MAIN,
			    writer == WRITES_MAIN ? '5' :
				status == REFD_OK ? '2' :
						    '1');
			if (writer == WRITES_ANOTHER)
				stx_expect("refs/heads/x", '5');
			stx_expect_rest();
		}
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_gt(nr[REFD_OK], 0);
	ck_assert((nr[REFD_CONFLICT] > 0) == (writer == WRITES_MAIN));
}

/* Without a log, nothing in the stack tells that git has replaced or deleted a
 * value of refd. A merge takes git's tombstone away, too. Nobody removes a
 * lock, and no power is lost. */
TEST(published_updates_of_tables, .times = 2)
{
	const bool deletes = _i == 1;
	const struct reftable_record rec = { .section = REFTABLE_REFS,
		.name = MAIN,
		.is_deletion = deletes,
		.ref = { .kind =
			     deletes ? REFTABLE_REF_DELETED : REFTABLE_REF_OID,
		    .oid = world_oid('5') } };
	unsigned long n;
	unsigned nr = 0;
	bool hit = true;
	char was;

	for (n = 0; hit; n++) {
		world_free(w);
		stx_setup();
		hit = crash_tables_at(n, false);
		was = stack_txn_value(w, "", MAIN, NULL);
		if (was != '2')
			continue;
		stack_txn_git(w, true, &rec, 1);
		if (deletes)
			stack_txn_git_merge(w);
		wr_start();
		ck_assert_int_eq(scripted_status(&stx.h, 0), REFD_OK);
		stx_expect(MAIN, deletes ? '0' : '5');
		nr += hit;
	}
	ck_assert_uint_gt(nr, 0);
}
