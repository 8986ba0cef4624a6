/*
 * Happy path:
 *	add	an update was decided outside of a window, or in one that did
 *		not commit anything
 *	ride	in the next part of its own transaction, else in any window
 *	rode	the window's commit recorded it
 *
 * Failure modes:
 *	the commit failed	rides once more, then it is given up: asked
 *				again, such an id is never-seen, and nothing
 *				of it was done
 */
#include "daemon/scheduler/notes.h"

#include <utlist.h>

#define RIDES_MAX 2

void notes_add(struct txn_update *u)
{
	struct entry *ent = entry_of(u);

	if (u->recorded || u->status == REFD_UNKNOWN)
		return;
	u->next_waiting = NULL;
	if (ent->notes == NULL)
		ent->notes = u;
	else
		ent->last_note->next_waiting = u;
	ent->last_note = u;
	ent->nr_notes++;
}

static void drop_all(struct entry *ent)
{
	ent->notes = ent->last_note = NULL;
	ent->nr_notes = 0;
}

void notes_collect(struct entry *ent)
{
	size_t i;

	drop_all(ent);
	for (i = 0; i < ent->txn->nr_updates && ent->txn->nr_decided > 0; i++)
		if (ent->txn->updates[i].status != REFD_PENDING)
			notes_add(&ent->txn->updates[i]);
}

bool notes_keep(struct notes *notes, struct entry *ent)
{
	const struct txn *txn = ent->txn;

	/* Refused as a whole: nothing was looked up or done under its id. An
	 * atomic one's part must be all of it or nothing. */
	if (txn->replayed || txn->refused != REFD_OK ||
	    (txn->req.atomic && ent->nr_notes != txn->nr_updates))
		drop_all(ent);
	if (ent->nr_notes == 0)
		return false;
	ent->is_kept = true;
	DL_APPEND(notes->first, ent);
	notes->nr += ent->nr_notes;
	return true;
}

void notes_unkeep(struct notes *notes, struct entry *ent)
{
	ent->is_kept = false;
	DL_DELETE(notes->first, ent);
	notes->nr -= ent->nr_notes;
}

size_t notes_nr(const struct entry *ent, size_t max)
{
	if (ent->txn->req.atomic || ent->nr_notes < max)
		return ent->nr_notes;
	return max;
}

void notes_ride(struct entry *ent, struct txn_part *part, size_t nr)
{
	struct txn_update *u;

	while (nr-- > 0) {
		u = ent->notes;
		ent->notes = u->next_waiting;
		ent->nr_notes--;
		u->next_waiting = NULL;
		part->updates[part->nr++] = u;
	}
}

void notes_rode(struct entry *ent, bool recorded)
{
	if (recorded)
		ent->failed_rides = 0;
	else if (++ent->failed_rides >= RIDES_MAX)
		drop_all(ent);
}
