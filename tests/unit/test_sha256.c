/*
 * Proves that sha256 gives the sums of FIPS 180-4, in whatever parts the bytes
 * come.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "proto/lib/sha256.h"
#include "tests/lib/suite.h"

static void sum(const char *data, size_t len, size_t part, char hex[65])
{
	uint8_t out[SHA256_BYTES];
	struct sha256 sha;
	size_t at, n;
	int i;

	sha256_init(&sha);
	for (at = 0; at < len; at += n) {
		n = len - at < part ? len - at : part;
		sha256_add(&sha, data + at, n);
	}
	sha256_done(&sha, out);
	for (i = 0; i < SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
}

static void is(const char *data, size_t len, const char *wanted)
{
	static const size_t parts[] = { 1, 3, 63, 64, 65, 1 << 20 };
	char hex[65];
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		sum(data, len, parts[i], hex);
		ck_assert_str_eq(hex, wanted);
	}
}

START_TEST(known_sums)
{
	static char many[1000000];

	is("", 0,
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	is("abc", 3,
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	/* git's empty blob in a repository of SHA-256. */
	is("blob 0", 7,
	    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
	memset(many, 'a', sizeof(many));
	is(many, sizeof(many),
	    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* The padding differs at every length. Sums of zeros, by sha256sum(1). */
START_TEST(around_a_block)
{
	static const struct {
		size_t len;
		const char *sum;
	} known[] = {
		{ 55,
		    "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7" },
		{ 56,
		    "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb" },
		{ 63,
		    "c7723fa1e0127975e49e62e753db53924c1bd84b8ac1ac08df78d09270f3d971" },
		{ 64,
		    "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b" },
		{ 65,
		    "98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7" },
		{ 119,
		    "f616b0d54e78571a9611f343c9f8e022e859e920381ab0e4d3da01e193a7bd7e" },
		{ 120,
		    "6edd9f6f9cc92cded36e6c4a580933f9c9f1b90562b46903b806f21902a1a54f" },
		{ 128,
		    "38723a2e5e8a17aa7950dc008209944e898f69a7bd10a23c839d341e935fd5ca" },
	};
	static const char zeros[128];
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		is(zeros, known[i].len, known[i].sum);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sha256");
	TCase *tc = tcase_create("sha256");

	tcase_add_test(tc, known_sums);
	tcase_add_test(tc, around_a_block);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
