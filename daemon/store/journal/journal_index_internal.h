/*
 * Shared by the files of history's index, journal_index.c and journal_find.c.
 * One thread, as in journal_index.h: the statements are bound and stepped
 * without a lock, and a step may block.
 */
#ifndef STORE_JOURNAL_INDEX_INTERNAL_H
#define STORE_JOURNAL_INDEX_INTERNAL_H

#include "daemon/store/journal/journal_index.h"
#include "daemon/store/journal/journal_internal.h"

/* The records of one span share an entry for time and size (as bits). */
#define JOURNAL_INDEX_SPAN_BITS 10

enum journal_index_stmt {
	INDEX_BEGIN,
	INDEX_COMMIT,
	INDEX_ROLLBACK,
	INDEX_RECORD,
	INDEX_SENDER,
	INDEX_CHANGE,
	INDEX_DAMAGED,
	INDEX_TIME,
	INDEX_LAST,
	INDEX_OLD_CHANGE, /* the tables in this order */
	INDEX_OLD_RECORD,
	INDEX_OLD_SENDER,
	INDEX_DELETE_CHANGE, /* the same order */
	INDEX_DELETE_RECORD,
	INDEX_DELETE_SENDER,
	INDEX_TRIM_DAMAGED,
	INDEX_TRIM_SPAN,
	INDEX_SINCE,
	INDEX_UNTIL,
	INDEX_BYTES,
	INDEX_STMTS
};

struct journal_index {
	const struct sys *sys;
	char *path;
	sqlite3 *db;
	uint64_t last;
	sqlite3_stmt *stmts[INDEX_STMTS];

	/* The present search; NULL: none. */
	sqlite3_stmt *search;
	bool down;
	uint64_t found;   /* the last LSN in this segment; 0: none */
	int64_t until_ns; /* sys->now_mono */
};

/* On a new connection. An SQLite code. */
int journal_index_search_prepare(struct journal_index *x);

#endif
