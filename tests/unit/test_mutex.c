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

START_TEST(in_order)
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
END_TEST

static void *take_outer(void *unused)
{
	mutex_lock(&outer);
	mutex_unlock(&outer);
	return unused;
}

START_TEST(each_thread_has_its_own)
{
	pthread_t thread;

	mutex_lock(&inner);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_outer, NULL), 0);
	pthread_join(thread, NULL);
	mutex_unlock(&inner);
}
END_TEST

START_TEST(an_earlier_rank)
{
	mutex_lock(&inner);
	mutex_lock(&outer);
}
END_TEST

START_TEST(the_same_rank)
{
	mutex_lock(&outer);
	mutex_lock(&same);
}
END_TEST

START_TEST(a_lock_of_readers)
{
	struct rwlock log;

	rwlock_init(&log, MUTEX_LOG);
	mutex_lock(&outer);
	rwlock_read(&log);
}
END_TEST

/* The wait would take OUTER again while INNER is held. */
START_TEST(a_condition)
{
	mutex_lock(&outer);
	mutex_lock(&inner);
	mutex_wait(&cond, &outer);
}
END_TEST

START_TEST(trying_counts)
{
	mutex_lock(&inner);
	ck_assert_int_eq(mutex_trylock(&outer), 0);
	mutex_unlock(&inner);
	mutex_lock(&same);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mutex");
	TCase *tc = tcase_create("mutex");

	tcase_add_test(tc, in_order);
	tcase_add_test(tc, each_thread_has_its_own);
	tcase_add_test_raise_signal(tc, an_earlier_rank, SIGABRT);
	tcase_add_test_raise_signal(tc, the_same_rank, SIGABRT);
	tcase_add_test_raise_signal(tc, a_lock_of_readers, SIGABRT);
	tcase_add_test_raise_signal(tc, a_condition, SIGABRT);
	tcase_add_test_raise_signal(tc, trying_counts, SIGABRT);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
