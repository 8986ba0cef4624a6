/*
 * The busiest repositories and clients of the last seconds. A repository is
 * named by the path, a client by the account and the name that the client
 * gives. The number of slots is fixed, because any client can bring new names.
 * A new name replaces the least busy of four slots. So the figures of the
 * busiest are exact, and the figures of others may be too low.
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
/* The reported time covers between one and two periods. */
#define BUSY_PERIOD_NS (5 * 1000000000LL)

struct busy_slot {
	char name[BUSY_NAME];
	uint64_t hash; /* 0: empty */
	int64_t period;
	uint64_t txns, refs;               /* in PERIOD */
	uint64_t txns_before, refs_before; /* in the period before */
};

/* Empty if zero-initialised. */
struct busy {
	struct busy_slot slots[BUSY_SLOTS];
};

void busy_count(struct busy *b, const char *name, size_t refs, int64_t now_ns);

struct busy_one {
	const char *name; /* borrowed until the next call */
	uint64_t txns, refs;
};
/* Fills LIST with at most MAX names, the busiest first. *SPAN_NS is the time
 * that the figures cover. */
size_t busy_list(const struct busy *b, int64_t now_ns, struct busy_one *list,
    size_t max, int64_t *span_ns);

#endif
