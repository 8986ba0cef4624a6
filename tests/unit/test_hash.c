/*
 * Proves that nobody outside of the process can choose keys that meet in one
 * bucket of a table, and that the hash is SipHash-2-4.
 */
#include "daemon/base/hash.h"
#include "tests/lib/suite.h"

#define NR   64
#define MASK 0x3fff

struct item {
	uint64_t key;
	UT_hash_handle hh;
};

/* The example of the paper. */
TEST(the_hash_is_the_published_one)
{
	const uint64_t secret[2] = { UINT64_C(0x0706050403020100),
		UINT64_C(0x0f0e0d0c0b0a0908) };
	unsigned char data[15];
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	ck_assert_uint_eq(hash_siphash(secret, data, sizeof(data)),
	    UINT64_C(0xa129ca6149be45e5));
}

TEST(the_hash_has_a_secret)
{
	const uint32_t before = hash_key("key", 3);

	hash_begin();
	ck_assert_uint_ne(hash_key("key", 3), before);
}

/* Keys with the same public hash, HASH_JEN of uthash. */
TEST(chosen_keys_do_not_meet)
{
	struct item *table = NULL, items[NR];
	unsigned most = 0, b, hash;
	uint64_t key;
	size_t nr = 0;

	for (key = 0; nr < NR; key++) {
		HASH_JEN(&key, sizeof(key), hash);
		if ((hash & MASK) != 0)
			continue;
		items[nr].key = key;
		HASH_ADD(hh, table, key, sizeof(key), &items[nr]);
		nr++;
	}
	for (b = 0; b < table->hh.tbl->num_buckets; b++)
		if (table->hh.tbl->buckets[b].count > most)
			most = table->hh.tbl->buckets[b].count;
	ck_assert_uint_le(most, NR / 4);
	HASH_CLEAR(hh, table);
}
