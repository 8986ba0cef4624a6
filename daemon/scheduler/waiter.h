/*
 * Waiters for answers: one waiter per request. If a connection ends, its
 * waiters are forgotten. A user whose client is gone believes that nothing
 * happened, so a transaction whose last waiter is forgotten is given up, unless
 * it has begun (ask.c).
 *
 * Loop thread only. ARG is the value that the connection gave to
 * scheduler_submit(), and is only compared and handed back.
 */
#ifndef SCHEDULER_WAITER_H
#define SCHEDULER_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/scheduler/scheduler.h"

struct waiter;
struct entry;

/* Empty if zero-initialised. */
struct waiters {
	struct asked_by *head;
};

/* Returns a new waiter in no list; the caller owns the waiter. NULL: out of
 * memory. */
struct waiter *waiter_add(struct waiters *all, scheduler_answer_fn *fn,
    void *arg, uint32_t request_id);
/* If A is forgotten, *IS_FORGOTTEN becomes true. Borrowed as long as A. */
void waiter_tell_forgotten(struct waiter *a, atomic_bool *is_forgotten);
/* The waiters of one transaction, answered in the order of arrival. */
void waiter_push(struct waiter **list, struct waiter *a);
struct waiter *waiter_pop(struct waiter **list);

/* Frees A. Then calls back with ANS and its request id, unless A was
 * forgotten. */
void waiter_answer(struct waiters *all, struct waiter *a,
    struct refd_answer *ans);
/* Sends a part of an answer that goes on. A stays. A must not be forgotten. */
void waiter_part(struct waiter *a, struct refd_answer *ans);
/* Was A forgotten? */
bool waiter_is_mute(const struct waiter *a);
/* Are there waiters in LIST, and were all forgotten? */
bool waiter_all_are_mute(const struct waiter *list);
/* Frees A without an answer. */
void waiter_drop(struct waiters *all, struct waiter *a);
/* A waits for ENT. */
void waiter_set_entry(struct waiter *a, struct entry *ent);
/* Forgets all waiters of ARG: none is called back. For each waiter LEFT is
 * called with the entry, and LEFT must not free a waiter. */
void waiter_forget(struct waiters *all, void *arg,
    void (*left)(void *ctx, struct entry *ent), void *ctx);

#endif
