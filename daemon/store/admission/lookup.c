/*
 * Look-up of a transaction id in the journal.
 *
 * The happy path: reads the rows of the id, slices and abort records, in the
 * order of their LSNs. An abort record comes after the aborted slice, so the
 * result of a later row replaces the result of an earlier row.
 *
 * A recorded update that refd could not finish yet is answered `unknown`
 * (deferred_has_update()).
 *
 * Failure: the answer says that the journal can't be read. A client may send a
 * transaction again after `never-seen`, so refd never takes this failure for an
 * id that was never seen.
 */
#include "daemon/store/admission/admissions_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"

/* Opens *READER, if it is not open yet. */
static bool open_reader(const struct admissions *a,
    struct journal_reader **reader)
{
	if (*reader == NULL &&
	    journal_reader_open(a->cfg->journal, reader) != 0)
		*reader = NULL;
	return *reader != NULL;
}

int lookup_rows(struct admissions *a, struct journal_reader **reader,
    int64_t uid, const struct refd_txid *txid,
    int (*cb)(void *arg, const struct journal_row *row), void *arg)
{
	uint64_t nr_ended;
	int r = -EIO;

	/* Otherwise an update that is aborted meanwhile would be `ok`. */
	do {
		nr_ended = deferred_nr_ended(a->cfg->deferred);
		if (open_reader(a, reader))
			r = journal_lookup(*reader, uid, txid, cb, arg);
	} while (r >= 0 && deferred_nr_ended(a->cfg->deferred) != nr_ended);
	return r == JOURNAL_UNKNOWN ? -EIO : r;
}

int lookup_newest(struct admissions *a, struct refd_txid *newest)
{
	int r = -EIO;

	if (open_reader(a, &a->reader))
		r = journal_newest_id(a->reader, newest);
	return r == JOURNAL_UNKNOWN ? -EIO : r;
}

#define DEFERRED_TEXT                                                          \
	"it is committed, and could not be finished yet: the daemon's log "    \
	"says why"

enum refd_status lookup_status(struct admissions *a,
    const struct journal_row *row, const struct record_member *m,
    const char **text)
{
	*text = m->text;
	if (m->status != REFD_OK ||
	    !deferred_has_update(a->cfg->deferred, row, m->index))
		return m->status;
	*text = DEFERRED_TEXT;
	return REFD_UNKNOWN;
}

struct look_up_rows {
	struct admissions *admissions;
	struct refd_answer *ans;
	bool *known; /* per update of the transaction */
	uint64_t lsn;
};

static int begin_answer(struct look_up_rows *rows, const struct record *rec)
{
	struct refd_answer *ans = rows->ans;

	if (ans->arena != NULL)
		return 0;
	ans->arena = refd_arena_new();
	if (ans->arena == NULL)
		return -ENOMEM;
	ans->results = refd_arena_array(ans->arena, rec->nr_updates,
	    sizeof(*ans->results));
	rows->known = calloc(rec->nr_updates + 1, sizeof(bool));
	if (ans->results == NULL || rows->known == NULL)
		return -ENOMEM;
	memset(ans->results, 0, rec->nr_updates * sizeof(*ans->results));
	ans->nr_updates = rec->nr_updates;
	ans->object_format = rec->object_format;
	return 0;
}

static int add_result(struct look_up_rows *rows, const struct journal_row *row,
    const struct record_member *m)
{
	struct refd_answer *ans = rows->ans;
	struct refd_result *result;
	const char *text;

	if (!m->answers || m->index >= ans->nr_updates)
		return 0;
	result = &ans->results[m->index];
	/* The first row has the name in the request, so later names are left
	 * out. */
	if (!rows->known[m->index])
		result->name =
		    refd_arena_string(ans->arena, m->name, strlen(m->name));
	result->status = lookup_status(rows->admissions, row, m, &text);
	result->has_found = m->has_found;
	result->found = m->found;
	result->text = NULL;
	if (text != NULL)
		result->text =
		    refd_arena_string(ans->arena, text, strlen(text));
	if (result->name == NULL || (text != NULL && result->text == NULL))
		return -ENOMEM;
	rows->known[m->index] = true;
	return 0;
}

static int look_up_row(void *arg, const struct journal_row *row)
{
	struct look_up_rows *rows = arg;
	struct record rec;
	uint64_t lsn;
	size_t i;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	r = begin_answer(rows, &rec);
	for (i = 0; i < rec.nr_members && r == 0; i++)
		r = add_result(rows, row, &rec.members[i]);
	lsn = replica_token_lsn(rows->admissions->cfg->replica, row);
	if (lsn > rows->lsn)
		rows->lsn = lsn;
	record_done(&rec);
	return r;
}

/* Leaves out updates without a result, and sums up. */
static void end_answer(struct look_up_rows *rows)
{
	struct refd_answer *ans = rows->ans;
	size_t i, nr = 0, ok = 0, unknown = 0;

	for (i = 0; i < ans->nr_updates; i++) {
		if (!rows->known[i])
			continue;
		ok += ans->results[i].status == REFD_OK;
		unknown += ans->results[i].status == REFD_UNKNOWN;
		ans->results[nr++] = ans->results[i];
	}
	ans->nr_results = nr;
	ans->lsn = rows->lsn;
	replica_token_log(rows->admissions->cfg->replica, ans->journal);
	ans->outcome = refd_outcome_of(ans->nr_updates, ok, unknown);
}

void lookup_answer(struct admissions *a, struct store_question *q)
{
	struct look_up_rows rows = { .admissions = a, .ans = &q->answer };
	const int64_t uid =
	    q->peer.uid == 0 ? JOURNAL_ANY_UID : (int64_t)q->peer.uid;
	struct replica_state replica;

	REPLICA(a->cfg->replica, look, &replica);
	q->answer = (struct refd_answer){ .kind = REFD_ANSWER_RESULTS,
		.txid = q->req.txid };
	if (replica.doubt != NULL) {
		question_refuse(q, REFD_IO, replica.doubt);
	} else if (lookup_rows(a, &a->query_reader, uid, &q->req.txid,
		       look_up_row, &rows) < 0) {
		question_refuse(q, REFD_IO, "the journal could not be read");
	} else if (q->answer.arena == NULL) {
		q->answer.kind = REFD_ANSWER_NEVER_SEEN;
	} else {
		end_answer(&rows);
	}
	free(rows.known);
	completions_put_question(a->cfg->completions, q);
}
