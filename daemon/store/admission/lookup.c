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

/* The status for member M of ROW, and its *TEXT (borrowed). */
static enum refd_status lookup_status(struct admissions *a,
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

/* What the rows of an id tell. */
struct outcome {
	struct admissions *admissions;
	struct refd_answer *ans;
	uint64_t *digest;
};

static int begin_answer(const struct outcome *o, const struct record *rec)
{
	struct refd_answer *ans = o->ans;

	if (ans->arena != NULL)
		return 0;
	ans->arena = refd_arena_new();
	if (ans->arena == NULL)
		return -ENOMEM;
	ans->results = refd_arena_array(ans->arena, rec->nr_updates,
	    sizeof(*ans->results));
	if (ans->results == NULL)
		return -ENOMEM;
	memset(ans->results, 0, rec->nr_updates * sizeof(*ans->results));
	ans->nr_updates = rec->nr_updates;
	ans->object_format = rec->object_format;
	*o->digest = rec->digest;
	return 0;
}

static int add_result(const struct outcome *o, const struct journal_row *row,
    const struct record_member *m)
{
	struct refd_answer *ans = o->ans;
	struct refd_result *result;
	const char *text;

	if (!m->answers || m->index >= ans->nr_updates)
		return 0;
	result = &ans->results[m->index];
	/* The first row has the name in the request, so later names are left
	 * out. */
	if (result->name == NULL)
		result->name =
		    refd_arena_string(ans->arena, m->name, strlen(m->name));
	result->status = lookup_status(o->admissions, row, m, &text);
	result->has_found = m->has_found;
	result->found = m->found;
	result->text = NULL;
	if (text != NULL)
		result->text =
		    refd_arena_string(ans->arena, text, strlen(text));
	if (result->name == NULL || (text != NULL && result->text == NULL))
		return -ENOMEM;
	return 0;
}

/* Root's query finds the rows of all accounts, so the rows can come from
 * different requests with the same id. The outcomes of another request say
 * nothing about the updates of the first row. So only rows of the request of
 * the first row are taken. */
static int add_row(void *arg, const struct journal_row *row)
{
	const struct outcome *o = arg;
	bool is_same = false;
	struct record rec;
	uint64_t lsn;
	size_t i;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	r = begin_answer(o, &rec);
	if (r == 0)
		is_same = rec.digest == *o->digest &&
		    rec.nr_updates == o->ans->nr_updates;
	for (i = 0; is_same && i < rec.nr_members && r == 0; i++)
		r = add_result(o, row, &rec.members[i]);
	lsn = replica_token_lsn(o->admissions->cfg->replica, row);
	if (is_same && lsn > o->ans->lsn)
		o->ans->lsn = lsn;
	record_done(&rec);
	return r;
}

int lookup_outcome(struct admissions *a, struct journal_reader **reader,
    int64_t uid, struct refd_answer *ans, uint64_t *digest)
{
	struct outcome o = { a, ans, digest };

	return lookup_rows(a, reader, uid, &ans->txid, add_row, &o);
}

/* Leaves out updates without a result, and sums up. */
static void end_answer(struct admissions *a, struct refd_answer *ans)
{
	size_t i, nr = 0, ok = 0, unknown = 0;

	for (i = 0; i < ans->nr_updates; i++) {
		if (ans->results[i].name == NULL)
			continue;
		ok += ans->results[i].status == REFD_OK;
		unknown += ans->results[i].status == REFD_UNKNOWN;
		ans->results[nr++] = ans->results[i];
	}
	ans->nr_results = nr;
	replica_token_log(a->cfg->replica, ans->journal);
	ans->outcome = refd_outcome_of(ans->nr_updates, ok, unknown);
}

void lookup_answer(struct admissions *a, struct store_question *q)
{
	const int64_t uid =
	    q->peer.uid == 0 ? JOURNAL_ANY_UID : (int64_t)q->peer.uid;
	struct replica_state replica;
	uint64_t digest;

	REPLICA(a->cfg->replica, look, &replica);
	q->answer = (struct refd_answer){ .kind = REFD_ANSWER_RESULTS,
		.txid = q->req.txid };
	if (replica.doubt != NULL) {
		question_refuse(q, REFD_IO, replica.doubt);
	} else if (lookup_outcome(a, &a->query_reader, uid, &q->answer,
		       &digest) < 0) {
		question_refuse(q, REFD_IO, "the journal could not be read");
	} else if (q->answer.arena == NULL) {
		q->answer.kind = REFD_ANSWER_NEVER_SEEN;
	} else {
		end_answer(a, &q->answer);
	}
	completions_put_question(a->cfg->completions, q);
}
