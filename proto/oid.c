#include "proto/oid.h"

#include <string.h>

#include "proto/hex.h"

static const struct {
	const char *name;
	size_t bytes;
} formats[] = {
	[REFD_FORMAT_SHA1] = { "sha1", REFD_SHA1_BYTES },
	[REFD_FORMAT_SHA256] = { "sha256", REFD_OID_MAX_BYTES },
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

const char *refd_object_format_name(enum refd_object_format format)
{
	return formats[format].name;
}

int refd_object_format_from_name(const char *name,
    enum refd_object_format *format)
{
	size_t i;

	for (i = 0; i < NR_FORMATS; i++) {
		if (strcmp(formats[i].name, name) == 0) {
			*format = (enum refd_object_format)i;
			return 0;
		}
	}
	return -1;
}

size_t refd_object_format_bytes(enum refd_object_format format)
{
	return formats[format].bytes;
}

size_t refd_object_format_hex(enum refd_object_format format)
{
	return 2 * formats[format].bytes;
}

int refd_oid_parse(const char *hex, enum refd_object_format format,
    struct refd_oid *oid)
{
	struct refd_oid parsed = { 0 };

	if (refd_hex_parse(hex, parsed.bytes, formats[format].bytes) < 0)
		return -1;
	*oid = parsed;
	return 0;
}

char *refd_oid_hex(const struct refd_oid *oid, enum refd_object_format format,
    char hex[REFD_OID_MAX_HEX + 1])
{
	return refd_hex_put(oid->bytes, formats[format].bytes, hex);
}

bool refd_oid_is_null(const struct refd_oid *oid)
{
	static const struct refd_oid null_oid;

	return refd_oid_eq(oid, &null_oid);
}

bool refd_oid_eq(const struct refd_oid *a, const struct refd_oid *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
