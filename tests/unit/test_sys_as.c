/*
 * Proves: root acts as another in one thread at a time: what it makes is that
 * one's, with his group and no other; what he may not open it may not; the
 * journal's owner is back at once; other threads go on as root.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/sys_as.h"
#include "tests/lib/suite.h"

#define OTHER 54321
#define GROUP 54322

static char dir[] = "/tmp/test_sys_as.XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make(const char *name, mode_t mode)
{
	int fd = open(in_dir(name), O_CREAT | O_EXCL | O_WRONLY, mode);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	close(fd);
}

static void expect_owner(const char *name, uid_t uid, gid_t gid)
{
	struct stat st;

	ck_assert_int_eq(stat(in_dir(name), &st), 0);
	ck_assert_uint_eq(st.st_uid, uid);
	ck_assert_uint_eq(st.st_gid, gid);
}

START_TEST(as_another_and_back)
{
	const struct sys_who other = { OTHER, GROUP };
	struct sys_who was, mine;

	sys_as_init();
	ck_assert(sys_as_possible());
	ck_assert_int_eq(getgroups(0, NULL), 0);
	ck_assert_int_eq(chmod(dir, 0777), 0);
	make("roots", 0600);

	was = sys_as(other);
	ck_assert(sys_who_eq(was, sys_self));
	make("others", 0600);
	ck_assert_int_eq(open(in_dir("roots"), O_RDONLY), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(chown(in_dir("others"), 0, 0), -1);

	mine = sys_as(sys_self);
	ck_assert(sys_who_eq(mine, other));
	make("between", 0600);
	sys_as(mine);
	make("again", 0600);
	sys_as(was);
	make("last", 0600);

	expect_owner("others", OTHER, GROUP);
	expect_owner("between", 0, getegid());
	expect_owner("again", OTHER, GROUP);
	expect_owner("last", 0, getegid());
}
END_TEST

/* Threads take their rights from who starts them, so all start before. */
static pthread_barrier_t gate;

static void *make_later(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&gate);
	make("beside", 0600);
	return NULL;
}

START_TEST(of_one_thread_alone)
{
	const struct sys_who other = { OTHER, GROUP };
	struct sys_who was;
	pthread_t thread;

	sys_as_init();
	ck_assert_int_eq(chmod(dir, 0777), 0);
	pthread_barrier_init(&gate, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, make_later, NULL), 0);
	was = sys_as(other);
	pthread_barrier_wait(&gate);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	sys_as(was);
	pthread_barrier_destroy(&gate);
	expect_owner("beside", 0, getegid());
}
END_TEST

static void make_dir(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	static const char *const names[] = { "roots", "others", "between",
		"again", "beside", "last" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_dir(names[i]));
	rmdir(dir);
}

/* Before init, and for anybody but root: nothing happens. */
START_TEST(nobody_but_root)
{
	const struct sys_who other = { OTHER, GROUP };

	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(OTHER), 0);
	sys_as_init();
	ck_assert(!sys_as_possible());
	ck_assert(sys_who_eq(sys_as(other), sys_self));
	ck_assert(sys_who_eq(sys_as(sys_self), sys_self));
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sys_as");
	TCase *tc = tcase_create("sys_as");

	tcase_add_checked_fixture(tc, make_dir, remove_dir);
	if (geteuid() == 0) {
		tcase_add_test(tc, as_another_and_back);
		tcase_add_test(tc, of_one_thread_alone);
	}
	tcase_add_test(tc, nobody_but_root);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
