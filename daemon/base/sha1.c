#include "daemon/base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
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

static void add_block(uint32_t state[5], const uint8_t block[64])
{
	uint32_t w[80], a, b, c, d, e, next;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = read_32(block + 4 * i);
	for (; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	a = state[0];
	b = state[1];
	c = state[2];
	d = state[3];
	e = state[4];
	for (i = 0; i < 80; i++) {
		next = rotate(a, 5) + mix(i, b, c, d) + e + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1_init(struct sha1 *sha)
{
	static const uint32_t first[5] = { 0x67452301, 0xefcdab89, 0x98badcfe,
		0x10325476, 0xc3d2e1f0 };

	memcpy(sha->state, first, sizeof(first));
	sha->len = 0;
}

void sha1_add(struct sha1 *sha, const void *data, size_t len)
{
	const uint8_t *at = data;
	size_t held = sha->len % 64, fits;

	sha->len += len;
	if (held > 0) {
		fits = len < 64 - held ? len : 64 - held;
		memcpy(sha->block + held, at, fits);
		if (held + fits < 64)
			return;
		add_block(sha->state, sha->block);
		at += fits;
		len -= fits;
	}
	for (; len >= 64; at += 64, len -= 64)
		add_block(sha->state, at);
	memcpy(sha->block, at, len);
}

void sha1_done(struct sha1 *sha, uint8_t out[SHA1_BYTES])
{
	static const uint8_t end[64] = { 0x80 };
	uint64_t bits = sha->len * 8;
	uint8_t length[8];
	int i;

	sha1_add(sha, end, 1 + (119 - sha->len % 64) % 64);
	write_32(length, (uint32_t)(bits >> 32));
	write_32(length + 4, (uint32_t)bits);
	sha1_add(sha, length, sizeof(length));
	for (i = 0; i < 5; i++)
		write_32(out + 4 * i, sha->state[i]);
}
