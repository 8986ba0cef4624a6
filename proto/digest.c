#include "proto/digest.h"

#include <string.h>

#define FNV_OFFSET 0xcbf29ce484222325ULL
#define FNV_PRIME  0x100000001b3ULL

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ p[i]) * FNV_PRIME;
	return h;
}

static uint64_t hash_byte(uint64_t h, unsigned value)
{
	uint8_t byte = (uint8_t)value;

	return hash(h, &byte, 1);
}

/* The hash includes the NUL, so that two consecutive strings can't be divided
 * in a different place. NULL and "" have different hashes. */
static uint64_t hash_string(uint64_t h, const char *s)
{
	h = hash_byte(h, s != NULL);
	return s == NULL ? h : hash(h, s, strlen(s) + 1);
}

uint64_t refd_digest_begin(const struct refd_request *req)
{
	uint64_t h = FNV_OFFSET;

	h = hash_string(h, req->git_dir);
	/* The verb of a transaction adds nothing. */
	if (req->verb == REFD_VERB_SESSION)
		h = hash_byte(h, 0x20);
	h = hash_byte(h, req->atomic);
	h = hash_byte(h, req->push);
	h = hash_string(h, req->message);
	/* Defaults add nothing, so a request without these headers has the same
	 * digest. */
	if (req->object_format != REFD_FORMAT_SHA1)
		h = hash_byte(h, req->object_format);
	if (req->gate != REFD_GATE_NONE)
		h = hash_byte(h, 0x30 + req->gate);
	/* The answer to a weaker mode promises too little, so the mode
	 * counts. */
	if (req->durability != REFD_DURABILITY_DEFAULT)
		h = hash_byte(h, 0x40 + req->durability);
	if (req->level.kind != REFD_LEVEL_DEFAULT) {
		h = hash_byte(h, 0x10 + req->level.kind);
		h = hash_byte(h, req->level.nodes);
	}
	return h;
}

uint64_t refd_digest_update(uint64_t digest, enum refd_object_format format,
    const struct refd_update *u)
{
	size_t oid_bytes = refd_object_format_bytes(format);
	uint64_t h = digest;

	h = hash_byte(h, (unsigned)u->action);
	h = hash_byte(h, u->no_deref);
	h = hash_string(h, u->name);
	h = hash(h, u->new_oid.bytes, oid_bytes);
	h = hash_byte(h, u->has_old);
	if (u->has_old)
		h = hash(h, u->old_oid.bytes, oid_bytes);
	h = hash_string(h, u->target);
	return hash_string(h, u->old_target);
}
