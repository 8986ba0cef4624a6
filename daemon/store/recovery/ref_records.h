/*
 * The records of one ref file, in LSN order, and the log lines that are still
 * to be written. Private to replay*.c, redo*.c, stack_*.c and ref_records.c.
 *
 * Each file has its own lock and log, so recovery decides for each file alone.
 * A ref file is a ref, a symbolic ref or HEAD of a worktree. A record says that
 * the file was written or deleted, or that only a line was added to the log.
 *
 * Memory only: one thread at a time, and nothing blocks. 0 or -ENOMEM.
 */
#ifndef STORE_REF_RECORDS_H
#define STORE_REF_RECORDS_H

#include "daemon/base/hash.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/recovery/replay.h"

struct ref_record {
	const struct replay_row *row;
	const struct record_member *member;
};

struct ref_records {
	char *key;            /* worktree id, "/", name */
	const char *worktree; /* "" for the common dir; else its id */
	const char *name;
	struct ref_record *items;
	size_t nr, size;
	bool has_log_only;           /* RECORD_LOG among them */
	struct stack_ref *stack_ref; /* for stack_refs.c; borrowed */
	UT_hash_handle hh;
};

/* Collects the members of ROWS by ref file. Only members with status OK count,
 * without dropped ones. */
int ref_records_build(struct ref_records **all, const struct replay_row *rows);
void ref_records_free(struct ref_records **all);

/* The records of the file with KEY; NULL: none. */
const struct ref_records *ref_records_find(const struct ref_records *all,
    const char *key);

/* The newest record that is not passed over by now, of any kind and with a
 * value (a write or a deletion). NULL: none. */
const struct ref_record *ref_records_last(const struct ref_records *records);
const struct ref_record *ref_records_value(const struct ref_records *records);

/* Was OID ever the ref's value, by the records or by packed-refs as prepare
 * saw it? */
bool ref_records_know(const struct ref_records *records,
    const struct refd_oid *oid);

/* Is LOOSE the file that an update in RECORDS has replaced (rule.h)? */
bool ref_records_replaced(const struct ref_records *records,
    const struct loose_value *loose);

/* The log lines that the log of one file needs. The strings and the array are
 * malloc'd. */
struct ref_records_lines {
	bool deletes; /* remove the present log first */
	/* After a power loss: present, in this order. The first KNOWN are of
	 * forgotten records, and equal to lines behind. */
	char **lines;
	size_t nr, size, known;
	bool begin_log; /* no line of an older record is in the log */
	char *last;     /* after a crash: the last line of the log; or NULL */
	const struct replay_row *row; /* the newest row that needs a line */
};

/* The lines of the records after AFTER (NULL: of all) and after the last
 * deletion among them. HELD: the lock of the last record's batch stands.
 * Otherwise a crashed run finished all records of its own, so their lines are
 * written. OLDER: forgotten records of the same ref file; or NULL. */
int ref_records_log_lines(const struct ref_records *records,
    const struct ref_record *after, bool held, const struct ref_records *older,
    struct ref_records_lines *out);
void ref_records_lines_done(struct ref_records_lines *lines);

#endif
