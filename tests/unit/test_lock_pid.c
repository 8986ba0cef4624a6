/*
 * Proves that refd reads the process in git's "<file>~pid.lock" as git does,
 * names no process of another user, and reads only a small regular file. A
 * process that has the lock open is the holder, whomever git named. The start
 * of a process is read, whatever the name of the process. A wrong time of a
 * lock does not make the lock younger than the clock of the file system says.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/lib/lock_pid.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const struct {
	const char *text;
	long pid;
} contents[] = {
	{ "pid 1\n", 1 },
	{ "pid 2147483647\n", 2147483647 },
	{ "pid 2147483648\n", 0 },
	{ "pid 99999999999999999999999\n", 0 },
	{ "pid 0\n", 0 },
	{ "pid -1\n", 0 },
	{ "pid \n", 0 },
	{ "pid", 0 },
	{ "", 0 },
	{ "pid 1", 0 },
	{ "pid 1\npid 2\n", 0 },
	{ "pid 1 \n", 0 },
	{ "pid  1\n", 0 },
	{ "PID 1\n", 0 },
	{ "1\n", 0 },
	{ "pid 000000000000000000000000000000000000000001\n", 0 },
};

static void path_of(char path[4200], const char *name)
{
	snprintf(path, 4200, "%s/%s", tmp_root, name);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(contents_are_gits, .times = sizeof(contents) / sizeof(contents[0]))
{
	char lock[4200];
	uid_t owner = 1;

	path_of(lock, "x.lock");
	tmp_put("x~pid.lock", contents[_i].text);
	ck_assert_int_eq(lock_pid_read(lock_pid_open(lock), &owner),
	    contents[_i].pid);
	ck_assert_uint_eq(owner, geteuid());
}

/* A process chooses its own name. */
TEST(the_start_of_a_process)
{
	static const char after[] =
	    " S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21";
	char stat[100];

	ck_assert_uint_eq(lock_pid_started(""), 0);
	ck_assert_uint_eq(lock_pid_started("1 (x)"), 0);
	ck_assert_uint_eq(lock_pid_started("1 (x) S 2 3"), 0);
	snprintf(stat, sizeof(stat), "1 (a) S 7)%s 999 23\n", after);
	ck_assert_uint_eq(lock_pid_started(stat), 999);
}

TEST(names_are_gits)
{
	ck_assert(lock_pid_is("refs/heads/x~pid.lock"));
	ck_assert(lock_pid_is("HEAD~pid.lock"));
	ck_assert(!lock_pid_is("~pid.lock"));
	ck_assert(!lock_pid_is("x.lock"));
	ck_assert(!lock_pid_is("x~pid"));
	ck_assert(!lock_pid_is("x~pid.lock.lock"));
	ck_assert(!lock_pid_is(""));
	ck_assert_uint_eq(lock_file_len("refs/heads/x.lock"), 12);
	ck_assert_uint_eq(lock_file_len("x~pid.lock.lock"), 10);
	ck_assert_uint_eq(lock_file_len("x~pid.lock"), 0);
	ck_assert_uint_eq(lock_file_len(".lock"), 0);
	ck_assert_uint_eq(lock_file_len("x.locks"), 0);
}

static struct lock_holder read_beside(void)
{
	char lock[4200];

	path_of(lock, "x.lock");
	return lock_pid_named(lock_pid_open(lock));
}

static void is(struct lock_holder h, enum lock_verdict verdict, long pid)
{
	ck_assert_int_eq(h.verdict, verdict);
	ck_assert_int_eq(h.pid, pid);
}

static void name_process(long pid)
{
	char text[32];

	snprintf(text, sizeof(text), "pid %ld\n", pid);
	tmp_put("x~pid.lock", text);
}

TEST(a_process_runs_or_has_ended)
{
	pid_t child;

	is(read_beside(), HOLDER_UNKNOWN, 0);
	name_process((long)getpid());
	is(read_beside(), HOLDER_RUNS, getpid());
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	name_process((long)child);
	is(read_beside(), HOLDER_ENDED, child);
	ck_assert_int_lt(lock_pid_open("x"), 0);
	ck_assert_int_lt(lock_pid_open(".lock"), 0);
}

TEST(a_hostile_file_names_nobody)
{
	if (geteuid() == 0) {
		name_process((long)getpid());
		tmp_run("chown 1 x~pid.lock");
		is(read_beside(), HOLDER_UNKNOWN, 0);
	}
	tmp_run("rm -f x~pid.lock && mkfifo x~pid.lock");
	is(read_beside(), HOLDER_UNKNOWN, 0);
	tmp_run("rm x~pid.lock && mkdir x~pid.lock");
	is(read_beside(), HOLDER_UNKNOWN, 0);
	tmp_run("rmdir x~pid.lock && echo 'pid 1' >other && "
		"ln -s other x~pid.lock");
	is(read_beside(), HOLDER_UNKNOWN, 0);
	tmp_run("rm x~pid.lock && truncate -s 1T x~pid.lock");
	is(read_beside(), HOLDER_UNKNOWN, 0);
}

/* Git's name says less than an open file, because git may have left an older
 * name as it was. */
TEST(an_open_lock_names_its_holder)
{
	char lock[4200];
	struct stat st;
	int fd;

	tmp_put("x.lock", "");
	path_of(lock, "x.lock");
	ck_assert_int_eq(stat(lock, &st), 0);
	is(lock_pid_find(st.st_dev, st.st_ino, -1), HOLDER_UNKNOWN, 0);
	name_process(INT_MAX);
	is(lock_pid_find(st.st_dev, st.st_ino, lock_pid_open(lock)),
	    HOLDER_ENDED, INT_MAX);
	fd = open(lock, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	is(lock_pid_find(st.st_dev, st.st_ino, lock_pid_open(lock)),
	    HOLDER_HAS_OPEN, getpid());
	close(fd);
}

TEST(no_time_makes_a_negative_age)
{
	ck_assert_uint_eq(lock_age_s(1000, 940), 60);
	ck_assert_uint_eq(lock_age_s(1000, 1010), 0);
	ck_assert_uint_eq(lock_age_s(1000, INT64_MIN),
	    (uint64_t)INT64_MAX + 1 + 1000);
}
