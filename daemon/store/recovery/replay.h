/*
 * Redoes the journal's records in one repository after a crash or a power loss.
 *
 * After a crash (same boot, mount, journal and directory) the page cache is
 * exact, so a record is unfinished only if a lock of its own batch still
 * stands. Only these records are rolled forward.
 *
 * After a power loss each file gets the last value of its records, unless there
 * is evidence of a later write by another writer. A file that got only a log
 * line (a symbolic ref on the way, HEAD) gets the line.
 *
 * A crash on a file system that failed to sync counts as a power loss, because
 * the contents of files may be in memory only. But names are exact. So if a ref
 * in files is absent, and the lock of its batch is gone, another writer has
 * deleted the ref since.
 *
 * One thread, before anybody else uses the repository; or for deferred records,
 * under the locks of their refs. Blocks; 0 or negative errno; nothing logs.
 * Findings go to the report. May be repeated, also after a crash half-way.
 */
#ifndef STORE_REPLAY_H
#define STORE_REPLAY_H

#include "daemon/store/journal/journal.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/publish/edit.h"
#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/refs/this_boot.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/store.h"

/* A journal row with a decoded body, owned by its list. */
struct replay_row {
	struct journal_row row;
	struct record rec;
	uint64_t origin; /* LSN of the first row that was copied, or its own */
	/* Four answers for each member: an abort record took the member back;
	 * this replay passed the member over; the member is deferred, because a
	 * foreign lock stands; only its log line is deferred. DROPPED owns one
	 * allocation for all four. */
	bool *dropped, *passed, *deferred, *line_deferred;
	/* A deferred copy has all of the row, unless the copy is redone. */
	bool is_aside;
	/* The file system failed to sync before a start, or was failing when
	 * the daemon ended. */
	bool may_be_lost;
	/* Of a batch with reftables that did not end: another program removed
	 * the lock of a list. */
	bool lost_lock;
	enum evidence evidence;
	struct replay_row *next; /* of the same repository */
};

/* A member that cannot be redone, and the reason. */
struct replay_member {
	const struct replay_row *row;
	const struct record_member *member;
	enum refd_status status;
	const char *text; /* static */
};

struct replay_members {
	struct replay_member *items;
	size_t nr, size;
};

struct replay {
	const struct sys *sys;
	struct repo *repo;
	bool has_stacks; /* the refs are in reftables */
	bool git_syncs;  /* struct repo_config: git_syncs_refs */
	bool is_strict;  /* recover.h: nothing may be given up */
	/* The journal knows another directory, so this one is a snapshot or a
	 * copy, which may lack what was in memory alone. */
	bool is_copy;
	struct journal *journal; /* of the rows: has their objects */
	struct leftover_locks *leftover;
	const struct replay_row *older; /* forgotten rows; never redone */
	uint64_t token_id;              /* for the replay's own locks */
	const struct store_report *report;
	const struct this_boot *this_boot; /* NULL: no lock is proved dead */
	/* Is the object there? 1, 0, or negative: unknown, which counts as yes,
	 * because the barrier stored the object before the record was
	 * written. */
	int (*has_object)(void *arg, struct repo *repo,
	    const struct refd_oid *oid);
	void *arg;
	/* Told after so many members more were looked at; may be NULL. */
	void (*stepped)(void *arg, size_t nr);
	void *step_arg;

	/* One member of each update whose name was taken for good. */
	struct replay_members aborted;

	/* Private. */
	bool is_other_format;   /* the repository has ids, or refs, unlike the
				 rows */
	const char *lock_stays; /* why the last lock in the way does; static */
	bool is_memory_lost;    /* the page cache may differ from the disk */
	/* The time when the contents of packed-refs were last lost (saved.h),
	 * so packed-refs does not prove deletions after an older record. */
	int64_t packed_lost_ns;
	struct token token;
	bool token_stays; /* a lock of `token` could not be removed, or stays */
	struct ref_records *ref_records, *older_records;
	struct packed_snapshot *snap;
	/* packed_written_ns() of SNAP. If this replay has rewritten
	 * packed-refs, packed_written_ns() of the file before the rewrite. */
	int64_t packed_ns;
};

/* ROWS: the rows of this repository, in LSN order. Some may have been redone
 * after a failure, so the caller repeats all. */
int replay_repo(struct replay *rp, struct replay_row *rows);
void replay_done(struct replay *rp);

/* Does the ref of M, a member of ROW, get the value of M? Not if a later row
 * changes the ref. */
bool replay_is_last(const struct replay_row *row,
    const struct record_member *m);
/* For a strict recovery: reports that the ref NAME has its value, but lacks the
 * object of this value. */
void replay_report_lacking(struct replay *rp, const char *name);

/* May the page cache differ from the disk in the values of ROW? */
bool replay_row_has_failed(const struct replay_row *row);
void replay_row_free(struct replay_row *row);

#endif
