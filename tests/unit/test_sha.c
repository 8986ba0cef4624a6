/*
 * Proves that both check sums of git are those of FIPS 180-4 and of git, in
 * whatever parts the bytes come.
 */
#include <string.h>

#include "proto/lib/sha.h"
#include "tests/lib/suite.h"

static void is(enum refd_object_format format, const char *data, size_t len,
    const char *wanted)
{
	static const size_t parts[] = { 1, 3, 63, 64, 65, 1 << 20 };
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid sum;
	struct sha sha;
	size_t i, at, n;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		sha_init(&sha, format);
		for (at = 0; at < len; at += n) {
			n = len - at < parts[i] ? len - at : parts[i];
			sha_add(&sha, data + at, n);
		}
		/* An id of SHA-1 ends with zeroes, whatever was there. */
		memset(&sum, 0xff, sizeof(sum));
		sha_done(&sha, sum.bytes);
		ck_assert_str_eq(refd_oid_hex(&sum, format, hex), wanted);
		for (n = refd_object_format_bytes(format);
		    n < sizeof(sum.bytes); n++)
			ck_assert_uint_eq(sum.bytes[n], 0);
	}
}

TEST(known_sums_of_sha1)
{
	static char many[1000000];

	is(REFD_FORMAT_SHA1, "", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	is(REFD_FORMAT_SHA1, "abc", 3,
	    "a9993e364706816aba3e25717850c26c9cd0d89d");
	is(REFD_FORMAT_SHA1,
	    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	    "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	/* git's empty blob. */
	is(REFD_FORMAT_SHA1, "blob 0", 7,
	    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	memset(many, 'a', sizeof(many));
	is(REFD_FORMAT_SHA1, many, sizeof(many),
	    "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* The padding differs at every length. Sums of zeros, by sha1sum(1). */
TEST(around_a_block_of_sha1)
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
		is(REFD_FORMAT_SHA1, zeros, known[i].len, known[i].sum);
}

TEST(known_sums_of_sha256)
{
	static char many[1000000];

	is(REFD_FORMAT_SHA256, "", 0,
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	is(REFD_FORMAT_SHA256, "abc", 3,
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	is(REFD_FORMAT_SHA256,
	    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	/* git's empty blob in a repository of SHA-256. */
	is(REFD_FORMAT_SHA256, "blob 0", 7,
	    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
	memset(many, 'a', sizeof(many));
	is(REFD_FORMAT_SHA256, many, sizeof(many),
	    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The padding differs at every length. Sums of zeros, by sha256sum(1). */
TEST(around_a_block_of_sha256)
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
		is(REFD_FORMAT_SHA256, zeros, known[i].len, known[i].sum);
}
