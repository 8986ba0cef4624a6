/*
 * Who has been busiest in the last moments: repositories by their path,
 * clients by their account and what they say of themselves. A fixed number of
 * each is remembered; one that is new takes the place of the least busy of
 * four, so what is told of the busiest is right and of the others may be low.
 *
 * Loop thread only; nothing blocks or allocates.
 */
#ifndef SCHEDULER_BUSY_H
#define SCHEDULER_BUSY_H

#include <stddef.h>
#include <stdint.h>

#define BUSY_SLOTS 256
#define BUSY_WAYS  4
#define BUSY_NAME  112 /* of a longer name the end is kept */
/* What is told covers one to two of these. */
#define BUSY_PERIOD_NS (5 * 1000000000LL)

struct busy_slot {
	char name[BUSY_NAME];
	uint64_t hash; /* 0: empty */
	int64_t period;
	uint64_t txns, refs;               /* in that period */
	uint64_t txns_before, refs_before; /* and in the one before it */
};

/* Zero-initialised is empty. */
struct busy {
	struct busy_slot slots[BUSY_SLOTS];
};

void busy_count(struct busy *b, const char *name, size_t refs, int64_t now_ns);

struct busy_one {
	const char *name; /* borrowed until the next call */
	uint64_t txns, refs;
};
/* The busiest first, at most MAX; *SPAN_NS is the time they had. */
size_t busy_list(const struct busy *b, int64_t now_ns, struct busy_one *list,
    size_t max, int64_t *span_ns);

#endif
