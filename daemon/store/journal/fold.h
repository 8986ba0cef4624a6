/*
 * Folds the log: the rows of the journal, newest first, so that the first
 * member of a ref file is the last plan of the file, and the members behind are
 * the rows that led there. Old rows need not be read once the newer ones have
 * answered the question. For recovery, for the daemon's search for returned
 * refs, and for `refd verify`.
 *
 * Happy path: a few rows at a time, without a read transaction in between. An
 * abort record follows the row whose members it takes back, so it is read
 * before that row.
 *
 * Failure modes: as in journal_read.c. What was handed out before is right,
 * because no older row changes it.
 *
 * One thread at a time for each fold. Blocks; nothing logs.
 */
#ifndef STORE_FOLD_H
#define STORE_FOLD_H

#include "daemon/store/journal/journal.h"
#include "daemon/store/journal/record.h"

enum fold_want { FOLD_SKIP, FOLD_TAKE, FOLD_STOP };

/* M belongs to REC. A result other than 0 ends the reading. */
typedef int fold_member_fn(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m);

struct fold {
	struct journal_reader *reader;
	/* Is called for every row. Without the abort records of a repository,
	 * the members that they take back seem to stand. */
	enum fold_want (*wants)(void *arg, const struct journal_row *row);
	/* A write or a deletion of a ref file, in a wanted row, that was not
	 * taken back. */
	fold_member_fn *member;
	void *arg;

	struct fold_taken *taken; /* private; NULL at first */
};

/* Reads the rows with AFTER < lsn < BEFORE. Several calls for ranges that lie
 * apart share what they know of abort records. 0, also after FOLD_STOP; or a
 * negative errno. */
int fold_rows(struct fold *f, uint64_t after, uint64_t before);
/* Does an abort record that was read take member M of the row LSN back? */
bool fold_is_taken_back(const struct fold *f, uint64_t lsn,
    const struct record_member *m);
void fold_done(struct fold *f);

#endif
