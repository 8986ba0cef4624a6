#include "daemon/server/loop.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/sys.h"
#include "daemon/base/time.h"

#define SWEEP_S 5

/* ---- turns ---- */

static void arm_due(struct loop *loop, int64_t next_ns)
{
	int64_t left_ns, us;
	struct timeval delay;

	event_del(loop->due);
	if (next_ns == INT64_MAX)
		return;
	/* The time now, because the turn took time. Rounded up, because an
	 * early turn would find nothing due. */
	left_ns = next_ns - SYS(loop->sys, now_mono);
	us = left_ns > 0 ? (left_ns + NS_PER_US - 1) / NS_PER_US : 0;
	delay.tv_sec = us / 1000000;
	delay.tv_usec = us % 1000000;
	event_add(loop->due, &delay);
}

static void loop_turned(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	int64_t now_ns = SYS(loop->sys, now_mono), next_ns;

	(void)fd;
	(void)what;
	loop->is_turning = true;
	loop->wants_turn = false;
	next_ns = loop->calls.turn(loop->calls.arg, now_ns);
	/* The timer starts the next turn, so that the loop first reads input
	 * of other connections. */
	if (loop->wants_turn)
		next_ns = now_ns;
	loop->is_turning = false;
	arm_due(loop, next_ns);
}

void loop_want_turn(struct loop *loop)
{
	if (loop->is_turning)
		loop->wants_turn = true;
	else
		event_active(loop->turn, EV_TIMEOUT, 1);
}

void loop_touched(struct loop *loop)
{
	if (!loop->is_turning)
		loop_want_turn(loop);
}

/* ---- other events ---- */

void loop_wake(const struct loop *loop)
{
	uint64_t one = 1;
	ssize_t n = write(loop->wake_fd, &one, sizeof(one));

	/* The counter has room for 2^64 - 2 wake-ups, so the write cannot
	 * fail. */
	(void)n;
}

/* The counter is never read: the event is edge-triggered, so each write wakes
 * the loop once. */
static void loop_woken(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;

	(void)fd;
	(void)what;
	loop->calls.woken(loop->calls.arg);
	loop_want_turn(loop);
}

static void loop_swept(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;

	(void)fd;
	(void)what;
	loop->calls.sweep(loop->calls.arg);
}

static void loop_signalled(evutil_socket_t number, short what, void *arg)
{
	struct loop *loop = arg;

	(void)what;
	loop->calls.signalled(loop->calls.arg, number);
}

/* ---- life ---- */

static bool make_events(struct loop *loop)
{
	static const struct timeval sweep_every = { SWEEP_S, 0 };
	struct event_base *base = loop->base;

	loop->woken = event_new(base, loop->wake_fd,
	    EV_READ | EV_PERSIST | EV_ET, loop_woken, loop);
	loop->turn = event_new(base, -1, 0, loop_turned, loop);
	loop->due = evtimer_new(base, loop_turned, loop);
	loop->sweep = event_new(base, -1, EV_PERSIST, loop_swept, loop);
	loop->sigterm = evsignal_new(base, SIGTERM, loop_signalled, loop);
	loop->sigint = evsignal_new(base, SIGINT, loop_signalled, loop);
	loop->sighup = evsignal_new(base, SIGHUP, loop_signalled, loop);
	return loop->woken != NULL && loop->turn != NULL && loop->due != NULL &&
	    loop->sweep != NULL && loop->sigterm != NULL &&
	    loop->sigint != NULL && loop->sighup != NULL &&
	    event_add(loop->sighup, NULL) == 0 &&
	    event_add(loop->woken, NULL) == 0 &&
	    event_add(loop->sweep, &sweep_every) == 0 &&
	    event_add(loop->sigterm, NULL) == 0 &&
	    event_add(loop->sigint, NULL) == 0;
}

/* By default, libevent reads a clock which ticks every 1 to 10 ms, and waits
 * for whole milliseconds. Many timers of the scheduler are shorter, so the
 * timer is precise. The price is a timerfd_settime for every wait. */
static struct event_base *make_base(void)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base;

	if (cfg == NULL)
		return NULL;
	event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	return base;
}

bool loop_init(struct loop *loop, const struct sys *sys,
    const struct loop_calls *calls)
{
	*loop = (struct loop){ .sys = sys, .calls = *calls };
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->base = make_base();
	return loop->wake_fd >= 0 && loop->base != NULL && make_events(loop);
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

void loop_done(struct loop *loop)
{
	free_event(loop->woken);
	free_event(loop->turn);
	free_event(loop->due);
	free_event(loop->sweep);
	free_event(loop->sigterm);
	free_event(loop->sigint);
	free_event(loop->sighup);
	if (loop->base != NULL)
		event_base_free(loop->base);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
}

void loop_run(struct loop *loop)
{
	event_base_dispatch(loop->base);
}

void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}
