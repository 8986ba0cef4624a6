/*
 * Proves that the flusher syncs and closes every file once, also if there are
 * more files than workers. The owner of a file, and no other caller, learns of
 * a failed sync or close. Two callers do not wait for each other's files. A
 * caller that has a file synced ahead does other work meanwhile, and syncs the
 * file alone if all threads hang in files of other callers. Without threads the
 * result is the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/workers.h"
#include "daemon/store/refs/flush.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NR (3 * FLUSH_MAX + 7)

static struct sys table;
static struct workers *workers;
static struct flusher *flusher;
static atomic_int bad_fd;
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

static void start_flusher(void)
{
	workers = workers_new(8);
	flusher = flusher_new(&table, workers);
	ck_assert_ptr_nonnull(flusher);
	ck_assert_int_eq(workers_start(workers), 0);
}

static void teardown(void)
{
	if (workers != NULL)
		workers_stop(workers);
	flusher_free(flusher);
	flusher = NULL;
	workers_free(workers);
	workers = NULL;
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
		/* Descriptor numbers are used again. */
		if (flush.nr == 0)
			bad_fd = -1;
	}
	flush_end(&flush);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(each_is_flushed_once, .times = 8)
{
	static const enum flush_how hows[] = { FLUSH_FSYNC, FLUSH_WRITE_OUT,
		FLUSH_BEGIN, FLUSH_NOTHING };
	enum flush_how how = hows[_i / 2];
	struct mine mine;
	int i, bad = 100;

	if (_i % 2)
		start_flusher();
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

static void *flush_too(void *arg)
{
	int i;

	for (i = 0; i < 5; i++)
		flush_many(arg, FLUSH_FSYNC, -1);
	return NULL;
}

TEST(two_at_once)
{
	static struct mine mine, others;
	pthread_t other;

	start_flusher();
	ck_assert_int_eq(pthread_create(&other, NULL, flush_too, &others), 0);
	flush_too(&mine);
	pthread_join(other, NULL);
	ck_assert_int_eq(nr_syncs, 10 * NR);
	ck_assert_int_eq(nr_closed, 10 * NR);
}

static sem_t went_on;

/* Returns when the caller is busy with other work. */
static int patient_fsync(const struct sys *sys, int fd)
{
	while (sem_wait(&went_on) < 0 && errno == EINTR)
		;
	return counting_fsync(sys, fd);
}

TEST(one_meanwhile, .times = 2)
{
	struct flush_one good, bad;
	int fds[] = { new_file(), new_file() };

	table.fsync = patient_fsync;
	sem_init(&went_on, 0, _i ? 0 : 2);
	if (_i)
		start_flusher();
	bad_fd = fds[1];
	flush_ahead(&good, &table, flusher, fds[0], FLUSH_FSYNC);
	flush_ahead(&bad, &table, flusher, fds[1], FLUSH_FSYNC);
	if (_i) {
		sem_post(&went_on);
		sem_post(&went_on);
	}
	ck_assert_int_eq(flush_wait(&good), 0);
	ck_assert_int_eq(flush_wait(&bad), -EIO);
	ck_assert_int_eq(nr_syncs, 2);
	ck_assert_int_eq(nr_closed, 0);
	ck_assert_int_eq(close(fds[0]), 0);
	ck_assert_int_eq(close(fds[1]), 0);
	sem_destroy(&went_on);
}

TEST(one_written_out, .times = 2)
{
	struct flush_one good, bad;
	int fds[] = { new_file(), new_file() };

	if (_i)
		start_flusher();
	bad_fd = fds[1];
	flush_ahead(&good, &table, flusher, fds[0], FLUSH_WRITE_OUT);
	flush_ahead(&bad, &table, flusher, fds[1], FLUSH_WRITE_OUT);
	ck_assert_int_eq(flush_wait(&good), 0);
	ck_assert_int_eq(flush_wait(&bad), -ENOSPC);
	ck_assert_int_eq(nr_waited, 2);
	ck_assert_int_eq(nr_syncs, 0);
	ck_assert_int_eq(nr_closed, 0);
	ck_assert_int_eq(close(fds[0]), 0);
	ck_assert_int_eq(close(fds[1]), 0);
}

static int healthy_fd;

static int hanging_fsync(const struct sys *sys, int fd)
{
	return fd == healthy_fd ? counting_fsync(sys, fd) :
				  patient_fsync(sys, fd);
}

/* More files than workers. */
TEST(who_hangs_does_so_alone)
{
	struct flush_one hangs[20], mine;
	size_t i;

	table.fsync = hanging_fsync;
	sem_init(&went_on, 0, 0);
	start_flusher();
	healthy_fd = new_file();
	for (i = 0; i < 20; i++)
		flush_ahead(&hangs[i], &table, flusher, new_file(),
		    FLUSH_FSYNC);
	flush_ahead(&mine, &table, flusher, healthy_fd, FLUSH_FSYNC);
	ck_assert_int_eq(flush_wait(&mine), 0);
	ck_assert_int_eq(nr_syncs, 1);
	for (i = 0; i < 20; i++)
		sem_post(&went_on);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(flush_wait(&hangs[i]), 0);
	ck_assert_int_eq(nr_syncs, 21);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(close(hangs[i].file.fd), 0);
	ck_assert_int_eq(close(healthy_fd), 0);
	sem_destroy(&went_on);
}

/* ---- side by side ---- */

/* The caller, and the workers that flush.c permits. */
#define TOGETHER 4

static pthread_mutex_t met_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static int nr_inside;
static bool nobody_came;

/* Returns when TOGETHER threads are inside. One thread after another would
 * never get there. */
static int meeting_fsync(const struct sys *sys, int fd)
{
	struct timespec until;

	(void)sys;
	(void)fd;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 120;
	pthread_mutex_lock(&met_mutex);
	if (++nr_inside == TOGETHER)
		pthread_cond_broadcast(&met);
	while (nr_inside < TOGETHER && !nobody_came)
		if (pthread_cond_timedwait(&met, &met_mutex, &until) != 0)
			nobody_came = true;
	pthread_mutex_unlock(&met_mutex);
	return 0;
}

TEST(they_are_synced_side_by_side)
{
	struct mine mine = { .errs = { 0 } };
	struct flush flush;
	int i;

	table.fsync = meeting_fsync;
	start_flusher();
	flush_init(&flush, &table, flusher, failed, &mine);
	for (i = 0; i < TOGETHER; i++)
		flush_add(&flush, new_file(), FLUSH_FSYNC, &mine.errs[i]);
	flush_end(&flush);
	ck_assert(!nobody_came);
}
