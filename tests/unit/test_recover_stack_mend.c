/*
 * Proves that recovery mends tables by git that have lost their footer in a
 * power loss: with rows to redo and without, in a worktree, several tables, and
 * after a foreign lock has gone. A living daemon finds such tables when it
 * opens the repository again. Other damage stays as it is. A crash or a failure
 * at every point of the mending leaves a stack that the next start mends.
 * Proves also that an empty list is served only if no table is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/deferred/deferred_fs.h"
#include "tests/lib/stack_txn_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define MAIN   "refs/heads/main"
#define X      "refs/heads/x"
#define FOOTER (world_format() == REFD_FORMAT_SHA1 ? 68 : 72)
#define WT     WORLD_REPO "/worktrees/wt/reftable"

static void configure(const char *fsync)
{
	char text[300];

	snprintf(text, sizeof(text),
	    "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n"
	    "\tfsync = %s\n[extensions]\n\trefStorage = reftable\n"
	    "\tobjectFormat = %s\n",
	    fsync, refd_object_format_name(world_format()));
	memfs_write(w->fs, WORLD_REPO "/config", text);
}

/* Table NR of the list in DIR; negative: from the end. */
static const char *table(const char *dir, int nr)
{
	static char path[400];
	char list_path[300], *list, *line;
	int lines = 0;

	snprintf(list_path, sizeof(list_path), "%s/tables.list", dir);
	list = memfs_read(w->fs, list_path, NULL);
	for (line = list; (line = strchr(line, '\n')) != NULL; line++)
		lines++;
	line = list;
	for (nr = nr < 0 ? lines + nr : nr; nr > 0; nr--)
		line = strchr(line, '\n') + 1;
	snprintf(path, sizeof(path), "%s/%.*s", dir, (int)strcspn(line, "\n"),
	    line);
	free(list);
	return path;
}

enum loss { LOSS_ALL, LOSS_ZERO, LOSS_TORN, LOSSES };

static void lose_footer(const char *path, enum loss loss)
{
	size_t len;
	char *data = memfs_read(w->fs, path, &len);

	if (loss == LOSS_ALL)
		len -= FOOTER;
	else if (loss == LOSS_ZERO)
		memset(data + len - FOOTER, 0, FOOTER);
	else
		memset(data + len - FOOTER / 2, 0, FOOTER / 2);
	memfs_write_bytes(w->fs, path, data, len);
	free(data);
}

/* Only a ref, without a log. */
static void git_ref_alone(const char *name, char value)
{
	struct reftable_record git = rh_ref(name, 0, (uint8_t)value);

	git.ref.oid = world_oid(value);
	stack_txn_git(w, true, &git, 1);
}

/* ---- footers ---- */

CASE(.setup = stx_setup, .teardown = wr_teardown, .seconds = 300);

TEST(a_lost_footer, .times = LOSSES)
{
	char was[400];

	stx_change(MAIN, '2');
	stack_txn_git_ref(w, X, '1', '5');
	stx_lose_power_and_lock();
	stack_txn_git_ref(w, "refs/heads/y", '0', '6');
	strcpy(was, table(STACK_DIR, -1));
	lose_footer(was, (enum loss)_i);
	stx_expect("refs/heads/y", '!');
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 1);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 0);
	stx_expect(MAIN, '2');
	stx_expect("refs/heads/y", '6');
	stx_expect_log("refs/heads/y", "0>6@2 ");
	ck_assert(!memfs_exists(w->fs, was));
	stx_expect_rest();
}

/* Without a log, only the sync of git proves that all refs are there. */
TEST(refs_alone, .times = 4)
{
	static const char *const settings[] = { "reference", "objects",
		"reference\n\tfsyncMethod = writeout-only",
		"reference\n[includeIf \"gitdir:/x\"]\n\tpath = /x" };

	configure(settings[_i]);
	stx_change(MAIN, '2');
	stx_lose_power_and_lock();
	git_ref_alone(X, '5');
	lose_footer(table(STACK_DIR, -1), LOSS_ALL);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], _i == 0);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], _i > 0);
	ck_assert_uint_eq(w->deferred, _i > 0);
	stx_expect(X, _i == 0 ? '5' : '!');
	if (_i == 0)
		stx_expect_rest();
}

TEST(several_tables)
{
	const struct record_member m[] = { stack_txn_member(0, "", MAIN, '2'),
		stack_txn_member(1, "wt", "HEAD", '2') };

	configure("committed,loose-object");
	ck_assert_int_eq(stack_txn_apply(&stx, m, 2), 0);
	stx_lose_power_and_lock();
	wr_unlink(WT "/tables.list.lock");
	git_ref_alone(X, '5');
	git_ref_alone("refs/heads/y", '6');
	lose_footer(table(STACK_DIR, -1), LOSS_ALL);
	lose_footer(table(STACK_DIR, -2), LOSS_ZERO);
	lose_footer(table(WT, 0), LOSS_TORN);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 3);
	stx_expect(MAIN, '2');
	stx_expect(X, '5');
	stx_expect("refs/heads/y", '6');
	ck_assert_int_eq(stack_txn_value(w, "wt", "HEAD", NULL), '2');
	stx_expect_rest();
}

/* The log has no row of the repository. */
TEST(without_a_row, .times = 2)
{
	configure("reference");
	stx_change(MAIN, '2');
	ck_assert_int_eq(world_checkpoint(w), 0);
	scripted_sync(w);
	stx_lose_power();
	lose_footer(table(_i == 0 ? STACK_DIR : WT, 0), LOSS_ALL);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 1);
	stx_expect(MAIN, '2');
	ck_assert_int_eq(stack_txn_value(w, "wt", "HEAD", NULL), '1');
	stx_expect_rest();
}

/* The log has no row of the repository, and the daemon lives. The next opening
 * finds the damage, and the admission mends it before a batch reads the
 * stack. */
TEST(in_a_living_daemon, .times = 3)
{
	enum refd_status status;
	struct repo *repo;
	bool is_noted;
	char *why;

	configure("reference");
	stx_change(MAIN, '2');
	ck_assert_int_eq(world_checkpoint(w), 0);
	if (_i > 0)
		lose_footer(table(_i == 1 ? STACK_DIR : WT, 0), LOSS_ALL);
	repos_trim(&w->store.repos, -1);
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_nonnull(repo);
	ck_assert_int_eq(deferred_fs_check(w->store.deferred, repo), 0);
	is_noted = deferred_blocks_writes(w->store.deferred, repo->id);
	repo_put(&w->store.repos, repo);
	ck_assert_int_eq(is_noted, _i > 0);
	if (_i > 0)
		ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], _i > 0);
	stx_expect(MAIN, '2');
	ck_assert_int_eq(stack_txn_value(w, "wt", "HEAD", NULL), '1');
}

TEST(a_foreign_lock, .times = 2)
{
	configure("reference");
	stx_change(MAIN, '2');
	if (_i == 1) {
		ck_assert_int_eq(world_checkpoint(w), 0);
		scripted_sync(w);
		stx_lose_power();
	} else {
		stx_lose_power_and_lock();
	}
	lose_footer(table(STACK_DIR, 0), LOSS_ALL);
	memfs_write(w->fs, STX_LIST ".lock", "");
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 0);
	stx_expect(MAIN, '!');
	ck_assert(memfs_exists(w->fs, STX_LIST ".lock"));
	wr_unlink(STX_LIST ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 1);
	stx_expect(MAIN, '2');
	stx_expect_rest();
}

/* Git died with the machine, and left a torn table and its lock. */
TEST(a_dead_lock)
{
	configure("reference");
	stx_change(MAIN, '2');
	ck_assert_int_eq(world_checkpoint(w), 0);
	scripted_sync(w);
	stx_lose_power();
	lose_footer(table(STACK_DIR, 0), LOSS_ALL);
	memfs_write(w->fs, STX_LIST ".lock", "");
	wr_power_loss(MEMFS_DATA_ALL, 1000);
	wr_know_boot();
	wr_start();
	ck_assert_uint_eq(w->found[STORE_UNLOCKED], 1);
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 1);
	stx_expect(MAIN, '2');
	stx_expect_rest();
}

/* Nothing is written: a wrong block, a missing block, a table of zeroes. */
TEST(other_damage, .times = 3)
{
	char path[400], *data, *list;
	size_t len;

	configure("reference");
	stx_change(MAIN, '2');
	stx_lose_power();
	strcpy(path, table(STACK_DIR, 0));
	lose_footer(path, LOSS_ALL);
	data = memfs_read(w->fs, path, &len);
	if (_i == 0)
		data[24] ^= 0x7f; /* the type of the block */
	else if (_i == 1)
		len -= 1;
	else
		memset(data, 0, len);
	memfs_write_bytes(w->fs, path, data, len);
	list = memfs_read(w->fs, STX_LIST, NULL);
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 1);
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 0);
	wr_expect_file(STX_LIST, list);
	ck_assert(memfs_exists(w->fs, path));
	free(list);
	free(data);
}

/* The lines behind a NUL are lost, and so are their refs. */
TEST(nul_bytes_in_the_list)
{
	char text[300];
	char *list;

	configure("reference");
	stx_change(MAIN, '2');
	stx_lose_power();
	lose_footer(table(STACK_DIR, 0), LOSS_ALL);
	list = memfs_read(w->fs, STX_LIST, NULL);
	memset(text, 0, sizeof(text));
	snprintf(text, sizeof(text), "%s", list);
	memfs_write_bytes(w->fs, STX_LIST, text, strlen(list) + 43);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 0);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 1);
	ck_assert_uint_eq(w->deferred, 1);
	free(list);
}

/* A worktree that the power loss took before it had refs stops no other
 * stack. */
TEST(beside_a_damaged_worktree)
{
	configure("reference");
	stx_change(MAIN, '2');
	ck_assert_int_eq(world_checkpoint(w), 0);
	scripted_sync(w);
	stx_lose_power();
	lose_footer(table(STACK_DIR, 0), LOSS_ALL);
	ck_assert_int_eq(SYS(memfs_other(w->fs), mkdirat, AT_FDCWD,
			     WORLD_REPO "/worktrees/a", 0777),
	    0);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_TABLE_MENDED], 1);
	stx_expect(MAIN, '2');
}

/* ---- failures at every point ---- */

/* The world is down, a row is to be redone, and two tables lack footers. */
static void damage(void)
{
	wr_teardown();
	stx_setup();
	configure("reference");
	stx_change(MAIN, '2');
	stx_lose_power_and_lock();
	git_ref_alone(X, '5');
	lose_footer(table(STACK_DIR, 0), LOSS_ALL);
	lose_footer(table(STACK_DIR, -1), LOSS_ZERO);
	scripted_sync(w);
}

static void expect_mended(const char *at)
{
	const char *what;

	ck_assert_msg(stack_txn_value(w, "", MAIN, NULL) == '2' &&
		stack_txn_value(w, "", X, NULL) == '5' &&
		stack_txn_value(w, "", "HEAD", NULL) == '>',
	    "%s: wrong refs", at);
	what = world_litter(w);
	ck_assert_msg(what == NULL, "%s: %s", at, what);
}

static void start_again(const char *at)
{
	int r;

	world_crash(w);
	memfs_crash(w->fs);
	r = world_start(w);
	ck_assert_msg(r == 0 && w->deferred == 0, "%s: start: %d", at, r);
	expect_mended(at);
}

TEST(killed_anywhere)
{
	char at[200];
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		damage();
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		snprintf(at, sizeof(at), "change %lu, %s", n, memfs_hit(w->fs));
		start_again(at);
	}
	ck_assert_uint_gt(n, 20);
}

/* Behind change N, only synced data and names survive, or a part of the
 * names. */
TEST(power_lost_anywhere, .times = 2)
{
	char at[200];
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		damage();
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		snprintf(at, sizeof(at), "change %lu, %s", n, memfs_hit(w->fs));
		wr_power_loss(MEMFS_DATA_NONE, _i - 1);
		wr_start();
		ck_assert_msg(w->deferred == 0, "%s: deferred", at);
		expect_mended(at);
	}
}

/* The armed fault meets a start. A retry, or the next start, then has all. AT
 * gets the place of the fault, number N. False: nothing met the fault. */
static bool start_beside_fault(unsigned long n, char at[200])
{
	int r = world_start(w);
	bool hit = memfs_was_hit(w->fs);

	snprintf(at, 200, "%lu, %s: %d", n, memfs_hit(w->fs), r);
	memfs_fail_none(w->fs);
	if (r == 0 && w->deferred > 0) {
		world_tick(w);
		r = world_retry(w);
		ck_assert_msg(r == 0, "%s: retry: %d", at, r);
	}
	if (r < 0)
		start_again(at);
	return hit;
}

TEST(every_call_fails_once, .times = 3)
{
	static const int errs[] = { -EIO, -ENOSPC, -ENOMEM };
	char at[200];
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		damage();
		memfs_fail(w->fs, n, errs[_i]);
		hit = start_beside_fault(n, at);
		expect_mended(at);
	}
	ck_assert_uint_gt(n, 50);
}

/* A rename may take effect and fail. The list then names the new file, which
 * the failed mending must not remove: the old file has no footer. */
TEST(a_failed_rename_has_happened)
{
	char at[200];
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		damage();
		memfs_fail_after(w->fs, MEMFS_RENAMEAT, n, -EIO);
		hit = start_beside_fault(n, at);
		ck_assert_msg(w->deferred == 0, "%s: deferred", at);
		expect_mended(at);
	}
	ck_assert_uint_gt(n, 3);
}

/* ---- an empty list ---- */

/* Git deleted every ref, and merged the tables away. */
static void empty(void)
{
	char *list = memfs_read(w->fs, STX_LIST, NULL), *line;
	int nr = 0;

	for (line = list; (line = strchr(line, '\n')) != NULL; line++)
		wr_unlink(table(STACK_DIR, nr++));
	memfs_write(w->fs, STX_LIST, "");
	free(list);
	scripted_sync(w);
}

TEST(an_empty_list, .times = 2)
{
	empty();
	stx_change("refs/heads/new", '2');
	if (_i == 0) {
		wr_power_loss(MEMFS_DATA_NONE, -1);
		wr_start();
	}
	stx_expect("refs/heads/new", '2');
	stx_expect(MAIN, '0');
	stx_change("refs/heads/new", '3');
	stx_expect("refs/heads/new", '3');
}

/* The table of a crashed batch is no table of the list. */
TEST(a_crash_beside_an_empty_list, .from = STACK_TXN_STAGED,
    .times = STACK_TXN_DONE - STACK_TXN_STAGED)
{
	const struct record_member m = stack_txn_member(0, "", MAIN, '2');

	empty();
	stx.end = (enum stack_txn_step)_i;
	ck_assert_int_eq(stack_txn_apply(&stx, &m, 1), -EAGAIN);
	stx_crash();
	wr_start();
	ck_assert_uint_eq(w->deferred, 0);
	stx_expect(MAIN, _i == STACK_TXN_STAGED ? '0' : '2');
	stx_expect_rest();
}

/* A power loss emptied the list. */
TEST(an_emptied_list)
{
	char *list = memfs_read(w->fs, STX_LIST, NULL);

	stx_change(MAIN, '2');
	stx_lose_power();
	memfs_write(w->fs, STX_LIST, "");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_CORRUPT], 1);
	wr_expect_file(STX_LIST, "");
	memfs_write(w->fs, STX_LIST, list);
	ck_assert_int_eq(world_retry(w), 0);
	stx_expect(MAIN, '2');
	free(list);
}
