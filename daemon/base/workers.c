/*
 * Happy path: a source wakes the pool. The thread that became idle last takes
 * the first source that has work and may run, because the stack and the memory
 * of this thread are still in the caches of a processor. The thread that has
 * been idle for longest also waits for the times of workers_wake_at().
 *
 * Failures: if not all threads can be started, workers_start() ends the others.
 * If the work of a source hangs, other sources keep their reserved threads.
 */
#include "daemon/base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/mutex.h"
#include "daemon/base/time.h"

struct worker {
	struct workers *pool;
	pthread_t thread;
	pthread_cond_t called;
	bool is_idle;
	struct worker *next; /* became idle before */
};

struct workers {
	struct mutex mutex;
	struct worker *idle; /* the last idle thread first */
	struct work_source *sources;
	size_t nr_free; /* threads that run no work, idle or not */
	bool stopping;
	/* Only for the thread that starts and stops the pool. */
	size_t nr_threads, nr_started;
	struct worker threads[];
};

/* The threads that are kept free for sources other than SOURCE. */
static size_t nr_kept_free(const struct workers *w,
    const struct work_source *source)
{
	const struct work_source *other;
	size_t nr = 0;

	for (other = w->sources; other != NULL; other = other->next)
		if (other != source && other->nr_running < other->reserved)
			nr += other->reserved - other->nr_running;
	return nr;
}

static bool may_run(const struct workers *w, const struct work_source *source)
{
	return source->nr_running < source->most &&
	    (source->nr_running < source->reserved ||
		w->nr_free > nr_kept_free(w, source));
}

static struct work_source *next_source(const struct workers *w)
{
	struct work_source *source;

	for (source = w->sources; source != NULL; source = source->next)
		if (source->has_work && may_run(w, source))
			return source;
	return NULL;
}

static bool has_work(const struct workers *w)
{
	const struct work_source *source;

	for (source = w->sources; source != NULL; source = source->next)
		if (source->has_work || source->nr_running > 0)
			return true;
	return false;
}

static void run(struct workers *w, struct work_source *source)
{
	bool did;

	source->has_work = false;
	source->nr_running++;
	w->nr_free--;
	mutex_unlock(&w->mutex);
	did = source->work(source->arg);
	mutex_lock(&w->mutex);
	w->nr_free++;
	source->nr_running--;
	/* There may be more work, so this thread looks for it next. */
	source->has_work = source->has_work || did;
}

/* The earliest time of workers_wake_at(); 0: none. */
static int64_t earliest(const struct workers *w)
{
	const struct work_source *source;
	int64_t due_ns = 0;

	for (source = w->sources; source != NULL; source = source->next)
		if (source->due_ns != 0 &&
		    (due_ns == 0 || source->due_ns < due_ns))
			due_ns = source->due_ns;
	return due_ns;
}

/* The thread that became idle last, for pthread_cond_signal(). NULL: no thread
 * is idle. Then nobody need be called, because threads look for work before
 * they become idle. */
static struct worker *take_idle(struct workers *w)
{
	struct worker *idle = w->idle;

	if (idle == NULL)
		return NULL;
	w->idle = idle->next;
	idle->is_idle = false;
	return idle;
}

static void call_idle(struct workers *w)
{
	struct worker *idle = take_idle(w);

	if (idle != NULL)
		pthread_cond_signal(&idle->called);
}

/* The times up to NOW_NS become work. */
static void fall_due(struct workers *w, int64_t now_ns)
{
	struct work_source *source;

	for (source = w->sources; source != NULL; source = source->next)
		if (source->due_ns != 0 && source->due_ns <= now_ns) {
			source->has_work = true;
			source->due_ns = 0;
			call_idle(w);
		}
}

static void wait_for_work(struct worker *me)
{
	struct workers *w = me->pool;
	struct timespec until;
	int64_t due_ns;

	me->next = w->idle;
	w->idle = me;
	me->is_idle = true;
	while (me->is_idle) {
		due_ns = me->next == NULL ? earliest(w) : 0;
		until = time_spec(due_ns);
		if (due_ns == 0)
			mutex_wait(&me->called, &w->mutex);
		else if (mutex_wait_until(&me->called, &w->mutex, &until) ==
		    ETIMEDOUT)
			fall_due(w, due_ns);
	}
}

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct workers *w = me->pool;
	struct work_source *source;

	mutex_lock(&w->mutex);
	for (;;) {
		source = next_source(w);
		if (source != NULL)
			run(w, source);
		else if (w->stopping && !has_work(w))
			break;
		else
			wait_for_work(me);
	}
	/* Idle threads may wait for the end of this work, so they are
	 * called. */
	while (w->idle != NULL)
		call_idle(w);
	mutex_unlock(&w->mutex);
	return NULL;
}

struct workers *workers_new(size_t nr_threads)
{
	struct workers *w;
	size_t i;

	w = calloc(1, sizeof(*w) + nr_threads * sizeof(w->threads[0]));
	if (w == NULL)
		return NULL;
	w->nr_threads = w->nr_free = nr_threads;
	mutex_init(&w->mutex, MUTEX_INNER);
	for (i = 0; i < nr_threads; i++) {
		w->threads[i].pool = w;
		time_cond_init(&w->threads[i].called);
	}
	return w;
}

void workers_add(struct workers *w, struct work_source *source)
{
	struct work_source **at = &w->sources;

	while (*at != NULL)
		at = &(*at)->next;
	*at = source;
}

int workers_start(struct workers *w)
{
	w->stopping = false;
	while (w->nr_started < w->nr_threads &&
	    pthread_create(&w->threads[w->nr_started].thread, NULL, worker_main,
		&w->threads[w->nr_started]) == 0)
		w->nr_started++;
	if (w->nr_started == w->nr_threads)
		return 0;
	workers_stop(w);
	return -EAGAIN;
}

void workers_wake(struct workers *w, struct work_source *source)
{
	struct worker *idle = NULL;

	mutex_lock(&w->mutex);
	source->has_work = true;
	if (may_run(w, source))
		idle = take_idle(w);
	mutex_unlock(&w->mutex);
	/* Not under the mutex, which the other thread needs at once. */
	if (idle != NULL)
		pthread_cond_signal(&idle->called);
}

void workers_wake_at(struct workers *w, struct work_source *source,
    int64_t time_ns)
{
	struct worker *last;

	mutex_lock(&w->mutex);
	source->due_ns = time_ns;
	for (last = w->idle; last != NULL && last->next != NULL;)
		last = last->next;
	/* It learns the new time. */
	if (last != NULL)
		pthread_cond_signal(&last->called);
	mutex_unlock(&w->mutex);
}

size_t workers_reach(struct workers *w, const struct work_source *source)
{
	size_t kept, more, reach;

	mutex_lock(&w->mutex);
	kept = nr_kept_free(w, source);
	more = w->nr_free > kept ? w->nr_free - kept : 0;
	reach = source->nr_running + more;
	if (reach < source->reserved)
		reach = source->reserved;
	if (reach > source->most)
		reach = source->most;
	if (reach > source->nr_running + w->nr_free)
		reach = source->nr_running + w->nr_free;
	mutex_unlock(&w->mutex);
	return reach;
}

void workers_stop(struct workers *w)
{
	mutex_lock(&w->mutex);
	w->stopping = true;
	while (w->idle != NULL)
		call_idle(w);
	mutex_unlock(&w->mutex);
	while (w->nr_started > 0)
		pthread_join(w->threads[--w->nr_started].thread, NULL);
}

void workers_free(struct workers *w)
{
	size_t i;

	if (w == NULL)
		return;
	for (i = 0; i < w->nr_threads; i++)
		pthread_cond_destroy(&w->threads[i].called);
	mutex_destroy(&w->mutex);
	free(w);
}
