/*
 * Proves that a file system which failed to sync, or came back as another
 * mount, is not believed: nothing is acknowledged on it until its records have
 * been redone from what is on the disk, in the running daemon or by a next
 * start; that locks of ours which come back with it go, too; and that nobody else's records wait for that.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/refs/lockfile.h"
#include "tests/lib/hand.h"
#include "tests/lib/suite.h"

static struct world *w;
static unsigned home;

static void setup(void)
{
	struct memfs *fs = memfs_new();

	home = memfs_mount(fs, "/srv");
	w = world_new(fs, true);
	ck_assert_int_eq(world_start(w), 0);
}

static void teardown(void)
{
	world_free(w);
}

static void ok(const char *spec)
{
	struct txn *txn = world_apply(w, spec, false);
	size_t i;

	ck_assert_ptr_nonnull(txn);
	for (i = 0; i < txn->nr_updates; i++)
		ck_assert_int_eq(txn->updates[i].status, REFD_OK);
	world_done(w, txn);
}

static struct memfs_choice nothing(void)
{
	struct memfs_choice choice = memfs_choose(1);

	choice.data = MEMFS_DATA_NONE;
	memset(choice.keep, 0, sizeof(choice.keep));
	return choice;
}

static void cut(void)
{
	struct memfs_choice choice = nothing();

	memfs_cut(w->fs, &choice);
	world_crash(w);
}

/* In memory all is well and clean; on the disk there is nothing. */
static void fail_to_sync(void)
{
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_lt(world_tick(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_ptr_null(world_apply(w, "y=1", false));
}

static void assert_all_is_there(void)
{
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
	ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	ck_assert_int_eq(world_ref(w, "gone"), '0');
}

static void prepare(void)
{
	ok("gone=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	ok("-gone:1");
	ok("x=1");
	ok("x=2:1");
}

START_TEST(what_failed_to_sync_is_written_again)
{
	uint64_t last;
	int i;

	prepare();
	last = journal_last_lsn(w->store.journal);
	fail_to_sync();
	/* Once nobody uses it any more its records are put aside. */
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_uint_ge(journal_forgotten(w->store.journal), last);
	for (i = 0; i < _i; i++) {
		/* The first one is for letting anybody in at all. */
		memfs_fail_call(w->fs, MEMFS_SYNCFS, 1, -EIO);
		ck_assert_int_lt(world_retry(w), 0);
		ck_assert(memfs_was_hit(w->fs));
		memfs_fail_none(w->fs);
		ck_assert_int_eq(world_tick(w), 0);
	}
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 0);
	assert_all_is_there();
	ck_assert_int_eq(world_checkpoint(w), 0);
	cut();
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	assert_all_is_there();
}
END_TEST

/* The next start knows it, too. */
START_TEST(a_kill_forgets_no_failure)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(hand_kill(w), 0);
	ck_assert_uint_eq(w->parked, 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	cut();
	ck_assert_int_eq(world_start(w), 0);
	assert_all_is_there();
}
END_TEST

/* Killed before anything of it was parked. */
START_TEST(a_kill_right_after_it_forgets_no_failure)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(hand_kill(w), 0);
	ck_assert_uint_eq(w->parked, 0);
	assert_all_is_there();
	ck_assert_int_eq(world_checkpoint(w), 0);
	cut();
	ck_assert_int_eq(world_start(w), 0);
	assert_all_is_there();
}
END_TEST

/* Wherever it is killed between the sync that fails and the parking; what did
 * not get so far is redone as well. */
START_TEST(a_kill_anywhere_forgets_no_failure)
{
	struct sys_stat st;
	unsigned long i;
	bool hit = true;

	for (i = 0; hit; i++) {
		teardown();
		setup();
		prepare();
		memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
		memfs_kill_at(w->fs, i);
		world_tick(w);
		world_tick(w);
		hit = SYS(w->sys, lstatat, AT_FDCWD, "/", &st) < 0;
		memfs_fail_none(w->fs);
		ck_assert_int_eq(hand_kill(w), 0);
		ck_assert_uint_eq(w->parked, 0);
		assert_all_is_there();
		ck_assert_int_eq(world_checkpoint(w), 0);
		cut();
		ck_assert_int_eq(world_start(w), 0);
		assert_all_is_there();
	}
	ck_assert_uint_gt(i, 5);
}
END_TEST

/* Foreign writers' later values are theirs, as after any kill: only what was
 * not parked yet is in doubt. */
START_TEST(what_came_after_a_failure_is_as_ever)
{
	prepare();
	fail_to_sync();
	ck_assert_int_eq(world_tick(w), 0);
	ck_assert_int_eq(world_retry(w), 0);
	ok("y=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	ok("y=2:1");
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     WORLD_REPO "/refs/heads/y"),
	    0);
	ck_assert_int_eq(hand_kill(w), 0);
	ck_assert_int_eq(world_ref(w, "y"), '0');
	assert_all_is_there();
}
END_TEST

START_TEST(a_start_whose_sync_fails_is_not_believed)
{
	prepare();
	cut();
	memfs_fail_call(w->fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	memfs_fail_none(w->fs);
	ck_assert_uint_gt(w->parked, 0);
	world_tick(w);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	cut();
	ck_assert_int_eq(world_start(w), 0);
	assert_all_is_there();
}
END_TEST

/* ---- another mount ---- */

START_TEST(what_came_back_as_another_mount_is_redone)
{
	struct memfs_choice choice = nothing();
	enum refd_status status;
	struct repo *repo;
	char *why;

	prepare();
	memfs_remount(w->fs, home, &choice);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	repos_trim(&w->store.repos, -1);
	if (_i == 0) {
		/* A checkpoint sees it first. */
		ck_assert_int_lt(world_tick(w), 0);
		ck_assert_int_eq(world_tick(w), 0);
	} else {
		/* Or who would write there. */
		repo = repos_get(&w->store.repos, WORLD_REPO, &status, &why);
		ck_assert_ptr_nonnull(repo);
		ck_assert_int_eq(failed_look(&w->store, repo), 0);
		ck_assert(awaiting_has(&w->store, repo->id));
		repo_put(&w->store.repos, repo);
	}
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 0);
	assert_all_is_there();
	ok("y=1");
	world_tick(w);
	ck_assert_int_eq(world_tick(w), 0);
}
END_TEST

static void remount(void)
{
	struct memfs_choice choice = nothing();
	enum refd_status status;
	struct repo *repo;
	char *why;

	memfs_remount(w->fs, home, &choice);
	repos_trim(&w->store.repos, -1);
	repo = repos_get(&w->store.repos, WORLD_REPO, &status, &why);
	ck_assert_ptr_nonnull(repo);
	ck_assert_int_eq(failed_look(&w->store, repo), 0);
	repo_put(&w->store.repos, repo);
}

/* The dead disk comes back, with what it had got before all of this. */
static void come_back(void)
{
	remount();
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 0);
}

/* And somebody is at work there. */
static void come_back_locked(void)
{
	static const char lock[] = WORLD_REPO "/refs/heads/z.lock";

	remount();
	memfs_write(w->fs, lock, "");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 1);
	ck_assert_int_eq(world_ref(w, "z"), '0');
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, lock), 0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->parked, 0);
}

/* A disk that dies while a transaction is published: its refs are there, and
 * of some of them the line is owed, which is parked before the records are. */
START_TEST(a_line_that_is_owed_hides_no_value)
{
	struct txn *txn;
	unsigned long n;
	bool hit = true;
	unsigned owed = 0;

	for (n = 0; hit; n++) {
		teardown();
		setup();
		ok("a=1");
		ck_assert_int_eq(world_checkpoint(w), 0);
		memfs_fail_call(w->fs, MEMFS_WRITE_ALL, n, -EIO);
		txn = world_apply(w, "x=1:0;y=1:0;z=1:0", true);
		hit = memfs_was_hit(w->fs);
		memfs_fail_none(w->fs);
		if (w->owed == 0) {
			world_done(w, txn);
			continue;
		}
		owed++;
		ck_assert_int_eq(txn->updates[0].status, REFD_OK);
		world_done(w, txn);
		if (_i == 0)
			come_back();
		else
			come_back_locked();
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_int_eq(world_ref(w, "y"), '1');
		ck_assert_int_eq(world_ref(w, "z"), '1');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "y", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "z", '0', '1'), 1);
	}
	ck_assert_uint_ge(owed, 3);
}
END_TEST

/* Whoever would write there found it first. The checkpoint that finds the dead
 * one does not redo what others have changed since. */
START_TEST(what_was_redone_is_not_redone_again)
{
	prepare();
	come_back();
	assert_all_is_there();
	ok("-x:2");
	ok("gone=2:0");
	ok("-gone:2");
	while (world_tick(w) < 0)
		;
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "gone"), '0');
	if (_i == 0)
		ck_assert_int_eq(hand_kill(w), 0);
	else
		cut();
	if (_i == 1)
		ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "gone"), '0');
}
END_TEST

/* ---- locks ---- */

static bool is_locked(const char *path)
{
	struct sys_stat st;
	char lock[128];

	snprintf(lock, sizeof(lock), WORLD_REPO "/%s.lock", path);
	return SYS(w->sys, lstatat, AT_FDCWD, lock, &st) == 0;
}

static struct repo *get_repo(void)
{
	enum refd_status status;
	struct repo *repo;
	char *why;

	repo = repos_get(&w->store.repos, WORLD_REPO, &status, &why);
	ck_assert_ptr_nonnull(repo);
	ck_assert_int_eq(failed_look(&w->store, repo), 0);
	return repo;
}

/* As a window that began now would. */
static void lock(struct repo *repo, const char *path)
{
	struct token token;

	ck_assert_int_eq(token_init(&token, w->sys, repo->stage_fd,
			     store_next_token(&w->store)),
	    0);
	ck_assert_int_eq(token_lock(&token, repo->fd, path, 0777), 0);
}

/* Of a window that left no record, and that the dead disk had got. */
START_TEST(locks_that_come_back_with_the_disk_go)
{
	struct memfs_choice choice = nothing();
	struct repo *repo = get_repo();

	ck_assert(!awaiting_has(&w->store, repo->id));
	lock(repo, "packed-refs");
	lock(repo, "refs/heads/x");
	repo_put(&w->store.repos, repo);
	hand_sync(w);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(is_locked("refs/heads/x"));
	memfs_remount(w->fs, home, &choice);
	repos_trim(&w->store.repos, -1);
	ck_assert(is_locked("packed-refs") && is_locked("refs/heads/x"));
	repo = get_repo();
	ck_assert(awaiting_has(&w->store, repo->id));
	/* Those of a window that began since are at work. */
	lock(repo, "refs/heads/y");
	repo_put(&w->store.repos, repo);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(!is_locked("packed-refs") && !is_locked("refs/heads/x"));
	ck_assert(is_locked("refs/heads/y"));
	ok("x=1:0");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_fs");
	TCase *tc = tcase_create("recover_fs");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, what_failed_to_sync_is_written_again, 0, 3);
	tcase_add_test(tc, a_kill_forgets_no_failure);
	tcase_add_test(tc, a_kill_right_after_it_forgets_no_failure);
	tcase_add_test(tc, a_kill_anywhere_forgets_no_failure);
	tcase_add_test(tc, what_came_after_a_failure_is_as_ever);
	tcase_add_test(tc, a_start_whose_sync_fails_is_not_believed);
	tcase_add_loop_test(tc, what_came_back_as_another_mount_is_redone, 0,
	    2);
	tcase_add_loop_test(tc, a_line_that_is_owed_hides_no_value, 0, 2);
	tcase_add_loop_test(tc, what_was_redone_is_not_redone_again, 0, 2);
	tcase_add_test(tc, locks_that_come_back_with_the_disk_go);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
