/*
 * One journal row's body: what a window decided for one transaction, with
 * all that a replay needs. proto-like code: pure functions over bytes, any
 * thread, nothing blocks. Little-endian, length-prefixed, versioned by its
 * first byte; a decoder takes nothing it does not know.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

struct record_member {
	uint32_t index; /* in the transaction */
	enum refd_status status;
	const char *name;
	const char *text; /* detail for people, or NULL */
	bool has_found;
	struct refd_oid found; /* what a rejection was told */

	/* status OK only: what was (or will be) published. */
	enum refd_action action; /* UPDATE: write NEW_OID; DELETE;
					   VERIFY: nothing on disk */
	struct refd_oid new_oid;
	bool had_old;            /* the ref existed under the lock */
	struct refd_oid old_oid; /* its value then */
	bool had_packed;         /* packed-refs held it at prepare */
	struct refd_oid packed_oid;
	bool log;      /* a line for the ref's own log */
	bool log_head; /* and one for the worktree's HEAD */
};

struct record {
	const char *git_dir;   /* the client's (its HEAD), absolute path */
	const char *committer; /* of the log lines; may be "" */
	const char *message;   /* normalised; "" for none */
	uint32_t file_mode, dir_mode; /* for what a replay has to create */
	uint32_t nr_updates;          /* of the whole transaction */
	bool atomic;
	uint64_t digest; /* of the request's content */
	struct record_member *members;
	size_t nr_members;
	void *memory; /* owned by a decoded record */
};

/* malloc'd bytes; NULL when out of memory. */
uint8_t *record_encode(const struct record *rec, size_t *len);
/* 0, -EBADMSG, -ENOMEM. Strings point into REC's own copy. */
int record_decode(const uint8_t *bytes, size_t len, struct record *rec);
void record_done(struct record *rec);

/* FNV-1a over all that makes two requests the same. */
uint64_t record_digest(const struct refd_request *req);

#endif
