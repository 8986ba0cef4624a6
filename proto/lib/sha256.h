/*
 * SHA-256 in parts (FIPS 180-4), for the files of git.
 *
 * Pure; any thread.
 */
#ifndef PROTO_LIB_SHA256_H
#define PROTO_LIB_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64]; /* the last LEN % 64 bytes */
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t len);
/* SHA cannot be used afterwards. */
void sha256_done(struct sha256 *sha, uint8_t out[SHA256_BYTES]);

#endif
