/*
 * The type of an object, as found by a look-up, and its id, in pure functions
 * for any thread. The first four types are git's numbers in packs.
 */
#ifndef STORE_OBJECT_TYPE_H
#define STORE_OBJECT_TYPE_H

#include <stddef.h>

#include "proto/oid.h"

#define OBJECT_HEADER 32

enum object_type {
	OBJECT_ABSENT = 0,
	OBJECT_COMMIT = 1,
	OBJECT_TREE = 2,
	OBJECT_BLOB = 3,
	OBJECT_TAG = 4,
	OBJECT_ERROR = 5 /* the object or a possible place is unreadable */
};

/* An object as it was read. */
struct object_content {
	enum object_type type;
	uint8_t *data; /* LEN bytes, to be freed */
	size_t len;
};

/* An object in bytes that somebody else owns. */
struct row_object {
	enum object_type type;
	const uint8_t *data; /* borrowed */
	size_t len;
};

/* The type whose name stands at *P, followed by the byte BEHIND, before END. *P
 * is then after that byte. Otherwise the type is OBJECT_ERROR, and *P stays. */
enum object_type object_type_take(const char **p, const char *end, char behind);
/* The id of an object with the content DATA. */
void object_id(enum object_type type, const void *data, size_t len,
    enum refd_object_format format, struct refd_oid *oid);
/* Writes "<type> <length>", with the NUL, as before the content of a loose
 * object. Returns the number of bytes. */
size_t object_header(enum object_type type, size_t len,
    char header[OBJECT_HEADER]);

#endif
