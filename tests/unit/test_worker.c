/*
 * Proves what a worker of root can do: tell, print, ask, keep a descriptor. A
 * worker that dies, is stopped, needs too long or prints without end costs its
 * own work alone.
 */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/consent.h"
#include "proto/lib/launch.h"
#include "proto/lib/worker.h"
#include "tests/lib/suite.h"

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
	unlink("out");
	return r;
}

START_TEST(a_worker_tells)
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
END_TEST

static int fails(void *arg)
{
	const char *how = arg;

	if (*how == 'k')
		raise(SIGKILL);
	if (*how == 's')
		raise(SIGSTOP);
	while (*how == 'p')
		printf("a long line of words\n");
	if (*how == 'l')
		pause();
	exit(*how == 'x' ? 128 : 0);
}

START_TEST(a_worker_fails)
{
	static char *const how[] = { "killed", "stopped", "prints", "late" };
	static const char *const wanted[] = { "was killed by a signal",
		"was stopped by a signal", "printed too much",
		"took too long" };
	static char ends[] = "x";
	struct work w = { .run = fails, .bytes = 100000 };
	const char *why;
	size_t i;

	if (!suite_is_root("a_worker_fails"))
		return;
	ck_assert_int_eq(account_find(&other, NAMELESS, 5), 0);
	for (i = 0; i < 4; i++) {
		w.arg = how[i];
		w.seconds = i == 3 ? 0 : FOREVER;
		why = NULL;
		ck_assert_int_lt(work(&other, &w, &why), 0);
		ck_assert_str_eq(why, wanted[i]);
	}
	w.arg = ends;
	w.seconds = FOREVER;
	ck_assert_int_eq(work(&other, &w, &why), 128);
}
END_TEST

static int keeps(void *arg)
{
	int *fd = arg;
	char byte = 0;

	return pread(fd[0], &byte, 1, 0) == 1 && byte == 'k' &&
	    fcntl(fd[1], F_GETFD) < 0;
}

START_TEST(a_worker_keeps_what_is_named)
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
END_TEST

static int asks(void *arg)
{
	(void)arg;
	return consent_ask("Do it?");
}

START_TEST(a_worker_asks)
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
END_TEST

int main(void)
{
	Suite *s = suite_create("worker");
	TCase *tc = tcase_create("worker");
	char dir[] = "/tmp/test_worker.XXXXXX";
	int failed;

	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 1;
	tcase_add_test(tc, a_worker_tells);
	tcase_add_test(tc, a_worker_fails);
	tcase_add_test(tc, a_worker_keeps_what_is_named);
	tcase_add_test(tc, a_worker_asks);
	suite_add_tcase(s, tc);
	failed = suite_run(s);
	rmdir(dir);
	return failed;
}
