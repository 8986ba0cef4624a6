/*
 * Proves that recovery and a stock git lose nothing when git packs, moves and
 * deletes refs between any two calls of recovery.
 */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "tests/lib/plaingit.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define NINES "3939393939393939393939393939393939393939"

static struct plaingit git;

static void open_git(struct memfs *fs)
{
	git.sys = memfs_other(fs);
	git.dirfd = SYS(git.sys, openat, AT_FDCWD, WORLD_REPO,
	    O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(git.dirfd, 0);
}

static void close_git(void)
{
	SYS(git.sys, close, git.dirfd);
}

static bool came; /* git's turn */
static bool did;  /* the refs were not locked */

static void pack(struct memfs *fs, void *arg)
{
	(void)arg;
	came = true;
	open_git(fs);
	did = plaingit_pack_refs(&git) == 0;
	close_git();
}

static void move_and_pack(struct memfs *fs, void *arg)
{
	(void)arg;
	came = true;
	open_git(fs);
	did = plaingit_update(&git, "refs/heads/y", NINES) == 0;
	if (did)
		plaingit_pack_refs(&git);
	close_git();
}

/* Leaves a deletion, a move and a creation to be redone. */
static void lose_some(void)
{
	wr_ok("x=1;y=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("-x:1");
	wr_ok("y=2:1");
	wr_ok("z=3:0");
	wr_power_loss(MEMFS_DATA_NONE, 0);
}

static void assert_ours_is_there(char y)
{
	const char *litter = world_litter(w);

	ck_assert_msg(litter == NULL, "%s", litter);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_ref(w, "y"), y);
	ck_assert_int_eq(world_ref(w, "z"), '3');
}

START_TEST(git_packs_anywhere)
{
	unsigned long n;
	unsigned packed = 0;

	for (n = 0, came = true; came; n++) {
		wr_teardown();
		wr_setup_apart();
		lose_some();
		came = did = false;
		memfs_between(w->fs, n, pack, NULL);
		ck_assert_int_eq(world_start(w), 0);
		packed += did;
		/* Refs that git had locked are tried again. */
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		assert_ours_is_there('2');
	}
	ck_assert_uint_gt(packed, 20);
}
END_TEST

/* git's later value counts. */
START_TEST(git_moves_and_packs_anywhere)
{
	unsigned long n;
	unsigned moved = 0;

	for (n = 0, came = true; came; n++) {
		wr_teardown();
		wr_setup_apart();
		lose_some();
		came = did = false;
		memfs_between(w->fs, n, move_and_pack, NULL);
		ck_assert_int_eq(world_start(w), 0);
		moved += did;
		ck_assert_int_eq(world_retry(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		assert_ours_is_there(did ? '9' : '2');
	}
	ck_assert_uint_gt(moved, 20);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_beside");
	TCase *tc = tcase_create("recover_beside");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, wr_setup_apart, wr_teardown);
	tcase_add_test(tc, git_packs_anywhere);
	tcase_add_test(tc, git_moves_and_packs_anywhere);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
