/*
 * Proves what a child gets from refd: ids, session, descriptors,
 * environment, signals and limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/lib/launch.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NAMELESS 64001
#define NOBODY   65534
#define FOREVER  3600

static char said[65536];

static void read_all(int fd)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	close(fd);
}

static void open_pipe(int ends[2])
{
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
}

/* Runs L, and keeps the output in said. */
static int run(struct launch *l)
{
	struct launched c;
	int ends[2], r;

	open_pipe(ends);
	l->out = ends[1];
	l->seconds = FOREVER;
	r = launch_start(&c, l);
	close(ends[1]);
	if (r == 0)
		r = launch_wait(&c);
	read_all(ends[0]);
	return r;
}

static int shell(enum launch_kind kind, const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };

	return run(&(struct launch){ .argv = argv,
	    .kind = kind,
	    .in = LAUNCH_NULL,
	    .err = 2 });
}

/* ---- programs ---- */

TEST(a_status)
{
	static const char *const missing[] = { "refd-no-such-program", NULL };

	ck_assert_int_eq(shell(LAUNCH_ALONE, "echo here; exit 7"), 7);
	ck_assert_str_eq(said, "here\n");
	ck_assert_int_eq(shell(LAUNCH_ALONE, "kill -KILL $$"), 128 + SIGKILL);
	ck_assert_int_eq(run(&(struct launch){ .argv = missing,
			     .in = LAUNCH_NULL,
			     .err = LAUNCH_NULL }),
	    -ENOENT);
}

TEST(a_script_without_a_first_line)
{
	static const char *const argv[] = { "./script", "b", NULL };
	int fd;

	tmp_setup();
	ck_assert_int_eq(chdir(tmp_root), 0);
	fd = open("script", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "echo $1\n", 8), 8);
	close(fd);
	ck_assert_int_eq(run(&(struct launch){ .argv = argv,
			     .in = LAUNCH_NULL,
			     .err = LAUNCH_NULL }),
	    0);
	ck_assert_str_eq(said, "b\n");
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

/* Inherited by this process, so without CLOEXEC. */
static void check_descriptors(void)
{
	static const char *const argv[] = { "sh", "-c",
		"cd /proc/self/fd; echo *; cat <&7; readlink 0", NULL };
	int file = launch_file("seven", 5), stray = dup2(2, 40);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(stray, 40);
	ck_assert_int_eq(run(&(struct launch){ .argv = argv,
			     .in = LAUNCH_NULL,
			     .err = 2,
			     .fds = { { file, 7 } } }),
	    0);
	/* The shell has the directory open as 3. */
	ck_assert_str_eq(said, "0 1 2 3 7\nseven/dev/null\n");
	close(stray);
	close(file);
}

TEST(descriptors)
{
	check_descriptors();
}

/* A container may refuse calls that are younger than its sandbox. */
TEST(without_young_calls)
{
	struct sock_filter list[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					  offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { sizeof(list) / sizeof(*list), list };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter),
	    0);
	check_descriptors();
	ck_assert_int_eq(shell(LAUNCH_ALONE, "echo here; exit 7"), 7);
}

/* A place of the child may be the number of another source here. */
TEST(descriptors_change_places)
{
	static const char *const argv[] = { "sh", "-c", "cat <&8; cat <&9",
		NULL };
	int a = launch_file("a", 1), b = launch_file("b", 1);

	ck_assert_int_eq(dup2(a, 9), 9);
	ck_assert_int_eq(dup2(b, 8), 8);
	ck_assert_int_eq(run(&(struct launch){ .argv = argv,
			     .in = LAUNCH_NULL,
			     .err = 2,
			     .fds = { { 9, 8 }, { 8, 9 } } }),
	    0);
	ck_assert_str_eq(said, "ab");
	close(8);
	close(9);
	close(a);
	close(b);
}

TEST(an_environment)
{
	static char extra[] = "REFD_EVENT=new";
	static char *const more[] = { extra, NULL };
	static const char *const argv[] = { "env", NULL };
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = LAUNCH_NULL,
		.env = more };

	setenv("AWS_SECRET", "x", 1);
	setenv("REFD_EVENT", "old", 1);
	setenv("GIT_TRACE_SETUP", "0", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "0", 1);
	ck_assert_int_eq(run(&l), 0);
	ck_assert_ptr_nonnull(strstr(said, "PATH="));
	ck_assert_ptr_nonnull(strstr(said, "GIT_TRACE_SETUP=0\n"));
	ck_assert_ptr_nonnull(strstr(said, "GIT_CONFIG_NOSYSTEM=0\n"));
	ck_assert_ptr_nonnull(strstr(said, "REFD_EVENT=new\n"));
	ck_assert_ptr_null(strstr(said, "REFD_EVENT=old\n"));
	ck_assert_ptr_null(strstr(said, "AWS_SECRET"));
	l.no_git = true;
	ck_assert_int_eq(run(&l), 0);
	ck_assert_ptr_null(strstr(said, "GIT_"));
	ck_assert_int_eq(shell(LAUNCH_TERMINAL, "echo $AWS_SECRET"), 0);
	ck_assert_str_eq(said, "x\n");
	unsetenv("AWS_SECRET");
	unsetenv("REFD_EVENT");
	unsetenv("GIT_TRACE_SETUP");
	unsetenv("GIT_CONFIG_NOSYSTEM");
}

/* The user's programs must not wait for a program that is left. */
TEST(a_program_that_is_left)
{
	static const char *const argv[] = { "sh", "-c",
		"cd /proc/self/fd; echo *; cut -d' ' -f5 ../stat", NULL };
	struct launch l = { .argv = argv,
		.kind = LAUNCH_TERMINAL,
		.in = LAUNCH_NULL,
		.err = 2 };
	int stray = dup2(2, 9);

	ck_assert_int_eq(stray, 9);
	ck_assert_int_eq(run(&l), 0);
	ck_assert_ptr_nonnull(strstr(said, " 9"));
	ck_assert_int_eq(strtol(strchr(said, '\n'), NULL, 10), getpgrp());
	l.is_left = true;
	ck_assert_int_eq(run(&l), 0);
	/* The shell has the directory open as 3. */
	ck_assert_ptr_eq(strstr(said, "0 1 2 3\n"), said);
	ck_assert_int_ne(strtol(strchr(said, '\n'), NULL, 10), getpgrp());
	close(stray);
}

TEST(signals)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	ck_assert_int_eq(shell(LAUNCH_ALONE, "kill -PIPE $$"), 128 + SIGPIPE);
	ck_assert_int_eq(shell(LAUNCH_ALONE, "kill -INT $$"), 128 + SIGINT);
	ck_assert_int_eq(shell(LAUNCH_TERMINAL, "kill -PIPE $$"),
	    128 + SIGPIPE);
	/* The user may have said so. */
	ck_assert_int_eq(shell(LAUNCH_TERMINAL, "kill -INT $$"), 0);
	signal(SIGINT, SIG_DFL);
}

/* Another thread may handle the signals of this process. */
TEST(signals_that_are_blocked)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	ck_assert_int_eq(shell(LAUNCH_ALONE, "kill -TERM $$"), 128 + SIGTERM);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static int look_at_session(void *arg)
{
	(void)arg;
	return getsid(0) == getpid() &&
		open("/dev/tty", O_RDWR | O_CLOEXEC) < 0 ?
	    0 :
	    1;
}

TEST(a_session)
{
	ck_assert_int_eq(run(&(struct launch){ .run = look_at_session,
			     .in = LAUNCH_NULL,
			     .err = 2 }),
	    0);
	ck_assert_int_eq(run(&(struct launch){ .run = look_at_session,
			     .kind = LAUNCH_TERMINAL,
			     .in = LAUNCH_NULL,
			     .err = 2 }),
	    1);
}

/* The end of the group closes the pipe. */
TEST(a_limit)
{
	static const char *const argv[] = { "sh", "-c",
		"sleep 600 & echo; sleep 600", NULL };
	struct launched c;
	char byte;
	int ends[2];

	open_pipe(ends);
	ck_assert_int_eq(launch_start(&c,
			     &(struct launch){ .argv = argv,
				 .in = LAUNCH_NULL,
				 .out = ends[1],
				 .err = LAUNCH_NULL,
				 .seconds = FOREVER }),
	    0);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert(!launch_has_ended(&c));
	c.end_ms = 0;
	ck_assert_int_eq(launch_wait(&c), -ETIME);
	read_all(ends[0]);
	ck_assert_str_eq(said, "");
}

/* A child of LAUNCH_ALONE leaves nothing behind. */
TEST(what_is_left_behind)
{
	ck_assert_int_eq(shell(LAUNCH_ALONE, "sleep 600 & echo here"), 0);
	ck_assert_str_eq(said, "here\n");
}

/* Two readers of /dev/stdin, as two hooks. Nobody can write there, or cut the
 * file short. */
TEST(a_file_in_memory)
{
	static const char *const argv[] = { "sh", "-c",
		"cat; cat /dev/stdin; cat /dev/stdin;"
		" echo no 1<>/dev/stdin || echo no >/dev/stdin",
		NULL };
	struct launch l = { .argv = argv,
		.in = launch_file("line\n", 5),
		.err = LAUNCH_NULL };

	ck_assert_int_ge(l.in, 0);
	ck_assert_int_ne(run(&l), 0);
	ck_assert_str_eq(said, "line\nline\nline\n");
	close(l.in);
}

/* ---- accounts ---- */

static struct account other;

static int look_at_ids(void *arg)
{
	uid_t u[3];
	gid_t g[3];

	(void)arg;
	ck_assert_int_eq(getresuid(&u[0], &u[1], &u[2]), 0);
	ck_assert_int_eq(getresgid(&g[0], &g[1], &g[2]), 0);
	printf("%u %u %u, %u %u %u, %d groups, %d, %s\n", u[0], u[1], u[2],
	    g[0], g[1], g[2], getgroups(0, NULL), prctl(PR_GET_DUMPABLE),
	    getenv("HOME") ? getenv("HOME") : "no home");
	return 3;
}

TEST(ids)
{
	static const gid_t groups[] = { 0, 5 };
	static const char *const argv[] = { "sh", "-c",
		"id -u; id -g; id -G; echo $GIT_DIR$AWS_SECRET", NULL };

	if (!suite_is_root("ids"))
		return;
	setgroups(2, groups);
	setenv("AWS_SECRET", "x", 1);
	setenv("GIT_DIR", "/x", 1);
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert(account_is_other(&other));
	ck_assert_int_eq(run(&(struct launch){ .run = look_at_ids,
			     .as = &other,
			     .in = LAUNCH_NULL,
			     .err = 2 }),
	    3);
	ck_assert_str_eq(said,
	    "64001 64001 64001, 65534 65534 65534, 0 groups, 0, no home\n");
	ck_assert_int_eq(run(&(struct launch){ .argv = argv,
			     .as = &other,
			     .in = LAUNCH_NULL,
			     .err = 2 }),
	    0);
	ck_assert_str_eq(said, "64001\n65534\n65534\n\n");
	ck_assert_int_eq(getuid(), 0);
	unsetenv("AWS_SECRET");
	unsetenv("GIT_DIR");
}

static void expect_directory(const char *wanted)
{
	static const char *const argv[] = { "readlink", "/proc/self/cwd",
		NULL };

	ck_assert_int_eq(run(&(struct launch){ .argv = argv,
			     .as = &other,
			     .in = LAUNCH_NULL,
			     .err = 2 }),
	    0);
	said[strcspn(said, "\n")] = '\0';
	ck_assert_str_eq(said, wanted);
}

/* The account may be in the present directory, but not come there. */
TEST(a_directory_below_a_closed_one)
{
	char open_dir[4096];

	if (!suite_is_root("a_directory_below_a_closed_one"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	tmp_setup();
	tmp_run("mkdir -p closed/open && chmod 755 . closed closed/open");
	snprintf(open_dir, sizeof(open_dir), "%s/closed/open", tmp_root);
	ck_assert_int_eq(chdir(open_dir), 0);
	expect_directory(open_dir);
	ck_assert_int_eq(chmod("..", 0700), 0);
	expect_directory("/");
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

/* "daemon" of Debian and of Alpine is uid 1 or 2, with a group of its own. */
TEST(a_name)
{
	struct account a;

	ck_assert_int_eq(account_find(&a, 1, 1), 0);
	if (a.name != NULL) {
		ck_assert_uint_ge(a.nr_groups, 1);
		ck_assert_ptr_nonnull(a.home);
		account_done(&a);
		/* Not a member. */
		ck_assert_int_eq(account_find(&a, 1, 64009), 0);
		ck_assert_uint_ne(a.gid, 64009);
	}
	account_done(&a);
}

TEST(a_terminal_is_for_the_user_alone, .signal = SIGABRT)
{
	static const char *const argv[] = { "true", NULL };
	struct launched c;

	if (!suite_is_root("a_terminal_is_for_the_user_alone"))
		raise(SIGABRT);
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	launch_start(&c,
	    &(struct launch){ .argv = argv,
		.kind = LAUNCH_TERMINAL,
		.as = &other });
}

/* A lease on the program holds the child up before it begins, as a signal of
 * the other account can. */
TEST(a_child_that_does_not_begin)
{
	char path[4096];
	const char *argv[] = { path, NULL };
	const struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.out = LAUNCH_NULL,
		.err = LAUNCH_NULL,
		.seconds = 1 };
	struct launched c;
	int fd;

	tmp_setup();
	tmp_run("cp /bin/true program");
	snprintf(path, sizeof(path), "%s/program", tmp_root);
	signal(SIGIO, SIG_IGN);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	ck_assert_int_eq(launch_start(&c, &l), -ETIME);
	ck_assert_int_eq(c.pid, 0);
	close(fd);
	tmp_teardown();
}
