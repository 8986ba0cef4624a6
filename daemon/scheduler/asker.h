/*
 * Who waits for an answer: one asker per request, so that a connection that
 * goes away takes its questions with it and not the transactions.
 *
 * Loop thread only. ARG is what the connection gave scheduler_submit(); it is
 * compared and handed back, never looked into.
 */
#ifndef SCHEDULER_ASKER_H
#define SCHEDULER_ASKER_H

#include <stdint.h>

#include "daemon/scheduler/scheduler.h"

struct asker;

/* How somebody who asked is answered. */
struct asked {
	uint32_t request_id;
	scheduler_answer_fn *fn;
	void *arg;
};

/* Zero-initialised is empty. */
struct askers {
	struct asked_by *head;
};

/* NULL when out of memory. In no list; whoever gets it keeps it. */
struct asker *askers_add(struct askers *all, scheduler_answer_fn *fn, void *arg,
    uint32_t request_id);
/* A list of askers of one transaction, first come first answered. */
void asker_push(struct asker **list, struct asker *a);
struct asker *asker_pop(struct asker **list);

/* Frees A; false: it is forgotten. */
bool askers_take(struct askers *all, struct asker *a, struct asked *asked);
/* Frees A, then calls back with ANS under its request id, unless it was
 * forgotten. */
void askers_answer(struct askers *all, struct asker *a,
    struct refd_answer *ans);
/* The same with a part of an answer that goes on: A stays. It is not
 * forgotten. */
void asker_part(struct asker *a, struct refd_answer *ans);
/* Is it forgotten? */
bool asker_is_mute(const struct asker *a);
/* Frees A without a word. */
void askers_drop(struct askers *all, struct asker *a);
/* None of ARG's is ever called back. */
void askers_forget(struct askers *all, void *arg);

#endif
