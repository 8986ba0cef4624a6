/*
 * Reads the journal for recovery.
 *
 * The happy path: one scan of the rows that are not forgotten, and of the open
 * deferred rows. Each row is decoded, aborted updates are dropped, and the rows
 * are sorted. A second scan reads the last forgotten rows, because their log
 * lines may be equal to lines of the other rows.
 *
 * Failures: a row that cannot be decoded, or memory; then nothing can be
 * recovered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/recover_internal.h"
#include "proto/lib/array.h"

/* ---- starts ---- */

static int add_start(void *arg, const struct journal_start *start)
{
	struct recover_starts *s = arg;
	uint64_t *grown;

	s->nr_of_boot += start->is_of_boot;
	if (!start->is_of_memory)
		return 0;
	grown = realloc(s->same, (s->nr + 1) * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	s->same = grown;
	grown[s->nr++] = start->id;
	return 0;
}

int recover_starts_read(struct recover_starts *starts, struct journal *journal)
{
	memset(starts, 0, sizeof(*starts));
	return journal_each_start(journal, add_start, starts);
}

void recover_starts_done(struct recover_starts *starts)
{
	free(starts->same);
}

/* A different start may have written a deferred copy, so the number of the
 * batch tells which start took the locks. */
enum evidence recover_starts_evidence(const struct recover_starts *starts,
    const struct replay_row *row, const struct replay *rp)
{
	uint64_t start = row->row.token >> JOURNAL_TOKEN_BITS;
	uint64_t mount = row->row.mount & ~JOURNAL_MOUNT_FAILED;
	size_t i;

	if (mount == 0 || row->row.mount == JOURNAL_MOUNT_LOST ||
	    mount != rp->repo->fs->mount || rp->is_copy)
		return EVIDENCE_POWER_LOSS;
	for (i = 0; i < starts->nr; i++)
		if (starts->same[i] == start)
			return replay_row_has_failed(row) ?
			    EVIDENCE_FAILED_SYNC :
			    EVIDENCE_CRASHED;
	return EVIDENCE_POWER_LOSS;
}

/* ---- rows ---- */

struct row_reader {
	struct recover_rows *rows;
	uint64_t last_lsn;
};

static int compare_lsn(const void *key, const void *item)
{
	const struct replay_row *row = *(struct replay_row *const *)item;
	uint64_t lsn = *(const uint64_t *)key;

	return (lsn > row->row.lsn) - (lsn < row->row.lsn);
}

/* For rows in the order of reading. */
static struct replay_row *find_row(const struct recover_rows *rows,
    uint64_t lsn)
{
	struct replay_row **at;

	at = rows->nr == 0 ? NULL :
			     bsearch(&lsn, rows->items, rows->nr,
				 sizeof(struct replay_row *), compare_lsn);
	return at != NULL ? *at : NULL;
}

/* Drops all members of the updates that an abort record names. */
static void drop_aborted(struct recover_rows *rows, uint64_t lsn,
    const struct record *aborts)
{
	struct replay_row *row = find_row(rows, lsn);
	struct record *rec;
	size_t i, k;

	if (row == NULL)
		return;
	rec = &row->rec;
	for (i = 0; i < rec->nr_members; i++)
		for (k = 0; k < aborts->nr_members; k++)
			if (rec->members[i].index == aborts->members[k].index)
				row->dropped[i] = true;
}

static int keep_row(struct recover_rows *rows, struct replay_row *row)
{
	struct replay_row **grown;

	grown = array_room(rows->items, rows->nr, &rows->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	rows->items = grown;
	row->dropped = calloc(4 * row->rec.nr_members + 1, sizeof(bool));
	if (row->dropped == NULL)
		return -ENOMEM;
	row->passed = row->dropped + row->rec.nr_members;
	row->deferred = row->passed + row->rec.nr_members;
	row->line_deferred = row->deferred + row->rec.nr_members;
	rows->items[rows->nr++] = row;
	return 0;
}

static int read_row(struct row_reader *rd, const struct journal_row *from)
{
	struct replay_row *row;
	int r;

	row = calloc(1, sizeof(*row));
	if (row == NULL)
		return -ENOMEM;
	r = record_decode(from->body, from->len, &row->rec);
	if (r == 0 && from->kind == JOURNAL_ABORT) {
		drop_aborted(rd->rows, from->refers_to, &row->rec);
		replay_row_free(row);
		return 0;
	}
	row->row = *from;
	row->row.body = NULL;
	row->origin =
	    from->kind == JOURNAL_DEFERRED ? from->refers_to : from->lsn;
	if (r == 0)
		r = keep_row(rd->rows, row);
	if (r < 0)
		replay_row_free(row);
	return r;
}

/* A deferred row counts, forgotten or not, so deferred rows are read
 * separately. */
static int recent_row(void *arg, const struct journal_row *from)
{
	struct row_reader *rd = arg;
	struct replay_row *row;

	rd->last_lsn = from->lsn;
	if (from->kind == JOURNAL_DEFERRED) {
		row = from->mount == JOURNAL_MOUNT_LOST ?
		    find_row(rd->rows, from->refers_to) :
		    NULL;
		if (row != NULL)
			row->is_aside = true;
		return 0;
	}
	if (from->repo == 0)
		return 0;
	return read_row(rd, from);
}

static int deferred_row(void *arg, const struct journal_row *from)
{
	return read_row(arg, from);
}

/* By repository, then by the first recording. */
static int compare_rows(const void *va, const void *vb)
{
	const struct replay_row *a = *(struct replay_row *const *)va;
	const struct replay_row *b = *(struct replay_row *const *)vb;

	if (a->row.repo != b->row.repo)
		return a->row.repo < b->row.repo ? -1 : 1;
	if (a->origin != b->origin)
		return a->origin < b->origin ? -1 : 1;
	return (a->row.lsn > b->row.lsn) - (a->row.lsn < b->row.lsn);
}

static void sort_rows(struct recover_rows *rows)
{
	size_t i;

	if (rows->nr == 0)
		return;
	qsort(rows->items, rows->nr, sizeof(struct replay_row *), compare_rows);
	for (i = 1; i < rows->nr; i++)
		if (rows->items[i - 1]->row.repo == rows->items[i]->row.repo)
			rows->items[i - 1]->next = rows->items[i];
}

int recover_rows_read(struct commit_log *log, struct recover_rows *rows,
    uint64_t *last_lsn)
{
	struct journal *journal = commit_log_journal(log);
	struct row_reader rd = { .rows = rows };
	int r;

	memset(rows, 0, sizeof(*rows));
	r = commit_log_read(log, journal_forgotten(journal), recent_row, &rd);
	if (r == 0)
		r = journal_each_deferred(journal, 0, deferred_row, &rd);
	sort_rows(rows);
	*last_lsn = rd.last_lsn;
	return r;
}

/* Lines of a second are searched so far back. */
#define OLDER_ROWS 16384
#define OLDER_US   INT64_C(2000000)

struct older_reader {
	struct row_reader rd;
	const struct recover_rows *rows;
	uint64_t forgotten;
	int64_t since_us;
};

/* A deferred row is a copy of the forgotten row LSN. */
static bool is_deferred(const struct replay_row *rows, uint64_t lsn)
{
	while (rows != NULL && rows->origin < lsn)
		rows = rows->next;
	return rows != NULL && rows->origin == lsn;
}

static int older_row(void *arg, const struct journal_row *from)
{
	struct older_reader *older = arg;
	const struct replay_row *rows;

	if (from->lsn > older->forgotten)
		return 1;
	rows = recover_rows_of(older->rows, from->repo);
	if (rows == NULL || from->time_us < older->since_us ||
	    (from->kind != JOURNAL_SLICE && from->kind != JOURNAL_ABORT) ||
	    is_deferred(rows, from->lsn))
		return 0;
	return read_row(&older->rd, from);
}

int recover_rows_read_older(struct commit_log *log,
    const struct recover_rows *rows, struct recover_rows *older)
{
	struct older_reader reader = { .rd.rows = older,
		.rows = rows,
		.forgotten = journal_forgotten(commit_log_journal(log)),
		.since_us = INT64_MAX };
	size_t i;
	int r;

	if (rows->nr == 0)
		return 0;
	for (i = 0; i < rows->nr; i++)
		if (rows->items[i]->row.time_us - OLDER_US < reader.since_us)
			reader.since_us =
			    rows->items[i]->row.time_us - OLDER_US;
	r = commit_log_read(log,
	    reader.forgotten > OLDER_ROWS ? reader.forgotten - OLDER_ROWS : 0,
	    older_row, &reader);
	/* No value needs these rows, so a damaged row stops nothing. */
	if (r < 0)
		recover_rows_done(older);
	for (i = 0; i < older->nr; i++)
		older->items[i]->evidence = EVIDENCE_POWER_LOSS;
	sort_rows(older);
	return r == -ENOMEM ? r : 0;
}

int recover_rows_read_deferred(struct journal *journal, uint64_t repo,
    struct recover_rows *rows)
{
	struct row_reader rd = { .rows = rows };
	int r;

	memset(rows, 0, sizeof(*rows));
	r = journal_each_deferred(journal, repo, deferred_row, &rd);
	sort_rows(rows);
	return r;
}

struct replay_row *recover_rows_of(const struct recover_rows *rows,
    uint64_t repo)
{
	size_t low = 0, high = rows->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (rows->items[mid]->row.repo < repo)
			low = mid + 1;
		else
			high = mid;
	}
	return low < rows->nr && rows->items[low]->row.repo == repo ?
	    rows->items[low] :
	    NULL;
}

void recover_rows_done(struct recover_rows *rows)
{
	while (rows->nr > 0)
		replay_row_free(rows->items[--rows->nr]);
	free(rows->items);
	memset(rows, 0, sizeof(*rows));
}
