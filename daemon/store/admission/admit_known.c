/*
 * Is the id of a transaction in the journal? Then the first outcome is the
 * answer.
 *
 * The happy path: the filter of recent ids has never seen the id, and nothing
 * is read. Otherwise the rows of the id are read in the order of their LSNs. A
 * later row replaces the result of an earlier row.
 *
 * What fails: the transaction is refused
 *	another transaction has the id
 *	the id was born in the future	and is in no row: the journal would
 *					have to keep the id until then
 *	the journal can't be read	the answer has nothing of the rows
 *	to the end			already read: an unread row may be an
 *					abort record
 */
#include "daemon/store/admission/admissions_internal.h"

#include <stdlib.h>
#include <string.h>

struct known_rows {
	struct admissions *admissions;
	struct txn *txn;
	bool is_known, other;
};

static int known_row(void *arg, const struct journal_row *row)
{
	struct known_rows *known = arg;
	struct txn *txn = known->txn;
	const struct record_member *m;
	struct txn_update *u;
	struct record rec;
	const char *text;
	uint64_t lsn;
	size_t i;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	known->is_known = true;
	if (rec.digest != txn->req.digest || rec.nr_updates != txn->nr_updates)
		known->other = true;
	for (i = 0; i < rec.nr_members && !known->other; i++) {
		m = &rec.members[i];
		if (!m->answers || m->index >= txn->nr_updates)
			continue;
		u = &txn->updates[m->index];
		/* An abort record has a higher LSN than the aborted record, so
		 * the last row counts. */
		free(u->text);
		u->status = lookup_status(known->admissions, row, m, &text);
		u->text = text != NULL ? strdup(text) : NULL;
		u->has_found = m->has_found;
		u->found = m->found;
		u->recorded = true;
	}
	lsn = replica_token_lsn(known->admissions->cfg->replica, row);
	if (lsn > txn->lsn)
		txn->lsn = lsn;
	record_done(&rec);
	return 0;
}

/* Resets TXN to its first state, except for the reason of the refusal. */
static bool refuse(struct txn *txn, enum refd_status status, char *why)
{
	struct txn_update *u;

	for (u = txn->updates; u < txn->updates + txn->nr_updates; u++) {
		free(u->text);
		u->text = NULL;
		u->status = REFD_PENDING;
		u->has_found = u->recorded = false;
	}
	txn->lsn = 0;
	txn->refused = status;
	txn->why = why;
	return true;
}

bool admit_is_known(struct admissions *a, struct txn *txn)
{
	struct known_rows known = { .admissions = a, .txn = txn };
	size_t i;
	int r;

	/* An id of the future would raise the filter's floor above the ids of
	 * all others. */
	if (!txn->is_from_future &&
	    txid_filter_add(&a->txid_filter, &txn->req.txid))
		return false;
	txn_lay_out(txn);
	r = lookup_rows(a, &a->reader, txn->peer.uid, &txn->req.txid, known_row,
	    &known);
	if (r < 0)
		/* The transaction may have been done before, under this id, so
		 * the outcome is unknown. */
		return refuse(txn, REFD_UNKNOWN,
		    repo_why("can't read the journal: %s", strerror(-r)));
	if (!known.is_known && txn->is_from_future)
		return refuse(txn, REFD_BADREQUEST,
		    repo_why("its transaction id was born more than an hour "
			     "after the present: check the clock of the "
			     "client and the clock of the daemon"));
	if (!known.is_known)
		return false;
	if (known.other)
		return refuse(txn, REFD_BADREQUEST,
		    repo_why("its transaction id was used before, for another "
			     "transaction"));
	txn->replayed = true;
	txn_count(txn);
	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decide(&txn->updates[i], REFD_ABORTED,
			    "the daemon stopped before its turn");
	return true;
}
