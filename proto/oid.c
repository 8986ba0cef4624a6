#include "proto/oid.h"

#include <string.h>

#include "proto/hex.h"

int refd_oid_parse(const char *hex, struct refd_oid *oid)
{
	struct refd_oid parsed;

	if (refd_hex_parse(hex, parsed.bytes, REFD_OID_BYTES) < 0)
		return -1;
	*oid = parsed;
	return 0;
}

char *refd_oid_hex(const struct refd_oid *oid, char hex[REFD_OID_HEX + 1])
{
	return refd_hex_put(oid->bytes, REFD_OID_BYTES, hex);
}

bool refd_oid_is_null(const struct refd_oid *oid)
{
	static const struct refd_oid null_oid;

	return refd_oid_eq(oid, &null_oid);
}

bool refd_oid_eq(const struct refd_oid *a, const struct refd_oid *b)
{
	return memcmp(a->bytes, b->bytes, REFD_OID_BYTES) == 0;
}
