/*
 * Object ids: SHA-1, 20 bytes, 40 hex digits; all zero is the null oid.
 * Pure functions; any thread.
 */
#ifndef PROTO_OID_H
#define PROTO_OID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFD_OID_BYTES 20
#define REFD_OID_HEX   40

struct refd_oid {
	uint8_t bytes[REFD_OID_BYTES];
};

/* HEX needs 40 hex digits of either case at its start, and may go on.
 * 0 or -1; *OID is untouched on failure. Never reads past a NUL. */
int refd_oid_parse(const char *hex, struct refd_oid *oid);
/* Writes 40 lower-case digits and a NUL; returns HEX. */
char *refd_oid_hex(const struct refd_oid *oid, char hex[REFD_OID_HEX + 1]);
bool refd_oid_is_null(const struct refd_oid *oid);
bool refd_oid_eq(const struct refd_oid *a, const struct refd_oid *b);

#endif
