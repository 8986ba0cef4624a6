#include "client/deliver/reader.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/clock.h"

#define NAP_MS    500
#define ANSWER_MS 5000 /* for the answer, after the wait for changes */
#define TELL_MS   60000

enum reader_state { READER_IDLE, READER_ASKED, READER_ANSWERED };

struct reader {
	struct refd *refd;
	void (*wake)(void *arg);
	void *arg;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t asked;
	/* Under the mutex. */
	enum reader_state state;
	bool stops;
	/* The thread's while ASKED, otherwise the owner's. */
	struct refd_request req;
	struct refd_answer ans;
	/* Only the thread's. */
	bool is_away;
	uint64_t told_ms;
};

static bool is_stopping(struct reader *r)
{
	bool stops;

	pthread_mutex_lock(&r->mutex);
	stops = r->stops;
	pthread_mutex_unlock(&r->mutex);
	return stops;
}

static void tell(struct reader *r, const char *why)
{
	uint64_t now = clock_now_ms();

	if (!r->is_away || now - r->told_ms >= TELL_MS) {
		r->told_ms = now;
		say_warning("cannot read the feed, and tries again: %s", why);
	}
	r->is_away = true;
}

/* False: no answer, and the reason was reported. */
static bool ask_once(struct reader *r)
{
	int err = refd_watch(r->refd, &r->req,
	    (int)r->req.deadline_ms + ANSWER_MS, &r->ans);

	if (err < 0) {
		tell(r, refd_error(r->refd));
		return false;
	}
	if (r->ans.kind == REFD_ANSWER_RECORDS)
		return true;
	tell(r,
	    r->ans.kind == REFD_ANSWER_REFUSED && r->ans.text ?
		r->ans.text :
		"the daemon refuses");
	refd_answer_done(&r->ans);
	return false;
}

/* False: the thread has to end. */
static bool next_question(struct reader *r)
{
	bool stops;

	pthread_mutex_lock(&r->mutex);
	while (r->state != READER_ASKED && !r->stops)
		pthread_cond_wait(&r->asked, &r->mutex);
	stops = r->stops;
	pthread_mutex_unlock(&r->mutex);
	return !stops;
}

static void answer(struct reader *r)
{
	while (!ask_once(r)) {
		if (is_stopping(r))
			return;
		poll(NULL, 0, NAP_MS);
	}
	if (r->is_away)
		say("reads the feed again");
	r->is_away = false;
	pthread_mutex_lock(&r->mutex);
	r->state = READER_ANSWERED;
	pthread_mutex_unlock(&r->mutex);
	r->wake(r->arg);
}

static void *run(void *arg)
{
	struct reader *r = arg;

	while (next_question(r))
		answer(r);
	return NULL;
}

struct reader *reader_start(const char *socket, void (*wake)(void *arg),
    void *arg)
{
	struct reader *r = xcalloc(1, sizeof(*r));

	r->refd = refd_new(socket);
	r->wake = wake;
	r->arg = arg;
	if (!r->refd)
		die("out of memory");
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->asked, NULL);
	if (pthread_create(&r->thread, NULL, run, r) != 0)
		die("cannot start a thread");
	return r;
}

void reader_stop(struct reader *r)
{
	pthread_mutex_lock(&r->mutex);
	r->stops = true;
	pthread_cond_signal(&r->asked);
	pthread_mutex_unlock(&r->mutex);
	pthread_join(r->thread, NULL);
	if (r->state == READER_ANSWERED)
		refd_answer_done(&r->ans);
	refd_free(r->refd);
	pthread_cond_destroy(&r->asked);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}

static enum reader_state state_of(struct reader *r)
{
	enum reader_state state;

	pthread_mutex_lock(&r->mutex);
	state = r->state;
	pthread_mutex_unlock(&r->mutex);
	return state;
}

bool reader_is_busy(struct reader *r)
{
	return state_of(r) != READER_IDLE;
}

void reader_ask(struct reader *r, const struct outbox_position *after,
    uint32_t wait_ms)
{
	struct refd_selection *select = &r->req.select;

	memset(&r->req, 0, sizeof(r->req));
	r->req.deadline_ms = wait_ms;
	select->has_journal = select->has_after = after->is_known;
	memcpy(select->journal, after->journal, sizeof(select->journal));
	select->after = after->at;
	select->origin = true;
	pthread_mutex_lock(&r->mutex);
	r->state = READER_ASKED;
	pthread_cond_signal(&r->asked);
	pthread_mutex_unlock(&r->mutex);
}

bool reader_take(struct reader *r, struct refd_answer *ans)
{
	if (state_of(r) != READER_ANSWERED)
		return false;
	*ans = r->ans;
	pthread_mutex_lock(&r->mutex);
	r->state = READER_IDLE;
	pthread_mutex_unlock(&r->mutex);
	return true;
}
