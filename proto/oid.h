/*
 * Object ids: SHA-1 with 20 bytes, or SHA-256 with 32 bytes. The null oid is
 * all zeroes. The wire has both formats, the store so far only SHA-1. Functions
 * without a format argument take a SHA-1 id and ignore the bytes behind it.
 * Pure functions; any thread.
 */
#ifndef PROTO_OID_H
#define PROTO_OID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum refd_object_format { REFD_FORMAT_SHA1, REFD_FORMAT_SHA256 };

/* SHA-1 */
#define REFD_OID_BYTES 20
#define REFD_OID_HEX   40
/* the longest: SHA-256 */
#define REFD_OID_MAX_BYTES 32
#define REFD_OID_MAX_HEX   64

struct refd_oid {
	uint8_t bytes[REFD_OID_MAX_BYTES];
};

/* "sha1", "sha256"; 0 or -1 */
const char *refd_object_format_name(enum refd_object_format format);
int refd_object_format_from_name(const char *name,
    enum refd_object_format *format);
/* 20 or 32 */
size_t refd_object_format_bytes(enum refd_object_format format);

/* HEX must begin with 40 hex digits of either case; more may follow. Returns 0
 * or -1; *OID is unchanged on failure. Never reads past a NUL. */
int refd_oid_parse(const char *hex, struct refd_oid *oid);
/* Writes 40 lower-case digits and a NUL; returns HEX. */
char *refd_oid_hex(const struct refd_oid *oid, char hex[REFD_OID_HEX + 1]);
bool refd_oid_is_null(const struct refd_oid *oid);
bool refd_oid_eq(const struct refd_oid *a, const struct refd_oid *b);

/* The same for an id of FORMAT. */
int refd_oid_parse_as(const char *hex, enum refd_object_format format,
    struct refd_oid *oid);
char *refd_oid_hex_as(const struct refd_oid *oid,
    enum refd_object_format format, char hex[REFD_OID_MAX_HEX + 1]);

#endif
