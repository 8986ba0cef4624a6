/*
 * Proves the recovery of everything that is no plain ref in the common
 * directory: symbolic refs by their target, torn symbolic refs, later writes of
 * others, and the refs of linked worktrees, with a HEAD in every worktree.
 */
#include <fcntl.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define HEAD     WORLD_REPO "/HEAD"
#define HEAD_LOG WORLD_REPO "/logs/HEAD"
#define MAIN     WORLD_REPO "/refs/heads/main"
#define WT       WORLD_REPO "/worktrees/wt"
#define ONES     "3131313131313131313131313131313131313131\n"
#define TO_MAIN  "ref: refs/heads/main\n"
#define TO_TOPIC "ref: refs/heads/topic\n"

static struct scripted_txn h;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	memfs_write(w->fs, MAIN, ONES);
	memfs_write(w->fs, WT "/HEAD", TO_TOPIC);
	memfs_mkdirs(w->fs, WT "/refs/bisect");
	ck_assert_int_eq(world_start(w), 0);
	h = (struct scripted_txn){ .w = w, .publish = SCRIPTED_ALL };
}

static void one(struct record_member m)
{
	ck_assert_int_eq(scripted_apply(&h, &m, 1), 0);
}

/* ---- symbolic refs ---- */

CASE(.setup = setup, .teardown = wr_teardown, .seconds = 60);

/* An earlier recovery wrote a file that is younger than our lock and may be
 * torn, too. The file does not count as a later foreign write. */
TEST(power_loss_tears_a_symref, .times = 3)
{
	static const enum memfs_data data[] = { MEMFS_DATA_NONE,
		MEMFS_DATA_NULS, MEMFS_DATA_TORN };

	memfs_advance(w->fs, 1000000000);
	one(scripted_symref("HEAD", "refs/heads/topic"));
	memfs_advance(w->fs, 1000000000);
	memfs_write_bytes(w->fs, HEAD, "ref: refs/heads/to\0\0\0", 21);
	wr_power_loss_and_start(data[_i], 1000);
	wr_expect_file(HEAD, TO_TOPIC);
}

TEST(power_loss_leaves_a_later_link)
{
	struct record_member m =
	    scripted_symref("refs/remotes/o/HEAD", "refs/heads/x");

	one(m);
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     WORLD_REPO "/refs/remotes/o/HEAD"),
	    0);
	memfs_advance(w->fs, 1000000000);
	scripted_sync(w);
	memfs_symlink(w->fs, "refs/heads/y", WORLD_REPO "/refs/remotes/o/HEAD");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
}

TEST(power_loss_loses_their_symref_too)
{
	scripted_git_writes(w, HEAD, "ref: refs/heads/other\n");
	one(scripted_symref("HEAD", "refs/heads/topic"));
	scripted_git_writes(w, HEAD, "ref: refs/heads/other\n");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	wr_expect_file(HEAD, TO_TOPIC);
}

/* ---- worktrees ---- */

/* Both HEADs are in one batch, and the daemon is killed after the first. The
 * lock of the second HEAD says nothing about the first. */
TEST(crash_tells_one_head_from_another, .times = 2)
{
	struct record_member m[] = {
		scripted_member(RECORD_LOG, "HEAD", '1', '2'),
		scripted_in("wt", scripted_member(RECORD_LOG, "HEAD", '1', '2'))
	};

	m[1].index = 1;
	h.publish = 1;
	if (_i == 1) {
		m[0].worktree = "wt";
		m[1].worktree = "";
	}
	ck_assert_int_ne(SCRIPTED_APPLY(&h, m), 0);
	/* Another writer continued the finished log: our line is not the
	 * last. */
	memfs_write(w->fs, _i == 0 ? HEAD_LOG : WT "/logs/HEAD", "");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '1', '2'), _i);
	ck_assert_int_eq(scripted_log_lines(w, WT "/logs/HEAD", '1', '2'),
	    1 - _i);
	ck_assert_uint_eq(w->found[STORE_LOG_REPAIRED], 1);
	wr_expect_locks("");
}

TEST(crash_finds_every_lock_of_a_worktree)
{
	struct record_member m[] = { scripted_in("wt",
					 scripted_member(RECORD_WRITE,
					     "refs/bisect/bad", '0', '2')),
		scripted_in("wt",
		    scripted_member(RECORD_WRITE, "HEAD", '1', '2')),
		scripted_in("wt",
		    scripted_member(RECORD_WRITE, "refs/worktree/a/b", '0',
			'2')) };

	h.publish = 0;
	ck_assert_int_ne(SCRIPTED_APPLY(&h, m), 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	wr_expect_locks("");
	ck_assert_uint_eq(w->found[STORE_ROLLED_FORWARD], 3);
	ck_assert(memfs_exists(w->fs, WT "/refs/bisect/bad"));
	ck_assert(memfs_exists(w->fs, WT "/refs/worktree/a/b"));
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/bisect"));
	wr_expect_file(HEAD, TO_MAIN);
}

TEST(a_worktree_that_is_gone_is_not_made_again)
{
	struct record_member m[] = {
		scripted_in("wt", scripted_symref("HEAD", "refs/heads/main")),
		scripted_in("wt",
		    scripted_member(RECORD_LOG, "refs/worktree/s", '1', '2')),
		scripted_member(RECORD_WRITE, "refs/heads/main", '1', '2')
	};
	const struct sys *sys = memfs_other(w->fs);

	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD, WT, AT_FDCWD, "/srv/wt"),
	    0);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert(!memfs_exists(w->fs, WT));
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_uint_eq(w->found[STORE_DROPPED], 2);
	ck_assert_int_eq(world_ref(w, "main"), '2');
}

TEST(a_foreign_lock_in_a_worktree_defers)
{
	struct record_member m[] = {
		scripted_in("wt",
		    scripted_member(RECORD_WRITE, "refs/bisect/bad", '0', '2')),
		scripted_in("wt", scripted_member(RECORD_LOG, "HEAD", '1', '2'))
	};

	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	memfs_write(w->fs, WT "/HEAD.lock", "");
	memfs_write(w->fs, WT "/refs/bisect/bad.lock", "");
	/* A lock of the other HEAD does not matter. */
	memfs_write(w->fs, HEAD ".lock", "");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->deferred, 2);
	ck_assert_int_eq(
	    SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, WT "/HEAD.lock"), 0);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_int_eq(scripted_log_lines(w, WT "/logs/HEAD", '1', '2'), 1);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '1', '2'), 0);
}
