#include "daemon/base/histogram.h"

#include "daemon/base/time.h"

static const uint64_t limits[HISTOGRAM_BUCKETS] = { 1, 2, 5, 10, 20, 50, 100,
	200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
	1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000,
	UINT64_MAX };

/* The first bucket with a limit of at least VALUE. */
static size_t bucket_of(uint64_t value)
{
	size_t low = 0, high = HISTOGRAM_BUCKETS - 1, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (value <= limits[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->buckets[bucket_of(value)]++;
}

void histogram_add_ns(struct histogram *h, int64_t ns)
{
	histogram_add(h, ns > 0 ? (uint64_t)ns / NS_PER_US : 0);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	size_t i;

	into->count += from->count;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t histogram_limit(size_t bucket)
{
	return limits[bucket];
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
	uint64_t rank = (h->count * permille + 999) / 1000, below = 0;
	uint64_t low, high;
	size_t i = 0;

	if (h->count == 0)
		return 0;
	if (rank == 0)
		rank = 1;
	while (i < HISTOGRAM_BUCKETS - 1 && below + h->buckets[i] < rank)
		below += h->buckets[i++];
	low = i > 0 ? limits[i - 1] : 0;
	high = limits[i] < h->max ? limits[i] : h->max;
	if (h->buckets[i] == 0 || high <= low)
		return high;
	/* Values of a bucket are above LOW, so a bucket of ones has the
	 * quantile 1. */
	return high -
	    (high - low) * (h->buckets[i] - (rank - below)) / h->buckets[i];
}
