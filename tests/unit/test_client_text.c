/*
 * Proves that a FIFO in a repository does not block a client that reads the
 * repository's files, with or without a writer. Files of the kernel and devices
 * are read as before.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct text text;

static void setup(void)
{
	tmp_setup();
	text = (struct text){ 0 };
	ck_assert_int_eq(fchdir(tmp_fd), 0);
}

static void teardown(void)
{
	text_done(&text);
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

START_TEST(a_fifo)
{
	int fd;

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(text_read_file(&text, "fifo"), -EINVAL);
	fd = open("fifo", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(text_read_file(&text, "fifo"), -EINVAL);
	close(fd);
}
END_TEST

START_TEST(a_directory)
{
	ck_assert_int_eq(mkdir("dir", 0700), 0);
	ck_assert_int_eq(text_read_file(&text, "dir"), -EISDIR);
}
END_TEST

START_TEST(files_of_the_kernel)
{
	ck_assert_int_eq(text_read_file(&text, "/dev/null"), 0);
	ck_assert_uint_eq(text.len, 0);
	ck_assert_int_eq(text_read_file(&text, "/proc/self/mountinfo"), 0);
	ck_assert_uint_gt(text.len, 0);
}
END_TEST

START_TEST(nothing_is_printed)
{
	text_print(&text);
	ck_assert_ptr_null(text.data);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client text");
	TCase *tc = tcase_create("text_read_file");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_fifo);
	tcase_add_test(tc, a_directory);
	tcase_add_test(tc, files_of_the_kernel);
	tcase_add_test(tc, nothing_is_printed);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
