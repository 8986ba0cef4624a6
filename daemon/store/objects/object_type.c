#include "daemon/store/objects/object_type.h"

#include <stdio.h>
#include <string.h>

#include "proto/lib/sha.h"

static const char *const names[] = { "", "commit", "tree", "blob", "tag", "" };

enum object_type object_type_take(const char **p, const char *end, char behind)
{
	enum object_type type;

	for (type = OBJECT_COMMIT; type <= OBJECT_TAG; type++) {
		const size_t len = strlen(names[type]);

		if ((size_t)(end - *p) > len &&
		    memcmp(*p, names[type], len) == 0 && (*p)[len] == behind) {
			*p += len + 1;
			return type;
		}
	}
	return OBJECT_ERROR;
}

size_t object_header(enum object_type type, size_t len,
    char header[OBJECT_HEADER])
{
	return 1 +
	    (size_t)snprintf(header, OBJECT_HEADER, "%s %zu", names[type], len);
}

void object_id(enum object_type type, const void *data, size_t len,
    enum refd_object_format format, struct refd_oid *oid)
{
	char header[OBJECT_HEADER];
	struct sha sum;

	sha_init(&sum, format);
	sha_add(&sum, header, object_header(type, len, header));
	sha_add(&sum, data, len);
	sha_done(&sum, oid->bytes);
}
