/*
 * Proves that a journal that is opened has room in its WAL: commits write to
 * it, what does not fit makes the WAL grow, a WAL that is made anew has room
 * again; and that a disk without room stops nobody.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static off_t wal_size(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, "journal.db-wal", &st, 0), 0);
	return st.st_size;
}

START_TEST(the_wal_has_room)
{
	struct journal *j = help_open_here();
	char *why;

	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_int_eq(help_commit(j, 1, 1, 2 * HELP_WAL_ROOM), 0);
	ck_assert_int_gt(wal_size(), HELP_WAL_ROOM);
	/* Made anew. */
	ck_assert_int_eq(journal_reopen(j, &why), 0);
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	help_close(j);
	ck_assert(!tmp_exists("journal.db-wal"));
	j = help_open_here();
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 2);
	help_close(j);
}
END_TEST

/* SQLite writes by calls of its own. */
static ssize_t write_half(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	(void)sys;
	if (offset > 0)
		return -ENOSPC;
	return sys_kernel.pwrite(&sys_kernel, fd, buf, len / 2, offset);
}

static ssize_t write_nothing(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	(void)sys;
	(void)fd;
	(void)buf;
	(void)len;
	(void)offset;
	return -EDQUOT;
}

START_TEST(a_full_disk_gives_less_room)
{
	struct sys full = sys_kernel;
	struct journal *j;

	full.pwrite = _i == 0 ? write_half : write_nothing;
	j = help_open(&full, tmp_root, NULL);
	ck_assert_int_lt(wal_size(), HELP_WAL_ROOM);
	ck_assert_int_eq(help_commit(j, 0, 1, 2 * HELP_WAL_ROOM), 0);
	ck_assert_int_gt(wal_size(), HELP_WAL_ROOM);
	help_close(j);
	j = help_open_here();
	ck_assert_uint_eq(help_scan(j, NULL, 0), 1);
	help_close(j);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal_room");
	TCase *tc = tcase_create("room");

	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_test(tc, the_wal_has_room);
	tcase_add_loop_test(tc, a_full_disk_gives_less_room, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
