/*
 * The body of a journal row: the decision of a batch for one transaction, with
 * everything that a replay needs. The functions are pure functions over bytes,
 * as in proto/, so any thread may call them, and nothing blocks. Numbers are
 * little-endian, strings have a length before them, and the first byte is the
 * version. A decoder refuses anything unknown.
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
	/* A log line only, for a symbolic ref on the way, or for a HEAD that
	 * points to the branch. */
	RECORD_LOG
};

/* One ref file of an update. A symbolic ref on the way is a file, too, so this
 * ref has a separate member. */
struct record_member {
	/* in the transaction; several members may share an index */
	uint32_t index;
	enum refd_status status;
	/* NAME is the requested name, so of all members with this index, this
	 * member has the answer. */
	bool answers;
	const char *name;
	const char *text; /* detail for people, or NULL */
	bool has_found;
	struct refd_oid found; /* as in the answer */

	/* status OK only: the published (or planned) result. */
	/* "" for the common dir, otherwise the id of the linked worktree: NAME
	 * is below worktrees/<id>/ */
	const char *worktree;
	enum record_action action;
	/* The value afterwards. Of a symbolic ref, the value that the ref
	 * resolves to, or null. Null for the line of a deletion. */
	struct refd_oid new_oid;
	const char *target; /* RECORD_WRITE of a symbolic ref; or NULL */
	/* RECORD_WRITE of a new ref that the rename of packed-refs publishes.
	 * So stage/ has no value that would tell recovery more. */
	bool is_line;
	bool had_old;            /* the ref had a value under the lock */
	struct refd_oid old_oid; /* resolved if symbolic */
	/* The time of the loose file under the lock, in ns since 1970; 0: no
	 * file was loose. Only value and time together identify the file that
	 * this update replaces. Not with record.has_indices. */
	int64_t old_mtime_ns;
	bool had_packed; /* in packed-refs at prepare */
	struct refd_oid packed_oid;
	bool log; /* a line from OLD_OID to NEW_OID goes to the log */
	/* With record.is_gated only, and only for history: the value before
	 * git's update, if refd has read the value then; null: there was no
	 * ref. OLD_OID, in contrast, is the value under refd's lock. */
	bool has_before;
	struct refd_oid before;

	/*
	 * With record.has_indices only, else 0. UPDATE_INDEX: of the new record
	 * and of the log line. If a value is only confirmed, there is no new
	 * record, and UPDATE_INDEX is that of the present record. OLD_INDEX: of
	 * the record before, also of a deletion; 0: none. BASE_INDEX: the
	 * largest index in the list of tables under the lock. So a record of
	 * this batch has an index above BASE_INDEX.
	 */
	uint64_t update_index, old_index, base_index;
};

struct record {
	const char *committer; /* of the log lines; may be "" */
	const char *message;   /* normalised; "" for none */
	/* As in the client's environment. */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;
	uint32_t file_mode, dir_mode; /* for files that a replay creates */
	uint32_t nr_updates;          /* of the whole transaction */
	enum refd_object_format object_format; /* of all oids */
	bool atomic;
	bool has_indices; /* the refs are in reftables: of all members */
	bool is_gated;    /* a different writer has written the refs */
	bool is_seen;     /* is_gated, and the writer did not tell refd */
	/* An earlier shared row gave a ref of the repository a value. A machine
	 * that has no such value lacks refs, so the repository must not begin
	 * with this row there. Only with journal_row.shared_lsn. */
	bool continues;
	/* The row, or the row that a deferred row refers to, has objects
	 * (journal_row.objects). */
	bool has_objects;
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
/* Does REC give a ref a value? */
bool record_has_value(const struct record *rec);
/* Does M change a ref? The answer can be in a different member, because a
 * symbolic ref may lead to this ref. */
bool record_changes_ref(const struct record_member *m);

/* Keeps only the parts for a look-up by id: the outcome of each update. */
void record_strip(struct record *rec);

#endif
