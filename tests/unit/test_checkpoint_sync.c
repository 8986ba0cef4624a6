/*
 * Proves that a sync of a file system never counts as done while another
 * thread's sync of this file system is under way, or after it has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "daemon/base/mutex.h"
#include "daemon/store/repos/repo.h"
#include "tests/lib/suite.h"

static struct sys slow;
static struct repos repos = { .sys = &slow };
static struct fs fs;
static pthread_t other;
static bool other_is_back;
static int first_result, other_result;
static int nr_syncs;

static void *sync_too(void *arg)
{
	other_result = fs_sync_published(arg, &fs);
	return NULL;
}

/* Gives the second thread enough time to return too early. */
static int slow_syncfs(const struct sys *sys, int fd)
{
	struct timespec until;

	(void)sys;
	(void)fd;
	if (nr_syncs++ > 0)
		return 0;
	ck_assert_int_eq(pthread_create(&other, NULL, sync_too, &repos), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	other_is_back = pthread_timedjoin_np(other, NULL, &until) == 0;
	return first_result;
}

static void run(int result)
{
	first_result = result;
	nr_syncs = 0;
	slow = sys_kernel;
	slow.syncfs = slow_syncfs;
	mutex_init(&repos.mutex, MUTEX_QUEUES);
	mutex_init(&fs.checkpoint, MUTEX_FS);
	fs.marker_fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	ck_assert_int_ge(fs.marker_fd, 0);
	atomic_store(&fs.touched, true);
	ck_assert_int_eq(fs_sync_published(&repos, &fs), result);
	ck_assert(!other_is_back);
	pthread_join(other, NULL);
	ck_assert_int_eq(other_result, result);
	sys_kernel.close(&sys_kernel, fs.marker_fd);
}

TEST(the_second_waits_for_the_first)
{
	run(0);
	ck_assert_int_eq(nr_syncs, 1);
}

/* The kernel would report success, although it has dropped the data. */
TEST(what_failed_is_not_tried_again)
{
	run(-EIO);
	ck_assert_int_eq(nr_syncs, 1);
}
