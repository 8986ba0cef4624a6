#include "client/deliver/signature.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 64 /* bytes of a block of SHA-256 */

static void hash(const uint8_t block[BLOCK], const void *data, size_t len,
    uint8_t out[SHA256_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, block, BLOCK);
	sha256_add(&sha, data, len);
	sha256_done(&sha, out);
}

/* The key, filled up with zeroes, or the hash of a long key. */
static void block_of(const void *key, size_t len, uint8_t block[BLOCK])
{
	struct sha256 sha;

	memset(block, 0, BLOCK);
	if (len <= BLOCK) {
		memcpy(block, key, len);
		return;
	}
	sha256_init(&sha);
	sha256_add(&sha, key, len);
	sha256_done(&sha, block);
}

char *signature_text(const void *key, size_t key_len, const void *body,
    size_t len, char text[SIGNATURE_LEN + 1])
{
	uint8_t block[BLOCK], sum[SHA256_BYTES];
	char *to = text + sprintf(text, "sha256=");
	size_t i;

	block_of(key, key_len, block);
	for (i = 0; i < BLOCK; i++)
		block[i] ^= 0x36;
	hash(block, body, len, sum);
	for (i = 0; i < BLOCK; i++)
		block[i] ^= 0x36 ^ 0x5c;
	hash(block, sum, SHA256_BYTES, sum);
	for (i = 0; i < SHA256_BYTES; i++)
		to += sprintf(to, "%02x", sum[i]);
	return text;
}
