/*
 * Proves that a stack is read as a snapshot, that a change appears whole, that
 * no name of a table is used twice, and that nothing is left behind after a
 * change, whatever fails.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_sweep.h"
#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

static struct stack_snapshot *snap;

static void take(void)
{
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
}

/* ---- snapshots ---- */

CASE(.setup = stk_setup, .teardown = stk_teardown);

TEST(snapshots_share_tables)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 2, 2);
	struct stack_snapshot *first, *second;
	unsigned long calls;

	ck_assert(stack_turn_take(stk.stack, 0));
	take();
	first = snap;
	calls = memfs_nr_calls(stk.fs);
	take();
	second = snap;
	ck_assert_ptr_eq(first, second);
	ck_assert_uint_le(memfs_nr_calls(stk.fs) - calls, 6);
	stk_git(2, &rec, 1);
	take();
	ck_assert_ptr_ne(snap, first);
	ck_assert_uint_eq(snap->tables.nr, 2);
	ck_assert_int_eq(snap->tables.tables[0].fd, first->tables.tables[0].fd);
	ck_assert_uint_eq(snap->max_index, 2);
	/* A snapshot lives longer than its tables. */
	stk_git_merge(0, 2);
	stack_snapshot_put(first);
	stack_snapshot_put(second);
	ck_assert_uint_eq(snap->tables.tables[1].max_index, 2);
	stack_snapshot_put(snap);
	take();
	ck_assert_uint_eq(snap->tables.nr, 1);
	stack_snapshot_put(snap);
	stack_turn_give(stk.stack);
}

TEST(no_stack_is_not_an_empty_stack)
{
	rh_put(stk.other, stk.other_dir, REFTABLE_LIST, "", 0);
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault),
	    -EBADMSG);
	ck_assert_str_eq(stk.fault.why,
	    "the list is empty, and tables are there");
	ck_assert_ptr_null(snap);
	SYS(stk.other, unlinkat, stk.other_dir, REFTABLE_LIST);
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), -ENOENT);
}

TEST(idle_stacks_have_no_open_table)
{
	const unsigned long fds = memfs_open_fds(stk.fs);

	take();
	stack_snapshot_put(snap);
	ck_assert_uint_eq(memfs_open_fds(stk.fs), fds);
	ck_assert(stack_turn_take(stk.stack, 0));
	take();
	stack_snapshot_put(snap);
	ck_assert_uint_eq(memfs_open_fds(stk.fs), fds + 1);
	stack_turn_give(stk.stack);
	ck_assert_uint_eq(memfs_open_fds(stk.fs), fds);
}

TEST(the_directory_is_replaced)
{
	ck_assert_int_eq(stack_is_there(stk.stack, stk.git_fd), 0);
	SYS(stk.other, renameat, AT_FDCWD, "/repo/reftable", AT_FDCWD,
	    "/repo/old");
	ck_assert_int_eq(stack_is_there(stk.stack, stk.git_fd), -ESTALE);
	SYS(stk.other, mkdirat, AT_FDCWD, "/repo/reftable", 0777);
	ck_assert_int_eq(stack_is_there(stk.stack, stk.git_fd), -ESTALE);
}

/* ---- a change ---- */

TEST(a_change_appears_whole)
{
	const struct reftable_record records[] = {
		rh_log("refs/heads/b", 0, 0, 2, "no line feed"),
		rh_ref("refs/heads/b", 0, 2),
		rh_ref("refs/heads/a", 0, 3),
	};
	struct stack_update u;

	ck_assert_int_eq(stk_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, records, 3), 0);
	ck_assert_uint_eq(u.index, 2);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/main=1 ");
	ck_assert_int_eq(stk_publish(&u), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/a=3 refs/heads/b=2 "
	    "refs/heads/main=1 ");
	ck_assert_str_eq(stk_list(REFTABLE_LOGS),
	    "refs/heads/b@2:0,2 refs/heads/main@1:0,1 ");
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_uint_eq(stk_nr_files(), 3);
	ck_assert_uint_eq(stk_nr_staged(), 0);
}

TEST(a_deletion_hides_the_log)
{
	const struct reftable_record more[] = {
		rh_ref("refs/heads/main", 2, 2),
		rh_log("refs/heads/main", 2, 1, 2, "second\n"),
	};
	const struct reftable_record records[] = {
		rh_deleted("refs/heads/main", 0),
		rh_ref("refs/heads/m", 0, 5),
		rh_log("refs/heads/m", 0, 0, 5, "m\n"),
	};

	stk_git(2, more, 2);
	ck_assert_int_eq(stk_write(records, 3), 0);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/m=5 ");
	ck_assert_str_eq(stk_list(REFTABLE_LOGS), "refs/heads/m@3:0,5 ");
}

/* stack_log_fn */
static int get_message(void *arg, const struct reftable_record *log)
{
	struct reftable_text *message = arg;

	ck_assert_uint_gt(log->log.message.len, 0);
	ck_assert_int_eq(log->log.message.at[log->log.message.len - 1], '\n');
	message->len = log->log.message.len;
	return 0;
}

TEST(messages_end_as_in_git)
{
	static char message[6000];
	struct reftable_record records[2];
	struct reftable_text text = { NULL, 0 };
	struct stack_reader reader;

	memset(message, 'x', sizeof(message) - 1);
	records[0] = rh_log("refs/heads/a", 0, 0, 1, message);
	records[1] = rh_log("refs/heads/b", 0, 0, 1, "");
	ck_assert_int_eq(stk_write(records, 2), 0);
	take();
	ck_assert_int_eq(stack_reader_init(&reader, snap, rh_budget()), 0);
	ck_assert_int_eq(
	    stack_reader_logs(&reader, "refs/heads/a", get_message, &text), 0);
	ck_assert_uint_eq(text.len, REFTABLE_BLOCK_BYTES / 2 + 1);
	ck_assert_int_eq(
	    stack_reader_logs(&reader, "refs/heads/b", get_message, &text), 0);
	ck_assert_uint_eq(text.len, 1);
	stack_reader_done(&reader);
	stack_snapshot_put(snap);
}

TEST(bad_records)
{
	const struct reftable_record twice[] = { rh_ref("refs/heads/a", 0, 1),
		rh_ref("refs/heads/a", 0, 2) };
	const struct reftable_record empty = rh_ref("", 0, 1);
	struct stack_update u;

	ck_assert_int_eq(stk_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, twice, 2), -EINVAL);
	ck_assert_int_eq(stk_table(&u, &empty, 1), -EINVAL);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_uint_eq(stk_nr_files(), 2);
	ck_assert_uint_eq(stk_nr_staged(), 0);
}

/* Git unlinks a table which it has open and which the list does not name. So
 * every attempt has a new name, with a new random number. */
TEST(names_never_return)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 1);
	char names[40][REFTABLE_WRITER_NAME];
	struct stack_update u;
	size_t i, j;

	ck_assert_int_eq(stk_begin(&u), 0);
	for (i = 0; i < 40; i++) {
		/* A repeat, as after a lost race, with the same base. */
		ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
		memcpy(names[i], u.table, sizeof(u.table));
		for (j = 0; j < i; j++)
			ck_assert_str_ne(names[i] + 30, names[j] + 30);
		ck_assert_int_eq(stack_update_begin(&u), 0);
	}
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_uint_eq(stk_nr_files(), 2);
}

TEST(no_index_is_used_twice)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 1);
	struct stack_update u;

	stack_spend_index(stk.stack, 20);
	ck_assert_int_eq(stk_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	ck_assert_uint_eq(u.index, 21);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_int_eq(stk_write(&rec, 1), 0);
	take();
	ck_assert_uint_eq(snap->max_index, 22);
	ck_assert_uint_eq(stack_next_index(stk.stack, snap), 23);
	stack_spend_index(stk.stack, STACK_INDEX_MAX);
	ck_assert_uint_eq(stack_next_index(stk.stack, snap), 0);
	stack_snapshot_put(snap);
	ck_assert_int_eq(stk_write(&rec, 1), -EOVERFLOW);
	ck_assert_uint_eq(stk_nr_staged(), 0);
}

/* A list that git closed by its umask, or by another setting, stays closed only
 * until the next writer. */
TEST(the_mode_is_that_of_the_writers)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 1);
	struct stack_update u;
	struct sys_stat st;
	int fd =
	    SYS(stk.other, openat, stk.other_dir, REFTABLE_LIST, O_RDONLY, 0);

	SYS(stk.other, fchmod, fd, 0600);
	SYS(stk.other, close, fd);
	ck_assert_int_eq(stk_begin(&u), 0);
	u.mode |= 0640;
	u.mode |= 0660;
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	ck_assert_int_eq(stk_publish(&u), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	take();
	ck_assert_uint_eq(snap->tables.list_stat.mode & 07777, 0660);
	SYS(stk.sys, fstat, snap->tables.tables[1].fd, &st);
	ck_assert_uint_eq(st.mode & 07777, 0660);
	stack_snapshot_put(snap);
}

TEST(a_lock_of_another_writer)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 1);
	struct stack_update u;

	rh_put(stk.other, stk.other_dir, REFTABLE_LIST ".lock", "", 0);
	ck_assert_int_eq(stk_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	ck_assert_int_eq(stack_update_lock(&u), -EEXIST);
	ck_assert_int_eq(stk_end(&u), 0);
	/* The list, the table of git, and git's lock. */
	ck_assert_uint_eq(stk_nr_files(), 3);
	ck_assert_uint_eq(stk_nr_staged(), 0);
}

/* ---- the sweep ---- */

TEST(sweep)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 1);
	struct stack_update crashed, listed;
	uint64_t inodes[2];

	ck_assert_int_eq(stk_begin(&listed), 0);
	ck_assert_int_eq(stk_table(&listed, &rec, 1), 0);
	ck_assert_int_eq(stk_publish(&listed), 0);
	inodes[0] = listed.table_stat.ino;
	ck_assert_int_eq(stk_begin(&crashed), 0);
	ck_assert_int_eq(stk_table(&crashed, &rec, 1), 0);
	inodes[1] = crashed.table_stat.ino;
	if (inodes[0] > inodes[1]) {
		uint64_t swap = inodes[0];

		inodes[0] = inodes[1];
		inodes[1] = swap;
	}
	/* Git's unlisted tables stay. */
	rh_put(stk.other, stk.other_dir, "0x1-0x1-foreign.ref", "", 0);
	ck_assert_uint_eq(stk_nr_files(), 6);
	ck_assert_int_eq(stack_sweep(stk.stack, inodes, 2, &stk.fault), 0);
	ck_assert_uint_eq(stk_nr_files(), 5);
	ck_assert_str_eq(stk_list(REFTABLE_REFS),
	    "HEAD>refs/heads/main refs/heads/a=1 refs/heads/main=1 ");
	ck_assert_int_eq(stack_update_end(&crashed), 0);
	ck_assert_int_eq(token_done(&stk.token), 0);
	token_init(&stk.token, stk.sys, stk.stage_fd, 99);
	ck_assert_int_eq(stk_end(&listed), 0);
}

/* ---- names of sessions, and the turn ---- */

TEST(names_of_sessions)
{
	ck_assert_int_eq(stack_hold_name(stk.stack, "refs/heads/a"), 0);
	ck_assert_int_eq(stack_hold_name(stk.stack, "refs/heads/b"), 0);
	ck_assert_int_eq(stack_hold_name(stk.stack, "refs/heads/a"), -EEXIST);
	ck_assert(stack_is_held(stk.stack, "refs/heads/a"));
	stack_drop_name(stk.stack, "refs/heads/a");
	stack_drop_name(stk.stack, "refs/heads/c");
	ck_assert(!stack_is_held(stk.stack, "refs/heads/a"));
	ck_assert(stack_is_held(stk.stack, "refs/heads/b"));
}

TEST(turns)
{
	ck_assert(stack_turn_take(stk.stack, 0));
	ck_assert(!stack_turn_take(stk.stack, 0));
	ck_assert(!stack_turn_take(stk.stack, 5));
	stack_turn_give(stk.stack);
	ck_assert(stack_turn_take(stk.stack, 5));
	stack_turn_give(stk.stack);
}

/* ---- worktrees ---- */

TEST(stacks_of_worktrees)
{
	struct stack_set *set = stack_set_new(stk.sys, &stk.format);
	struct stack *main, *again, *worktree;
	int fd;

	SYS(stk.other, mkdirat, AT_FDCWD, "/w", 0777);
	fd = SYS(stk.sys, openat, AT_FDCWD, "/w", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(stack_set_get(set, "w", fd, &worktree), -ENOENT);
	ck_assert_int_eq(stack_set_get(set, "", stk.git_fd, &main), 0);
	ck_assert_int_eq(stack_set_get(set, "", stk.git_fd, &again), 0);
	ck_assert_ptr_eq(main, again);
	stack_put(again);
	SYS(stk.other, mkdirat, AT_FDCWD, "/w/reftable", 0777);
	ck_assert_int_eq(stack_set_get(set, "w", fd, &worktree), 0);
	ck_assert_ptr_ne(main, worktree);
	stack_spend_index(worktree, 7);
	stack_put(worktree);
	/* The worktree is removed and made again. */
	SYS(stk.other, renameat, AT_FDCWD, "/w/reftable", AT_FDCWD, "/w/gone");
	SYS(stk.other, mkdirat, AT_FDCWD, "/w/reftable", 0777);
	ck_assert_int_eq(stack_set_get(set, "w", fd, &again), 0);
	ck_assert_int_eq(stack_is_there(again, fd), 0);
	ck_assert_uint_eq(again->spent_index, 7);
	stack_put(again);
	stack_put(main);
	stack_set_free(set);
	SYS(stk.sys, close, fd);
}

TEST(few_stacks_stay_open)
{
	struct stack_set *set = stack_set_new(stk.sys, &stk.format);
	unsigned long fds = memfs_open_fds(stk.fs);
	struct stack *used, *stack;
	char id[16];
	unsigned i;

	ck_assert_int_eq(stack_set_get(set, "", stk.git_fd, &used), 0);
	for (i = 0; i < 3 * STACK_SET_KEPT; i++) {
		snprintf(id, sizeof(id), "w%u", i);
		ck_assert_int_eq(stack_set_get(set, id, stk.git_fd, &stack), 0);
		stack_spend_index(stack, 100 - i);
		stack_put(stack);
	}
	ck_assert_uint_le(memfs_open_fds(stk.fs) - fds, STACK_SET_KEPT);
	ck_assert_int_eq(stack_set_get(set, "", stk.git_fd, &stack), 0);
	ck_assert_ptr_eq(stack, used);
	stack_put(stack);
	/* It was closed, and uses no index again. */
	ck_assert_int_eq(stack_set_get(set, "w0", stk.git_fd, &stack), 0);
	ck_assert_uint_eq(stack->spent_index, 100);
	stack_put(stack);
	stack_put(used);
	stack_set_free(set);
}
