/*
 * The event loop: wakes up for connections, for the store, for signals and for
 * timers, and calls its owner.
 *
 * Input of many connections that arrives together leads to one turn. In a turn
 * the owner runs the scheduler once and serves all connections with work.
 *
 * Loop thread, except loop_wake().
 */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct loop_calls {
	/* One turn. Returns the time (monotonic) of the next turn at the
	 * latest; INT64_MAX: none is due. NOW_NS: time of the call. */
	int64_t (*turn)(void *arg, int64_t now_ns);
	void (*woken)(void *arg); /* after loop_wake(), before a turn */
	void (*sweep)(void *arg); /* every few seconds */
	/* SIGTERM, SIGINT or SIGHUP came. */
	void (*signalled)(void *arg, int number);
	void *arg;
};

/* The fields belong to loop.c. Other files add events to BASE. */
struct loop {
	struct event_base *base;
	struct loop_calls calls;
	const struct sys *sys;
	bool is_turning;     /* inside calls.turn */
	bool wants_turn;     /* another turn after this one */
	int wake_fd;         /* eventfd */
	struct event *woken; /* WAKE_FD is readable */
	struct event *turn;  /* active when there is work */
	struct event *due;   /* timer of the next turn */
	struct event *sweep; /* timer of calls.sweep */
	struct event *sigterm, *sigint, *sighup;
};

/* False: out of memory or descriptors; loop_done() is needed even so. */
bool loop_init(struct loop *loop, const struct sys *sys,
    const struct loop_calls *calls);
void loop_done(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* A turn is needed soon. */
void loop_want_turn(struct loop *loop);
/* A connection has work. Inside a turn the call has no effect, because the turn
 * itself serves the connections with work. If some are left, the turn returns a
 * time for them. */
void loop_touched(struct loop *loop);
/* Any thread; async-signal-safe, never blocks: calls calls.woken soon. */
void loop_wake(const struct loop *loop);

#endif
