/*
 * Proves that after a failed sync of the prepared file no node of a group
 * commits an update: a row of the group's log can't be taken back. The file is
 * packed-refs, or a table, its list, and their directory. The leader sends no
 * row that does the update, and a follower does not append the row. Both do so
 * at the next attempt.
 *
 * A follower applies several rows in one commit, in their order: all of them,
 * or none, whatever fails.
 *
 * On the leader, no update begins at a value that the group has not given its
 * ref, whatever another program has written: the update comes back, and goes on
 * after the value of the group is back. The found value is kept, also if the
 * daemon ends in between.
 *
 * A file that the kernel keeps for another account, in a sticky directory,
 * fails an update before its row.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/group/group_internal.h"
#include "daemon/group/own_txn.h"
#include "daemon/store/batch/pass.h"
#include "proto/refname.h"
#include "tests/lib/leader_rig.h"
#include "tests/lib/suite.h"

/* The syncs of packed-refs.new, and of the table, the list and the
 * directory. */
#define FILES_SYNCS  1
#define TABLES_SYNCS 3

static unsigned nr_writes; /* committed to the log */

/* The log of the group takes every row. A row has the LSN of the follower's
 * row, or none. */
static int count_writes(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct record rec;
	size_t i, k;

	for (i = 0; i < nr; i++) {
		ck_assert_int_eq(rows[i].kind, JOURNAL_SLICE);
		ck_assert_int_eq(record_decode(rows[i].body, rows[i].len, &rec),
		    0);
		for (k = 0; k < rec.nr_members; k++)
			nr_writes += rec.members[k].status == REFD_OK;
		record_done(&rec);
	}
	return ldr_commit(arg, rows, nr, flush);
}

/* The repository has been opened before. */
static void join(void)
{
	wr_ok("x=1;y=1");
	ldr_join(count_writes);
	nr_writes = 0;
}

static void setup_files(void)
{
	w = world_new(memfs_new(), false);
	w->packed_least = 2;
	wr_start();
	join();
}

static void setup_tables(void)
{
	tbl_setup();
	join();
}

static void expect(bool tables, char value)
{
	ck_assert_int_eq(tables ? tbl_ref("a") : world_ref(w, "a"), value);
	ck_assert_int_eq(tables ? tbl_ref("b") : world_ref(w, "b"), value);
	ck_assert_uint_eq(nr_writes, value == '0' ? 0 : 2);
	wr_expect_locks("");
}

/* A failed sync of the directory, which is the last one, makes the file system
 * suspect. */
static bool goes_on(bool tables, int sync)
{
	return !tables || sync + 1 < TABLES_SYNCS;
}

/* ---- the leader ---- */

static void lead(bool tables, int sync)
{
	struct txn *txn;

	memfs_fail_call(w->fs, MEMFS_FSYNC, (unsigned long)sync, -EIO);
	txn = world_apply(w, "a=1:0;b=1:0", true);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	ck_assert_int_eq(txn->updates[1].status, REFD_IO);
	world_done(w, txn);
	expect(tables, '0');
	if (!goes_on(tables, sync))
		return;
	wr_ok("a=1:0;b=1:0");
	expect(tables, '1');
}

static struct suite_case with_files = { .name = "files",
	.setup = setup_files,
	.teardown = wr_teardown };
static struct suite_case with_tables = { .name = "tables",
	.setup = setup_tables,
	.teardown = tbl_teardown };
static struct suite_case values_in_files = { .name = "values in files",
	.setup = ldr_begin_files,
	.teardown = ldr_end };
static struct suite_case values_in_tables = { .name = "values in tables",
	.setup = ldr_begin_tables,
	.teardown = ldr_end };

CASE(.name = "values in files", .setup = ldr_begin_files, .teardown = ldr_end,
    .also = &values_in_tables);

TEST(leader_with_files, .times = FILES_SYNCS, .in = &with_files)
{
	lead(false, _i);
}

TEST(leader_with_tables, .times = TABLES_SYNCS, .in = &with_tables)
{
	lead(true, _i);
}

/* ---- a follower ---- */

static void apply_slices(struct txn_slice *slices, size_t nr)
{
	struct batch b = { .slices = slices, .nr_slices = nr };

	apply_batch(&w->store.pipeline->applier, &b);
}

/* A row, and its transaction. */
struct follower_row {
	struct group_row row;
	struct record_member members[2];
	uint8_t *body;
	struct own_txn rt;
};

/* The atomic row LSN gives the NR refs the values NEW ('0': deletes them), from
 * OLD. */
static void row_init(struct follower_row *fr, uint64_t lsn,
    const char *const *names, size_t nr, char old, char new_c)
{
	struct record rec = { .committer = "A <a@example.org> 1700000000 +0000",
		.message = "test",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = (uint32_t)nr,
		.object_format = world_format(),
		.atomic = true,
		.members = fr->members,
		.nr_members = nr };
	size_t i;

	*fr = (struct follower_row){ .row.is_final = true };
	for (i = 0; i < nr; i++)
		fr->members[i] = (struct record_member){ .index = (uint32_t)i,
			.status = REFD_OK,
			.answers = true,
			.name = names[i],
			.worktree = "",
			.action = new_c == '0' ? RECORD_DELETE : RECORD_WRITE,
			.had_old = old != '0',
			.old_oid = world_oid(old),
			.new_oid = world_oid(new_c) };
	fr->body = record_encode(&rec, &fr->row.record.len);
	fr->row.record.data = fr->body;
	ck_assert_int_eq(own_txn_of_row(&fr->rt, &fr->row, lsn, WORLD_REPO), 0);
	fr->rt.txn->repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(fr->rt.txn->repo);
	for (i = 0; i < nr; i++)
		fr->rt.txn->updates[i].object = TXN_OBJECT_COMMIT;
}

static void row_done(struct follower_row *fr)
{
	repo_put(&w->store.repos, fr->rt.txn->repo);
	fr->rt.txn->repo = NULL;
	own_txn_done(&fr->rt);
	free(fr->body);
}

/* Tries to apply the row which creates a and b; false: must be tried again. */
static bool try_row(void)
{
	static const char *const names[] = { "refs/heads/a", "refs/heads/b" };
	struct follower_row fr;
	bool is_applied;
	size_t i;

	row_init(&fr, 1, names, 2, '0', '1');
	apply_slices(&fr.rt.slice, 1);
	/* The follower then counts the row as applied (follower.c). */
	is_applied = fr.rt.slice.lsn != 0;
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(fr.rt.txn->updates[i].status == REFD_OK,
		    is_applied);
	row_done(&fr);
	return is_applied;
}

static void follow(bool tables, int sync)
{
	memfs_fail_call(w->fs, MEMFS_FSYNC, (unsigned long)sync, -EIO);
	ck_assert(!try_row());
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	expect(tables, '0');
	if (!goes_on(tables, sync))
		return;
	ck_assert(try_row());
	expect(tables, '1');
}

TEST(follower_with_files, .times = FILES_SYNCS, .in = &with_files)
{
	follow(false, _i);
}

TEST(follower_with_tables, .times = TABLES_SYNCS, .in = &with_tables)
{
	follow(true, _i);
}

/* ---- values of other programs ---- */

/* SPEC changes refs/heads/a, which has another value. */
static void expect_given_back(const char *spec)
{
	const uint64_t lsn = journal_last_lsn(w->store.journal);
	struct txn *txn = world_apply(w, spec, false);

	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_DIVERGED);
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), lsn);
	ck_assert_uint_gt(ldr_nr_told, 0);
	world_done(w, txn);
}

/* As the follower mends the ref (mend.c): from FOUND to WANT, '0': none. */
static bool mend(char found, char want)
{
	struct refd_update updates[] = {
		{ .action = REFD_CREATE,
		    .name = REFD_DIVERGED "1/heads/a",
		    .no_deref = true,
		    .new_oid = world_oid(found) },
		{ .action = want == '0' ? REFD_DELETE : REFD_UPDATE,
		    .name = "refs/heads/a",
		    .no_deref = true,
		    .has_old = true,
		    .old_oid = world_oid(found),
		    .new_oid = world_oid(want) },
	};
	struct repo *repo = world_repo(w, WORLD_REPO);
	struct own_txn nt;
	bool is_done;

	ck_assert_ptr_nonnull(repo);
	ck_assert_int_eq(own_txn_of_node(&nt, repo, updates, 2, false), 0);
	nt.txn->repo = repo;
	apply_slices(&nt.slice, 1);
	is_done = nt.txn->updates[0].status == REFD_OK &&
	    nt.txn->updates[1].status == REFD_OK;
	repo_put(&w->store.repos, repo);
	nt.txn->repo = NULL;
	own_txn_done(&nt);
	return is_done;
}

static const char kept[] = "@" REFD_DIVERGED "1/heads/a";

TEST(an_older_value)
{
	ldr_lead();
	wr_ok("a=1:0;b=1:0");
	wr_ok("a=2:1");
	ldr_write_beside("a=1:2");
	expect_given_back("a=3:1");
	expect_given_back("a=3:2");
	ck_assert_int_eq(ldr_value("a"), '1');
	/* Other refs go on. */
	wr_ok("b=2:1");
	ck_assert(mend('1', '2'));
	wr_ok("a=3:2");
	ck_assert_int_eq(ldr_value("a"), '3');
	ck_assert_int_eq(ldr_value(kept), '1');
}

/* An update ends after the value of the group was read for mending. */
TEST(mending_comes_late)
{
	ldr_lead();
	wr_ok("a=1:0");
	wr_ok("a=2:1");
	ck_assert(!mend('2', '1'));
	ck_assert(!mend('2', '0'));
	ck_assert_int_eq(ldr_value("a"), '2');
	ck_assert_int_eq(ldr_value(kept), '0');
	wr_ok("-a:2");
	wr_ok("a=1:0");
	ck_assert(!mend('1', '2'));
	ck_assert_int_eq(ldr_value("a"), '1');
}

TEST(a_deleted_ref_is_back, .in = &values_in_files)
{
	ldr_lead();
	wr_ok("a=1:0");
	wr_ok("-a:1");
	ldr_write_beside("a=1:0");
	expect_given_back("a=2:0");
	expect_given_back("a=2:1");
	expect_given_back("-a:1");
	ck_assert(mend('1', '0'));
	wr_ok("a=2:0");
	ck_assert_int_eq(ldr_value(kept), '1');
}

/* The new name would have no room beside it. */
TEST(a_missing_ref_keeps_its_room)
{
	ldr_lead();
	wr_ok("a=1:0");
	ldr_write_beside("-a:1");
	expect_given_back("a/b=2:0");
	expect_given_back("a/b/c=2:0");
	wr_ok("ab=2:0");
	ldr_write_beside("a=1:0");
	wr_ok("-a:1");
	wr_ok("a/b=2:0");
	ldr_write_beside("-a/b:2");
	ldr_told = "refs/heads/a/b";
	ldr_nr_told = 0;
	expect_given_back("a=1:0");
	wr_ok("a-b=1:0");
}

TEST(a_ref_is_missing_or_symbolic, .in = &values_in_files)
{
	ldr_lead();
	wr_ok("a=1:0;b=1:0");
	ldr_write_beside("-a:1");
	expect_given_back("a=2:0");
	ldr_write_beside("a/b=1:0");
	expect_given_back("a=2:1");
	ldr_write_beside("-a/b:1");
	world_write(w->fs, WORLD_REPO "/refs/heads/a", "ref: refs/heads/b\n");
	expect_given_back("a=2:1");
	expect_given_back("!a=2:1");
	world_write(w->fs, WORLD_REPO "/refs/heads/a", "@1\n");
	wr_ok("a=2:1");
	ck_assert_int_eq(ldr_value("b"), '1');
}

/* A ref to which no row has given a value. */
TEST(a_base_line_is_on_the_disk, .in = &values_in_files)
{
	wr_ok("x=1");
	ldr_lead();
	ldr_write_beside("x=2:1");
	wr_ok("x=3:2");
	ldr_write_beside("x=2:3");
	ck_assert_int_eq(ldr_value("x"), '2');
}

/* ---- rows that have come together ---- */

static const char *const together[] = { "refs/heads/a", "refs/heads/b",
	"refs/heads/c" };
#define NR_TOGETHER 3

static unsigned nr_commits;

static int count_commits(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	nr_commits++;
	return ldr_commit(arg, rows, nr, flush);
}

/* Rows 2 to 4 delete a, and move b and c from 1 to 2. */
static void begin_together(void)
{
	ldr_lead();
	wr_ok("a=1:0;b=1:0;c=1:0");
	w->store.pipeline->applier.commit = count_commits;
	nr_commits = 0;
}

/* As the follower applies them (together.c). True: all are applied. */
static bool apply_together(void)
{
	const uint64_t lsn = journal_shared_lsn(w->store.journal);
	struct follower_row rows[NR_TOGETHER];
	struct txn_slice slices[NR_TOGETHER];
	size_t i, nr = 0;

	for (i = 0; i < NR_TOGETHER; i++) {
		row_init(&rows[i], lsn + 1 + i, &together[i], 1, '1',
		    i == 0 ? '0' : '2');
		slices[i] = rows[i].rt.slice;
	}
	apply_slices(slices, NR_TOGETHER);
	for (i = 0; i < NR_TOGETHER; i++) {
		nr += slices[i].lsn == lsn + 1 + i;
		row_done(&rows[i]);
	}
	ck_assert(nr == 0 || nr == NR_TOGETHER);
	return nr > 0;
}

static void expect_together(bool are_applied)
{
	ck_assert_int_eq(ldr_value("a"), are_applied ? '0' : '1');
	ck_assert_int_eq(ldr_value("b"), are_applied ? '2' : '1');
	ck_assert_int_eq(ldr_value("c"), are_applied ? '2' : '1');
	ck_assert_uint_eq(journal_shared_lsn(w->store.journal),
	    are_applied ? 4 : 1);
	wr_expect_locks("");
}

/* A deletion rewrites packed-refs, and the row behind it does not. */
TEST(rows_have_one_commit)
{
	begin_together();
	ck_assert(apply_together());
	ck_assert_uint_eq(nr_commits, 1);
	expect_together(true);
}

/* The journal takes no row before the row that precedes it. */
TEST(one_row_holds_all_back)
{
	const char *lock = ldr_has_tables ? WORLD_REPO
	    "/reftable/tables.list.lock" :
					    WORLD_REPO "/refs/heads/b.lock";

	begin_together();
	memfs_write(w->fs, lock, "");
	ck_assert(!apply_together());
	wr_unlink(lock);
	expect_together(false);
	ldr_write_beside("c=3:1");
	w->store.pipeline->applier.commit = count_commits;
	ck_assert(!apply_together());
	ck_assert_int_eq(ldr_value("a"), '1');
	ck_assert_int_eq(ldr_value("b"), '1');
	ck_assert_uint_eq(nr_commits, 0);
	ldr_write_beside("c=1:3");
	ck_assert(apply_together());
	expect_together(true);
}

static int refuse_commit(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	(void)arg;
	(void)rows;
	(void)flush;
	ck_assert_uint_eq(nr, NR_TOGETHER);
	nr_commits++;
	return -ENOSPC;
}

/* A row alone would wait for the rows before it, and end the daemon. */
TEST(a_full_journal_takes_no_row_alone)
{
	begin_together();
	w->store.pipeline->applier.commit = refuse_commit;
	ck_assert(!apply_together());
	ck_assert_uint_eq(nr_commits, 1);
	w->store.pipeline->applier.commit = count_commits;
	expect_together(false);
	ck_assert(apply_together());
	expect_together(true);
}

/* ---- files of another account ---- */

/* All files are root's. IS_STICKY: from now on the daemon is of another
 * account, and may replace and remove no file in DIR. */
static void set_sticky(const char *dir, bool is_sticky)
{
	ck_assert_int_eq(SYS(memfs_other(w->fs), chmod_trusted, dir,
			     is_sticky ? 01777 : 0777),
	    0);
	ck_assert_int_eq(seteuid(is_sticky ? 65534 : getuid()), 0);
}

static void try_sticky(const char *dir, const char *spec, bool is_ok)
{
	struct txn *txn;
	uint64_t lsn;

	ldr_lead();
	wr_ok("a=1:0");
	lsn = journal_last_lsn(w->store.journal);
	set_sticky(dir, true);
	txn = world_apply(w, spec, false);
	set_sticky(dir, false);
	ck_assert_int_eq(txn->updates[0].status, is_ok ? REFD_OK : REFD_IO);
	world_done(w, txn);
	wr_expect_locks("");
	if (is_ok)
		return;
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), lsn);
	wr_ok(spec);
}

static const struct {
	const char *dir, *spec;
	bool is_ok;
} sticky[] = {
	{ WORLD_REPO "/refs/heads", "a=2:1", false },
	{ WORLD_REPO "/refs/heads", "-a:1", false },
	{ WORLD_REPO "/refs/heads", "b=1:0", true },
	{ WORLD_REPO "/logs/refs/heads", "a=2:1", true },
	{ WORLD_REPO "/logs/refs/heads", "-a:1", true },
	{ WORLD_REPO, "-p:1", false },
};
#define NR_STICKY (int)(sizeof(sticky) / sizeof(*sticky))

TEST(a_file_of_another_account, .times = NR_STICKY, .in = &values_in_files)
{
	world_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "@1 refs/heads/p\n");
	try_sticky(sticky[_i].dir, sticky[_i].spec, sticky[_i].is_ok);
}

TEST(a_list_of_another_account, .in = &values_in_tables)
{
	try_sticky(WORLD_REPO "/reftable", "a=2:1", false);
}

/* The kernel lets an account replace all files of its own directory. */
TEST(a_sticky_directory_of_this_account)
{
	const char *dir =
	    ldr_has_tables ? WORLD_REPO "/reftable" : WORLD_REPO "/refs/heads";

	memfs_set_owner(w->fs, dir, 65534, 65534);
	try_sticky(dir, "a=2:1", true);
}

/* The rows wait, and nothing of them is committed. */
TEST(rows_wait_for_a_sticky_directory, .in = &values_in_files)
{
	begin_together();
	set_sticky(WORLD_REPO "/refs/heads", true);
	ck_assert(!apply_together());
	set_sticky(WORLD_REPO "/refs/heads", false);
	ck_assert_uint_eq(nr_commits, 0);
	expect_together(false);
	ck_assert(apply_together());
	expect_together(true);
}

static void start_again(void)
{
	memfs_crash(w->fs);
	world_crash(w);
	if (ldr_has_tables)
		tbl_reopen();
	wr_start();
	ldr_lead();
}

TEST(values_outlive_the_daemon, .in = &values_in_files)
{
	ldr_lead();
	wr_ok("a=1:0");
	wr_ok("a=2:1");
	start_again();
	ldr_write_beside("a=1:2");
	start_again();
	expect_given_back("a=3:1");
	ck_assert(mend('1', '2'));
	start_again();
	wr_ok("a=3:2");
}

/* False: the daemon was not killed before call N. */
static bool kill_at(unsigned long n)
{
	bool is_hit;

	memfs_crash_at(w->fs, n);
	mend('1', '2');
	is_hit = memfs_was_hit(w->fs);
	start_again();
	/* Both, or nothing. */
	ck_assert_int_eq(ldr_value(kept), ldr_value("a") == '2' ? '1' : '0');
	if (ldr_value("a") == '1') {
		expect_given_back("a=3:2");
		ck_assert(mend('1', '2'));
	}
	ck_assert_int_eq(ldr_value("a"), '2');
	ck_assert_int_eq(ldr_value(kept), '1');
	wr_ok("a=3:2");
	return is_hit;
}

TEST(killed_while_mending)
{
	bool is_hit = true;
	unsigned long n;

	for (n = 0; is_hit; n++) {
		if (n > 0) {
			ldr_end();
			ldr_begin();
		}
		ldr_lead();
		wr_ok("a=1:0");
		wr_ok("a=2:1");
		ldr_write_beside("a=1:2");
		is_hit = kill_at(n);
	}
	ck_assert_uint_gt(n, 5);
}

/* All rows of a batch are in the refs after a crash, or none. */
TEST(killed_while_rows_are_applied)
{
	bool is_hit = true;
	unsigned long n;

	for (n = 0; is_hit; n++) {
		if (n > 0) {
			ldr_end();
			ldr_begin();
		}
		begin_together();
		memfs_crash_at(w->fs, n);
		apply_together();
		is_hit = memfs_was_hit(w->fs);
		start_again();
		expect_together(journal_shared_lsn(w->store.journal) > 1);
	}
	ck_assert_uint_gt(n, 20);
}
