/*
 * The check sums of git: SHA-1 or SHA-256, by the object format of the
 * repository. For damage by disks, not for attacks: collisions are not
 * detected.
 *
 * Pure; any thread.
 */
#ifndef BASE_OBJECT_SUM_H
#define BASE_OBJECT_SUM_H

#include "daemon/base/sha1.h"
#include "proto/lib/sha256.h"
#include "proto/oid.h"

struct object_sum {
	enum refd_object_format format;
	union {
		struct sha1 sha1;
		struct sha256 sha256;
	};
};

void object_sum_init(struct object_sum *sum, enum refd_object_format format);
void object_sum_add(struct object_sum *sum, const void *data, size_t len);
/* SUM cannot be used afterwards. */
void object_sum_done(struct object_sum *sum, struct refd_oid *oid);

#endif
