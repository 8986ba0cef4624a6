/*
 * Happy path: every update has a status. Every status becomes a result, in the
 * order of the request, and the outcome follows from the counts. In a prepared
 * session, updates without a status are ok so far.
 *
 * Failure modes: none. A failure is a status like any other.
 */
#include "daemon/scheduler/answer.h"

#include <string.h>

void answer_plain(struct refd_answer *ans, enum refd_answer_kind kind,
    const struct refd_txid *txid)
{
	memset(ans, 0, sizeof(*ans));
	ans->kind = kind;
	ans->txid = *txid;
}

void answer_refused(struct refd_answer *ans, const struct refd_txid *txid,
    enum refd_status status, const char *text)
{
	answer_plain(ans, REFD_ANSWER_REFUSED, txid);
	ans->status = status;
	ans->text = text;
}

static void result_of(struct refd_result *res, const struct txn_update *u)
{
	res->name = u->ask->name;
	res->status = u->status;
	res->has_found = u->has_found;
	res->found = u->found;
	res->text = u->text;
}

/* Returns the first update of the next part. */
static const struct txn_update *next_part(struct answer *a,
    enum refd_answer_kind kind, const struct txn *txn)
{
	size_t from = a->told, nr = txn->nr_updates - from, i;

	if (nr > ANSWER_PART)
		nr = ANSWER_PART;
	answer_plain(&a->ans, kind, &txn->req.txid);
	a->ans.is_continued = from > 0;
	a->told += nr;
	a->ans.goes_on = a->told < txn->nr_updates;
	a->ans.results = a->results;
	a->ans.nr_results = nr;
	a->ans.nr_updates = txn->nr_updates;
	a->ans.object_format = txn->req.object_format;
	for (i = 0; i < nr; i++)
		result_of(&a->results[i], &txn->updates[from + i]);
	return &txn->updates[from];
}

void answer_results(struct answer *a, const struct txn *txn,
    struct store *store, const char *text)
{
	const struct txn_update *u = next_part(a, REFD_ANSWER_RESULTS, txn);
	size_t i;

	for (i = 0; i < a->ans.nr_results; i++, u++)
		if (u->text == NULL && u->status != REFD_OK)
			a->results[i].text = text;
	a->ans.outcome = txn_outcome(txn);
	a->ans.lsn = txn->lsn;
	store_token_log(store, a->ans.journal);
}

void answer_prepared(struct answer *a, const struct txn *txn)
{
	const struct txn_update *u = next_part(a, REFD_ANSWER_PREPARED, txn);
	size_t i;

	for (i = 0; i < a->ans.nr_results; i++, u++) {
		if (u->status != REFD_PENDING)
			continue;
		a->results[i].status = REFD_OK;
		a->results[i].text = u->final_name;
	}
	a->ans.rewrites_packed = txn->rewrites_packed;
}
