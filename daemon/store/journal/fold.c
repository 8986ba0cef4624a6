#include "daemon/store/journal/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/hash.h"

/* A read must not hold the WAL for long. */
#define SLICE_ROWS 256
/* Ends a read. */
#define STOP 2

struct fold_taken {
	struct {
		uint64_t lsn, index;
	} key;
	UT_hash_handle hh;
};

struct reading {
	struct fold *fold;
	uint64_t before; /* the last row */
};

static int note_origin(void *arg, const struct journal_row *row)
{
	uint64_t *origin = arg;

	if (row->kind == JOURNAL_DEFERRED)
		*origin = row->refers_to;
	return 0;
}

/* The abort record of a deferred copy refers to the copy, but takes the members
 * of the first row back. If that row can't be read, the fold will come to it
 * and fail there. */
static uint64_t origin_of(const struct fold *f, uint64_t lsn)
{
	uint64_t origin = lsn;

	journal_read(f->reader, lsn - 1, lsn + 1, false, 1, note_origin,
	    &origin);
	return origin;
}

static struct fold_taken *find(const struct fold *f, uint64_t lsn,
    const struct record_member *m)
{
	const struct fold_taken key = { .key = { lsn, m->index } };
	struct fold_taken *taken;

	HASH_FIND(hh, f->taken, &key.key, sizeof(key.key), taken);
	return taken;
}

static int take_back(struct fold *f, uint64_t lsn,
    const struct record_member *m)
{
	struct fold_taken *taken;

	if (find(f, lsn, m) != NULL)
		return 0;
	taken = calloc(1, sizeof(*taken));
	if (taken == NULL)
		return -ENOMEM;
	taken->key.lsn = lsn;
	taken->key.index = m->index;
	HASH_ADD(hh, f->taken, key, sizeof(taken->key), taken);
	if (taken->hh.tbl != NULL)
		return 0;
	free(taken);
	return -ENOMEM;
}

static int hand_out(struct fold *f, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	if (m->status != REFD_OK ||
	    (m->action != RECORD_WRITE && m->action != RECORD_DELETE) ||
	    fold_is_taken_back(f, row->lsn, m))
		return 0;
	return f->member(f->arg, row, rec, m);
}

static int take_row(struct fold *f, const struct journal_row *row)
{
	uint64_t origin = 0;
	struct record rec;
	size_t i;
	int r;

	if (row->kind != JOURNAL_SLICE && row->kind != JOURNAL_ABORT)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	if (row->kind == JOURNAL_ABORT)
		origin = origin_of(f, row->refers_to);
	for (i = 0; i < rec.nr_members && r == 0; i++)
		r = row->kind == JOURNAL_ABORT ?
		    take_back(f, origin, &rec.members[i]) :
		    hand_out(f, row, &rec, &rec.members[i]);
	record_done(&rec);
	return r;
}

static int read_row(void *arg, const struct journal_row *row)
{
	struct reading *rd = arg;

	rd->before = row->lsn;
	switch (rd->fold->wants(rd->fold->arg, row)) {
	case FOLD_SKIP:
		return 0;
	case FOLD_TAKE:
		return take_row(rd->fold, row);
	case FOLD_STOP:
		break;
	}
	return STOP;
}

int fold_rows(struct fold *f, uint64_t after, uint64_t before)
{
	struct reading rd = { .fold = f, .before = before };
	uint64_t last;
	int r;

	do {
		last = rd.before;
		r = journal_read(f->reader, after, rd.before, true, SLICE_ROWS,
		    read_row, &rd);
	} while (r == 0 && rd.before != last);
	if (r == STOP)
		return 0;
	return r > 0 ? -EIO : r;
}

bool fold_is_taken_back(const struct fold *f, uint64_t lsn,
    const struct record_member *m)
{
	return find(f, lsn, m) != NULL;
}

void fold_done(struct fold *f)
{
	struct fold_taken *taken, *next;

	HASH_ITER(hh, f->taken, taken, next) {
		HASH_DEL(f->taken, taken);
		free(taken);
	}
}
