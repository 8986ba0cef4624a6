#include "client/push/push_progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "client/base/cli.h"

#define FIRST_S 2
#define NEXT_S  10

struct push_progress {
	pthread_mutex_t lock; /* of has_ended */
	pthread_cond_t changed;
	bool has_ended;
	bool has_told; /* of the thread, until its end */
	pthread_t thread;
};

/* Waits until UNTIL. True: the push has its answer. */
static bool await_end(struct push_progress *p, const struct timespec *until)
{
	int err = 0;
	bool has_ended;

	pthread_mutex_lock(&p->lock);
	while (!p->has_ended && err == 0)
		err = pthread_cond_timedwait(&p->changed, &p->lock, until);
	has_ended = p->has_ended;
	pthread_mutex_unlock(&p->lock);
	return has_ended;
}

static void *tell(void *arg)
{
	struct push_progress *p = arg;
	struct timespec begun, until;
	unsigned waited = FIRST_S;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (;;) {
		until = begun;
		until.tv_sec += waited;
		if (await_end(p, &until))
			return NULL;
		say("no answer after %u s: other nodes of the group fetch the "
		    "objects first, or this node does not lead",
		    waited);
		p->has_told = true;
		waited = waited < NEXT_S ? NEXT_S : waited + NEXT_S;
	}
}

static void init(struct push_progress *p)
{
	pthread_condattr_t clock;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &clock);
	pthread_condattr_destroy(&clock);
}

static void destroy(struct push_progress *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct push_progress *push_progress_begin(void)
{
	struct push_progress *p = xcalloc(1, sizeof(*p));
	int err;

	init(p);
	cli_begin_threads();
	err = pthread_create(&p->thread, NULL, tell, p);
	if (err == 0)
		return p;
	destroy(p);
	return NULL;
}

bool push_progress_end(struct push_progress *p)
{
	bool has_told;

	if (!p)
		return false;
	pthread_mutex_lock(&p->lock);
	p->has_ended = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	has_told = p->has_told;
	destroy(p);
	return has_told;
}
