/*
 * Proves what a worker of root can do: tell, print, ask, keep a descriptor,
 * also while other work is done for it. A worker that dies, is stopped, needs
 * too long or prints without end costs its own work alone. An account whose
 * files answer slowly costs the limit of time once, and quick works repay. The
 * limits count for each piece of a work. A worker that replaces a file outlasts
 * root's command.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/consent.h"
#include "proto/lib/launch.h"
#include "proto/lib/worker.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NAMELESS 64001
#define FOREVER  3600

static char said[65536];
static struct account other;

static char told[4096];

static int hear(void *arg, const char *data, size_t len)
{
	(void)arg;
	ck_assert_uint_lt(strlen(told) + len, sizeof(told));
	strncat(told, data, len);
	return (int)len;
}

static int print_and_tell(void *arg)
{
	const char *const *what = arg;

	printf("out %u\n", getuid());
	if (worker_tell(what[0], strlen(what[0])) != (int)strlen(what[0]))
		return 9;
	fprintf(stderr, "err\033[2J\n");
	return 4;
}

/* Runs W with its output in the file "out", which said gets. */
static int work(const struct account *as, const struct work *w,
    const char **why)
{
	int out = dup(1), err = dup(2), r;
	int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	fflush(stdout);
	dup2(fd, 1);
	dup2(fd, 2);
	r = worker_run(as, w, why);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	close(fd);
	return r;
}

static void setup(void)
{
	tmp_setup();
	ck_assert_int_eq(chdir(tmp_root), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

CASE(.setup = setup, .teardown = teardown);

TEST(a_worker_tells)
{
	const char *what[] = { "news" };
	struct work w = { .run = print_and_tell,
		.hear = hear,
		.arg = what,
		.seconds = FOREVER,
		.bytes = 1000 };
	const char *why = NULL;
	struct account self = { .uid = getuid() };

	told[0] = '\0';
	ck_assert_int_eq(work(&self, &w, &why), 4);
	ck_assert_str_eq(told, "news");
	if (!suite_is_root("a_worker_tells"))
		return;
	told[0] = '\0';
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert_int_eq(work(&other, &w, &why), 4);
	ck_assert_str_eq(told, "news");
	ck_assert_str_eq(said, "out 64001\nerr?[2J\n");
}

/* Fills the pipe faster than root reads short lines. */
static void flood(void)
{
	char lines[65536];

	memset(lines, '\n', sizeof(lines));
	while (write(2, lines, sizeof(lines)) > 0)
		continue;
}

static int fails(void *arg)
{
	const char *how = arg;

	if (*how == 'k')
		raise(SIGKILL);
	if (*how == 's')
		raise(SIGSTOP);
	while (*how == 'p')
		printf("a long line of words\n");
	if (*how == 'f')
		flood();
	if (*how == 'h')
		worker_held_up();
	if (*how == 'l')
		pause();
	exit(*how == 'x' ? 128 : 0);
}

TEST(a_worker_fails)
{
	static char *const how[] = { "killed", "stopped", "prints", "floods",
		"late" };
	static const char *const wanted[] = { "was killed by a signal",
		"was stopped by a signal", "printed too much",
		"printed too much", "took too long" };
	static char ends[] = "x";
	struct work w = { .run = fails, .bytes = 100000 };
	const char *why;
	size_t i;

	if (!suite_is_root("a_worker_fails"))
		return;
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(account_find(&other, NAMELESS + i, 5), 0);
		w.arg = how[i];
		w.seconds = i == 4 ? 0 : FOREVER;
		why = NULL;
		ck_assert_int_lt(work(&other, &w, &why), 0);
		ck_assert_str_eq(why, wanted[i]);
	}
	w.arg = ends;
	w.seconds = FOREVER;
	ck_assert_int_eq(work(&other, &w, &why), 128);
}

/* An account could cost root the limit of time for each of its directories. */
TEST(a_worker_fails_repeatedly)
{
	static char how[] = "killed", held[] = "held up", ends[] = "x";
	struct work w = { .run = fails,
		.arg = how,
		.seconds = FOREVER,
		.bytes = 1000 };
	const char *why;
	int i;

	if (!suite_is_root("a_worker_fails_repeatedly"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_int_lt(work(&other, &w, &why), 0);
		ck_assert_str_eq(why, "was killed by a signal");
	}
	w.arg = ends;
	ck_assert_int_lt(work(&other, &w, &why), 0);
	ck_assert_ptr_nonnull(strstr(why, "not tried"));
	ck_assert_int_eq(account_find(&other, NAMELESS + 1, 5), 0);
	ck_assert_int_eq(work(&other, &w, &why), 128);
	w.arg = held;
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(work(&other, &w, &why), 0);
	ck_assert_int_lt(work(&other, &w, &why), 0);
	ck_assert_ptr_nonnull(strstr(why, "not tried"));
}

/* How far the clock of this program and its workers is ahead; shared. */
static volatile int *ahead_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, now);

	if (ahead_s && clock == CLOCK_MONOTONIC)
		now->tv_sec += *ahead_s;
	return r;
}

/* As one whose files are on a disk that answers slowly. Root hears the second
 * word only if the time is not over. */
static int takes(void *arg)
{
	const int *seconds = arg;

	*ahead_s += *seconds;
	worker_tell("", 0);
	worker_tell("", 0);
	return 0;
}

static bool is_in_time(struct work *w, int seconds)
{
	const char *why = "";
	int r;

	w->arg = &seconds;
	r = work(&other, w, &why);
	if (r < 0)
		ck_assert_str_eq(why, "took too long");
	return r == 0;
}

/* With many directories, an account could cost root the limit for each. */
TEST(works_take_long)
{
	struct work w = { .run = takes, .seconds = FOREVER, .bytes = 9 };
	int i;

	if (!suite_is_root("works_take_long"))
		return;
	ahead_s = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)ahead_s, MAP_FAILED);
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	for (i = 0; i < 3; i++)
		ck_assert(is_in_time(&w, 1000 + WORKER_FREE_S));
	ck_assert(!is_in_time(&w, FOREVER - 2990));
	/* The free time is left, and quick works repay. */
	ck_assert(is_in_time(&w, WORKER_FREE_S - 10));
	ck_assert(!is_in_time(&w, WORKER_FREE_S + 10));
	for (i = 0; i < 30; i++)
		ck_assert(is_in_time(&w, 0));
	ck_assert(is_in_time(&w, FOREVER / 3));
	/* Of this work, all is free. */
	w.free_seconds = FOREVER;
	for (i = 0; i < 10; i++)
		ck_assert(is_in_time(&w, FOREVER - 100));
	/* Another account has the whole limit. */
	w.free_seconds = 0;
	ck_assert_int_eq(account_find(&other, NAMELESS + 1, 5), 0);
	ck_assert(is_in_time(&w, FOREVER - 100));
	/* Quick works before give no more. */
	ck_assert_int_eq(account_find(&other, NAMELESS + 2, 5), 0);
	for (i = 0; i < 3; i++)
		ck_assert(is_in_time(&w, 0));
	ck_assert(!is_in_time(&w, FOREVER + 100));
	*ahead_s = 0;
}

static int hear_slowly(void *arg, const char *data, size_t len)
{
	(void)arg;
	(void)data;
	*ahead_s += FOREVER;
	return (int)len;
}

/* Root may ask a user, who may think for long. */
TEST(hearing_takes_long)
{
	struct work w = { .run = takes,
		.hear = hear_slowly,
		.seconds = FOREVER,
		.bytes = 9 };

	if (!suite_is_root("hearing_takes_long"))
		return;
	ahead_s = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)ahead_s, MAP_FAILED);
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert(is_in_time(&w, 0));
	*ahead_s = 0;
}

/* PIECES of some seconds each. */
static int takes_pieces(void *arg)
{
	const int *pieces = arg;
	int i;

	for (i = 0; i < *pieces; i++) {
		*ahead_s += 1000;
		worker_tell("", 0);
		worker_next();
	}
	worker_tell("", 0);
	return 0;
}

/* Each piece of a work has the limits of a work, but no more pieces than were
 * agreed. */
TEST(works_in_pieces)
{
	int pieces = 4;
	struct work w = { .run = takes_pieces,
		.arg = &pieces,
		.pieces = 5,
		.seconds = 3000,
		.bytes = 9 };
	const char *why = "";

	if (!suite_is_root("works_in_pieces"))
		return;
	ahead_s = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne((void *)ahead_s, MAP_FAILED);
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	w.free_seconds = 1000;
	ck_assert_int_eq(work(&other, &w, &why), 0);
	/* They share the limit with all works of the account. */
	w.free_seconds = 1;
	ck_assert_int_eq(work(&other, &w, &why), -ECANCELED);
	ck_assert_str_eq(why, "took too long");
	ck_assert_int_eq(account_find(&other, NAMELESS + 1, 5), 0);
	w.free_seconds = 1000;
	w.pieces = 2;
	pieces = 9;
	ck_assert_int_eq(work(&other, &w, &why), -ECANCELED);
	ck_assert_str_eq(why, "took too long");
	*ahead_s = 0;
}

/* The news lead to other work, here and as another account. */
static int hear_and_work(void *arg, const char *data, size_t len)
{
	const struct account *const *accounts = arg;
	static char *what[] = { "inner" };
	struct work inner = { .run = print_and_tell,
		.hear = hear,
		.arg = what,
		.seconds = FOREVER,
		.bytes = 1000 };
	const char *why;
	size_t i;

	(void)data;
	for (i = 0; accounts[i]; i++)
		ck_assert_int_eq(worker_run(accounts[i], &inner, &why), 4);
	return (int)len;
}

static int tell_twice(void *arg)
{
	(void)arg;
	return worker_tell("a", 1) == 1 && worker_tell("bc", 2) == 2;
}

TEST(work_inside_of_work)
{
	struct account self = { .uid = getuid() };
	const struct account *all[] = { &self, NULL, NULL };
	struct work outer = { .run = tell_twice,
		.hear = hear_and_work,
		.arg = all,
		.seconds = FOREVER,
		.bytes = 1000 };
	const char *why;

	told[0] = '\0';
	ck_assert_int_eq(work(&self, &outer, &why), 1);
	ck_assert_str_eq(told, "innerinner");
	if (!suite_is_root("work_inside_of_work"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	all[1] = &other;
	told[0] = '\0';
	ck_assert_int_eq(work(&other, &outer, &why), 1);
	ck_assert_str_eq(told, "innerinnerinnerinner");
}

/* A worker that was tricked tells although nobody asked. */
TEST(nobody_hears)
{
	struct work w = { .run = tell_twice,
		.seconds = FOREVER,
		.bytes = 1000 };
	const char *why;

	if (!suite_is_root("nobody_hears"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert_int_eq(work(&other, &w, &why), 0);
}

/* Tells when it may be left alone, and when it is. */
static int finish_alone(void *arg)
{
	const int *fd = arg;
	sigset_t term;
	int sig;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	return write(fd[0], "a", 1) != 1 || sigwait(&term, &sig) != 0 ||
	    write(fd[0], "b", 1) != 1;
}

/* Root's command is ended while the worker must not be interrupted. */
TEST(a_worker_is_left)
{
	int ends[2], kept;
	struct work w = { .run = finish_alone,
		.arg = &kept,
		.seconds = FOREVER };
	const char *why;
	char byte;
	pid_t pid;

	if (!suite_is_root("a_worker_is_left"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert_int_eq(pipe(ends), 0);
	kept = ends[1];
	w.keep[0] = kept;
	pid = fork();
	if (pid == 0)
		_exit(worker_run(&other, &w, &why));
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 'b');
	close(ends[0]);
}

static int keeps(void *arg)
{
	int *fd = arg;
	char byte = 0;

	return pread(fd[0], &byte, 1, 0) == 1 && byte == 'k' &&
	    fcntl(fd[1], F_GETFD) < 0;
}

TEST(a_worker_keeps_what_is_named)
{
	int fd[2] = { launch_file("k", 1), dup2(2, 30) };
	struct work w = { .run = keeps,
		.arg = fd,
		.keep = { fd[0] },
		.seconds = FOREVER };
	const char *why;

	if (!suite_is_root("a_worker_keeps_what_is_named"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert_int_eq(work(&other, &w, &why), 1);
	close(fd[0]);
	close(fd[1]);
}

static int asks(void *arg)
{
	(void)arg;
	return consent_ask("Do it?");
}

TEST(a_worker_asks)
{
	struct work w = { .run = asks, .seconds = FOREVER, .bytes = 1000 };
	int pty = posix_openpt(O_RDWR | O_NOCTTY), in = dup(0), err = dup(2),
	    tty;
	const char *why;

	if (!suite_is_root("a_worker_asks"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	ck_assert_int_eq(work(&other, &w, &why), CONSENT_NOBODY);
	ck_assert_int_eq(grantpt(pty) + unlockpt(pty), 0);
	tty = open(ptsname(pty), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(tty, 0);
	ck_assert_int_eq(write(pty, "yes\n", 4), 4);
	dup2(tty, 0);
	dup2(tty, 2);
	ck_assert_int_eq(worker_run(&other, &w, &why), CONSENT_YES);
	dup2(in, 0);
	dup2(err, 2);
	close(in);
	close(err);
	close(tty);
	close(pty);
}
