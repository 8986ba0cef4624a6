/*
 * Proves that refd-group finds a new repository although the row moves the
 * repository to its place between any two looks, and that refd-group makes no
 * second repository. It also finds a renamed repository beside directories that
 * the disk cannot read, and takes no repository for missing because of such
 * directories.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
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
static long calls_left = -1; /* of openat2(2), until the move; -1: none */

/* Directories with this beginning cannot be opened, and the root cannot be read
 * to its end. */
#define BAD "bad"
static bool has_bad_blocks, is_root_bad;

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
	if (nr == SYS_openat2 && has_bad_blocks &&
	    has_prefix((const char *)arg[1], BAD)) {
		errno = EIO;
		return -1;
	}
	return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* In place of the function of libc. */
struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*next)(DIR *);
	struct dirent *entry;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "readdir64");
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "readdir");
	entry = next(dir);
	if (entry == NULL && is_root_bad)
		errno = EIO;
	return entry;
}

static const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 0x86, 7, 8, 9, 10, 11, 12,
	13, 14, 15 };
static char *roots[1], refd[] = "true";
static const struct fetch_site site = { roots, 1, tmp_root, { refd, NULL } };
static struct text why;
static struct fetch_repo repo;

static void setup(void)
{
	tmp_setup();
	roots[0] = xasprintf("%s/root", tmp_root);
}

static void teardown(void)
{
	free(roots[0]);
	text_done(&why);
	tmp_teardown();
}

static bool open_repo(bool is_new)
{
	const struct fetch_wish wish = { "/none", PLACE, PLACE, uuid, is_new,
		false, REFD_FORMAT_SHA1, NULL, 0, NULL, 0, -1 };

	return fetch_repo_open(&repo, &site, &wish, &why);
}

/* A repository with the uuid, below the root. */
static void make_repo(const char *path)
{
	tmp_run("git init -q --bare root/%s && cd root/%s && mkdir refd && "
		"printf 'uuid " UUID "\njournal %032d\npath /x\n' >refd/id && "
		"chmod 644 refd/id",
	    path, path, 0);
}

CASE(.setup = setup, .teardown = teardown);

TEST(bad_blocks_hide_one_directory, .times = 2)
{
	make_repo("m/former.git");
	tmp_run("cd root/m && for i in 1 2 3 4 5 6 7 8; do mkdir " BAD
		"$i ../" BAD "$i || exit 1; done");
	has_bad_blocks = _i == 0;
	is_root_bad = _i == 1;
	ck_assert_msg(open_repo(false), "%s", why.data);
	fetch_repo_close(&repo);
	/* Then nobody knows where it is. */
	tmp_run("mv root/m/former.git former.git");
	ck_assert(!open_repo(false));
	ck_assert_msg(strstr(why.data, "cannot look for") != NULL, "%s",
	    why.data);
	has_bad_blocks = is_root_bad = false;
}

TEST(a_row_moves_the_repository)
{
	bool has_moved = true;
	long n;

	make_repo(ASIDE);
	root_fd = open(roots[0], O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(root_fd, 0);
	for (n = 0; has_moved; n++) {
		calls_left = n;
		ck_assert_msg(open_repo(true), "%s", why.data);
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
}
