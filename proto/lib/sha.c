#include "proto/lib/sha.h"

#include <string.h>

static uint32_t rotate_left(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

static uint32_t rotate(uint32_t x, unsigned by)
{
	return rotate_left(x, 32 - by);
}

static uint32_t read_32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
	    (uint32_t)at[2] << 8 | at[3];
}

static void write_32(uint8_t *at, uint32_t x)
{
	at[0] = (uint8_t)(x >> 24);
	at[1] = (uint8_t)(x >> 16);
	at[2] = (uint8_t)(x >> 8);
	at[3] = (uint8_t)x;
}

/* ---- SHA-1 ---- */

/* The round's function of three words, and its constant. */
static uint32_t mix(int i, uint32_t b, uint32_t c, uint32_t d)
{
	if (i < 20)
		return (d ^ (b & (c ^ d))) + 0x5a827999;
	if (i < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (i < 60)
		return ((b & c) | (d & (b | c))) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block_1(uint32_t state[5], const uint8_t block[64])
{
	uint32_t w[80], a, b, c, d, e, next;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = read_32(block + 4 * i);
	for (; i < 80; i++)
		w[i] =
		    rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	a = state[0];
	b = state[1];
	c = state[2];
	d = state[3];
	e = state[4];
	for (i = 0; i < 80; i++) {
		next = rotate_left(a, 5) + mix(i, b, c, d) + e + w[i];
		e = d;
		d = c;
		c = rotate_left(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

/* ---- SHA-256 ---- */

/* The first bits of the fractional parts of the cube roots of primes. */
static const uint32_t round_constants[64] = {
	0x428a2f98,
	0x71374491,
	0xb5c0fbcf,
	0xe9b5dba5,
	0x3956c25b,
	0x59f111f1,
	0x923f82a4,
	0xab1c5ed5,
	0xd807aa98,
	0x12835b01,
	0x243185be,
	0x550c7dc3,
	0x72be5d74,
	0x80deb1fe,
	0x9bdc06a7,
	0xc19bf174,
	0xe49b69c1,
	0xefbe4786,
	0x0fc19dc6,
	0x240ca1cc,
	0x2de92c6f,
	0x4a7484aa,
	0x5cb0a9dc,
	0x76f988da,
	0x983e5152,
	0xa831c66d,
	0xb00327c8,
	0xbf597fc7,
	0xc6e00bf3,
	0xd5a79147,
	0x06ca6351,
	0x14292967,
	0x27b70a85,
	0x2e1b2138,
	0x4d2c6dfc,
	0x53380d13,
	0x650a7354,
	0x766a0abb,
	0x81c2c92e,
	0x92722c85,
	0xa2bfe8a1,
	0xa81a664b,
	0xc24b8b70,
	0xc76c51a3,
	0xd192e819,
	0xd6990624,
	0xf40e3585,
	0x106aa070,
	0x19a4c116,
	0x1e376c08,
	0x2748774c,
	0x34b0bcb5,
	0x391c0cb3,
	0x4ed8aa4a,
	0x5b9cca4f,
	0x682e6ff3,
	0x748f82ee,
	0x78a5636f,
	0x84c87814,
	0x8cc70208,
	0x90befffa,
	0xa4506ceb,
	0xbef9a3f7,
	0xc67178f2,
};

static void expand(const uint8_t block[64], uint32_t w[64])
{
	uint32_t low, high;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = read_32(block + 4 * i);
	for (; i < 64; i++) {
		low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^
		    w[i - 15] >> 3;
		high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^
		    w[i - 2] >> 10;
		w[i] = w[i - 16] + low + w[i - 7] + high;
	}
}

/* In round I each of the eight words has the role of the word before it. */
#define ROLE(nr) s[((nr) - i) & 7]

static void add_block_256(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64], s[8], first, second;
	unsigned i;

	expand(block, w);
	memcpy(s, state, sizeof(s));
	for (i = 0; i < 64; i++) {
		first = ROLE(7) + round_constants[i] + w[i] +
		    (rotate(ROLE(4), 6) ^ rotate(ROLE(4), 11) ^
			rotate(ROLE(4), 25)) +
		    (ROLE(6) ^ (ROLE(4) & (ROLE(5) ^ ROLE(6))));
		second = (rotate(ROLE(0), 2) ^ rotate(ROLE(0), 13) ^
			     rotate(ROLE(0), 22)) +
		    ((ROLE(0) & ROLE(1)) | (ROLE(2) & (ROLE(0) | ROLE(1))));
		ROLE(3) += first;
		ROLE(7) = first + second;
	}
	for (i = 0; i < 8; i++)
		state[i] += s[i];
}

/* ---- both ---- */

void sha_init(struct sha *sha, enum refd_object_format format)
{
	static const uint32_t first_1[] = { 0x67452301, 0xefcdab89, 0x98badcfe,
		0x10325476, 0xc3d2e1f0 };
	static const uint32_t first_256[] = { 0x6a09e667, 0xbb67ae85,
		0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
		0x5be0cd19 };

	sha->format = format;
	sha->len = 0;
	if (format == REFD_FORMAT_SHA256)
		memcpy(sha->state, first_256, sizeof(first_256));
	else
		memcpy(sha->state, first_1, sizeof(first_1));
}

static void add_block(struct sha *sha, const uint8_t block[64])
{
	if (sha->format == REFD_FORMAT_SHA256)
		add_block_256(sha->state, block);
	else
		add_block_1(sha->state, block);
}

void sha_add(struct sha *sha, const void *data, size_t len)
{
	const uint8_t *at = data;
	size_t held = sha->len % 64, fits;

	sha->len += len;
	if (held > 0) {
		fits = len < 64 - held ? len : 64 - held;
		memcpy(sha->block + held, at, fits);
		if (held + fits < 64)
			return;
		add_block(sha, sha->block);
		at += fits;
		len -= fits;
	}
	for (; len >= 64; at += 64, len -= 64)
		add_block(sha, at);
	memcpy(sha->block, at, len);
}

void sha_done(struct sha *sha, uint8_t out[REFD_OID_MAX_BYTES])
{
	static const uint8_t end[64] = { 0x80 };
	uint64_t bits = sha->len * 8;
	uint8_t length[8];
	size_t i;

	sha_add(sha, end, 1 + (119 - sha->len % 64) % 64);
	write_32(length, (uint32_t)(bits >> 32));
	write_32(length + 4, (uint32_t)bits);
	sha_add(sha, length, sizeof(length));
	memset(out, 0, REFD_OID_MAX_BYTES);
	for (i = 0; i < refd_object_format_bytes(sha->format) / 4; i++)
		write_32(out + 4 * i, sha->state[i]);
}
