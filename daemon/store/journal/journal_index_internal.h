/*
 * Shared by the files of history's index, journal_index.c and journal_find.c.
 * One thread, as in journal_index.h, so the statements are bound and stepped
 * without a lock. A step may block.
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
	INDEX_SOURCE,
	INDEX_CHANGE,
	INDEX_DAMAGED,
	INDEX_TIME,
	INDEX_LAST,
	INDEX_OLD_CHANGE, /* both tables in this order */
	INDEX_OLD_SOURCE,
	INDEX_DELETE_CHANGE,
	INDEX_DELETE_SOURCE,
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
	struct journal_chain chain;
	sqlite3_stmt *stmts[INDEX_STMTS];

	/* The present search; NULL: none. */
	sqlite3_stmt *search;
	bool down;
	uint64_t found;   /* the last LSN in this segment; 0: none */
	int64_t until_ns; /* sys->now_mono */
};

/* A repository among the sources. The number is negative, because uids are 0 or
 * more. */
static inline sqlite3_int64 journal_index_source(uint64_t repo)
{
	return -1 - (sqlite3_int64)repo;
}

/* On a new connection. An SQLite code. */
int journal_index_search_prepare(struct journal_index *x);

#endif
