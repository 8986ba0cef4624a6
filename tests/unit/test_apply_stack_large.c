/*
 * Proves that a batch in repositories with reftables flushes no large table
 * while it holds the lock of a list, as git waits only 100 ms for the lock: no
 * table of a further repository in the batch, and no table which git wrote
 * meanwhile. Git can prevent this only by large tables in every round. Also
 * bounds the open tables of a batch, and the bytes that are read of tables
 * while other repositories wait.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/flush_watch.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tables_rig.h"

#define OTHER "/srv/s.git"

static const char *const locks[] = { WORLD_REPO "/reftable/tables.list.lock",
	OTHER "/reftable/tables.list.lock" };

static struct flush_watch watch;

/* ---- two repositories ---- */

static int other_dir, main_dir;

static void use_other(bool other)
{
	stk.other_dir = other ? other_dir : main_dir;
}

static void make_other(void)
{
	const struct reftable_record head =
	    rh_symref("HEAD", 1, "refs/heads/main");

	memfs_mkdirs(w->fs, OTHER "/refs/heads");
	memfs_mkdirs(w->fs, OTHER "/refs/tags");
	memfs_mkdirs(w->fs, OTHER "/objects/pack");
	memfs_mkdirs(w->fs, OTHER "/reftable");
	memfs_write(w->fs, OTHER "/HEAD", "ref: refs/heads/.invalid\n");
	memfs_write(w->fs, OTHER "/config", "[core]\n\tbare = true\n");
	main_dir = stk.other_dir;
	other_dir = SYS(stk.other, openat, AT_FDCWD, OTHER "/reftable",
	    O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(other_dir, 0);
	use_other(true);
	stk_git(1, &head, 1);
	use_other(false);
}

static void set_up(void)
{
	tbl_setup();
	make_other();
	watch = (struct flush_watch){ .fs = w->fs,
		.locks = { locks[0], locks[1] },
		.large_bytes = STACK_LARGE };
	flush_watch_begin(&watch);
}

static void tear_down(void)
{
	SYS(stk.other, close, other_dir);
	use_other(false);
	tbl_teardown();
}

/* For a table of more than STACK_SYNC_EARLY bytes. The names differ early, so
 * they are hardly compressed. */
#define LARGE_NAMES 5000
static char *large_spec(void)
{
	char *spec = calloc(LARGE_NAMES + 1, 256);
	size_t len = (size_t)sprintf(spec, "a=2");
	unsigned i;

	for (i = 0; i < LARGE_NAMES; i++)
		len += (size_t)sprintf(spec + len, ";large/%05u%0220u=1", i, 0);
	return spec;
}

static uint64_t next_index(void)
{
	struct reftable_stack stack;
	uint64_t index;

	ck_assert_int_eq(reftable_stack_open(stk.other, stk.other_dir,
			     stk.format, NULL, &stack, &stk.fault),
	    0);
	index = stack.tables[stack.nr - 1].max_index + 1;
	reftable_stack_close(&stack);
	return index;
}

/* So many refs need more than STACK_LARGE bytes. */
#define LARGE_REFS 12000

/* Git appends a table of more than STACK_LARGE bytes, and flushes nothing. */
static void git_writes_much(void)
{
	struct reftable_record *records = calloc(LARGE_REFS, sizeof(*records));
	char(*names)[48] = calloc(LARGE_REFS, sizeof(*names));
	const uint64_t index = next_index();
	unsigned i;

	for (i = 0; i < LARGE_REFS; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/git/%06u", i);
		records[i] = rh_ref(names[i], index, 1);
	}
	stk_git(index, records, LARGE_REFS);
	free(names);
	free(records);
}

/* One batch with a transaction in each repository. */
static void apply_both(const char *spec, const char *other_spec)
{
	struct txn *txns[] = { world_begin(w, spec, true),
		world_begin_in(w, OTHER, other_spec, true) };
	size_t i;

	world_batch(w, txns, 2);
	for (i = 0; i < 2; i++) {
		ck_assert_msg(txns[i]->updates[0].status == REFD_OK, "%zu: %s",
		    i, txns[i]->updates[0].text);
		world_done(w, txns[i]);
	}
}

static struct suite_case alone = { .name = "other set-ups", .seconds = 120 };

CASE(.name = "two repositories", .setup = set_up, .teardown = tear_down);

TEST(large_tables_of_two_repositories)
{
	char *spec = large_spec();

	watch.large_bytes = STACK_SYNC_EARLY;
	apply_both(spec, spec);
	ck_assert_uint_eq(watch.nr_large, 2);
	ck_assert_uint_eq(watch.nr_locked, 0);
	free(spec);
}

/* ---- large tables by git ---- */

struct meddling {
	bool in_other, done;
	unsigned left; /* tables */
};

/* Git waits for the lock. */
static void meddle(struct memfs *fs, void *arg)
{
	struct meddling *m = arg;

	if (m->left == 0)
		return;
	if (memfs_exists(fs, locks[m->in_other])) {
		memfs_between(fs, 0, meddle, m);
		return;
	}
	use_other(m->in_other);
	git_writes_much();
	use_other(false);
	m->done = true;
	if (--m->left > 0)
		memfs_between(fs, 40, meddle, m);
}

TEST(a_large_table_by_git, .times = 2, .in = &alone)
{
	unsigned long n, before, all = 1;
	static struct meddling m; /* may be called in tear_down() */
	unsigned nr_done = 0;

	for (n = 0; n < all; n += 2) {
		set_up();
		m = (struct meddling){ .in_other = _i, .left = 1 };
		before = memfs_nr_calls(w->fs);
		memfs_between(w->fs, n, meddle, &m);
		if (_i)
			apply_both("a=2", "a=2");
		else
			wr_ok("a=2");
		all = memfs_nr_calls(w->fs) - before;
		m.left = 0;
		memfs_fail_none(w->fs);
		nr_done += m.done;
		ck_assert_msg(watch.nr_locked == 0, "before call %lu", n);
		tear_down();
	}
	ck_assert_uint_gt(nr_done, 10);
}

/* Git is faster each time: the last table is flushed under the lock. */
TEST(many_large_tables_by_git)
{
	static struct meddling m = { .left = 30 };

	memfs_between(w->fs, 0, meddle, &m);
	wr_ok("a=2");
	ck_assert_uint_gt(m.left, 0);
	m.left = 0;
	memfs_fail_none(w->fs);
}

/* ---- open tables ---- */

#define MANY (REFTABLE_TABLES_MAX * 2 / 3)

static void many_tables(bool other)
{
	struct reftable_record rec;
	unsigned i;

	use_other(other);
	for (i = 2; i <= MANY; i++) {
		rec = rh_ref("refs/heads/b", i, 1);
		stk_git(i, &rec, 1);
	}
	use_other(false);
}

/* The transactions get a pass each. */
TEST(many_tables_of_two_repositories)
{
	many_tables(false);
	many_tables(true);
	apply_both("a=2", "a=2");
	ck_assert_uint_gt(watch.most_fds, MANY);
	ck_assert_uint_lt(watch.most_fds, 2 * MANY);
}

TEST(many_tables_of_a_transaction, .in = &alone)
{
	struct txn *txn;
	unsigned i;

	tbl_setup_worktree();
	main_dir = stk.other_dir;
	many_tables(false);
	tbl_use("wt");
	for (i = 2; i <= MANY; i++) {
		struct reftable_record rec = rh_ref("refs/bisect/bad", i, 1);

		stk_git(i, &rec, 1);
	}
	tbl_use("");
	txn = world_apply(w, "a=2;@worktrees/wt/refs/bisect/bad=2", true);
	ck_assert_int_eq(txn->updates[1].status, REFD_UNSUPPORTED);
	ck_assert_int_eq(txn->updates[0].status, REFD_ABORTED);
	world_done(w, txn);
	wr_ok("@worktrees/wt/refs/bisect/bad=2");
	wr_ok("a=2");
	tbl_teardown();
}

/* ---- much to read ---- */

/* One block of 3 MB, and a single restart point. */
static void much_to_read(void)
{
	struct rh_bytes table = rh_one_block(2, 450000);

	use_other(true);
	rh_add(stk.other, stk.other_dir, &table, 2, 2, 2);
	use_other(false);
	rh_free(&table);
}

static void expect_alone(const struct txn *txn)
{
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_ALONE);
}

/* The other repository of the batch does not wait for the table. */
TEST(much_to_read_beside_others)
{
	struct txn *txns[2];

	much_to_read();
	txns[0] = world_begin(w, "a=2", false);
	txns[1] = world_begin_in(w, OTHER, "a=2", false);
	world_batch(w, txns, 2);
	ck_assert_int_eq(txns[0]->updates[0].status, REFD_OK);
	expect_alone(txns[1]);
	world_done(w, txns[0]);
	world_done(w, txns[1]);
}

static void apply_alone(const char *spec, bool is_served)
{
	struct txn *txn = world_begin_in(w, OTHER, spec, false);

	world_batch(w, &txn, 1);
	if (is_served)
		ck_assert_msg(txn->updates[0].status == REFD_OK, "%s",
		    txn->updates[0].text);
	else
		expect_alone(txn);
	world_done(w, txn);
}

/* A user has one such batch at a time, and there are few in all. */
TEST(much_to_read_alone)
{
	atomic_uint_fast64_t *users = w->store.pipeline->applier.large_users;
	struct txn *txn = world_begin(w, "a=2", false);
	const uint64_t me = (uint64_t)txn->peer.uid + 1;
	unsigned i;

	world_done(w, txn);
	much_to_read();
	apply_alone("a=2", true);
	for (i = 0; i < APPLY_LARGE_MAX; i++)
		ck_assert_uint_eq(atomic_load(&users[i]), 0);
	atomic_store(&users[1], me);
	apply_alone("b=2", false);
	for (i = 0; i < APPLY_LARGE_MAX; i++)
		atomic_store(&users[i], me + 1 + i);
	apply_alone("b=2", false);
	atomic_store(&users[2], 0);
	apply_alone("b=2", true);
}

/* Git writes the table between the two batches of a session. */
TEST(much_to_read_for_a_session)
{
	atomic_uint_fast64_t *users = w->store.pipeline->applier.large_users;
	struct txn *txn = world_session(w, "a=2", true);
	const uint64_t index = next_index();
	struct rh_bytes table = rh_one_block(index, 450000);
	unsigned i;

	ck_assert_ptr_nonnull(txn->prepared);
	rh_add(stk.other, stk.other_dir, &table, index, index, index);
	rh_free(&table);
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	for (i = 0; i < APPLY_LARGE_MAX; i++)
		ck_assert_uint_eq(atomic_load(&users[i]), 0);
}
