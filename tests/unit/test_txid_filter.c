/*
 * Proves that the filter never calls an id new if the filter has seen the id or
 * the journal may have it, for any number and any choice of ids. New ids are
 * called new, as long as nobody sends ids from the future.
 */
#include "daemon/store/admission/txid_filter.h"
#include "tests/lib/suite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct refd_txid id_of(uint64_t birth, uint64_t random)
{
	struct refd_txid id = { .bytes = { 0 } };
	int i;

	for (i = 0; i < 6; i++)
		id.bytes[i] = (uint8_t)(birth >> (40 - 8 * i));
	memcpy(id.bytes + 8, &random, sizeof(random));
	return id;
}

static struct txid_filter begin(uint64_t birth)
{
	struct txid_filter f = { .is_begun = false };
	struct refd_txid newest = id_of(birth, 0), secret;

	ck_assert_int_eq(refd_txid_make(&secret), 0);
	txid_filter_begin(&f, &newest, &secret);
	return f;
}

static bool see(struct txid_filter *f, uint64_t birth, uint64_t random)
{
	struct refd_txid id = id_of(birth, random);

	return txid_filter_add(f, &id);
}

TEST(nothing_is_known_before_it_is_begun)
{
	struct txid_filter f = { .is_begun = false };

	ck_assert(!see(&f, 1000, 1));
	txid_filter_done(&f);
}

TEST(an_id_the_journal_may_have_is_not_new)
{
	struct txid_filter f = begin(1000);

	ck_assert(!see(&f, 999, 5));
	ck_assert(!see(&f, 1000, 0));
	ck_assert(see(&f, 1000, 1));
	ck_assert(!see(&f, 1000, 1));
	ck_assert(see(&f, 1001, 1));
	txid_filter_done(&f);
}

/* The floor has risen over ids that the table no longer holds. */
TEST(a_seen_id_is_never_new_again)
{
	struct txid_filter f = begin(1000);
	uint64_t i, asked = 0;

	for (i = 0; i < 200000; i++)
		asked += !see(&f, 2000 + i / 16, i * 0x9e3779b97f4a7c15u);
	ck_assert_uint_eq(asked, 0);
	for (i = 0; i < 200000; i++)
		ck_assert(!see(&f, 2000 + i / 16, i * 0x9e3779b97f4a7c15u));
	txid_filter_done(&f);
}

/* All ids use the same place of the table, in order of age or not. */
TEST(ids_that_are_all_alike)
{
	struct txid_filter f = begin(0);
	uint64_t i;

	for (i = 1; i < 3000; i++)
		ck_assert(see(&f, i * 7919 % 3000 + 1, 42));
	for (i = 1; i < 3000; i++)
		ck_assert(!see(&f, i * 7919 % 3000 + 1, 42));
	txid_filter_done(&f);
}

TEST(one_from_the_future_costs_time_alone)
{
	struct txid_filter f = begin(1000);
	uint64_t i;

	ck_assert(see(&f, 1u << 30, 1));
	for (i = 0; i < 40000; i++)
		see(&f, 2000 + i, i);
	/* The table dropped the future id and raised the floor: every earlier
	 * id needs a look-up. */
	ck_assert(!see(&f, 1u << 30, 1));
	ck_assert(!see(&f, 90000, 1));
	txid_filter_done(&f);
}
