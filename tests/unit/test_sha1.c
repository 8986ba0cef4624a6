/*
 * Proves that sha1 gives the sums of FIPS 180-4 and of git, in whatever parts
 * the bytes come.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/sha1.h"
#include "tests/lib/suite.h"

static void sum(const char *data, size_t len, size_t part, char hex[41])
{
	uint8_t out[SHA1_BYTES];
	struct sha1 sha;
	size_t at, n;
	int i;

	sha1_init(&sha);
	for (at = 0; at < len; at += n) {
		n = len - at < part ? len - at : part;
		sha1_add(&sha, data + at, n);
	}
	sha1_done(&sha, out);
	for (i = 0; i < SHA1_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
}

static void is(const char *data, size_t len, const char *wanted)
{
	static const size_t parts[] = { 1, 3, 63, 64, 65, 1 << 20 };
	char hex[41];
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		sum(data, len, parts[i], hex);
		ck_assert_str_eq(hex, wanted);
	}
}

START_TEST(known_sums)
{
	static char many[1000000];

	is("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	is("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	    "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	/* git's empty blob. */
	is("blob 0", 7, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	memset(many, 'a', sizeof(many));
	is(many, sizeof(many), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
END_TEST

/* The padding differs at every length. Sums of zeros, by sha1sum(1). */
START_TEST(around_a_block)
{
	static const struct {
		size_t len;
		const char *sum;
	} known[] = {
		{ 55, "8e8832c642a6a38c74c17fc92ccedc266c108e6c" },
		{ 56, "9438e360f578e12c0e0e8ed28e2c125c1cefee16" },
		{ 63, "0b8bf9fc37ad802cefa6733ec62b09d5f43a1b75" },
		{ 64, "c8d7d0ef0eedfa82d2ea1aa592845b9a6d4b02b7" },
		{ 65, "f0fa45906bd0f4c3668fcd0d8f68d4b298b30e5b" },
		{ 119, "85634f17f58bda0e4f0515dfb68bc1af922a031f" },
		{ 120, "b110a88a11436b215220486c1081dec2fb0f389a" },
		{ 128, "0ae4f711ef5d6e9d26c611fd2c8c8ac45ecbf9e7" },
	};
	static const char zeros[128];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		is(zeros, known[i].len, known[i].sum);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sha1");
	TCase *tc = tcase_create("sha1");

	tcase_add_test(tc, known_sums);
	tcase_add_test(tc, around_a_block);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
