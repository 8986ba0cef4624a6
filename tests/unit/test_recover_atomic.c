/*
 * Proves that recovery does not tear an atomic transaction whose one name was
 * taken by a foreign writer during the flush, before the daemon was killed.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/world.h"

static struct world *w;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	ck_assert_int_eq(world_start(w), 0);
}

static void teardown(void)
{
	world_free(w);
}

static int commit_then_kill(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	memfs_write(w->fs, WORLD_REPO "/refs/heads/q/z",
	    "3535353535353535353535353535353535353535\n");
	memfs_kill_at(w->fs, 0);
	return r;
}

START_TEST(atomic_is_not_torn_by_a_taken_name)
{
	w->store.applier.commit = commit_then_kill;
	world_done(w, world_apply(w, "p=1;q=1", true));
	memfs_kill(w->fs);
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_ref(w, "q/z"), '5');
	ck_assert_int_eq(world_ref(w, "p"), '0');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_atomic");
	TCase *tc = tcase_create("recover_atomic");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, atomic_is_not_torn_by_a_taken_name);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
