/*
 * Who waits for an answer: one waiter per request, so that a connection that
 * goes away takes its questions with it and not the transactions.
 *
 * Loop thread only. ARG is what the connection gave scheduler_submit(); it is
 * compared and handed back, never looked into.
 */
#ifndef SCHEDULER_WAITER_H
#define SCHEDULER_WAITER_H

#include <stdint.h>

#include "daemon/scheduler/scheduler.h"

struct waiter;

/* How somebody who asked is answered. */
struct asked {
	uint32_t request_id;
	scheduler_answer_fn *fn;
	void *arg;
};

/* Zero-initialised is empty. */
struct waiters {
	struct asked_by *head;
};

/* NULL when out of memory. In no list; whoever gets it keeps it. */
struct waiter *waiter_add(struct waiters *all, scheduler_answer_fn *fn,
    void *arg, uint32_t request_id);
/* A list of waiters of one transaction, first come first answered. */
void waiter_push(struct waiter **list, struct waiter *a);
struct waiter *waiter_pop(struct waiter **list);

/* Frees A; false: it is forgotten. */
bool waiter_take(struct waiters *all, struct waiter *a, struct asked *asked);
/* Frees A, then calls back with ANS under its request id, unless it was
 * forgotten. */
void waiter_answer(struct waiters *all, struct waiter *a,
    struct refd_answer *ans);
/* The same with a part of an answer that goes on: A stays. It is not
 * forgotten. */
void waiter_part(struct waiter *a, struct refd_answer *ans);
/* Is it forgotten? */
bool waiter_is_mute(const struct waiter *a);
/* Frees A without a word. */
void waiter_drop(struct waiters *all, struct waiter *a);
/* None of ARG's is ever called back. */
void waiter_forget(struct waiters *all, void *arg);

#endif
