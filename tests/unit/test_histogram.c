/*
 * Proves that a histogram counts every value once, in the bucket between whose
 * limits the value lies. A quantile lies in the bucket of the value at that
 * place of the sorted list, and never beyond the largest value. The sum of two
 * histograms equals one histogram of all values.
 */
#include <stdlib.h>

#include "daemon/base/histogram.h"
#include "tests/lib/suite.h"

TEST(test_limits)
{
	struct histogram h = { 0 };
	size_t i;

	for (i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		ck_assert_uint_lt(histogram_limit(i), histogram_limit(i + 1));
		histogram_add(&h, histogram_limit(i));
		histogram_add(&h, histogram_limit(i) + 1);
	}
	ck_assert_uint_eq(h.count, 2 * (HISTOGRAM_BUCKETS - 1));
	/* The value 1; for every limit the limit plus 1 and the next limit; the
	 * values beyond. 2 is a limit and also 1 plus 1. */
	ck_assert_uint_eq(h.buckets[0], 1);
	for (i = 1; i + 1 < HISTOGRAM_BUCKETS; i++)
		ck_assert_uint_eq(h.buckets[i], 2);
	ck_assert_uint_eq(h.buckets[HISTOGRAM_BUCKETS - 1], 1);
	ck_assert_uint_eq(h.max, 100000001);
}

TEST(test_times)
{
	struct histogram h = { 0 };

	histogram_add_ns(&h, -5);
	histogram_add_ns(&h, 999);
	histogram_add_ns(&h, 7000);
	ck_assert_uint_eq(h.buckets[0], 2);
	ck_assert_uint_eq(h.buckets[3], 1);
	ck_assert_uint_eq(h.sum, 7);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#define NR 1000

TEST(test_quantiles, .times = 20)
{
	static const unsigned permilles[] = { 1, 100, 500, 900, 990, 999,
		1000 };
	uint64_t values[NR], value, low, exact;
	struct histogram h = { 0 };
	size_t i, k;

	srandom((unsigned)_i);
	for (i = 0; i < NR; i++) {
		values[i] = (uint64_t)random() >> (random() % 30);
		histogram_add(&h, values[i]);
	}
	qsort(values, NR, sizeof(values[0]), compare);
	for (i = 0; i < sizeof(permilles) / sizeof(permilles[0]); i++) {
		exact = values[permilles[i] * NR / 1000 - 1];
		for (k = 0; histogram_limit(k) < exact; k++)
			;
		low = k > 0 ? histogram_limit(k - 1) : 0;
		value = histogram_quantile(&h, permilles[i]);
		ck_assert_uint_ge(value, low);
		ck_assert_uint_le(value, histogram_limit(k));
		ck_assert_uint_le(value, values[NR - 1]);
	}
}

TEST(test_empty_and_single)
{
	struct histogram h = { 0 };

	ck_assert_uint_eq(histogram_quantile(&h, 990), 0);
	histogram_add(&h, 3);
	ck_assert_uint_eq(histogram_quantile(&h, 1), 3);
	ck_assert_uint_eq(histogram_quantile(&h, 1000), 3);
}

/* Half of the values are at most 1, so the median is not 0. */
TEST(test_ones)
{
	struct histogram h = { 0 };
	int i;

	for (i = 0; i < 5; i++)
		histogram_add(&h, 1);
	ck_assert_uint_eq(histogram_quantile(&h, 1), 1);
	ck_assert_uint_eq(histogram_quantile(&h, 500), 1);
	ck_assert_uint_eq(histogram_quantile(&h, 1000), 1);
}

TEST(test_merge)
{
	struct histogram a = { 0 }, b = { 0 }, both = { 0 };
	uint64_t value;
	int i;

	srandom(1);
	for (i = 0; i < NR; i++) {
		value = (uint64_t)random() % 10000;
		histogram_add(i % 3 == 0 ? &a : &b, value);
		histogram_add(&both, value);
	}
	histogram_merge(&a, &b);
	ck_assert_mem_eq(&a, &both, sizeof(a));
}
