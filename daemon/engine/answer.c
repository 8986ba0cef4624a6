/*
 * Happy path: every update has its status; each becomes a result, in input
 * order, and the outcome is counted from them. Of a session that is prepared
 * those without one are ok so far.
 *
 * Failure modes: none here; a failure is a status like any other.
 */
#include "daemon/engine/answer.h"

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

void answer_results(struct refd_answer *ans, const struct txn *txn,
    struct refd_result *results, const char *text)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		const struct txn_update *u = &txn->updates[i];

		result_of(&results[i], u);
		if (u->text == NULL && u->status != REFD_OK)
			results[i].text = text;
	}
	answer_plain(ans, REFD_ANSWER_RESULTS, &txn->req.txid);
	ans->results = results;
	ans->nr_results = ans->nr_updates = txn->nr_updates;
	ans->outcome = txn_outcome(txn);
	ans->lsn = txn->lsn;
}

void answer_prepared(struct refd_answer *ans, const struct txn *txn,
    struct refd_result *results)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		const struct txn_update *u = &txn->updates[i];

		result_of(&results[i], u);
		if (u->status != REFD_PENDING)
			continue;
		results[i].status = REFD_OK;
		results[i].text = u->final_name;
	}
	answer_plain(ans, REFD_ANSWER_PREPARED, &txn->req.txid);
	ans->results = results;
	ans->nr_results = ans->nr_updates = txn->nr_updates;
	ans->rewrites_packed = txn->rewrites_packed;
}
