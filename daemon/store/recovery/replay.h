/*
 * Redoing the journal's records in one repository after a kill or a cut.
 *
 * After a kill (same boot, same mount) the page cache is exact: a record is
 * unfinished only where a lock of its own window still stands, and only that
 * is rolled forward. After a cut each file gets the last value of its
 * records, unless something shows that another wrote it later. A file to
 * whose log a line went and nothing else (a symbolic ref on the way, HEAD)
 * gets that line. After a kill of one whose file system failed to sync it is
 * as after a cut, but for a name that is not there, nor locked by that window:
 * that was deleted since.
 *
 * One thread, before anybody else uses the repository, or for what was deferred
 * under its refs' locks; blocks; 0 or negative errno; nothing logs. Findings
 * go to the report. May be repeated; killed half-way it starts over.
 */
#ifndef STORE_REPLAY_H
#define STORE_REPLAY_H

#include "daemon/store/journal/journal.h"
#include "daemon/store/publish/edit.h"
#include "daemon/store/recovery/lost.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/store.h"

/* A journal row with its body decoded; owned by the list it is in. */
struct replay_row {
	struct journal_row row;
	struct record rec;
	uint64_t origin; /* LSN of the first row it is a copy of, or its own */
	/* Per member: taken back by an abort record; passed over by
	 * this replay; to be redone later, since a foreign lock stands. One
	 * allocation, DROPPED's. */
	bool *dropped, *passed, *deferred;
	/* All of the row was deferred since, if it is not redone yet. */
	bool is_aside;
	/* Its file system failed to sync before a start, or was at it when
	 * the daemon ended. */
	bool may_be_lost;
	enum evidence evidence;
	struct replay_row *next; /* the repository's next one */
};

/* What can't be redone: a member of a row, and why. */
struct replay_member {
	const struct replay_row *row;
	const struct record_member *member;
	enum refd_status status;
};

struct replay_members {
	struct replay_member *items;
	size_t nr, size;
};

struct replay {
	const struct sys *sys;
	struct repo *repo;
	struct leftover_locks *leftover;
	uint64_t token_id; /* for the locks it takes itself */
	const struct store_report *report;
	/* Is the object there? 1, 0, or negative: can't tell (taken as yes:
	 * the barrier put it there before the record was written). */
	int (*has_object)(void *arg, struct repo *repo,
	    const struct refd_oid *oid);
	void *arg;
	/* So many members more were looked at; may be NULL. */
	void (*stepped)(void *arg, size_t nr);
	void *step_arg;

	/* The name was taken for good: one member of each update. */
	struct replay_members aborted;

	/* Its own. */
	bool is_memory_lost; /* what is in the page cache need not be on disk */
	/* When what packed-refs held was last lost (lost.h): of what was
	 * recorded before that it can't tell what was deleted. */
	int64_t packed_lost_ns;
	struct lost lost;
	struct token token;
	bool token_stays; /* a lock of it could not be removed */
	struct ref_records *ref_records;
	struct packed_snapshot *snap;
};

/* ROWS: this repository's, in LSN order. On failure some of it may have been
 * redone, and all of it is to be tried again. */
int replay_repo(struct replay *rp, struct replay_row *rows);
void replay_done(struct replay *rp);

void replay_row_free(struct replay_row *row);

#endif
