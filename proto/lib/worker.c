/*
 * Normal path: the worker tells through a socket of packets, and waits for the
 * answer to each. So what the worker printed before is in its pipes when a
 * packet arrives here, and is printed first.
 *
 * Failures: the worker dies, is stopped, prints too much, or needs too long.
 * The work then has no result, and the rest of the command goes on. An
 * interrupt is passed on, and the worker decides when to end.
 */
#include "proto/lib/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/lib/array.h"
#include "proto/lib/clock.h"
#include "proto/lib/colour.h"
#include "proto/lib/consent.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/launch.h"
#include "proto/lib/print.h"
#include "proto/lib/progress.h"
#include "proto/utf8.h"

/* The first byte of a packet. */
enum packet {
	PACKET_TOLD,
	PACKET_PROGRESS,
	PACKET_QUESTION,
	PACKET_HELD_UP,
	PACKET_NEXT
};

/* Of one account, until root leaves its other work alone. */
#define FAILURES_MAX 3
/* The number of the worker's end of the socket. */
#define WORKER_CHANNEL (LAUNCH_FD_MAX - 1)

/* The innermost work that runs in this process without a worker. */
static const struct work *here;
static bool is_worker;

/* ---- in the worker ---- */

static int send_packet(enum packet kind, const void *data, size_t len)
{
	char packet[1 + WORKER_TELL_MAX];
	int answer;

	if (len > WORKER_TELL_MAX)
		return -EMSGSIZE;
	fflush(stdout);
	packet[0] = (char)kind;
	memcpy(packet + 1, data, len);
	if (send(WORKER_CHANNEL, packet, 1 + len, MSG_NOSIGNAL) < 0)
		return -EPIPE;
	while (recv(WORKER_CHANNEL, &answer, sizeof(answer), 0) !=
	    (ssize_t)sizeof(answer))
		if (errno != EINTR)
			return -EPIPE;
	return answer;
}

int worker_tell(const void *data, size_t len)
{
	if (here != NULL)
		return here->hear(here->arg, data, len);
	return send_packet(PACKET_TOLD, data, len);
}

static void relay_progress(const char *line)
{
	send_packet(PACKET_PROGRESS, line, strlen(line) + 1);
}

static enum consent relay_question(const char *question)
{
	int answer =
	    send_packet(PACKET_QUESTION, question, strlen(question) + 1);

	return answer == CONSENT_YES || answer == CONSENT_NO ?
	    (enum consent)answer :
	    CONSENT_NOBODY;
}

void worker_held_up(void)
{
	if (is_worker)
		send_packet(PACKET_HELD_UP, "", 0);
}

void worker_next(void)
{
	if (is_worker && here == NULL)
		send_packet(PACKET_NEXT, "", 0);
}

static int run_worker(void *arg)
{
	const struct work *work = arg;

	here = NULL;
	is_worker = true;
	colour_take(NULL, "never");
	progress_relay(relay_progress);
	consent_relay(relay_question);
	return work->run(work->arg);
}

/* ---- what the worker prints ---- */

/* Foreign bytes cannot steer root's terminal, and a long line comes in
 * parts. */
struct relay {
	int from; /* -1: closed */
	FILE *to;
	char line[4096];
	size_t len;
};

static void relay_line(struct relay *r, size_t len)
{
	if (len == 0)
		return;
	progress_clear();
	if (r->to == stderr)
		fflush(stdout);
	print_text(r->to, PRINT_AS_LINES, r->line, len);
	r->len -= len;
	memmove(r->line, r->line + len, r->len);
}

static void add(struct relay *r, const char *data, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		r->line[r->len++] = data[i] != '\0' ? data[i] : '?';
		r->line[r->len] = '\0';
		if (data[i] == '\n')
			relay_line(r, r->len);
		else if (r->len == sizeof(r->line) - 1)
			relay_line(r, utf8_cut(r->line, r->len - 3));
	}
}

/* Reads only what is in the pipe now, which is at most what a pipe holds. A
 * process of the account may write without end, even after the worker has
 * ended, so waiting for the end would never end. Returns the number of
 * bytes. */
static size_t relay_now(struct relay *r)
{
	char data[65536];
	ssize_t n;

	if (r->from < 0)
		return 0;
	do
		n = read(r->from, data, sizeof(data));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		add(r, data, (size_t)n);
		return (size_t)n;
	}
	if (n == 0) {
		close(r->from);
		r->from = -1;
	}
	return 0;
}

/* ---- in the process of root ---- */

struct watched {
	const struct account *as;
	const struct work *work;
	struct launched worker;
	struct relay out, err;
	int channel, seconds;
	/* Of the present piece of the work. */
	size_t bytes;
	int64_t begin_ms, heard_ms; /* in HEAR */
	bool was_held_up;
	size_t nr_done; /* pieces */
	bool has_interrupted;
	const char *why; /* NULL: nothing is wrong */
};

/* ---- an account whose workers fail, or need long ---- */

struct cost {
	uid_t uid;
	unsigned nr_failures;
	int64_t ms; /* that the works took beyond their free time */
};

/* The cost of UID. Without memory, all further accounts share one cost, so that
 * no account is without a limit. */
static struct cost *cost_of(uid_t uid)
{
	static struct cost *list, shared;
	static size_t nr, size;
	struct cost *room;
	size_t i;

	for (i = 0; i < nr; i++)
		if (list[i].uid == uid)
			return &list[i];
	room = array_room(list, nr, &size, sizeof(*list));
	if (room == NULL)
		return &shared;
	list = room;
	list[nr] = (struct cost){ .uid = uid };
	return &list[nr++];
}

static int free_seconds(const struct work *work)
{
	const int s =
	    work->free_seconds > 0 ? work->free_seconds : WORKER_FREE_S;

	return s < work->seconds ? s : work->seconds;
}

static int limit_of(const struct work *work, const struct cost *cost)
{
	const int64_t left = work->seconds - cost->ms / 1000;

	return left > free_seconds(work) ? (int)left : free_seconds(work);
}

/* Adds the time of a work to the cost of its account. Quick works repay the
 * cost of long ones, because an account with many directories is no attacker.
 * The cost is looked up again, because the work may have counted others
 * meanwhile. */
static void count(const struct watched *w, bool has_failed)
{
	const int64_t took_ms = clock_now_ms() - w->begin_ms - w->heard_ms;
	struct cost *cost;

	if (!account_is_other(w->as))
		return;
	cost = cost_of(w->as->uid);
	cost->nr_failures += has_failed || w->was_held_up;
	cost->ms += took_ms - free_seconds(w->work) * INT64_C(1000);
	if (cost->ms < 0)
		cost->ms = 0;
}

/* ---- what the worker says ---- */

/* Begins the next piece of a work. A piece has no more time than a separate
 * work would have. */
static int begin_next(struct watched *w)
{
	if (++w->nr_done >= w->work->pieces)
		return -EINVAL;
	count(w, false);
	w->begin_ms = clock_now_ms();
	w->heard_ms = 0;
	w->bytes = 0;
	w->was_held_up = false;
	w->worker.end_ms = w->begin_ms +
	    limit_of(w->work, cost_of(w->as->uid)) * INT64_C(1000);
	return 0;
}

static int answer_to(struct watched *w, enum packet kind, const char *data,
    size_t len)
{
	const bool is_text = len > 0 && data[len - 1] == '\0';

	switch (kind) {
	case PACKET_TOLD:
		if (w->work->hear == NULL)
			break;
		return w->work->hear(w->work->arg, data, len);
	case PACKET_PROGRESS:
		if (is_text)
			progress_line(data);
		return 0;
	case PACKET_QUESTION:
		return is_text ? (int)consent_ask(data) : CONSENT_NOBODY;
	case PACKET_HELD_UP:
		w->was_held_up = true;
		return 0;
	case PACKET_NEXT:
		return begin_next(w);
	}
	return -EINVAL;
}

static void relay_all(struct watched *w)
{
	w->bytes += relay_now(&w->out);
	w->bytes += relay_now(&w->err);
}

/* False: no packet is there now. The worker waits for the answer, which may
 * depend on a user, or on other workers, so the time does not count. */
static bool hear_packet(struct watched *w)
{
	char packet[1 + WORKER_TELL_MAX];
	ssize_t n = recv(w->channel, packet, sizeof(packet), MSG_DONTWAIT);
	int64_t took_ms = clock_now_ms();
	int answer;

	if (n <= 0)
		return false;
	relay_all(w);
	w->bytes += (size_t)n;
	answer = answer_to(w, (enum packet)(unsigned char)packet[0], packet + 1,
	    (size_t)n - 1);
	took_ms = clock_now_ms() - took_ms;
	w->heard_ms += took_ms;
	w->worker.end_ms += took_ms;
	return send(w->channel, &answer, sizeof(answer), MSG_NOSIGNAL) > 0;
}

/* The owner can stop the worker with a signal. */
static bool is_stopped(const struct watched *w)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)w->worker.pid, &info,
		   WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == w->worker.pid;
}

static void look(struct watched *w)
{
	if (interrupt_came() && !w->has_interrupted) {
		kill(w->worker.pid, SIGINT);
		w->has_interrupted = true;
	}
	if (w->bytes > w->work->bytes)
		w->why = "printed too much";
	else if (is_stopped(w))
		w->why = "was stopped by a signal";
}

static void watch(struct watched *w)
{
	struct pollfd fds[4] = { { 0 }, { .events = POLLIN },
		{ .events = POLLIN }, { .events = POLLIN } };

	fds[3].fd = w->channel;
	do {
		relay_all(w);
		if (!hear_packet(w) && fds[3].revents & POLLHUP)
			fds[3].fd = -1;
		look(w);
		fds[1].fd = w->out.from;
		fds[2].fd = w->err.from;
	} while (w->why == NULL && !launch_poll(&w->worker, fds, 4));
	if (w->why != NULL)
		launch_kill(&w->worker);
	relay_all(w);
	relay_line(&w->out, w->out.len);
	relay_line(&w->err, w->err.len);
}

static int result(const struct watched *w, const char **why)
{
	const int status = w->worker.status;

	if (w->why != NULL)
		*why = w->why;
	else if (w->worker.was_late)
		*why = "took too long";
	else if (WIFSIGNALED(status))
		*why = "was killed by a signal";
	else
		return WEXITSTATUS(status);
	return -ECANCELED;
}

/* The ends [0] are ours, and do not block. */
static int open_ends(int out[2], int err[2], int channel[2])
{
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) <
		0 ||
	    fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(err[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int start(struct watched *w, const struct account *as, int out, int err,
    int channel)
{
	const struct work *work = w->work;
	struct launch l = { .run = run_worker,
		.arg = (void *)work,
		.as = as,
		.in = LAUNCH_NULL,
		.out = out,
		.err = err,
		.fds = { { channel, WORKER_CHANNEL } },
		.seconds = w->seconds };
	size_t i;

	for (i = 0; i < WORKER_KEEP_MAX && work->keep[i] > 0; i++)
		l.fds[i + 1] =
		    (struct launch_fd){ work->keep[i], work->keep[i] };
	return launch_start(&w->worker, &l);
}

static int run_as(const struct account *as, const struct work *work,
    const char **why)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, channel[2] = { -1, -1 };
	const struct cost *cost = cost_of(as->uid);
	struct watched w = { .as = as,
		.work = work,
		.seconds = limit_of(work, cost),
		.begin_ms = clock_now_ms() };
	int r = -ECANCELED;

	if (cost->nr_failures >= FAILURES_MAX) {
		*why = "was not tried, because it failed repeatedly for other "
		       "directories of this user";
		return r;
	}
	r = open_ends(out, err, channel);
	if (r == 0)
		r = start(&w, as, out[1], err[1], channel[1]);
	close_end(&out[1]);
	close_end(&err[1]);
	close_end(&channel[1]);
	w.out = (struct relay){ .from = out[0], .to = stdout };
	w.err = (struct relay){ .from = err[0], .to = stderr };
	w.channel = channel[0];
	*why = r == -ETIME ? "took too long" : "could not begin";
	if (r == 0) {
		watch(&w);
		r = result(&w, why);
	}
	close_end(&w.out.from);
	close_end(&w.err.from);
	close_end(&w.channel);
	count(&w, r < 0);
	return r;
}

int worker_run(const struct account *as, const struct work *work,
    const char **why)
{
	const struct work *around = here;
	int r;

	if (work->always_forks || account_is_other(as))
		return run_as(as, work, why);
	here = work;
	r = work->run(work->arg);
	here = around;
	return r;
}
