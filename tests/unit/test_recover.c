/*
 * Proves recovery where a story (tests/stories) cannot tell it: equal lines,
 * locks that lost their token, torn logs, logs that must stay, one rewrite for
 * several deletions, missing and replaced repositories, and a malformed
 * packed-refs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define REF   WORLD_REPO "/refs/heads/x"
#define LOG   WORLD_REPO "/logs/refs/heads/x"
#define TOKEN WORLD_REPO "/refd/stage/0000010000000001.0"
#define FIVES "3535353535353535353535353535353535353535\n"

/* ---- a crash: the page cache is exact ---- */

CASE(.setup = wr_setup_apart, .teardown = wr_teardown);

/* If the log of a deleted ref may not be removed, recovery deletes the ref all
 * the same, as git does. */
TEST(deletion_leaves_a_log_of_others)
{
	unsigned long n;
	unsigned nr_left = 0;
	bool hit = true, is_log;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		ck_assert_int_eq(world_checkpoint(w), 0);
		wr_ok("-x:1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_fail_call(w->fs, MEMFS_UNLINKAT, n, -EACCES);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		is_log = hit && strstr(memfs_hit(w->fs), "logs/") != NULL;
		memfs_fail_none(w->fs);
		if (!is_log)
			continue;
		nr_left++;
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '0');
		ck_assert(memfs_exists(w->fs, LOG));
	}
	ck_assert_uint_gt(nr_left, 0);
}

/* Locks are found also if directories don't tell the types of their entries. */
TEST(crash_finds_its_locks, .times = 2)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/d/x", '0', '1');
	struct scripted_txn h = { .w = w };

	memfs_hide_types(w->fs, _i == 1);
	wr_ok("d/e/y=1");
	scripted_apply(&h, &m, 1);
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refs/heads/d/x.lock"));
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "d/x"), '1');
	wr_expect_locks("");
}

/* ---- a power loss ---- */

/* The file system kept the locks, and lost the name of their token. Such a lock
 * is refd's. Locks of git have another mode or a content, and config.lock has
 * the mode of config. Loop: a place that has such a lock, too. */
TEST(power_loss_with_locks_without_their_token, .times = 4)
{
	static const char *const places[] = { WORLD_REPO "/packed-refs.lock",
		WORLD_REPO "/HEAD.lock", WORLD_REPO "/worktrees/wt/HEAD.lock",
		WORLD_REPO "/worktrees/wt/refs/bisect/good.lock" };
	struct record_member m[] = {
		scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1'),
		scripted_member(RECORD_WRITE, "refs/heads/y", '0', '1'),
	};
	struct scripted_txn h = { .w = w };
	const struct sys *git = memfs_other(w->fs);

	ck_assert_int_eq(scripted_apply(&h, m, 2), -EAGAIN);
	ck_assert(memfs_exists(w->fs, REF ".lock"));
	memfs_write(w->fs, WORLD_REPO "/worktrees/wt/HEAD", FIVES);
	memfs_mkdirs(w->fs, WORLD_REPO "/worktrees/wt/refs/bisect");
	ck_assert_int_eq(
	    SYS(git, linkat, AT_FDCWD, REF ".lock", AT_FDCWD, places[_i]), 0);
	ck_assert_int_eq(SYS(git, linkat, AT_FDCWD, REF ".lock", AT_FDCWD,
			     WORLD_REPO "/config.lock"),
	    0);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/a.lock", "");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/b.lock", FIVES);
	memfs_chmod(w->fs, WORLD_REPO "/refs/heads/b.lock", 0444);
	memfs_write(w->fs, REF, "");
	scripted_sync(w);
	wr_unlink(TOKEN);
	wr_power_loss_and_start(MEMFS_DATA_ALL, -1);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	wr_expect_locks(WORLD_REPO "/config.lock\n" WORLD_REPO
				   "/refs/heads/a.lock\n" WORLD_REPO
				   "/refs/heads/b.lock\n");
}

/* Beside the daemon a batch may end, and git take the name of its lock, so only
 * the next start removes such locks. */
TEST(retry_leaves_a_lock_without_its_token)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn h = { .w = w };

	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	scripted_sync(w);
	wr_unlink(TOKEN);
	wr_power_loss(MEMFS_DATA_ALL, -1);
	wr_rename(WORLD_REPO, WORLD_REPO ".away");
	wr_start();
	wr_rename(WORLD_REPO ".away", WORLD_REPO);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	wr_expect_locks(REF ".lock\n");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	wr_expect_locks("");
}

/* After a crash names are exact, and a batch that lost its token has ended: the
 * next lock with its name could be git's. */
TEST(crash_with_a_lock_without_a_token)
{
	wr_ok("x=1");
	memfs_write(w->fs, REF ".lock", "");
	memfs_chmod(w->fs, REF ".lock", 0444);
	ck_assert_int_eq(scripted_crash(w), 0);
	wr_expect_locks(REF ".lock\n");
}

TEST(power_loss_mends_the_log_of_what_it_leaves)
{
	const struct sys *sys = memfs_other(w->fs);
	int fd;

	wr_ok("x=1");
	scripted_git_writes(w, REF, FIVES);
	fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/logs/refs/heads/x",
	    O_WRONLY | O_APPEND, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, "\0\0\0\0", 4), 0);
	SYS(sys, close, fd);
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), -1);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
}

/* Two transactions: recovery rewrites packed-refs once for both. */
TEST(deletions_share_one_rewrite)
{
	unsigned long n;
	unsigned rewrites = 0;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		memfs_write(w->fs, WORLD_REPO "/packed-refs",
		    "# pack-refs with: peeled fully-peeled sorted \n"
		    "3131313131313131313131313131313131313131 refs/heads/p\n"
		    "3131313131313131313131313131313131313131 refs/heads/q\n");
		wr_ok("-p:1");
		wr_ok("-q:1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_fail_call(w->fs, MEMFS_RENAMEAT, n, -EIO);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		rewrites +=
		    hit && strstr(memfs_hit(w->fs), "packed-refs") != NULL;
		memfs_fail_none(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_int_eq(world_ref(w, "p"), '0');
		ck_assert_int_eq(world_ref(w, "q"), '0');
	}
	ck_assert_uint_eq(rewrites, 1);
}

/* ---- records that can't be redone ---- */

/* Recovery makes no directory in the place of a repository. */
TEST(missing_repository_is_not_made)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, "/srv/away");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_REPO_MISSING], 1);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO));
}

/* The new repository has no id, or a different id. */
TEST(replaced_repository_gets_nothing, .times = 2)
{
	char *id;

	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, "/srv/away");
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads");
	memfs_write(w->fs, WORLD_REPO "/HEAD", "ref: refs/heads/main\n");
	if (_i == 1) {
		id = memfs_read(w->fs, "/srv/away/refd/id", NULL);
		ck_assert_int_eq(strncmp(id, "uuid ", 5), 0);
		id[5] = id[5] == '0' ? '1' : '0';
		memfs_write(w->fs, WORLD_REPO "/refd/id", id);
		free(id);
	}
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_uint_eq(w->deferred, 1);
}

TEST(malformed_packed_refs_is_saved)
{
	wr_ok("x=1");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 1);
	ck_assert(memfs_holds(w->fs, w->evidence, "garbage\n"));
}
