/*
 * Proves the promises of the pool of workers. No work is overlooked. A source
 * gets no more threads than its limit. The reserved threads of every source
 * stay free while other sources hang. The pool tells how many threads a source
 * can get, serves the first source first, calls each source at the appointed
 * time, gives work to the thread that became idle last, and ends only after all
 * work.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/workers.h"
#include "tests/lib/suite.h"

/* A source. Pieces of work wait until the test opens the gate. */
struct gated {
	struct work_source source;
	struct workers *w;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	size_t waiting; /* pieces of work in the queue */
	size_t running, most_running, done;
	bool is_open;
};

static bool gated_work(void *arg)
{
	struct gated *g = arg;

	pthread_mutex_lock(&g->mutex);
	if (g->waiting == 0) {
		pthread_mutex_unlock(&g->mutex);
		return false;
	}
	if (--g->waiting > 0)
		workers_wake(g->w, &g->source);
	g->running++;
	if (g->running > g->most_running)
		g->most_running = g->running;
	pthread_cond_broadcast(&g->changed);
	while (!g->is_open)
		pthread_cond_wait(&g->changed, &g->mutex);
	g->running--;
	g->done++;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->mutex);
	return true;
}

static void gated_init(struct gated *g, struct workers *w, size_t most,
    size_t reserved)
{
	*g = (struct gated){ .source = { .work = gated_work,
				 .arg = g,
				 .most = most,
				 .reserved = reserved },
		.w = w };
	pthread_mutex_init(&g->mutex, NULL);
	pthread_cond_init(&g->changed, NULL);
	workers_add(w, &g->source);
}

static void gated_put(struct gated *g, size_t nr)
{
	pthread_mutex_lock(&g->mutex);
	g->waiting += nr;
	workers_wake(g->w, &g->source);
	pthread_mutex_unlock(&g->mutex);
}

static void gated_open(struct gated *g)
{
	pthread_mutex_lock(&g->mutex);
	g->is_open = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->mutex);
}

static void wait_running(struct gated *g, size_t nr)
{
	pthread_mutex_lock(&g->mutex);
	while (g->running < nr)
		pthread_cond_wait(&g->changed, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static void wait_done(struct gated *g, size_t nr)
{
	pthread_mutex_lock(&g->mutex);
	while (g->done < nr)
		pthread_cond_wait(&g->changed, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static size_t running(struct gated *g)
{
	size_t nr;

	pthread_mutex_lock(&g->mutex);
	nr = g->running;
	pthread_mutex_unlock(&g->mutex);
	return nr;
}

CASE(.seconds = 60);

TEST(test_limit)
{
	struct workers *w = workers_new(5);
	struct gated g;

	gated_init(&g, w, 3, 1);
	ck_assert_int_eq(workers_start(w), 0);
	gated_put(&g, 20);
	wait_running(&g, 3);
	/* Long enough for a fourth thread. */
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	gated_open(&g);
	workers_stop(w);
	ck_assert_uint_eq(g.done, 20);
	ck_assert_uint_eq(g.most_running, 3);
	workers_free(w);
}

/* Both sources want all five threads. Two of them are kept for LATE. */
TEST(test_reserved)
{
	struct workers *w = workers_new(5);
	struct gated early, late;

	gated_init(&early, w, 5, 0);
	gated_init(&late, w, 5, 2);
	ck_assert_int_eq(workers_start(w), 0);
	ck_assert_uint_eq(workers_reach(w, &early.source), 3);
	ck_assert_uint_eq(workers_reach(w, &late.source), 5);
	gated_put(&early, 9);
	wait_running(&early, 3);
	ck_assert_uint_eq(workers_reach(w, &early.source), 3);
	ck_assert_uint_eq(workers_reach(w, &late.source), 2);
	gated_put(&late, 9);
	wait_running(&late, 2);
	/* A third thread would have to be one of the five busy threads. */
	ck_assert_uint_eq(running(&early), 3);
	ck_assert_uint_eq(workers_reach(w, &early.source), 3);
	ck_assert_uint_eq(workers_reach(w, &late.source), 2);
	/* LATE goes on while EARLY hangs. */
	gated_open(&late);
	wait_done(&late, 9);
	ck_assert_uint_eq(running(&early), 3);
	gated_open(&early);
	workers_stop(w);
	ck_assert_uint_eq(early.done, 9);
	ck_assert_uint_eq(early.most_running, 3);
	workers_free(w);
}

/* One thread: while the thread works, both sources get work. */
TEST(test_order)
{
	struct workers *w = workers_new(1);
	struct gated first, second;

	gated_init(&first, w, 1, 0);
	gated_init(&second, w, 1, 0);
	ck_assert_int_eq(workers_start(w), 0);
	gated_put(&second, 1);
	wait_running(&second, 1);
	gated_put(&second, 1);
	gated_put(&first, 1);
	gated_open(&second);
	wait_running(&first, 1);
	ck_assert_uint_eq(second.done, 1);
	gated_open(&first);
	workers_stop(w);
	ck_assert_uint_eq(second.done, 2);
	workers_free(w);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The queue has work, and nobody wakes the pool. */
TEST(test_time)
{
	struct workers *w = workers_new(2);
	int64_t at_ns = now_ns() + 20 * 1000 * 1000;
	struct gated g;

	gated_init(&g, w, 2, 0);
	g.waiting = 1;
	g.is_open = true;
	ck_assert_int_eq(workers_start(w), 0);
	workers_wake_at(w, &g.source, at_ns + INT64_C(3600) * 1000000000);
	workers_wake_at(w, &g.source, at_ns);
	wait_done(&g, 1);
	ck_assert_int_ge(now_ns(), at_ns);
	/* A future wake time does not delay the stop. */
	at_ns += INT64_C(30) * 1000000000;
	workers_wake_at(w, &g.source, at_ns);
	workers_stop(w);
	ck_assert_int_lt(now_ns(), at_ns);
	workers_free(w);
}

/* Two sources wait for their times. */
TEST(test_earliest_time)
{
	struct workers *w = workers_new(2);
	int64_t at_ns = now_ns() + 20 * 1000 * 1000;
	int64_t late_ns = at_ns + INT64_C(10) * 1000000000;
	struct gated soon, late;

	gated_init(&soon, w, 1, 0);
	gated_init(&late, w, 1, 0);
	soon.waiting = 1;
	soon.is_open = true;
	ck_assert_int_eq(workers_start(w), 0);
	workers_wake_at(w, &soon.source, at_ns);
	workers_wake_at(w, &late.source, late_ns);
	wait_done(&soon, 1);
	ck_assert_int_lt(now_ns(), late_ns);
	workers_stop(w);
	workers_free(w);
}

/* Notes the threads that do its work. */
struct noted {
	struct work_source source;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool waiting;
	pthread_t last;
	size_t done;
};

static bool noted_work(void *arg)
{
	struct noted *n = arg;
	bool did;

	pthread_mutex_lock(&n->mutex);
	did = n->waiting;
	n->waiting = false;
	n->done += did;
	if (did)
		n->last = pthread_self();
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->mutex);
	return did;
}

TEST(test_last_idle)
{
	struct noted n = {
		.source = { .work = noted_work, .arg = &n, .most = 1 }
	};
	const struct timespec nap = { 0, 2000000 };
	struct workers *w = workers_new(4);
	size_t i, same = 0;
	pthread_t before;

	pthread_mutex_init(&n.mutex, NULL);
	pthread_cond_init(&n.changed, NULL);
	workers_add(w, &n.source);
	ck_assert_int_eq(workers_start(w), 0);
	pthread_mutex_lock(&n.mutex);
	for (i = 0; i < 40; i++) {
		before = n.last;
		n.waiting = true;
		workers_wake(w, &n.source);
		while (n.done == i)
			pthread_cond_wait(&n.changed, &n.mutex);
		same += i > 0 && pthread_equal(n.last, before);
		/* The thread becomes idle. */
		pthread_mutex_unlock(&n.mutex);
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&n.mutex);
	}
	pthread_mutex_unlock(&n.mutex);
	/* On a busy machine a thread may become idle too late. */
	ck_assert_uint_gt(same, 20);
	workers_stop(w);
	workers_free(w);
}

struct woken {
	struct work_source source;
	struct workers *w;
	size_t calls;
};

/* As if work had come to the queue right after a look there. */
static bool woken_work(void *arg)
{
	struct woken *n = arg;

	if (n->calls++ == 0)
		workers_wake(n->w, &n->source);
	return false;
}

TEST(test_wake_meanwhile)
{
	struct workers *w = workers_new(1);
	struct woken n = {
		.source = { .work = woken_work, .arg = &n, .most = 1 },
		.w = w
	};

	workers_add(w, &n.source);
	ck_assert_int_eq(workers_start(w), 0);
	workers_wake(w, &n.source);
	workers_stop(w);
	ck_assert_uint_eq(n.calls, 2);
	workers_free(w);
}

#define PRODUCERS 4
#define PIECES    20000

struct counter {
	struct work_source source;
	struct workers *w;
	atomic_size_t waiting, done;
};

/* Takes one piece. The queue has no lock: every overlooked wake shows. */
static bool counter_work(void *arg)
{
	struct counter *c = arg;
	size_t nr = atomic_load(&c->waiting);

	while (
	    nr > 0 && !atomic_compare_exchange_weak(&c->waiting, &nr, nr - 1))
		;
	if (nr == 0)
		return false;
	if (nr > 1)
		workers_wake(c->w, &c->source);
	atomic_fetch_add(&c->done, 1);
	return true;
}

static void *produce(void *arg)
{
	struct counter *c = arg;
	size_t i;

	for (i = 0; i < PIECES; i++) {
		atomic_fetch_add(&c[i % 2].waiting, 1);
		workers_wake(c[i % 2].w, &c[i % 2].source);
	}
	return NULL;
}

TEST(test_nothing_is_overlooked)
{
	struct workers *w = workers_new(4);
	pthread_t threads[PRODUCERS];
	struct counter c[2];
	size_t i;

	for (i = 0; i < 2; i++) {
		c[i] = (struct counter){ .source = { .work = counter_work,
					     .arg = &c[i],
					     .most = 2 + i,
					     .reserved = i },
			.w = w };
		workers_add(w, &c[i].source);
	}
	ck_assert_int_eq(workers_start(w), 0);
	for (i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, c),
		    0);
	for (i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	/* Without workers_stop(), which would look at every source again. */
	for (i = 0; i < 2; i++)
		while (atomic_load(&c[i].done) < PRODUCERS * PIECES / 2)
			nanosleep(&(struct timespec){ .tv_nsec = 100000 },
			    NULL);
	workers_stop(w);
	workers_free(w);
}
