/*
 * The loop of the service. The happy path of a turn:
 *
 *	1. The changes of the reader's answer and the position behind them go
 *	   into the outbox, and so do the results of ended attempts. One
 *	   transaction, one flush.
 *	2. Ready streams begin attempts, each with its first waiting change.
 *	3. The reader asks for the next changes.
 *	4. The loop waits for sockets, commands, the reader, a signal.
 *
 * Failures: after a crash, an attempt without a recorded result is repeated
 * with the same id, so a receiver can recognise the repetition. A failed
 * attempt pauses its stream alone (delivery_pause_ms()). A failure of the
 * outbox ends the program before any other change is sent, because a success
 * could not be recorded.
 */
#include "client/deliver/deliver.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "client/deliver/delivery.h"
#include "client/deliver/intake.h"
#include "client/deliver/outbox.h"
#include "client/deliver/streams.h"
#include "client/refd.h"
#include "proto/lib/clock.h"

/* ---- the reader ---- */

/*
 * A thread that asks the daemon for the next changes, because the question
 * blocks, and the loop must not. The owner of the reader asks and takes the
 * answer; between, only the thread touches the question.
 *
 *	reader_ask -> the thread waits for the daemon -> reader_take
 *
 * If the daemon is away or refuses, the thread tries again, and reports this
 * once a minute. All calls come from the thread of the owner and do not block,
 * except for reader_stop(), which waits for the thread, some seconds at most.
 */

struct reader;

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

/* False if there is no answer, and the reason was reported. */
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

/* False if the thread has to end. */
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

static void *run_reader(void *arg)
{
	struct reader *r = arg;

	while (next_question(r))
		answer(r);
	return NULL;
}

/* WAKE is called by the thread when an answer is there. */
static struct reader *reader_start(const char *socket, void (*wake)(void *arg),
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
	if (pthread_create(&r->thread, NULL, run_reader, r) != 0)
		die("cannot start a thread");
	return r;
}

static void reader_stop(struct reader *r)
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

/* Is a question under way, or an answer not taken yet? */
static bool reader_is_busy(struct reader *r)
{
	return state_of(r) != READER_IDLE;
}

/* Asks for the changes behind AFTER, or from now on if it is not known, and
 * waits at most WAIT_MS for the first. The reader must not be busy. */
static void reader_ask(struct reader *r, const struct outbox_position *after,
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

/* Takes the answer, of kind RECORDS, which the caller frees. False if there is
 * none yet. */
static bool reader_take(struct reader *r, struct refd_answer *ans)
{
	if (state_of(r) != READER_ANSWERED)
		return false;
	*ans = r->ans;
	pthread_mutex_lock(&r->mutex);
	r->state = READER_IDLE;
	pthread_mutex_unlock(&r->mutex);
	return true;
}

#define DEAD_MOST 100000 /* of an endpoint */

#define WATCH_MS  1000 /* also the longest wait for the end of the reader */
#define BEHIND_MS 100  /* while endpoints have different positions */
#define TICK_MS   1000 /* at most; changes by the administrator are seen then */
#define TELL_MS   60000

struct deliverer {
	const struct endpoints *endpoints;
	struct outbox *outbox;
	struct reader *reader;
	CURLM *multi;
	struct receiver *receivers;
	size_t nr;
	struct outbox_position asked; /* of the reader's question */
	size_t asked_for;             /* the receiver */
	struct delivery *attempts;    /* under way */
	size_t nr_attempts;
	int signals; /* signalfd */
	bool stops;
};

/* ---- what waits, as of the outbox ---- */

static struct receiver *receiver_of(struct deliverer *d, int64_t id)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		if (d->receivers[i].id == id)
			return &d->receivers[i];
	return NULL;
}

static void load_stream(void *arg, int64_t endpoint, const char *repo,
    uint64_t nr, uint64_t bytes)
{
	struct receiver *to = receiver_of(arg, endpoint);

	if (to)
		streams_set(streams_of(to, repo), nr, bytes);
}

static void load_counts(void *arg, const struct outbox_counts *counts)
{
	struct receiver *to = receiver_of(arg, counts->endpoint);

	if (to)
		to->dead = counts->dead;
	else
		say_warning("endpoint '%s' has no section, and gets nothing: "
			    "%" PRIu64 " changes wait, %" PRIu64
			    " are dead; refd deliver --forget %s",
		    counts->name, counts->waiting, counts->dead, counts->name);
}

/* At the start, and after a command of the administrator. */
static void load(struct deliverer *d)
{
	outbox_each_endpoint(d->outbox, load_counts, d);
	outbox_each_stream(d->outbox, load_stream, d);
}

/* Writes all positions again, only to notice a full disk before the first
 * delivery. On a full disk the success of a delivery could not be recorded. */
static void open_receivers(struct deliverer *d)
{
	struct receiver *to;
	size_t i;

	d->nr = d->endpoints->nr;
	d->receivers = xcalloc(d->nr, sizeof(*d->receivers));
	outbox_begin(d->outbox);
	for (i = 0; i < d->nr; i++) {
		to = &d->receivers[i];
		to->endpoint = &d->endpoints->list[i];
		to->id = outbox_endpoint(d->outbox, to->endpoint->name,
		    &to->position);
		if (to->position.is_known)
			outbox_move(d->outbox, to->id, &to->position);
	}
	outbox_commit(d->outbox);
	load(d);
}

/* ---- the feed ---- */

/* The receivers take turns, but those with the same position share the
 * answer. */
static void ask(struct deliverer *d)
{
	bool is_behind = false;
	size_t i;

	if (reader_is_busy(d->reader))
		return;
	for (i = 0; i < d->nr; i++)
		intake_reopen(&d->receivers[i]);
	for (i = 1; i <= d->nr; i++)
		if (!d->receivers[(d->asked_for + i) % d->nr].is_full)
			break;
	if (i > d->nr)
		return;
	d->asked_for = (d->asked_for + i) % d->nr;
	d->asked = d->receivers[d->asked_for].position;
	for (i = 0; i < d->nr; i++)
		is_behind |= !d->receivers[i].is_full &&
		    !intake_is_same(&d->receivers[i].position, &d->asked);
	reader_ask(d->reader, &d->asked,
	    !d->asked.is_known ? 1 :
		is_behind      ? BEHIND_MS :
				 WATCH_MS);
}

/* ---- attempts ---- */

static uint32_t random_number(void)
{
	uint32_t n = 0;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		die("no random numbers: %s", strerror(errno));
	return n;
}

static void record_failure(struct deliverer *d, const struct delivery *a)
{
	struct receiver *to = a->stream->to;
	uint64_t now = clock_now_ms(), failures = a->row.failures + 1;
	bool dies = failures >= to->endpoint->tries && to->dead < DEAD_MOST;

	if (dies || !to->told_ms || now - to->told_ms >= TELL_MS) {
		say_warning("endpoint '%s': %s '%s' of '%s', attempt %" PRIu64
			    ": %s%s",
		    to->endpoint->name, a->row.event, a->row.id, a->row.repo,
		    failures, a->error, dies ? "; now a dead letter" : "");
		to->told_ms = now;
	}
	outbox_failed(d->outbox, to->id, a->row.seq, a->error,
	    dies ? clock_wall_ms() : 0);
	to->dead += dies;
	if (dies)
		streams_done(a->stream, a->row.len);
	else
		streams_pause(a->stream,
		    now + delivery_pause_ms(failures, random_number()));
}

/* Records the result of A. The transaction is committed before the stream
 * begins its next attempt, so a crash repeats at most one change of the
 * stream. */
static void record(struct deliverer *d, struct delivery *a)
{
	struct receiver *to = a->stream->to;

	to->running--;
	if (a->is_success) {
		outbox_delivered(d->outbox, to->id, a->row.seq,
		    clock_now_ms() - a->began_ms);
		streams_done(a->stream, a->row.len);
	} else {
		record_failure(d, a);
	}
	DL_DELETE(d->attempts, a);
	d->nr_attempts--;
	delivery_free(a);
}

/* Is there an ended attempt? */
static bool look_after(struct deliverer *d)
{
	struct delivery *a;
	bool found = false;
	CURLMsg *m;
	int left;

	curl_multi_perform(d->multi, &left);
	while ((m = curl_multi_info_read(d->multi, &left)))
		if (m->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &a) ==
			CURLE_OK)
			delivery_http_ended(a, m->data.result);
	DL_FOREACH(d->attempts, a) {
		delivery_tick(a);
		found |= a->has_ended;
	}
	return found;
}

static void start(struct deliverer *d, struct stream *s)
{
	struct outbox_row row;
	struct delivery *a;

	if (!outbox_head(d->outbox, s->to->id, s->repo, &row)) {
		/* The administrator has deleted the rows, so nothing waits. */
		s->state = STREAM_IDLE;
		streams_set(s, 0, 0);
		return;
	}
	a = delivery_start(d->multi, s, &row);
	DL_APPEND(d->attempts, a);
	d->nr_attempts++;
	s->to->running++;
}

/* Returns the time of the next attempt after a pause. */
static uint64_t start_ready(struct deliverer *d)
{
	uint64_t first = UINT64_MAX, due;
	struct receiver *to;
	struct stream *s;

	for (to = d->receivers; to < d->receivers + d->nr; to++) {
		due = streams_wake(to, clock_now_ms());
		if (due < first)
			first = due;
		while (to->running < to->endpoint->parallel &&
		    (s = streams_take(to)))
			start(d, s);
	}
	return first;
}

/* ---- the loop ---- */

static void wake(void *arg)
{
	struct deliverer *d = arg;

	curl_multi_wakeup(d->multi);
}

static void write_down(struct deliverer *d)
{
	struct refd_answer ans;
	bool has_answer = reader_take(d->reader, &ans);
	struct delivery *a, *next;

	if (!look_after(d) && !has_answer)
		return;
	outbox_begin(d->outbox);
	/* A command of the administrator may have put a dead letter back into
	 * its stream, in front of the change that was the first. An attempt of
	 * this letter may be recorded below, so the letter has to be counted
	 * before. */
	if (outbox_changed(d->outbox))
		load(d);
	if (has_answer) {
		intake_take(d->outbox, d->receivers, d->nr, &d->asked, &ans);
		refd_answer_done(&ans);
	}
	DL_FOREACH_SAFE(d->attempts, a, next) {
		if (a->has_ended)
			record(d, a);
	}
	outbox_commit(d->outbox);
}

static void hear_signals(struct deliverer *d)
{
	struct signalfd_siginfo info;

	if (read(d->signals, &info, sizeof(info)) <= 0 || d->stops)
		return;
	d->stops = true;
	say("stops after %zu attempts that are under way", d->nr_attempts);
}

static void wait_for_events(struct deliverer *d, uint64_t until)
{
	struct curl_waitfd *fds = xcalloc(2 * d->nr_attempts + 1, sizeof(*fds));
	uint64_t now = clock_now_ms(), wait;
	struct delivery *a;
	unsigned nr = 0;

	fds[nr++] = (struct curl_waitfd){ .fd = d->signals,
		.events = CURL_WAIT_POLLIN };
	DL_FOREACH(d->attempts, a) {
		if (a->command.process >= 0) {
			fds[nr++] =
			    (struct curl_waitfd){ .fd = a->command.process,
				    .events = CURL_WAIT_POLLIN };
			if (a->output >= 0)
				fds[nr++] =
				    (struct curl_waitfd){ .fd = a->output,
					    .events = CURL_WAIT_POLLIN };
			if (a->command.end_ms < until)
				until = a->command.end_ms;
		}
		if (a->has_ended)
			until = now;
	}
	wait = until <= now ? 0 : until - now;
	curl_multi_poll(d->multi, fds, nr, wait < TICK_MS ? (int)wait : TICK_MS,
	    NULL);
	free(fds);
}

static void run(struct deliverer *d)
{
	uint64_t until;

	while (!d->stops || d->nr_attempts > 0) {
		until = UINT64_MAX;
		write_down(d);
		if (outbox_changed(d->outbox))
			load(d);
		if (!d->stops) {
			until = start_ready(d);
			ask(d);
		}
		wait_for_events(d, until);
		hear_signals(d);
	}
}

/* The signals come by the descriptor, so they are blocked in all threads. */
static int catch_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		die("cannot wait for signals: %s", strerror(errno));
	return fd;
}

void deliver_run(const struct endpoints *endpoints, struct outbox *outbox,
    const char *socket)
{
	struct deliverer d = { .endpoints = endpoints, .outbox = outbox };
	size_t i;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    !(d.multi = curl_multi_init()))
		die("libcurl does not start");
	d.signals = catch_signals();
	open_receivers(&d);
	d.reader = reader_start(socket, wake, &d);
	say("delivers to %zu endpoints", d.nr);
	run(&d);
	reader_stop(d.reader);
	for (i = 0; i < d.nr; i++)
		streams_free(&d.receivers[i]);
	free(d.receivers);
	close(d.signals);
	curl_multi_cleanup(d.multi);
	curl_global_cleanup();
}
