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

enum record_action {
	RECORD_NOTHING, /* verified only: nothing is written */
	RECORD_WRITE,   /* NEW_OID, or a symbolic ref to TARGET */
	RECORD_DELETE,
	/* A log line alone: of a symbolic ref that was passed through, of a
	 * HEAD that points to the branch. */
	RECORD_LOG
};

/* One file that an update is about; a symbolic ref on the way to another has
 * a member of its own. */
struct record_member {
	uint32_t index; /* in the transaction; several may share it */
	enum refd_status status;
	/* NAME is what was asked for: of all members with this index the one
	 * that tells what became of it. */
	bool answers;
	const char *name;
	const char *text; /* detail for people, or NULL */
	bool has_found;
	struct refd_oid found; /* what the answer said */

	/* status OK only: what was (or will be) published. */
	const char *worktree; /* "" for the common dir, else the id of the
				 linked one: NAME is below worktrees/<id>/ */
	enum record_action action;
	/* The value after it; of a symbolic ref the one it resolves to, null
	 * where that is none. Null for a deletion's line. */
	struct refd_oid new_oid;
	const char *target;      /* RECORD_WRITE of a symbolic ref; or NULL */
	bool had_old;            /* the ref had a value under the lock */
	struct refd_oid old_oid; /* it, resolved where it was symbolic */
	bool had_packed;         /* packed-refs held it at prepare */
	struct refd_oid packed_oid;
	bool log; /* a line from OLD_OID to NEW_OID is owed to its log */
};

struct record {
	const char *committer; /* of the log lines; may be "" */
	const char *message;   /* normalised; "" for none */
	/* Who, as the client's environment has it. */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;
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

/* Leaves what a look-up by id needs: what became of each update. */
void record_strip(struct record *rec);

#endif
