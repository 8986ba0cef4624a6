/*
 * How often a value was how large: times in microseconds, or numbers of
 * things. The limits are 1, 2, 5, 10, 20 ... so that a limit is a number that
 * people would choose; what lies between two of them is taken to be spread
 * evenly.
 *
 * Whoever owns one adds to it; nothing blocks, allocates or locks.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* 1 to 100,000,000 (a hundred seconds), and what is beyond. */
#define HISTOGRAM_BUCKETS 26

/* Zero-initialised is empty. */
struct histogram {
	uint64_t count, sum, max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* A time; one that is negative, since two clocks were read, counts as 0. */
void histogram_add_ns(struct histogram *h, int64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The largest value of a bucket; of the last UINT64_MAX. */
uint64_t histogram_limit(size_t bucket);
/* The value that PERMILLE of a thousand do not pass; 0 of an empty one, and
 * never more than the largest that was added. */
uint64_t histogram_quantile(const struct histogram *h, unsigned permille);

#endif
