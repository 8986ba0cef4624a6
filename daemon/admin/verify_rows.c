/*
 * The rows of the journal by repository and ref file, read once for all
 * repositories of the command.
 *
 * Happy path: the first repository folds the whole journal (fold.h), because
 * one reading costs as much for one repository as for all. Each ref gets the
 * LSNs of its rows, and a row is read again by its LSN when somebody asks for
 * the ref. Before each repository, and before each second check, only the rows
 * since then are read, so a daemon may write meanwhile.
 *
 * Memory: see verify.h. With too many refs, about half of the repositories are
 * dropped, by their numbers in the journal, and the journal is read again for
 * them.
 *
 * Failure modes:
 *	a damaged row	the newer rows are right, and stay. Each repository
 *			reports the damage
 *	an interrupt	-EINTR; as above
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "proto/lib/array.h"
#include "proto/lib/interrupt.h"

/* Between two lines of progress. */
#define PROGRESS_ROWS 4096

/* ---- the repositories in memory ---- */

static void drop_repo(struct verify_rows *rows, struct verify_repo_rows *repo)
{
	struct verify_ref *ref, *next;

	HASH_ITER(hh, repo->refs, ref, next) {
		HASH_DEL(repo->refs, ref);
		free(ref->lsns);
		free(ref);
		rows->nr_refs--;
	}
	HASH_DEL(rows->repos, repo);
	free(repo);
}

static bool is_kept(const struct verify_rows *rows, uint64_t id)
{
	return id >= rows->first && id <= rows->last;
}

static void drop_others(struct verify_rows *rows)
{
	struct verify_repo_rows *repo, *next;

	HASH_ITER(hh, rows->repos, repo, next)
		if (!is_kept(rows, repo->id))
			drop_repo(rows, repo);
}

/* The wanted repository stays, however many refs it has. */
static void halve(struct verify_rows *rows)
{
	struct verify_repo_rows *repo, *next;
	uint64_t highest = rows->wanted, middle;

	HASH_ITER(hh, rows->repos, repo, next)
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

static struct verify_repo_rows *get_repo(struct verify_rows *rows, uint64_t id)
{
	struct verify_repo_rows *repo;

	HASH_FIND(hh, rows->repos, &id, sizeof(id), repo);
	if (repo != NULL)
		return repo;
	repo = calloc(1, sizeof(*repo));
	if (repo == NULL)
		return NULL;
	repo->id = id;
	HASH_ADD(hh, rows->repos, id, sizeof(id), repo);
	if (repo->hh.tbl != NULL)
		return repo;
	free(repo);
	return NULL;
}

static struct verify_ref *find_ref(const struct verify_repo_rows *repo,
    const char *worktree, const char *name)
{
	char key[2 * REFD_PATH_MAX];
	struct verify_ref *ref;

	snprintf(key, sizeof(key), "%s/%s", worktree, name);
	HASH_FIND_STR(repo->refs, key, ref);
	return ref;
}

static struct verify_ref *get_ref(struct verify_rows *rows,
    struct verify_repo_rows *repo, const char *worktree, const char *name)
{
	const size_t size = strlen(worktree) + strlen(name) + 2;
	struct verify_ref *ref = find_ref(repo, worktree, name);

	if (ref != NULL)
		return ref;
	ref = calloc(1, sizeof(*ref) + size);
	if (ref == NULL)
		return NULL;
	snprintf(ref->key, size, "%s/%s", worktree, name);
	HASH_ADD_STR(repo->refs, key, ref);
	if (ref->hh.tbl != NULL) {
		rows->nr_refs++;
		return ref;
	}
	free(ref);
	return NULL;
}

/* ---- reading ---- */

/* The row before in the shared log has SHARED_LSN. Rows that came after
 * the opening of the journal may have a higher LSN than the journal had. */
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

/* Also of a row without a member that stands: recovery looks at all rows. */
static bool note_newest(struct verify_rows *rows, const struct journal_row *row)
{
	struct verify_repo_rows *repo = get_repo(rows, row->repo);

	if (repo == NULL)
		return false;
	if (repo->newest < row->lsn)
		repo->newest = row->lsn;
	return true;
}

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	struct verify_rows *rows = arg;

	if (interrupt_came()) {
		rows->err = -EINTR;
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
	if (rows->is_whole && rows->nr_refs > rows->opt->refs_max)
		halve(rows);
	if (row->repo == 0 || !is_kept(rows, row->repo))
		return FOLD_SKIP;
	if (row->kind != JOURNAL_SLICE || note_newest(rows, row))
		return FOLD_TAKE;
	rows->err = -ENOMEM;
	return FOLD_STOP;
}

static int note_member(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct verify_rows *rows = arg;
	struct verify_repo_rows *repo = get_repo(rows, row->repo);
	struct verify_ref *ref = NULL;
	uint64_t *grown;
	size_t i;

	if (repo != NULL)
		ref = get_ref(rows, repo, m->worktree, m->name);
	if (ref == NULL)
		return -ENOMEM;
	if (!repo->has_format) {
		repo->object_format = rec->object_format;
		repo->has_format = true;
	}
	grown = array_room(ref->lsns, ref->nr, &ref->size, sizeof(*ref->lsns));
	if (grown == NULL)
		return -ENOMEM;
	ref->lsns = grown;
	/* Only rows that were written since then come in front. */
	for (i = ref->nr++; i > 0 && grown[i - 1] < row->lsn; i--)
		grown[i] = grown[i - 1];
	grown[i] = row->lsn;
	return 0;
}

static void fold(struct verify_rows *rows, uint64_t after)
{
	int r;

	rows->is_whole = after == 0;
	r = fold_rows(&rows->fold, after, UINT64_MAX);
	if (r < 0)
		rows->err = r;
	if (rows->is_whole && rows->err == 0)
		check_shared(rows, 0);
}

/* The journal is read again only for what was dropped. */
static void fold_all(struct verify_rows *rows, uint64_t id)
{
	rows->last = 0;
	drop_others(rows);
	rows->first = rows->is_alone || rows->nr_reads > 0 ? id : 1;
	rows->last = rows->is_alone ? id : UINT64_MAX;
	rows->err = 0;
	rows->nr_reads++;
	memset(&rows->shared, 0, sizeof(rows->shared));
	fold(rows, 0);
}

int verify_rows_of(struct verify_rows *rows, uint64_t id,
    struct verify_repo_rows **repo)
{
	rows->wanted = id;
	if (is_kept(rows, id))
		verify_rows_read_on(rows);
	else
		fold_all(rows, id);
	*repo = get_repo(rows, id);
	return *repo == NULL ? -ENOMEM : rows->err;
}

void verify_rows_read_on(struct verify_rows *rows)
{
	fold(rows, rows->newest);
}

/* ---- a row ---- */

static int keep_row(void *arg, const struct journal_row *row)
{
	struct verify_rows *rows = arg;

	rows->row = *row;
	rows->row.body = NULL;
	return record_decode(row->body, row->len, &rows->rec);
}

/* Most refs of a row are asked for one after the other, in the order of the
 * members. The daemon may have trimmed the row meanwhile. */
static int read_row(struct verify_rows *rows, uint64_t lsn)
{
	int r;

	if (rows->row.lsn == lsn)
		return 0;
	record_done(&rows->rec);
	memset(&rows->rec, 0, sizeof(rows->rec));
	rows->row.lsn = 0;
	rows->at = 0;
	r = journal_read(rows->fold.reader, lsn - 1, lsn + 1, false, 1,
	    keep_row, rows);
	if (r < 0)
		rows->err = r;
	return r;
}

static const struct record_member *find_member(struct verify_rows *rows,
    const char *worktree, const char *name)
{
	const size_t nr = rows->rec.nr_members;
	const struct record_member *m;
	size_t i;

	for (i = 0; i < nr; i++) {
		m = &rows->rec.members[(rows->at + i) % nr];
		if (m->status == REFD_OK &&
		    (m->action == RECORD_WRITE || m->action == RECORD_DELETE) &&
		    strcmp(m->name, name) == 0 &&
		    strcmp(m->worktree, worktree) == 0) {
			rows->at = (rows->at + i) % nr;
			return m;
		}
	}
	return NULL;
}

int verify_each_row(struct verify *v, const struct verify_place *place,
    const char *name, fold_member_fn *fn, void *arg)
{
	struct verify_rows *rows = v->rows;
	const struct record_member *m;
	struct verify_ref *ref = NULL;
	size_t i;
	int r = 0;

	if (v->repo_rows != NULL)
		ref = find_ref(v->repo_rows, place->worktree, name);
	for (i = 0; ref != NULL && i < ref->nr && r == 0; i++) {
		r = read_row(rows, ref->lsns[i]);
		m = r == 0 ? find_member(rows, place->worktree, name) : NULL;
		if (m != NULL &&
		    !fold_is_taken_back(&rows->fold, rows->row.lsn, m))
			r = fn(arg, &rows->row, &rows->rec, m);
	}
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
	rows->fold =
	    (struct fold){ .wants = wants, .member = note_member, .arg = rows };
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

/* The journal as it was opened may be of a time before a recovery. */
bool verify_rows_await(const struct verify_rows *rows,
    const struct verify_repo_rows *repo)
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
	rows->last = 0;
	drop_others(rows);
	fold_done(&rows->fold);
	record_done(&rows->rec);
	free(rows->wrong_shared);
	journal_reader_close(rows->fold.reader);
	journal_view_close(rows->journal);
	free(rows);
}
