/*
 * Proves that files handed to the flusher's threads are each synced once and
 * closed, also more than fit at a time; that whoever owns a file whose sync or
 * close failed is told so, and nobody else; that two callers do not wait for
 * each other's files; and that without threads all is the same.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/flush.h"
#include "tests/lib/tmp.h"

#define NR (3 * FLUSH_MAX + 7)

static struct sys table;
static struct flusher *flusher;
static int bad_fd;
static atomic_int nr_syncs, nr_begun, nr_waited, nr_closed;

static int counting_fsync(const struct sys *sys, int fd)
{
	(void)sys;
	atomic_fetch_add(&nr_syncs, 1);
	return fd == bad_fd ? -EIO : sys_kernel.fsync(&sys_kernel, fd);
}

static int counting_begin(const struct sys *sys, int fd)
{
	(void)sys;
	atomic_fetch_add(&nr_begun, 1);
	return sys_kernel.write_out_begin(&sys_kernel, fd);
}

static int counting_wait(const struct sys *sys, int fd)
{
	(void)sys;
	atomic_fetch_add(&nr_waited, 1);
	return fd == bad_fd ? -ENOSPC :
			      sys_kernel.write_out_wait(&sys_kernel, fd);
}

static int counting_close(const struct sys *sys, int fd)
{
	(void)sys;
	atomic_fetch_add(&nr_closed, 1);
	return sys_kernel.close(&sys_kernel, fd);
}

struct mine {
	int errs[NR];
};

static void failed(void *arg, void *what, int err)
{
	struct mine *mine = arg;
	int *slot = what;

	ck_assert(slot >= mine->errs && slot < mine->errs + NR);
	ck_assert_int_eq(*slot, 0);
	*slot = err;
}

static int new_file(void)
{
	int fd = openat(tmp_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	return fd;
}

static void setup(void)
{
	tmp_setup();
	table = sys_kernel;
	table.fsync = counting_fsync;
	table.write_out_begin = counting_begin;
	table.write_out_wait = counting_wait;
	table.close = counting_close;
	bad_fd = -1;
	nr_syncs = nr_begun = nr_waited = nr_closed = 0;
}

static void teardown(void)
{
	flusher_free(flusher);
	flusher = NULL;
	tmp_teardown();
}

/* NR files in the manner HOW; the file at BAD can't be flushed. */
static void flush_many(struct mine *mine, enum flush_how how, int bad)
{
	struct flush flush;
	int i, fd;

	memset(mine, 0, sizeof(*mine));
	flush_init(&flush, &table, flusher, failed, mine);
	for (i = 0; i < NR; i++) {
		fd = new_file();
		if (i == bad)
			bad_fd = fd;
		flush_add(&flush, fd, how, &mine->errs[i]);
		/* Numbers come again. */
		if (flush.nr == 0)
			bad_fd = -1;
	}
	flush_end(&flush);
}

START_TEST(each_is_flushed_once)
{
	static const enum flush_how hows[] = { FLUSH_FSYNC, FLUSH_WRITE_OUT,
		FLUSH_BEGIN, FLUSH_NOTHING };
	enum flush_how how = hows[_i / 2];
	struct mine mine;
	int i, bad = 100;

	if (_i % 2) {
		flusher = flusher_new(&table);
		ck_assert_ptr_nonnull(flusher);
	}
	flush_many(&mine, how, bad);
	ck_assert_int_eq(nr_syncs, how == FLUSH_FSYNC ? NR : 0);
	ck_assert_int_eq(nr_begun,
	    how == FLUSH_WRITE_OUT || how == FLUSH_BEGIN ? NR : 0);
	ck_assert_int_eq(nr_waited, how == FLUSH_WRITE_OUT ? NR : 0);
	ck_assert_int_eq(nr_closed, NR);
	for (i = 0; i < NR; i++)
		ck_assert_int_eq(mine.errs[i],
		    i != bad                   ? 0 :
			how == FLUSH_FSYNC     ? -EIO :
			how == FLUSH_WRITE_OUT ? -ENOSPC :
						 0);
}
END_TEST

static void *flush_too(void *arg)
{
	int i;

	for (i = 0; i < 5; i++)
		flush_many(arg, FLUSH_FSYNC, -1);
	return NULL;
}

START_TEST(two_at_once)
{
	static struct mine mine, others;
	pthread_t other;

	flusher = flusher_new(&table);
	ck_assert_int_eq(pthread_create(&other, NULL, flush_too, &others), 0);
	flush_too(&mine);
	pthread_join(other, NULL);
	ck_assert_int_eq(nr_syncs, 10 * NR);
	ck_assert_int_eq(nr_closed, 10 * NR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("flush");
	TCase *tc = tcase_create("flush");
	SRunner *runner;
	int failures;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, each_is_flushed_once, 0, 8);
	tcase_add_test(tc, two_at_once);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures != 0;
}
