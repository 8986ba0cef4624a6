/*
 * Proves that a thread which takes mutexes in the order of their ranks goes on,
 * also after a wait for a condition and if it gives them back in any order, and
 * that a wait against the order ends the program: for a mutex of an earlier or
 * of the same rank, for a condition, and for a lock of readers. Trying is no
 * wait, but a mutex that was got by trying counts. A thread has only its own
 * mutexes.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#ifndef REFD_RANKS
#define REFD_RANKS
#endif
/* The ranks are not in a release. */
#include "daemon/base/mutex.c"
#include "tests/lib/suite.h"

static struct mutex outer = MUTEX_INIT(MUTEX_QUEUES);
static struct mutex same = MUTEX_INIT(MUTEX_QUEUES);
static struct mutex inner = MUTEX_INIT(MUTEX_INNER);
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

TEST(in_order)
{
	const struct timespec past = { 1, 0 };
	struct rwlock log;

	rwlock_init(&log, MUTEX_LOG);
	rwlock_read(&log);
	mutex_lock(&outer);
	mutex_lock(&inner);
	ck_assert_int_eq(mutex_wait_until(&cond, &inner, &past), ETIMEDOUT);
	mutex_unlock(&outer);
	rwlock_unlock(&log);
	mutex_unlock(&inner);
	mutex_lock(&outer);
	mutex_unlock(&outer);
	rwlock_write(&log);
	rwlock_unlock(&log);
	rwlock_destroy(&log);
}

static void *take_outer(void *unused)
{
	mutex_lock(&outer);
	mutex_unlock(&outer);
	return unused;
}

TEST(each_thread_has_its_own)
{
	pthread_t thread;

	mutex_lock(&inner);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_outer, NULL), 0);
	pthread_join(thread, NULL);
	mutex_unlock(&inner);
}

TEST(an_earlier_rank, .signal = SIGABRT)
{
	mutex_lock(&inner);
	mutex_lock(&outer);
}

TEST(the_same_rank, .signal = SIGABRT)
{
	mutex_lock(&outer);
	mutex_lock(&same);
}

TEST(a_lock_of_readers, .signal = SIGABRT)
{
	struct rwlock log;

	rwlock_init(&log, MUTEX_LOG);
	mutex_lock(&outer);
	rwlock_read(&log);
}

/* The wait would take OUTER again while INNER is held. */
TEST(a_condition, .signal = SIGABRT)
{
	mutex_lock(&outer);
	mutex_lock(&inner);
	mutex_wait(&cond, &outer);
}

TEST(trying_counts, .signal = SIGABRT)
{
	mutex_lock(&inner);
	ck_assert_int_eq(mutex_trylock(&outer), 0);
	mutex_unlock(&inner);
	mutex_lock(&same);
}
