/*
 * Proves that recovery writes log lines that follow from other updates: the
 * lines of HEAD and of symbolic refs on the way, alone, and before and after
 * values of the same file. An update whose name was taken leaves no line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define HEAD     WORLD_REPO "/HEAD"
#define HEAD_LOG WORLD_REPO "/logs/HEAD"
#define MAIN     WORLD_REPO "/refs/heads/main"
#define MAIN_LOG WORLD_REPO "/logs/refs/heads/main"
#define WT       WORLD_REPO "/worktrees/wt"
#define ONES     "3131313131313131313131313131313131313131\n"
#define TWOS     "3232323232323232323232323232323232323232\n"
#define FIVES    "3535353535353535353535353535353535353535\n"
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

/* main through HEAD. */
static void follow(char old, char new_c)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", old,
					 new_c),
		scripted_member(RECORD_WRITE, "refs/heads/main", old, new_c) };

	m[0].answers = true;
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
}

static void one(struct record_member m)
{
	ck_assert_int_eq(scripted_apply(&h, &m, 1), 0);
}

/* ---- lines that follow from other updates ---- */

CASE(.setup = setup, .teardown = wr_teardown, .seconds = 60);

/* The ref now belongs to git, and its log is the deleted log. */
TEST(power_loss_undoes_the_deletion_of_a_log_alone)
{
	char *log;

	follow('1', '2');
	follow('2', '3');
	log = memfs_read(w->fs, MAIN_LOG, NULL);
	one(scripted_member(RECORD_DELETE, "refs/heads/main", '3', '0'));
	scripted_git_writes(w, MAIN,
	    "3434343434343434343434343434343434343434\n");
	scripted_git_writes(w, MAIN_LOG, log);
	free(log);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "main"), '4');
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert(!memfs_exists(w->fs, MAIN_LOG));
}

/* The ref belongs to git by now, and the power loss took two lines of ours, and
 * not only the last one. 1: it took none, and git has moved the ref back to the
 * value before both. */
TEST(power_loss_loses_lines_below_a_later_value, .times = 2)
{
	char *log;

	follow('1', '2');
	ck_assert_int_eq(world_checkpoint(w), 0);
	log = memfs_read(w->fs, MAIN_LOG, NULL);
	follow('2', '3');
	follow('3', '4');
	scripted_git_writes(w, MAIN, _i == 0 ? FIVES : TWOS);
	if (_i == 0)
		scripted_git_writes(w, MAIN_LOG, log);
	free(log);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "main"), _i == 0 ? '5' : '2');
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(scripted_log_lines(w, MAIN_LOG, '1', '2'), 1);
	ck_assert_int_eq(scripted_log_lines(w, MAIN_LOG, '2', '3'), 1);
	ck_assert_int_eq(scripted_log_lines(w, MAIN_LOG, '3', '4'), 1);
}

/* As above, but git wrote a log of its own. */
TEST(a_log_since_a_deletion_is_left)
{
	static const char line[] = "0000000000000000000000000000000000000000 "
				   "3333333333333333333333333333333333333333 "
				   "G <g> 1 +0000\tgit\n";

	follow('1', '2');
	follow('2', '3');
	one(scripted_member(RECORD_DELETE, "refs/heads/main", '3', '0'));
	scripted_git_writes(w, MAIN,
	    "3333333333333333333333333333333333333333\n");
	scripted_git_writes(w, MAIN_LOG, line);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "main"), '3');
	wr_expect_file(MAIN_LOG, line);
}

/* A record detached HEAD, then git made HEAD point to a branch again. */
TEST(power_loss_of_a_head_that_was_written_and_then_followed)
{
	one(scripted_member(RECORD_WRITE, "HEAD", '1', '2'));
	scripted_git_writes(w, HEAD, TO_MAIN);
	follow('1', '3');
	scripted_sync(w);
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, HEAD_LOG),
	    0);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	wr_expect_file(HEAD, TO_MAIN);
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '1', '3'), 1);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '1', '2'), 1);
}

/* git wrote a line and never synced. A record that only confirms git's value
 * needs no line of its own, but the next line must not follow half of git's
 * line. */
TEST(power_loss_tears_a_line_that_is_not_ours)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/main", '1', '1');

	m.log = false;
	memfs_write(w->fs, MAIN_LOG, "whole\nhalf");
	one(m);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	wr_expect_file(MAIN_LOG, "whole\n");
}

TEST(a_symref_that_is_gone_gets_no_log)
{
	struct record_member m[] = { scripted_member(RECORD_LOG,
					 "refs/remotes/o/HEAD", '1', '2'),
		scripted_member(RECORD_WRITE, "refs/heads/main", '1', '2') };

	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "main"), '2');
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/logs/refs/remotes/o/HEAD"));
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/remotes/o"));
}

/* HEAD's log has lacked a line since a power loss. Then a crash stops the next
 * update before its line, or git empties the log after that line. Every line is
 * added by the rule of its own record. */
TEST(each_line_keeps_the_rule_of_its_record, .times = 2)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '2',
					 '3'),
		scripted_member(RECORD_WRITE, "refs/heads/main", '2', '3') };

	m[0].answers = true;
	follow('1', '2');
	memfs_write(w->fs, HEAD ".lock", "");
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_uint_eq(w->deferred, 1);
	wr_unlink(HEAD ".lock");
	h.publish = _i == 0 ? 0 : SCRIPTED_ALL;
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), _i == 0 ? -EAGAIN : 0);
	if (_i == 1)
		memfs_write(w->fs, HEAD_LOG, "");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "main"), '3');
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '1', '2'), 1);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '2', '3'), 1 - _i);
	wr_expect_locks("");
}

/* ---- names that another writer takes ---- */

/* The daemon is killed with the line written and the value missing. Then the
 * name is taken. */
TEST(crash_takes_back_the_lines_of_a_name_that_was_taken, .times = 2)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '0',
					 '2'),
		scripted_member(RECORD_LOG, "refs/remotes/o/HEAD", '0', '2'),
		scripted_member(RECORD_WRITE, "refs/heads/new", '0', '2') };
	unsigned long n;
	bool hit = true;

	m[0].answers = true;
	for (n = 0; hit; n++) {
		world_free(w);
		setup();
		memfs_write(w->fs, WORLD_REPO "/refs/remotes/o/HEAD", TO_MAIN);
		h.atomic = _i == 1;
		memfs_crash_at(w->fs, n);
		SCRIPTED_APPLY(&h, m);
		hit = memfs_was_hit(w->fs);
		memfs_crash(w->fs);
		world_crash(w);
		if (hit && !memfs_exists(w->fs, WORLD_REPO "/refs/heads/new"))
			memfs_write(w->fs, WORLD_REPO "/refs/heads/new/x",
			    ONES);
		ck_assert_int_eq(world_start(w), 0);
		wr_expect_locks("");
		if (memfs_exists(w->fs, WORLD_REPO "/refs/heads/new/x")) {
			ck_assert_int_eq(
			    scripted_log_lines(w, HEAD_LOG, '0', '2'), 0);
			ck_assert_int_eq(scripted_log_lines(w,
					     WORLD_REPO
					     "/logs/refs/remotes/o/HEAD",
					     '0', '2'),
			    0);
			ck_assert_int_eq(scripted_log_lines(w,
					     WORLD_REPO "/logs/refs/heads/new",
					     '0', '2'),
			    0);
			if (h.lsn != 0)
				ck_assert_int_eq(scripted_status(&h, 0),
				    REFD_CONFLICT);
		} else {
			ck_assert_int_eq(
			    scripted_log_lines(w, HEAD_LOG, '0', '2'), 1);
		}
	}
	ck_assert_uint_gt(n, 10);
}

/* HEAD's log has an earlier, identical line: the branch was made, deleted and
 * made again within a second. The power loss took the second line, and a
 * foreign branch took the name. Recovery cannot tell the lines apart, and
 * removes none. */
TEST(power_loss_takes_back_no_line)
{
	static const char new_ref[] = WORLD_REPO "/refs/heads/new";
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '0',
					 '2'),
		scripted_member(RECORD_WRITE, "refs/heads/new", '0', '2') };

	m[0].answers = true;
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_unlink(new_ref);
	wr_unlink(WORLD_REPO "/logs/refs/heads/new");
	scripted_sync(w);
	ck_assert_int_eq(journal_forget(w->store.journal,
			     journal_last_lsn(w->store.journal), true),
	    0);
	w->seconds--;
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '0', '2'), 2);
	wr_unlink(new_ref);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/new/x", ONES);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_CONFLICT);
	ck_assert_int_eq(scripted_log_lines(w, HEAD_LOG, '0', '2'), 1);
}

TEST(a_deletion_below_a_file_is_done)
{
	struct record_member m[] = { scripted_member(RECORD_DELETE,
	    "refs/heads/a/b", '1', '0') };

	m[0].answers = true;
	memfs_write(w->fs, WORLD_REPO "/refs/heads/a/b", ONES);
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/a/b\n");
	m[0].had_packed = true;
	m[0].packed_oid = world_oid('1');
	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	ck_assert_int_eq(SYS(memfs_other(w->fs), rmdirat, AT_FDCWD,
			     WORLD_REPO "/refs/heads/a"),
	    0);
	scripted_sync(w);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/a", ONES);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
	ck_assert_int_eq(world_ref(w, "a/b"), '0');
	ck_assert_int_eq(world_ref(w, "a"), '1');
}

/* A log of the new ref, or a directory on the way to that log, now has the name
 * of the deleted ref's log. */
TEST(a_deleted_log_leaves_its_name_to_another, .times = 2)
{
	static const char *const specs[][3] = { { "d/x=1", "-d/x", "d=2" },
		{ "d=1", "-d", "d/x=2" } };
	const char *ref = specs[_i][2];
	char name[8];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(ref, "="), ref);
	wr_ok(specs[_i][0]);
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok(specs[_i][1]);
	wr_ok(ref);
	wr_power_loss_and_start(MEMFS_DATA_ALL, 1000);
	ck_assert_int_eq(world_ref(w, name), '2');
	ck_assert_int_eq(world_log_count(w, name, '0', '2'), 1);
	ck_assert_uint_eq(w->found[STORE_LEFT], 0);
}

/* Repositories are copied with cp -al: then a file has two names. */
TEST(what_is_taken_back_is_ours)
{
	struct record_member m[] = { scripted_member(RECORD_WRITE,
					 "refs/heads/main", '1', '2'),
		scripted_member(RECORD_WRITE, "refs/heads/q", '0', '2') };

	m[1].index = 1;
	h.atomic = true;
	h.publish = 0;
	ck_assert_int_eq(SYS(memfs_other(w->fs), linkat, AT_FDCWD, MAIN,
			     AT_FDCWD, "/srv/copy"),
	    0);
	ck_assert_int_ne(SCRIPTED_APPLY(&h, m), 0);
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     WORLD_REPO "/refs/heads/q"),
	    0);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/q/z", ONES);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "q"), '0');
	ck_assert_int_eq(world_ref(w, "main"), '1');
	ck_assert_int_eq(scripted_status(&h, 0), REFD_ABORTED);
	ck_assert_int_eq(scripted_status(&h, 1), REFD_CONFLICT);
}
