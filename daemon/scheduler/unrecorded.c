/*
 * Happy path:
 *	add	an update was decided outside of a batch, or in a batch that
 *		committed nothing
 *	ride	goes along in the next slice of its transaction, or in any batch
 *	rode	the commit of the batch recorded the outcome
 *
 * Failure modes:
 *	the commit failed	tried once more, then dropped: later the answer
 *				for this id is never-seen, and nothing of the
 *				transaction was done
 *
 * A rejection needs no flush of its own. If its record is lost, the client may
 * send the transaction again, because nothing of a rejected transaction was
 * done.
 */
#include "daemon/scheduler/unrecorded.h"

#include <utlist.h>

#define RIDES_MAX 2

void unrecorded_add(struct txn_update *u)
{
	struct entry *ent = entry_of(u);

	/* The failure of a gate rejects nothing, because git has made the
	 * change. */
	if (u->recorded || u->status == REFD_UNKNOWN ||
	    u->txn->req.gate != REFD_GATE_NONE)
		return;
	u->next_waiting = NULL;
	if (ent->notes.first == NULL)
		ent->notes.first = u;
	else
		ent->notes.last->next_waiting = u;
	ent->notes.last = u;
	ent->notes.nr++;
}

static void drop_all(struct entry *ent)
{
	ent->notes.first = ent->notes.last = NULL;
	ent->notes.nr = 0;
}

void unrecorded_collect(struct entry *ent)
{
	size_t i;

	drop_all(ent);
	for (i = 0; i < ent->txn->nr_updates && ent->txn->nr_decided > 0; i++)
		if (ent->txn->updates[i].status != REFD_PENDING)
			unrecorded_add(&ent->txn->updates[i]);
}

/* Did the daemon put the transaction off, or leave it to git, before anything
 * was done? A session that was prepared does not count, because it has been
 * answered, and its client may still ask for the commit. */
static bool is_put_off(const struct entry *ent)
{
	const struct txn *txn = ent->txn;
	bool has_passing = false;
	size_t i;

	if (ent->prepared_ns != 0)
		return false;

	for (i = 0; i < txn->nr_updates; i++) {
		enum refd_status status = txn->updates[i].status;

		if (txn->updates[i].recorded || status == REFD_OK ||
		    status == REFD_UNKNOWN)
			return false;
		has_passing |= status == REFD_BUSY || status == REFD_DEADLINE ||
		    status == REFD_UNSUPPORTED;
	}
	return has_passing;
}

bool unrecorded_keep(struct unrecorded *unrecorded, struct entry *ent)
{
	const struct txn *txn = ent->txn;

	/* A refused transaction did nothing and was not looked up, so it gets
	 * no record. The same holds for a transaction that the daemon put off.
	 * With a record, a later attempt under the id would get this refusal
	 * for ever, and history would say "rejected" of a change that git
	 * makes. The record of an atomic transaction must hold all its updates,
	 * so a part of them is dropped. */
	if (txn->replayed || txn->refused != REFD_OK || is_put_off(ent) ||
	    (txn->req.atomic && ent->notes.nr != txn->nr_updates))
		drop_all(ent);
	if (ent->notes.nr == 0)
		return false;
	ent->notes.is_kept = true;
	DL_APPEND(unrecorded->first, ent);
	unrecorded->nr += ent->notes.nr;
	return true;
}

void unrecorded_unkeep(struct unrecorded *unrecorded, struct entry *ent)
{
	ent->notes.is_kept = false;
	DL_DELETE(unrecorded->first, ent);
	unrecorded->nr -= ent->notes.nr;
}

size_t unrecorded_nr(const struct entry *ent, size_t max)
{
	if (ent->txn->req.atomic || ent->notes.nr < max)
		return ent->notes.nr;
	return max;
}

void unrecorded_ride(struct entry *ent, struct txn_slice *slice, size_t nr)
{
	struct txn_update *u;

	while (nr-- > 0) {
		u = ent->notes.first;
		ent->notes.first = u->next_waiting;
		ent->notes.nr--;
		u->next_waiting = NULL;
		slice->updates[slice->nr++] = u;
	}
}

void unrecorded_rode(struct entry *ent, bool recorded)
{
	if (recorded)
		ent->notes.failed_rides = 0;
	else if (++ent->notes.failed_rides >= RIDES_MAX)
		drop_all(ent);
}
