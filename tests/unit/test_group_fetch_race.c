/*
 * Proves that refd-group finds a new repository although the row moves it to
 * its place between any two looks, and makes no second one.
 */
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/group/service/fetch_repo.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define UUID    "000102030405860708090a0b0c0d0e0f"
#define ASIDE   ".refd-" UUID
#define PLACE   "x.git"
#define NR_ARGS 6

static int root_fd;
static long calls_left; /* of openat2(2), until the move; -1: none */

static int move_to_place(void)
{
	return renameat(root_fd, ASIDE, root_fd, PLACE);
}

/* In place of the function of libc, which refd-group calls for openat2(2). */
long syscall(long nr, ...)
{
	static long (*next)(long, ...);
	long arg[NR_ARGS];
	va_list args;
	int i;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(args, nr);
	for (i = 0; i < NR_ARGS; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (nr == SYS_openat2 && calls_left >= 0 && calls_left-- == 0)
		ck_assert_int_eq(move_to_place(), 0);
	return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

START_TEST(a_row_moves_the_repository)
{
	static const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 0x86, 7, 8, 9, 10,
		11, 12, 13, 14, 15 };
	char *roots[] = { xasprintf("%s/root", tmp_root) };
	const struct fetch_site site = { roots, 1, tmp_root,
		{ (char[]){ "true" }, NULL } };
	const struct fetch_wish wish = { "/none", PLACE, PLACE, uuid, true,
		false, REFD_FORMAT_SHA1, NULL, 0, NULL, 0, -1 };
	struct text why = { 0 };
	struct fetch_repo repo;
	bool has_moved = true;
	long n;

	tmp_run("git init -q --bare root/" ASIDE " && cd root/" ASIDE
		" && mkdir refd && printf 'uuid " UUID
		"\njournal %032d\npath /x\n' >refd/id",
	    0);
	root_fd = open(roots[0], O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(root_fd, 0);
	for (n = 0; has_moved; n++) {
		calls_left = n;
		ck_assert_msg(fetch_repo_open(&repo, &site, &wish, &why), "%s",
		    why.data);
		has_moved = calls_left < 0;
		calls_left = -1;
		fetch_repo_close(&repo);
		ck_assert_msg(!has_moved ||
			renameat(root_fd, PLACE, root_fd, ASIDE) == 0,
		    "a second one with call %ld", n);
		ck_assert_int_ne(faccessat(root_fd, PLACE, F_OK, 0), 0);
	}
	/* The looks, and the calls that open the repository. */
	ck_assert_int_gt(n, 4);
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
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
