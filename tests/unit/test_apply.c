/*
 * Proves the effects of a batch on a repository on a healthy disk, beyond the
 * stories of tests/stories: directory/file conflicts, locks that go one by one,
 * a HEAD that moves, names that are taken during the flush. No lock or staged
 * file is left. A file that the kernel keeps for another account denies an
 * update. The time in the log of a group is not counted as a time of locks. No
 * log looks as if only the daemon had written it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"

CASE(.setup = wr_setup, .teardown = wr_teardown, .seconds = 60);

/* Directories may tell the types of their entries, or not. */
TEST(directory_file_conflicts, .times = 2)
{
	memfs_hide_types(w->fs, _i == 1);
	OK("d/f=1");
	apply_expect("d=1", false, 1, REFD_CONFLICT);
	apply_expect("d/f/g=1", false, 1, REFD_CONFLICT);
	/* With an old value, the ref is missing if its parent is a ref. */
	apply_expect("d/f/g=1:2", false, 1, REFD_MISSING);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/junk", "garbage\n");
	apply_expect("junk/x=1:2", false, 1, REFD_CONFLICT);
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/pk/x\n");
	apply_expect("pk=1", false, 1, REFD_CONFLICT);
	apply_expect("pk/x/y=1", false, 1, REFD_CONFLICT);
	OK("-d/f");
	OK("d=1");
	/* Directories without a ref block no ref. */
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/e/f/g");
	OK("e=1");
	ck_assert_int_eq(world_ref(w, "d"), '1');
}

static bool was_unlocked_alone;

static void look_at_locks(struct memfs *fs, void *arg)
{
	(void)arg;
	was_unlocked_alone = memfs_exists(fs, WORLD_REPO "/refs/heads/a") &&
	    !memfs_exists(fs, WORLD_REPO "/refs/heads/a.lock") &&
	    !memfs_exists(fs, WORLD_REPO "/refs/heads/b");
}

/* No ref stays locked while the next ref is published. */
TEST(each_ref_is_unlocked_by_itself)
{
	unsigned long n, calls = 1;
	unsigned unlocked = 0;

	for (n = 0; n < calls; n++) {
		world_free(w);
		wr_setup();
		was_unlocked_alone = false;
		calls = memfs_nr_calls(w->fs);
		memfs_between(w->fs, n, look_at_locks, NULL);
		apply_expect("a=1;b=1", false, 2, REFD_OK, REFD_OK);
		calls = memfs_nr_calls(w->fs) - calls;
		unlocked += was_unlocked_alone;
	}
	ck_assert_uint_ge(unlocked, 1);
}

struct head_writer {
	const char *text;
	bool was_before; /* refd's lock of HEAD */
	bool was_late;   /* refd had the branch's lock */
};

/* A writer that respects HEAD.lock. */
static void write_head(struct memfs *fs, void *arg)
{
	struct head_writer *writer = arg;

	if (memfs_exists(fs, WORLD_REPO "/HEAD.lock"))
		return;
	writer->was_before = !memfs_exists(fs, WORLD_REPO "/refs/heads/main");
	writer->was_late = writer->was_before &&
	    memfs_exists(fs, WORLD_REPO "/refs/heads/main.lock");
	memfs_write(fs, WORLD_REPO "/HEAD", writer->text);
}

/* HEAD leaves the branch before refd locks HEAD: HEAD's log gets no line. */
TEST(a_head_that_left_its_branch_gets_no_line, .times = 2)
{
	static const char *const texts[] = { "ref: refs/heads/other\n",
		"3131313131313131313131313131313131313131\n" };
	struct head_writer writer;
	unsigned long n, calls = 1;
	unsigned late = 0;

	for (n = 0; n < calls; n++) {
		world_free(w);
		wr_setup();
		writer = (struct head_writer){ .text = texts[_i] };
		calls = memfs_nr_calls(w->fs);
		memfs_between(w->fs, n, write_head, &writer);
		OK("main=1");
		calls = memfs_nr_calls(w->fs) - calls;
		late += writer.was_late;
		ck_assert_int_eq(world_ref(w, "main"), '1');
		ck_assert_int_eq(world_log_count(w, "main", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "@HEAD", '0', '1'),
		    !writer.was_before);
	}
	ck_assert_uint_ge(late, 2);
}

/* A no-op leaves the file unchanged and is still recorded. */
TEST(no_op_is_recorded)
{
	uint64_t before;

	OK("a=1");
	before = journal_last_lsn(w->store.journal);
	OK("a=1:1");
	ck_assert_uint_gt(journal_last_lsn(w->store.journal), before);
	ck_assert_int_eq(world_log_count(w, "a", '1', '1'), 0);
}

/* The name is taken between the lock and the rename: the update is aborted.
 */
static void take_name(struct memfs *fs, void *arg)
{
	(void)arg;
	if (memfs_exists(fs, WORLD_REPO "/refs/heads/n"))
		return;
	memfs_mkdirs(fs, WORLD_REPO "/refs/heads/n");
	memfs_write(fs, WORLD_REPO "/refs/heads/n/x",
	    "3131313131313131313131313131313131313131\n");
}

TEST(a_name_taken_during_the_flush_is_aborted)
{
	struct txn *txn;
	unsigned long n;
	int conflicts = 0;

	for (n = 0; n < 400; n++) {
		struct world *fresh = world_new(memfs_new(), false);

		ck_assert_int_eq(world_start(fresh), 0);
		txn = world_apply(fresh, "m=1", false);
		world_done(fresh, txn);
		memfs_between(fresh->fs, n, take_name, NULL);
		txn = world_apply(fresh, "n=2;o=2", true);
		ck_assert_ptr_nonnull(txn);
		if (txn->updates[0].status == REFD_CONFLICT) {
			conflicts++;
			ck_assert_int_eq(txn->updates[1].status, REFD_ABORTED);
			ck_assert_int_eq(world_ref(fresh, "o"), '0');
		} else {
			ck_assert_int_eq(txn->updates[0].status, REFD_OK);
			ck_assert_int_eq(world_ref(fresh, "o"), '2');
		}
		world_done(fresh, txn);
		if (!memfs_exists(fresh->fs, WORLD_REPO "/refs/heads/n/x")) {
			world_free(fresh);
			break;
		}
		/* A restart does not change any answer. */
		memfs_crash(fresh->fs);
		world_crash(fresh);
		ck_assert_int_eq(world_start(fresh), 0);
		if (world_ref(fresh, "o") == '2')
			ck_assert_int_eq(fresh->found[STORE_REDONE], 0);
		world_free(fresh);
	}
	ck_assert_int_gt(conflicts, 5);
	ck_assert_uint_lt(n, 400);
}

/* All files are root's. */
TEST(a_file_of_another_account)
{
	OK("a=1");
	ck_assert_int_eq(SYS(memfs_other(w->fs), chmod_trusted,
			     WORLD_REPO "/refs/heads", 01777),
	    0);
	ck_assert_int_eq(seteuid(65534), 0);
	apply_expect("a=2:1", false, 1, REFD_DENIED);
	apply_expect("b=1:0", false, 1, REFD_OK);
	ck_assert_int_eq(seteuid(getuid()), 0);
	ck_assert_int_eq(world_ref(w, "a"), '1');
}

#define LONG_NS (INT64_C(5) * 1000000000)

static int (*commit)(void *, struct journal_row *, size_t, bool);

static int commit_for_long(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	memfs_advance(w->fs, LONG_NS);
	return commit(arg, rows, nr, flush);
}

/* Names rest for as long as they were locked. The time in the log of a group
 * does not count: a server of PostgreSQL that is away must not stop a ref for
 * twice as long. */
TEST(the_log_of_a_group_gives_no_rest)
{
	struct applier *ap = &w->store.pipeline->applier;
	struct replica_ops ops = replica_single;
	struct replica shared = { .ops = &ops };

	ops.shares_rows = true;

	commit = ap->commit;
	ap->commit = commit_for_long;
	OK("a=1");
	ck_assert_int_ge(w->rest_ns, LONG_NS);
	ap->replica = &shared;
	OK("a=2");
	ck_assert_int_gt(w->rest_ns, 0);
	ck_assert_int_lt(w->rest_ns, LONG_NS);
}

/* Somebody can have the log open. Without the right, it would look as if only
 * the daemon had written the log. Git takes the right. */
TEST(a_log_keeps_the_right_to_write)
{
	static const char log[] = WORLD_REPO "/logs/refs/heads/a";
	const struct sys *sys = memfs_other(w->fs);
	struct sys_stat st;
	struct txn *txn;

	OK("a=1");
	memfs_chmod(w->fs, log, 0666);
	txn = world_begin(w, "a=2", false);
	ck_assert_ptr_nonnull(txn);
	txn->req.shared_repository = "0640";
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(world_log_count(w, "a", '1', '2'), 1);
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, log, &st), 0);
	ck_assert_uint_eq(st.mode & 07777, 0662);
}
