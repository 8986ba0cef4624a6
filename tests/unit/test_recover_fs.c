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
#include <stdlib.h>
#include <string.h>

#include "daemon/store/lockfile.h"
#include "tests/lib/hand.h"

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
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, what_failed_to_sync_is_written_again, 0, 3);
	tcase_add_test(tc, a_kill_forgets_no_failure);
	tcase_add_test(tc, a_start_whose_sync_fails_is_not_believed);
	tcase_add_loop_test(tc, what_came_back_as_another_mount_is_redone, 0,
	    2);
	tcase_add_test(tc, locks_that_come_back_with_the_disk_go);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
