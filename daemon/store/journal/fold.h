/*
 * Folds the log: the last plan of each ref file, and the rows that led there.
 * The rows are read from the newest one back, because the newer rows answer
 * most questions alone. For a node that looks for an older copy, for the
 * daemon's search for returned refs, and for `refd verify`. Recovery needs the
 * rows themselves, in their order, and reads them in recover_read.c.
 *
 * Happy path: a few rows at a time, without a read transaction in between. An
 * abort record follows the row whose members it takes back, so it is read
 * before that row. Each ref file gets the LSNs of its rows. A row is read again
 * by its LSN when somebody asks for the file.
 *
 * Failure modes: as in journal_reader.c. What was read before is right, because
 * no older row changes it.
 *
 * One thread at a time for each fold. Blocks; nothing logs. 0 or a negative
 * errno. Memory: BYTES, some 150 for a ref file with a few rows, and at most 16
 * for each further row; the allocator and the hash tables take as much as half
 * of that besides.
 */
#ifndef STORE_FOLD_H
#define STORE_FOLD_H

#include "daemon/base/hash.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/journal/record.h"

/* A ref file that a row writes or deletes. */
struct fold_ref {
	uint64_t *lsns; /* of its rows, the newest first */
	size_t nr, size;
	const char *name; /* in KEY */
	UT_hash_handle hh;
	char key[]; /* worktree, "/", name */
};

struct fold_repo {
	uint64_t id; /* in the journal */
	struct fold_ref *refs;
	uint64_t newest; /* the last row; 0: none was read */
	enum refd_object_format object_format; /* of the last row */
	UT_hash_handle hh;
};

/* M belongs to REC. */
typedef int fold_member_fn(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m);

enum fold_want { FOLD_SKIP, FOLD_TAKE, FOLD_STOP };

struct fold {
	struct journal_reader *reader;
	/* Called for every row. The callee must take the abort records of a
	 * repository, because otherwise the members that were taken back seem
	 * to stand. */
	enum fold_want (*wants)(void *arg, const struct journal_row *row);
	/* Called for each member that was not taken back; the fold then keeps
	 * no ref. NULL: the fold keeps the refs. */
	fold_member_fn *member;
	void *arg;

	/* What was read. */
	struct fold_repo *repos;
	size_t bytes; /* of the refs */

	/* Private; zeros at first. */
	struct fold_taken *taken;
	struct journal_row row; /* read again; no LSN: none */
	struct record rec;      /* of ROW */
	size_t at;              /* the last member */
};

/* Reads the rows with AFTER < lsn < BEFORE. Several calls need ranges that lie
 * apart, because a row of two ranges would be noted twice. 0 also after
 * FOLD_STOP. */
int fold_rows(struct fold *f, uint64_t after, uint64_t before);
/* The repository ID, which is made if no row of the repository was read. NULL:
 * no memory. */
struct fold_repo *fold_repo(struct fold *f, uint64_t id);
void fold_drop(struct fold *f, struct fold_repo *repo);
/* NULL: none. */
struct fold_ref *fold_ref(const struct fold_repo *repo, const char *worktree,
    const char *name);

/* Calls FN for the rows of REF that were not taken back, the newest first,
 * until the result is not 0, which is returned. Row, record and member stay
 * until the next call. A row that was trimmed meanwhile is left out. */
int fold_each(struct fold *f, const struct fold_ref *ref, fold_member_fn *fn,
    void *arg);
void fold_done(struct fold *f);

#endif
