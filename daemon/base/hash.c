/*
 * SipHash-2-4 by Aumasson and Bernstein ("SipHash: a fast short-input PRF",
 * 2012), on little-endian words.
 */
#include "daemon/base/hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

static uint64_t secret[2];

void hash_begin(void)
{
	/* 16 bytes come whole, but early in the boot, before the kernel has
	 * random bytes, the call waits. */
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		secret[0] ^= (uint64_t)(uintptr_t)&secret;
}

static uint64_t left(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = left(v[1], 13) ^ v[0];
		v[3] = left(v[3], 16) ^ v[2];
		v[0] = left(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = left(v[1], 17) ^ v[2];
		v[3] = left(v[3], 21) ^ v[0];
		v[2] = left(v[2], 32);
	}
}

static void add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

uint64_t hash_siphash(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573) };
	const char *at = data;
	uint64_t word, last = 0;
	size_t left_over;

	for (left_over = len; left_over >= 8; left_over -= 8, at += 8) {
		memcpy(&word, at, 8);
		add(v, le64toh(word));
	}
	memcpy(&last, at, left_over);
	add(v, le64toh(last) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t hash_key(const void *key, size_t len)
{
	return (uint32_t)hash_siphash(secret, key, len);
}
