/*
 * SHA-1 of bytes that come in parts (FIPS 180-4): what git names objects by
 * and closes its files with. Against disks, not against enemies: collisions
 * are not looked for.
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
	uint8_t block[64]; /* LEN % 64 bytes of it wait */
};

void sha1_init(struct sha1 *sha);
void sha1_add(struct sha1 *sha, const void *data, size_t len);
/* SHA is of no more use. */
void sha1_done(struct sha1 *sha, uint8_t out[SHA1_BYTES]);

#endif
