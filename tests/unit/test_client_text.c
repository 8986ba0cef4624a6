/*
 * Proves that a FIFO in a repository does not block a client that reads the
 * repository's files, with or without a writer, and that a program without an
 * end is killed. No device and no file beyond the limit is read. A child stays
 * in the directory of its parent, also if the directory has no path.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
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

CASE(.setup = setup, .teardown = teardown);

TEST(a_fifo)
{
	int fd;

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(text_read_file(&text, "fifo", 1), -EINVAL);
	fd = open("fifo", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(text_read_file(&text, "fifo", 1), -EINVAL);
	close(fd);
}

TEST(a_directory)
{
	ck_assert_int_eq(mkdir("dir", 0700), 0);
	ck_assert_int_eq(text_read_file(&text, "dir", 1), -EINVAL);
}

/* Their size is 0, whatever they contain. */
TEST(files_of_the_kernel)
{
	static const char path[] = "/proc/self/status";

	ck_assert_int_eq(text_read_file(&text, path, 1 << 20), 0);
	ck_assert_uint_gt(text.len, 0);
	text_clear(&text);
	ck_assert_int_eq(text_read_file(&text, path, 10), -EFBIG);
}

TEST(devices)
{
	ck_assert_int_eq(text_read_file(&text, "/dev/zero", 10), -EINVAL);
	ck_assert_int_eq(text_read_regular(&text, "/dev/null", 10), -EINVAL);
	ck_assert_uint_eq(text.len, 0);
}

/* Not a byte of a file with 40 GiB is read. */
TEST(a_sparse_file)
{
	int fd = open("sparse", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_eq(ftruncate(fd, 40LL << 30), 0);
	close(fd);
	ck_assert_int_eq(text_read_file(&text, "sparse", 1 << 20), -EFBIG);
	ck_assert_int_eq(text_read_regular(&text, "sparse", 1 << 20), -EFBIG);
	ck_assert_uint_eq(text.size, 0);
}

TEST(nothing_is_printed)
{
	text_print(&text);
	ck_assert_ptr_null(text.data);
}

TEST(a_program_without_end)
{
	const char *const sleep[] = { "sleep", "600", NULL };
	const char *const yes[] = { "yes", NULL };
	const char *const echo[] = { "echo", "a", NULL };

	ck_assert_int_eq(child_capture_within(sleep, &text, 1, 10), 137);
	ck_assert_int_eq(child_capture_within(yes, &text, 600, 100000), 137);
	ck_assert_uint_le(text.len, 100000);
	text_clear(&text);
	ck_assert_int_eq(child_capture_within(echo, &text, 600, 2), 0);
	ck_assert_str_eq(text.data, "a\n");
}

/* Even in a directory whose path cannot be told. */
TEST(a_child_stays_in_the_directory)
{
	const char *const where[] = { "readlink", "/proc/self/cwd", NULL };

	ck_assert_int_eq(mkdir("away", 0755), 0);
	ck_assert_int_eq(chdir("away"), 0);
	ck_assert_int_eq(rmdir("../away"), 0);
	ck_assert_int_eq(child_capture(where, &text), 0);
	ck_assert_ptr_nonnull(strstr(text.data, "/away (deleted)"));
}
