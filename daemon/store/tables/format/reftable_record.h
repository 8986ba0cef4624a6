/*
 * The records of a reftable, as bytes and as values. The format is that of
 * git's Documentation/technical/reftable.adoc.
 *
 * Pure functions; any thread. Input bytes are hostile, so every length is
 * checked before use. A decoded record borrows its name from the key and its
 * texts from the block, so the record is valid only as long as they are.
 */
#ifndef STORE_REFTABLE_RECORD_H
#define STORE_REFTABLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/oid.h"

/* Bytes, also of the target of a symbolic ref. Git accepts longer names in
 * larger blocks, but refd refuses them. */
#define REFTABLE_NAME_MAX (REFD_PATH_MAX - 1)
/* The key of a log record: name, NUL, inverted update index. */
#define REFTABLE_LOG_SUFFIX 9
#define REFTABLE_KEY_MAX    (REFTABLE_NAME_MAX + REFTABLE_LOG_SUFFIX)

/* The type of a block: its first byte. */
enum reftable_section {
	REFTABLE_REFS = 'r',
	REFTABLE_OBJECTS = 'o',
	REFTABLE_LOGS = 'g',
	REFTABLE_INDEX = 'i'
};

/* Not terminated by NUL. */
struct reftable_text {
	const char *at;
	size_t len;
};

/* The numbers are those of the file. */
enum reftable_ref_kind {
	REFTABLE_REF_DELETED,
	REFTABLE_REF_OID,
	REFTABLE_REF_PEELED, /* a tag, and the object it finally names */
	REFTABLE_REF_SYMREF
};

struct reftable_ref {
	enum reftable_ref_kind kind;
	struct refd_oid oid, peeled;
	struct reftable_text target;
};

/*
 * Git marks an existing, empty reflog by a record with two null ids, and hides
 * this record. Git ends every message with a line feed, and stores the zone as
 * the decimal number of its text, so -0830 is -830.
 */
struct reftable_log {
	struct refd_oid from, to;
	struct reftable_text name, email, message;
	uint64_t time_s;
	int16_t zone;
};

struct reftable_record {
	enum reftable_section section;
	const char *name; /* of the ref */
	uint64_t update_index;
	/* A later table hides the ref, or the entry of the log. */
	bool is_deletion;
	union {
		struct reftable_ref ref;
		struct reftable_log log;
		uint64_t position; /* an index: of the block */
	};
};

/* ---- numbers ---- */

/* SIZE bytes at P, the most significant first. */
uint64_t reftable_record_get(const uint8_t *p, size_t size);
void reftable_record_put(uint8_t *p, size_t size, uint64_t value);
/* A number of variable length in LEN bytes. Returns the number of bytes, or 0
 * if the number is cut off or larger than 64 bits. */
size_t reftable_record_get_varint(const uint8_t *p, size_t len,
    uint64_t *value);
/* Returns the number of bytes, at most 10. */
size_t reftable_record_put_varint(uint8_t *p, uint64_t value);

/* ---- records ---- */

/* Properties of a table that the decoding of its records needs. */
struct reftable_context {
	enum refd_object_format format;
	uint64_t min_index;
};

/* A record as stored. All is borrowed. */
struct reftable_raw {
	enum reftable_section section; /* of the block */
	const uint8_t *key;            /* terminated by NUL */
	size_t key_len;
	unsigned type;
	const uint8_t *value;
	size_t len; /* at most so many bytes of VALUE are the record's */
};

/* Decodes RAW. Returns the number of bytes of the value, or -EBADMSG with the
 * reason in *WHY. Of REFTABLE_OBJECTS only the length is found out, because no
 * caller needs more. */
int reftable_record_decode(const struct reftable_context *context,
    const struct reftable_raw *raw, struct reftable_record *record,
    const char **why);

/* The key of a ref or log record. Returns its length, or 0 if the name is empty
 * or longer than REFTABLE_NAME_MAX. */
size_t reftable_record_key(const struct reftable_record *record,
    uint8_t key[REFTABLE_KEY_MAX]);
unsigned reftable_record_type(const struct reftable_record *record);
/* Writes the value into OUT. Returns the number of bytes, or -E2BIG if they are
 * more than ROOM. */
int reftable_record_encode(const struct reftable_record *record,
    enum refd_object_format format, uint64_t min_index, uint8_t *out,
    size_t room);

#endif
