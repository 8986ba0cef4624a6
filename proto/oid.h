/*
 * Object ids: SHA-1 with 20 bytes, or SHA-256 with 32 bytes. In an id of SHA-1
 * the last 12 bytes are always zero, so ids compare alike in both formats. The
 * null oid is all zeroes. Only text and files need the format. Pure functions;
 * any thread.
 */
#ifndef PROTO_OID_H
#define PROTO_OID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum refd_object_format { REFD_FORMAT_SHA1, REFD_FORMAT_SHA256 };

#define REFD_SHA1_BYTES 20
#define REFD_SHA1_HEX   40
/* Of the longer format, SHA-256. */
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
/* 40 or 64 */
size_t refd_object_format_hex(enum refd_object_format format);

/* HEX must begin with the hex digits of an id of FORMAT, of either case, and
 * more may follow. Returns 0, or -1 with *OID unchanged. Never reads past a
 * NUL. */
int refd_oid_parse(const char *hex, enum refd_object_format format,
    struct refd_oid *oid);
/* Writes lower-case digits and a NUL, and returns HEX. */
char *refd_oid_hex(const struct refd_oid *oid, enum refd_object_format format,
    char hex[REFD_OID_MAX_HEX + 1]);
bool refd_oid_is_null(const struct refd_oid *oid);
bool refd_oid_eq(const struct refd_oid *a, const struct refd_oid *b);

#endif
