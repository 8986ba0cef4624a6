/*
 * A histogram of times in microseconds, or of counts. The limits are 1, 2, 5,
 * 10, 20 ..., so that people can read them. Values between two limits count as
 * spread evenly.
 *
 * Only the owner of a histogram adds to it, so there is no lock. Nothing blocks
 * or allocates.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Limits from 1 to 100,000,000 (a hundred seconds), and a bucket for larger
 * values. */
#define HISTOGRAM_BUCKETS 26

/* Empty if zero-initialised. */
struct histogram {
	uint64_t count, sum, max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* Adds a time, and counts a negative time, the difference of two clocks, as
 * 0. */
void histogram_add_ns(struct histogram *h, int64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The largest value of a bucket, which is UINT64_MAX for the last bucket. */
uint64_t histogram_limit(size_t bucket);
/* The smallest value such that PERMILLE of a thousand values are not larger.
 * The result is at most the largest added value, and 0 if the histogram is
 * empty. */
uint64_t histogram_quantile(const struct histogram *h, unsigned permille);

#endif
