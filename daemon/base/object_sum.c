#include "daemon/base/object_sum.h"

#include <string.h>

void object_sum_init(struct object_sum *sum, enum refd_object_format format)
{
	sum->format = format;
	if (format == REFD_FORMAT_SHA256)
		sha256_init(&sum->sha256);
	else
		sha1_init(&sum->sha1);
}

void object_sum_add(struct object_sum *sum, const void *data, size_t len)
{
	if (sum->format == REFD_FORMAT_SHA256)
		sha256_add(&sum->sha256, data, len);
	else
		sha1_add(&sum->sha1, data, len);
}

void object_sum_done(struct object_sum *sum, struct refd_oid *oid)
{
	memset(oid, 0, sizeof(*oid));
	if (sum->format == REFD_FORMAT_SHA256)
		sha256_done(&sum->sha256, oid->bytes);
	else
		sha1_done(&sum->sha1, oid->bytes);
}
