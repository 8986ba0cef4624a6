/*
 * The rows of the journal by repository and ref file, read once for all
 * repositories of the command.
 *
 * Happy path: the first repository folds the whole journal (fold.h), because
 * one reading costs as much for one repository as for all. Each ref gets the
 * LSNs of its rows, and a row is read again by its LSN when somebody asks for
 * the ref. Before each repository, and before each second check, only the rows
 * that came since the last reading are read, so a daemon may write meanwhile.
 *
 * Memory: see verify.h. If the refs need more, about half of the repositories
 * are dropped, by their numbers in the journal, and the journal is read again
 * for them.
 *
 * Failure modes:
 *	a damaged row	the newer rows are right, and stay. Each repository
 *			reports the damage
 *	-EAGAIN		the command was stopped while it read (journal_view.c):
 *			the journal is read anew
 *	other errors	any row may be missing, so no ref is compared with the
 *			rows. The next repository reads the journal anew
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "proto/lib/interrupt.h"

/* Between two lines of progress. */
#define PROGRESS_ROWS 4096

/* ---- the repositories in memory ---- */

static bool is_kept(const struct verify_rows *rows, uint64_t id)
{
	return id >= rows->first && id <= rows->last;
}

static void drop_others(struct verify_rows *rows)
{
	struct fold_repo *repo, *next;

	HASH_ITER(hh, rows->fold.repos, repo, next)
		if (!is_kept(rows, repo->id))
			fold_drop(&rows->fold, repo);
}

/* The wanted repository stays, however many refs it has. */
static void halve(struct verify_rows *rows)
{
	struct fold_repo *repo, *next;
	uint64_t highest = rows->wanted, middle;

	HASH_ITER(hh, rows->fold.repos, repo, next)
		if (repo->id > highest)
			highest = repo->id;
	if (highest == rows->first)
		return;
	middle = rows->first + (highest - rows->first) / 2;
	if (rows->wanted <= middle)
		rows->last = middle;
	else
		rows->first = middle + 1;
	drop_others(rows);
}

/* ---- reading ---- */

/* The repository at hand stays until the next one comes. */
static void fail(struct verify_rows *rows, int err)
{
	rows->err = err;
	if (err == -EUCLEAN || err == -EBADMSG)
		return;
	rows->first = 1;
	rows->last = 0;
}

/* Checks the LSN of rows->shared in the shared log; the row before has
 * SHARED_LSN. A row that came after the opening of the journal may have a
 * higher LSN than the journal had at the opening, so such a row is not compared
 * with that LSN. */
static void check_shared(struct verify_rows *rows, uint64_t shared_lsn)
{
	const uint64_t highest = journal_shared_lsn(rows->journal);

	if (rows->wrong_shared == NULL && rows->shared.lsn != 0 &&
	    (rows->shared.shared_lsn == shared_lsn ||
		(rows->shared.shared_lsn > highest &&
		    rows->shared.lsn <= journal_last_lsn(rows->journal))))
		rows->wrong_shared = repo_why(
		    "record %llu of the journal in '%s' has LSN %llu of the "
		    "group: the record before has %llu, and the journal %llu",
		    (unsigned long long)rows->shared.lsn, rows->opt->state,
		    (unsigned long long)rows->shared.shared_lsn,
		    (unsigned long long)shared_lsn,
		    (unsigned long long)highest);
}

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	struct verify_rows *rows = arg;

	if (interrupt_came()) {
		fail(rows, -EINTR);
		return FOLD_STOP;
	}
	if (rows->newest < row->lsn)
		rows->newest = row->lsn;
	if (rows->is_whole && rows->nr_rows++ % PROGRESS_ROWS == 0)
		findings_progress(rows->opt->findings, rows->opt->state,
		    JOURNAL_NAME);
	if (rows->is_whole && row->shared_lsn != 0) {
		check_shared(rows, row->shared_lsn);
		rows->shared.lsn = row->lsn;
		rows->shared.shared_lsn = row->shared_lsn;
	}
	if (rows->is_whole && rows->fold.bytes > rows->opt->fold_bytes)
		halve(rows);
	return row->repo != 0 && is_kept(rows, row->repo) ? FOLD_TAKE :
							    FOLD_SKIP;
}

static void read_after(struct verify_rows *rows, uint64_t after)
{
	int r;

	rows->is_whole = after == 0;
	r = fold_rows(&rows->fold, after, UINT64_MAX);
	if (r < 0)
		fail(rows, r);
	if (rows->is_whole && rows->err == 0)
		check_shared(rows, 0);
}

/* The journal is read again only for what was dropped. */
static void read_all(struct verify_rows *rows, uint64_t id)
{
	rows->last = 0;
	drop_others(rows);
	rows->first = rows->is_alone || rows->nr_reads > 0 ? id : 1;
	rows->last = rows->is_alone ? id : UINT64_MAX;
	rows->err = 0;
	rows->nr_reads++;
	memset(&rows->shared, 0, sizeof(rows->shared));
	read_after(rows, 0);
}

int verify_rows_of(struct verify_rows *rows, uint64_t id,
    struct fold_repo **repo)
{
	unsigned tries = 3;

	rows->wanted = id;
	do {
		if (is_kept(rows, id))
			verify_rows_read_on(rows);
		else
			read_all(rows, id);
	} while (rows->err == -EAGAIN && --tries > 0);
	*repo = fold_repo(&rows->fold, id);
	return *repo == NULL ? -ENOMEM : rows->err;
}

void verify_rows_read_on(struct verify_rows *rows)
{
	if (is_kept(rows, rows->wanted))
		read_after(rows, rows->newest);
}

int verify_each_row(struct verify *v, const struct ref_place *place,
    const char *name, fold_member_fn *fn, void *arg)
{
	const struct fold_ref *ref;
	int r;

	if (v->repo_rows == NULL)
		return 0;
	if (!is_kept(v->rows, v->repo_rows->id))
		return v->rows->err;
	ref = fold_ref(v->repo_rows, place->worktree, name);
	if (ref == NULL)
		return 0;
	r = fold_each(&v->rows->fold, ref, fn, arg);
	if (r < 0)
		fail(v->rows, r);
	return r;
}

/* ---- opening ---- */

struct verify_rows *verify_rows_new(const struct verify_options *opt,
    bool is_alone)
{
	struct verify_rows *rows = calloc(1, sizeof(*rows));

	if (rows == NULL)
		return NULL;
	rows->opt = opt;
	rows->is_alone = is_alone;
	rows->first = 1;
	rows->fold = (struct fold){ .wants = wants, .arg = rows };
	return rows;
}

int verify_rows_open(struct verify_rows *rows, char **why)
{
	int r;

	if (rows->fold.reader != NULL)
		return 0;
	r = verify_view(rows->opt, &rows->journal, why);
	if (r == 0)
		r = journal_reader_open(rows->journal, &rows->fold.reader);
	if (r == 0)
		return 0;
	journal_view_close(rows->journal);
	rows->journal = NULL;
	return r > 0 ? -EIO : r;
}

/* The journal as it was opened may be of a time before a recovery, so it is
 * opened once more. */
bool verify_rows_await(const struct verify_rows *rows,
    const struct fold_repo *repo)
{
	struct journal *now = NULL;
	char *why = NULL;
	bool is = repo->newest > journal_forgotten(rows->journal);

	if (is && verify_view(rows->opt, &now, &why) == 0)
		is = repo->newest > journal_forgotten(now);
	journal_view_close(now);
	free(why);
	return is;
}

void verify_rows_free(struct verify_rows *rows)
{
	if (rows == NULL)
		return;
	fold_done(&rows->fold);
	free(rows->wrong_shared);
	journal_reader_close(rows->fold.reader);
	journal_view_close(rows->journal);
	free(rows);
}
