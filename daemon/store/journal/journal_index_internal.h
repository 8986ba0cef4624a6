/*
 * Shared by the files of history's index, journal_index.c and journal_find.c.
 * One thread, as in journal_index.h: the statements are bound and stepped
 * without a lock, and a step may block.
 */
#ifndef STORE_JOURNAL_INDEX_INTERNAL_H
#define STORE_JOURNAL_INDEX_INTERNAL_H

#include "daemon/store/journal/journal_index.h"
#include "daemon/store/journal/journal_internal.h"

enum journal_index_stmt {
	INDEX_BEGIN,
	INDEX_COMMIT,
	INDEX_ROLLBACK,
	INDEX_ADD,
	INDEX_TIME,
	INDEX_LAST,
	INDEX_TRIM,
	INDEX_TRIM_SPAN,
	INDEX_UP,
	INDEX_DOWN,
	INDEX_EACH,
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
};

static inline sqlite3_int64 journal_index_segment(uint64_t lsn)
{
	return (sqlite3_int64)(lsn >> JOURNAL_INDEX_SEGMENT_BITS);
}

#endif
