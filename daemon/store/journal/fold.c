#include "daemon/store/journal/fold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/array.h"

/* A read has only so many rows, because the WAL cannot begin anew during a
 * read. */
#define SLICE_ROWS 256
/* Ends a read. */
#define STOP 2

struct fold_taken {
	struct {
		uint64_t lsn, index;
	} key;
	UT_hash_handle hh;
};

struct fold_reading {
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

/* ---- repositories and refs ---- */

/* With the table of its refs. */
#define REPO_BYTES                                                             \
	(sizeof(struct fold_repo) + sizeof(UT_hash_table) +                    \
	    HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket))

struct fold_repo *fold_repo(struct fold *f, uint64_t id)
{
	struct fold_repo *repo;

	HASH_FIND(hh, f->repos, &id, sizeof(id), repo);
	if (repo != NULL)
		return repo;
	repo = calloc(1, sizeof(*repo));
	if (repo == NULL)
		return NULL;
	repo->id = id;
	HASH_ADD(hh, f->repos, id, sizeof(id), repo);
	if (repo->hh.tbl != NULL) {
		f->bytes += REPO_BYTES;
		return repo;
	}
	free(repo);
	return NULL;
}

static size_t bytes_of(const struct fold_ref *ref)
{
	return sizeof(*ref) + strlen(ref->key) + 1 +
	    ref->size * sizeof(*ref->lsns);
}

void fold_drop(struct fold *f, struct fold_repo *repo)
{
	struct fold_ref *ref, *next;

	HASH_ITER(hh, repo->refs, ref, next) {
		HASH_DEL(repo->refs, ref);
		f->bytes -= bytes_of(ref);
		free(ref->lsns);
		free(ref);
	}
	HASH_DEL(f->repos, repo);
	f->bytes -= REPO_BYTES;
	free(repo);
}

struct fold_ref *fold_ref(const struct fold_repo *repo, const char *worktree,
    const char *name)
{
	char key[2 * REFD_PATH_MAX];
	struct fold_ref *ref;

	snprintf(key, sizeof(key), "%s/%s", worktree, name);
	HASH_FIND_STR(repo->refs, key, ref);
	return ref;
}

static struct fold_ref *get_ref(struct fold *f, struct fold_repo *repo,
    const struct record_member *m)
{
	const size_t len = strlen(m->worktree);
	struct fold_ref *ref = fold_ref(repo, m->worktree, m->name);

	if (ref != NULL)
		return ref;
	ref = calloc(1, sizeof(*ref) + len + strlen(m->name) + 2);
	if (ref == NULL)
		return NULL;
	ref->name = ref->key + len + 1;
	strcpy(ref->key, m->worktree);
	strcat(ref->key, "/");
	strcat(ref->key, m->name);
	HASH_ADD_STR(repo->refs, key, ref);
	if (ref->hh.tbl != NULL) {
		f->bytes += bytes_of(ref);
		return ref;
	}
	free(ref);
	return NULL;
}

/* ---- reading ---- */

static int note(struct fold *f, struct fold_repo *repo, uint64_t lsn,
    const struct record_member *m)
{
	struct fold_ref *ref;
	uint64_t *grown;
	size_t i, had;

	ref = get_ref(f, repo, m);
	if (ref == NULL)
		return -ENOMEM;
	had = ref->size;
	grown = array_room(ref->lsns, ref->nr, &ref->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	f->bytes += (ref->size - had) * sizeof(*grown);
	ref->lsns = grown;
	/* Rows are read from the newest one back, so a row normally comes last.
	 * Only a row that was written since the first read comes before. */
	for (i = ref->nr++; i > 0 && grown[i - 1] < lsn; i--)
		grown[i] = grown[i - 1];
	grown[i] = lsn;
	return 0;
}

static int note_all(struct fold *f, const struct journal_row *row,
    const struct record *rec)
{
	struct fold_repo *repo = fold_repo(f, row->repo);
	const struct record_member *m;
	size_t i;
	int r = 0;

	if (repo == NULL)
		return -ENOMEM;
	if (repo->newest < row->lsn) {
		repo->newest = row->lsn;
		repo->object_format = rec->object_format;
	}
	for (i = 0; i < rec->nr_members && r == 0; i++) {
		m = &rec->members[i];
		if (!record_changes_ref(m) || find(f, row->lsn, m) != NULL)
			continue;
		r = f->member != NULL ? f->member(f->arg, row, rec, m) :
					note(f, repo, row->lsn, m);
	}
	return r;
}

/* The abort record of a deferred copy refers to the copy, but takes the members
 * of the first row back. So the first row is looked up. */
static int take_back_all(struct fold *f, const struct journal_row *row,
    const struct record *rec)
{
	uint64_t origin = row->refers_to;
	size_t i;
	int r = journal_read(f->reader, row->refers_to - 1, row->refers_to + 1,
	    false, 1, note_origin, &origin);

	for (i = 0; i < rec->nr_members && r == 0; i++)
		r = take_back(f, origin, &rec->members[i]);
	return r;
}

static int take_row(struct fold *f, const struct journal_row *row)
{
	struct record rec;
	int r;

	if (row->kind != JOURNAL_SLICE && row->kind != JOURNAL_ABORT)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	r = row->kind == JOURNAL_ABORT ? take_back_all(f, row, &rec) :
					 note_all(f, row, &rec);
	record_done(&rec);
	return r;
}

static int read_row(void *arg, const struct journal_row *row)
{
	struct fold_reading *rd = arg;

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
	struct fold_reading rd = { .fold = f, .before = before };
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

/* ---- a row again ---- */

static int keep_row(void *arg, const struct journal_row *row)
{
	struct fold *f = arg;
	int r = record_decode(row->body, row->len, &f->rec);

	if (r == 0) {
		f->row = *row;
		f->row.body = NULL;
	}
	return r;
}

static int read_again(struct fold *f, uint64_t lsn)
{
	unsigned tries = 3;
	int r;

	if (f->row.lsn == lsn)
		return 0;
	do {
		record_done(&f->rec);
		memset(&f->rec, 0, sizeof(f->rec));
		f->row.lsn = 0;
		f->at = 0;
		r = journal_read(f->reader, lsn - 1, lsn + 1, false, 1,
		    keep_row, f);
	} while (r == -EAGAIN && --tries > 0);
	if (r != 0)
		f->row.lsn = 0;
	return r > 0 ? -EIO : r;
}

/* Most refs of a row are asked for one after the other, in the order of the
 * members. So the search begins at the last member found. */
static const struct record_member *find_member(struct fold *f, const char *key)
{
	const size_t nr = f->rec.nr_members;
	const struct record_member *m;
	size_t i, len;

	for (i = 0; i < nr; i++) {
		m = &f->rec.members[(f->at + i) % nr];
		len = strlen(m->worktree);
		if (record_changes_ref(m) &&
		    strncmp(m->worktree, key, len) == 0 && key[len] == '/' &&
		    strcmp(m->name, key + len + 1) == 0) {
			f->at = (f->at + i) % nr;
			return m;
		}
	}
	return NULL;
}

int fold_each(struct fold *f, const struct fold_ref *ref, fold_member_fn *fn,
    void *arg)
{
	const struct record_member *m;
	size_t i;
	int r = 0;

	for (i = 0; i < ref->nr && r == 0; i++) {
		r = read_again(f, ref->lsns[i]);
		m = r == 0 ? find_member(f, ref->key) : NULL;
		/* A row that was read later may have taken the member back, so
		 * this is looked up again. */
		if (m != NULL && find(f, f->row.lsn, m) == NULL)
			r = fn(arg, &f->row, &f->rec, m);
	}
	return r;
}

void fold_done(struct fold *f)
{
	struct fold_repo *repo, *next_repo;
	struct fold_taken *taken, *next;

	HASH_ITER(hh, f->repos, repo, next_repo)
		fold_drop(f, repo);
	HASH_ITER(hh, f->taken, taken, next) {
		HASH_DEL(f->taken, taken);
		free(taken);
	}
	record_done(&f->rec);
}
