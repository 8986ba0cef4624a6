/*
 * The happy path of a batch: a worker sends the rows and waits for COMMITTED.
 * Then the worker waits for the turn of its first LSN, because the journal
 * takes the rows in the order of the group, and appends the rows.
 *
 * Failures:
 *	REFUSED, or this node does not lead	the rows are nowhere
 *	no outcome within the patience, a lost	the daemon ends; the next start
 *	connection, a failure of the journal	reads the log of the group
 *	after COMMITTED
 *	a failure of the journal for a row	nothing was done
 *	that came from the group
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "daemon/base/time.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/batch/pass.h"
#include "daemon/store/objects/row_objects.h"

/* ---- waiting ---- */

void group_wait(struct group *g, const struct timespec *until)
{
	if (mutex_wait_until(&g->changed, &g->mutex, until) == ETIMEDOUT)
		group_die(g,
		    "a batch had no outcome within group.patience: see to "
		    "PostgreSQL and its standbys; the next start learns the "
		    "outcome");
}

/* ---- the rows as a frame ---- */

struct named_rows {
	struct group_row *rows;
	char **paths; /* owned */
	size_t nr;
};

static int name_row(struct group *g, const struct journal_row *from,
    struct group_row *to, char **path)
{
	struct journal_repo repo = { 0 };
	int r;

	r = journal_read_repo(g->reader, from->repo, NULL, &repo);
	if (r != 0)
		return r < 0 ? r : -EIO;
	*path = repo.path;
	memcpy(to->repo, repo.uuid, sizeof(to->repo));
	return group_path_below(g, repo.path, &to->path);
}

static int fill_row(struct group *g, const struct journal_row *from,
    struct group_row *to, char **path)
{
	const struct row_objects *objects;
	int r = name_row(g, from, to, path);

	if (r != 0)
		return r;
	if (getrandom(to->id, sizeof(to->id), 0) != (ssize_t)sizeof(to->id))
		return -EIO;
	to->txid = from->txid;
	to->uid = from->uid;
	to->time_ms = (uint64_t)(from->time_us / 1000);
	to->is_final = from->final;
	to->record = (struct group_bytes){ from->body, from->len };
	objects = group_is_in_row(from->slice) ?
	    group_txn_of(from->slice->txn)->objects :
	    NULL;
	if (objects != NULL)
		to->objects =
		    (struct group_bytes){ objects->bytes, objects->len };
	return 0;
}

static void names_done(struct named_rows *names)
{
	size_t i;

	for (i = 0; names->paths != NULL && i < names->nr; i++)
		free(names->paths[i]);
	free(names->paths);
	free(names->rows);
}

static int names_init(struct named_rows *names, struct group *g,
    const struct journal_row *rows, size_t nr)
{
	size_t i;
	int r = 0;

	*names = (struct named_rows){ .rows = calloc(nr, sizeof(*names->rows)),
		.paths = calloc(nr, sizeof(*names->paths)),
		.nr = nr };
	if (names->rows == NULL || names->paths == NULL)
		return -ENOMEM;
	mutex_lock(&g->reader_mutex);
	for (i = 0; i < nr && r == 0; i++)
		r = fill_row(g, &rows[i], &names->rows[i], &names->paths[i]);
	mutex_unlock(&g->reader_mutex);
	return r;
}

/* ---- outcomes ---- */

static struct group_batch *find(struct group *g, uint64_t number)
{
	struct group_batch *b;

	LIST_FOREACH(b, &g->batches, link)
		if (b->number == number)
			break;
	return b;
}

void group_batch_committed(struct group *g, uint64_t number, uint64_t lsn)
{
	struct group_batch *b = find(g, number);

	if (b == NULL || b->outcome != GROUP_BATCH_WAITS || lsn < g->next_lsn) {
		group_die(g,
		    "refd-group has committed a batch out of order: "
		    "report this as an error of refd");
		return;
	}
	b->outcome = GROUP_BATCH_COMMITTED;
	b->lsn = lsn;
	pthread_cond_broadcast(&g->changed);
}

void group_batch_refused(struct group *g, uint64_t number)
{
	struct group_batch *b = find(g, number);

	if (b == NULL || b->outcome != GROUP_BATCH_WAITS) {
		group_die(g,
		    "refd-group has refused a batch that it has "
		    "committed, or that nobody sent: report this as "
		    "an error of refd");
		return;
	}
	b->outcome = GROUP_BATCH_REFUSED;
	pthread_cond_broadcast(&g->changed);
}

/* ---- appending ---- */

/* For the moment when the turn of LSN has come. Under MUTEX, which is released
 * during the append. Returns what commit_log_append() does. */
static int append_in_turn(struct group *g, struct journal_row *rows, size_t nr,
    struct commit_log_mark *mark)
{
	int r;

	g->nr_appending++;
	mutex_unlock(&g->mutex);
	r = commit_log_append(g->base.host->log, rows, nr, mark);
	mutex_lock(&g->mutex);
	g->nr_appending--;
	/* A row that has waited was counted when it was put off, so next_lsn
	 * stays. */
	if (r == 0 && rows[0].shared_lsn == g->next_lsn)
		g->next_lsn += nr;
	pthread_cond_broadcast(&g->changed);
	return r;
}

/* Rows of the group that this node lacks. */
static int append_given(struct group *g, struct journal_row *rows, size_t nr,
    struct commit_log_mark *mark)
{
	const struct timespec until = time_after(g->patience_ns);
	int r = JOURNAL_UNKNOWN;

	mutex_lock(&g->mutex);
	while (!g->is_dead && rows[0].shared_lsn > g->next_lsn)
		group_wait(g, &until);
	if (!g->is_dead)
		r = append_in_turn(g, rows, nr, mark);
	mutex_unlock(&g->mutex);
	return r;
}

/* Under MUTEX. */
static int send(struct group *g, struct group_batch *b,
    const struct journal_row *rows, const struct named_rows *names)
{
	struct group_frame f = { .type = GROUP_BATCH };
	const struct group_txn *kept;
	size_t i;
	int r;

	b->number = f.batch.number = ++g->next_number;
	f.batch.rows = names->rows;
	f.batch.nr = names->nr;
	f.batch.epoch = g->epoch;
	for (i = 0; i < names->nr; i++) {
		kept = group_txn_of(rows[i].slice->txn);
		if (g->epoch == 0 || kept == NULL || kept->epoch != g->epoch ||
		    (group_is_in_row(rows[i].slice) && !group_are_near(g)))
			return -EREMOTE;
	}
	r = group_send(g, &f);
	if (r == 0)
		LIST_INSERT_HEAD(&g->batches, b, link);
	return r;
}

/* Under MUTEX. 0: the rows are in the log of the group, from b->lsn on, and it
 * is their turn. */
static int await_outcome(struct group *g, struct group_batch *b)
{
	const struct timespec until = time_after(g->patience_ns);

	while (!g->is_dead &&
	    (b->outcome == GROUP_BATCH_WAITS ||
		(b->outcome == GROUP_BATCH_COMMITTED && b->lsn > g->next_lsn)))
		group_wait(g, &until);
	LIST_REMOVE(b, link);
	if (b->outcome == GROUP_BATCH_REFUSED)
		return -EREMOTE;
	return g->is_dead ? JOURNAL_UNKNOWN : 0;
}

static int send_and_append(struct group *g, struct journal_row *rows,
    struct group_batch *b, const struct named_rows *names,
    struct commit_log_mark *mark)
{
	size_t i;
	int r;

	mutex_lock(&g->mutex);
	r = send(g, b, rows, names);
	if (r == 0)
		r = await_outcome(g, b);
	for (i = 0; r == 0 && i < names->nr; i++)
		rows[i].shared_lsn = b->lsn + i;
	if (r == 0 && append_in_turn(g, rows, names->nr, mark) != 0) {
		group_die(g, "the journal takes no row that the group has");
		r = JOURNAL_UNKNOWN;
	}
	mutex_unlock(&g->mutex);
	return r;
}

int group_append(struct group *g, struct journal_row *rows, size_t nr,
    struct commit_log_mark *mark)
{
	struct group_batch b = { .outcome = GROUP_BATCH_WAITS };
	struct named_rows names;
	int r;

	if (rows[0].shared_lsn != 0)
		return append_given(g, rows, nr, mark);
	r = names_init(&names, g, rows, nr);
	if (r == 0)
		r = send_and_append(g, rows, &b, &names, mark);
	names_done(&names);
	return r;
}

/* ---- putting off ---- */

/* LSN: the first row that may not be durable; 0: none. */
static void set_unflushed(struct group *g, uint64_t lsn)
{
	mutex_lock(&g->mutex);
	g->unflushed_lsn = lsn;
	mutex_unlock(&g->mutex);
}

/* Waiting for the mark of the last row is enough, because the journal takes no
 * row after it has lost an earlier row. So even if the journal was opened again
 * between two of the rows, all rows before the last row are there. */
int group_flush_postponed(struct group *g)
{
	if (g->put_mark.nr > 0 &&
	    commit_log_wait(g->base.host->log, &g->put_mark,
		COMMIT_LOG_DURABLE) != 0)
		return group_fail(g, "the journal can't be synced");
	g->put_mark.nr = 0;
	set_unflushed(g, 0);
	return 0;
}

/* Another thread that ends a batch counts the row as durable as soon as the
 * journal has the row (pipeline.c). So set_unflushed() excludes the row before
 * the journal gets the row. If the append fails or its outcome is unknown, the
 * earlier rows are flushed at once. After the loss of an earlier row, the
 * journal never takes a row again, and only the flush tells of this loss. */
int group_postpone(struct group *g, const struct group_input *in)
{
	struct journal_row row = { .kind = JOURNAL_WAITING,
		.shared_lsn = in->frame.row.lsn,
		.waiting_repo = in->frame.row.row.repo,
		.waiting_path = in->frame.row.row.path.data,
		.waiting_path_len = in->frame.row.row.path.len,
		.body = in->bytes,
		.len = in->len };
	struct commit_log_mark mark = { .nr = 0 };
	int r, failed = 0;

	if (g->put_mark.nr == 0)
		set_unflushed(g, row.shared_lsn);
	r = append_given(g, &row, 1, &mark);
	if (r == 0) {
		g->put_row = row;
		g->put_mark = mark;
		g->put_mark.rows = &g->put_row;
	}
	if (r != 0 || mark.is_unknown)
		failed = group_flush_postponed(g);
	return failed != 0 ? failed : r;
}
