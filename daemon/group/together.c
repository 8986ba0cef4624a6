/*
 * Applies rows that have arrived together in one batch, with one flush. On the
 * leader, rows of many clients share a flush, so a flush for each row would
 * make a node that comes back slower than the clients that write.
 *
 * The happy path: the objects of all rows are written; then all rows go to
 * admission at once, which looks at the repository and at its new objects once;
 * then one pass applies them, and the journal takes them in their order.
 *
 * A row ends the batch before it for one of four reasons:
 *	its ref, or a name above or below, is in the batch
 *	rows of its repository wait
 *	its repository must move first, and earlier rows may need the old place
 *	its repository or an object is missing
 *
 * What fails: if one row can't be committed, no row is (batch/commit.c), and
 * the follower tries each row of the batch alone. Only there rows are reported,
 * mended and put off, so these rules know nothing of batches. A crash leaves
 * all rows of the batch in the journal, or none.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/follower_internal.h"

/* A row with more updates has a batch of its own, because the cost of comparing
 * all names grows with their square. */
#define UPDATES_MAX 256

/* ---- names ---- */

/* Is A the name B, or above B, or below B? */
static bool are_related(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return (*a == '\0' || *a == '/') && (*b == '\0' || *b == '/');
}

/* Of the ref that U changes, perhaps through a symbolic ref. */
static const char *name_of(const struct txn_update *u)
{
	return u->final_name != NULL ? u->final_name : u->ask->name;
}

/* Do A and B change related refs of one repository? */
static bool is_in_the_way(const struct own_txn *a, const struct own_txn *b)
{
	size_t i, k;

	if (memcmp(a->from->repo, b->from->repo, sizeof(a->from->repo)) != 0)
		return false;
	for (i = 0; i < a->slice.nr; i++)
		for (k = 0; k < b->slice.nr; k++)
			if (are_related(name_of(a->slice.updates[i]),
				name_of(b->slice.updates[k])))
				return true;
	return false;
}

/* ---- the batch ---- */

/* Can RT be in one batch with the rows from ROWS on, before RT? */
static bool fits(const struct own_txn *rows, const struct own_txn *rt)
{
	size_t nr = rt->slice.nr;

	for (; rows < rt; rows++) {
		nr += rows->slice.nr;
		if (nr > UPDATES_MAX || is_in_the_way(rows, rt))
			return false;
	}
	return true;
}

/* The path where one of the NR rows has found the repository of ROW in its
 * place, or NULL. */
static const char *path_of(const struct own_txn *rows, size_t nr,
    const struct group_row *row)
{
	const struct group_row *from;

	while (nr-- > 0) {
		from = rows[nr].from;
		if (memcmp(from->repo, row->repo, sizeof(row->repo)) == 0 &&
		    from->path.len == row->path.len &&
		    memcmp(from->path.data, row->path.data, row->path.len) == 0)
			return rows[nr].txn->req.git_dir;
	}
	return NULL;
}

/* Makes the row IN the next row behind the NR rows. False: the batch ends
 * before IN. */
static bool take(struct follower *f, const struct group_input *in,
    struct own_txn *rows, size_t nr)
{
	struct attempt a;

	attempt_init(f, &a, in);
	a.only_looks = nr > 0;
	if (waiting_has(f, a.row->repo) ||
	    !attempt_prepare(f, &a, path_of(rows, nr, a.row), &rows[nr]))
		return false;
	if (fits(rows, &rows[nr]) &&
	    attempt_write_objects(f, &a, &rows[nr].record) &&
	    waiting_leave(f, &a))
		return true;
	own_txn_done(&rows[nr]);
	return false;
}

/* All rows are applied, or none is. */
static bool apply(struct follower *f, const struct own_txn *rows, size_t nr)
{
	struct txn_slice slices[GROUP_ROWS];
	size_t i;

	for (i = 0; i < nr; i++)
		slices[i] = rows[i].slice;
	pipeline_apply_rows(f->host->pipeline, slices, nr);
	return slices[0].lsn != 0;
}

bool together_apply(struct follower *f, const struct group_input *in,
    size_t *nr)
{
	struct own_txn *rows = calloc(GROUP_ROWS, sizeof(*rows));
	struct attempt a = { .lsn = 0 };
	size_t given = 0, ready = 0;
	bool is_applied;

	for (; rows != NULL && in != NULL && take(f, in, rows, given);
	    in = in->next)
		given++;
	follower_let_go(f);
	follower_admit(f, rows, given);
	while (
	    ready < given && attempt_look(f, &a, &rows[ready]) == RESULT_DONE)
		ready++;
	is_applied = ready > 0 && apply(f, rows, ready);
	*nr = ready > 0 ? ready : 1;
	while (given > 0) {
		follower_put_repo(f, rows[--given].txn);
		own_txn_done(&rows[given]);
	}
	free(rows);
	return is_applied;
}
