/*
 * Proves that refd-group finds a new repository in the moment in which the row
 * moves it to its place, and makes no second one.
 */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/group/fetch_repo.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define UUID   "000102030405860708090a0b0c0d0e0f"
#define ASIDE  ".refd-" UUID
#define PLACE  "x.git"
#define ROUNDS 3000

static int root_fd;

/* As the row of a new repository, after some time. */
static void *move_to_place(void *spins)
{
	volatile unsigned *left = spins;

	while (*left > 0)
		--*left;
	return renameat(root_fd, ASIDE, root_fd, PLACE) == 0 ? spins : NULL;
}

START_TEST(a_row_moves_the_repository)
{
	static const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 0x86, 7, 8, 9, 10,
		11, 12, 13, 14, 15 };
	char *roots[] = { xasprintf("%s/root", tmp_root) };
	const struct fetch_site site = { roots, 1, tmp_root, -1 };
	const struct fetch_wish wish = { "/none", PLACE, PLACE, uuid, true,
		REFD_FORMAT_SHA1, NULL, 0, NULL, 0 };
	struct text why = { 0 };
	struct fetch_repo repo;
	unsigned i, spins;
	pthread_t thread;
	void *moved;

	tmp_run("git init -q --bare root/" ASIDE " && cd root/" ASIDE
		" && mkdir refd && printf 'uuid " UUID
		"\njournal %032d\npath /x\n' >refd/id",
	    0);
	root_fd = open(roots[0], O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(root_fd, 0);
	for (i = 0; i < ROUNDS; i++) {
		spins = i * 20 % 20000;
		ck_assert_int_eq(
		    pthread_create(&thread, NULL, move_to_place, &spins), 0);
		ck_assert_msg(fetch_repo_open(&repo, &site, &wish, &why), "%s",
		    why.data);
		fetch_repo_close(&repo);
		pthread_join(thread, &moved);
		ck_assert_msg(moved &&
			renameat(root_fd, PLACE, root_fd, ASIDE) == 0,
		    "a second one in round %u", i);
	}
	close(root_fd);
	free(roots[0]);
	text_done(&why);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_fetch_race");
	TCase *tc = tcase_create("group_fetch_race");

	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_test(tc, a_row_moves_the_repository);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
