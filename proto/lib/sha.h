/*
 * The check sums of git in parts (FIPS 180-4): SHA-1 or SHA-256, by the object
 * format of the repository. SHA-1 is for damage by disks, and not for attacks,
 * because collisions are not detected.
 *
 * Pure; any thread.
 */
#ifndef PROTO_LIB_SHA_H
#define PROTO_LIB_SHA_H

#include <stddef.h>
#include <stdint.h>

#include "proto/oid.h"

#define SHA256_BYTES REFD_OID_MAX_BYTES

struct sha {
	enum refd_object_format format;
	uint32_t state[8]; /* of SHA-1: five */
	uint64_t len;
	uint8_t block[64]; /* the last LEN % 64 bytes */
};

void sha_init(struct sha *sha, enum refd_object_format format);
void sha_add(struct sha *sha, const void *data, size_t len);
/* As in struct refd_oid, the bytes behind a SHA-1 are zero. SHA cannot be used
 * afterwards. */
void sha_done(struct sha *sha, uint8_t out[REFD_OID_MAX_BYTES]);

#endif
