/*
 * SHA-1 in parts (FIPS 180-4): the names of git's objects, and the checksums of
 * git's files. For damage by disks, not for attacks: collisions are not
 * detected.
 *
 * Pure; any thread.
 */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

struct sha1 {
	uint32_t state[5];
	uint64_t len;
	uint8_t block[64]; /* the last LEN % 64 bytes */
};

void sha1_init(struct sha1 *sha);
void sha1_add(struct sha1 *sha, const void *data, size_t len);
/* SHA cannot be used afterwards. */
void sha1_done(struct sha1 *sha, uint8_t out[SHA1_BYTES]);

#endif
