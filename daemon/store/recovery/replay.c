/*
 * Redoes the records of one repository.
 *
 * The happy path:
 *	objects	records whose object was pruned are passed over, an atomic
 *		transaction as a whole; but not in a strict recovery
 *	redo	by the format of the refs: replay_files.c, replay_stacks.c
 */
#include "daemon/store/recovery/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/redo.h"
#include "proto/lib/array.h"

/* ---- objects ---- */

/* All members of the update of member I, or of the atomic transaction. */
static void pass_over(struct replay_row *row, size_t i)
{
	const struct record_member *m = row->rec.members;
	size_t k;

	for (k = 0; k < row->rec.nr_members; k++)
		if (row->rec.atomic || m[k].index == m[i].index)
			row->passed[k] = true;
}

bool replay_is_last(const struct replay_row *row, const struct record_member *m)
{
	const struct record_member *other;
	size_t i;

	while ((row = row->next) != NULL)
		for (i = 0; i < row->rec.nr_members; i++) {
			other = &row->rec.members[i];
			if (!row->dropped[i] && other->status == REFD_OK &&
			    strcmp(other->name, m->name) == 0 &&
			    strcmp(other->worktree, m->worktree) == 0)
				return false;
		}
	return true;
}

void replay_report_lacking(struct replay *rp, const char *name)
{
	redo_report(rp, STORE_OBJECT_LACKING, name,
	    "its object is missing or damaged: run 'refd group verify "
	    "--repair', which gets it from another node");
}

/* Passes over each member whose object is missing. A strict recovery restores
 * the ref all the same, because another machine has the object, and one damaged
 * repository must not keep the daemon from serving all others. */
static void drop_pruned(struct replay *rp, struct replay_row *row)
{
	const struct record_member *m;
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++) {
		m = &row->rec.members[i];
		if (row->dropped[i] || m->status != REFD_OK ||
		    m->action != RECORD_WRITE || m->target != NULL ||
		    rp->has_object(rp->arg, rp->repo, &m->new_oid) != 0)
			continue;
		if (rp->is_strict) {
			if (replay_is_last(row, m))
				replay_report_lacking(rp, m->name);
			continue;
		}
		redo_report(rp, STORE_OBJECT_MISSING, m->name,
		    "the object was pruned since; the newest older value "
		    "whose object is there counts");
		pass_over(row, i);
	}
}

/* ---- the repository ---- */

int replay_repo(struct replay *rp, struct replay_row *rows)
{
	bool is_needed = rp->leftover->nr_locks + rp->leftover->open.nr > 0;
	struct replay_row *row;
	int r;

	for (row = rows; row != NULL; row = row->next)
		if (row->evidence != EVIDENCE_CRASHED)
			is_needed = true;
	if (rows == NULL || !is_needed)
		return 0;
	if (rp->is_other_format)
		return -EMEDIUMTYPE;
	for (row = rows; row != NULL; row = row->next)
		if (replay_row_has_failed(row))
			rp->is_memory_lost = true;
	r = redo_objects(rp, rows);
	if (r < 0)
		return r;
	for (row = rows; row != NULL; row = row->next)
		if (row->evidence != EVIDENCE_CRASHED)
			drop_pruned(rp, row);
	r = token_init(&rp->token, rp->sys, rp->repo->stage_fd, rp->token_id);
	if (r == 0)
		r = rp->has_stacks ? replay_stacks(rp, rows) :
				     replay_files(rp, rows);
	/* The token identifies a lock that could not be removed, so it stays
	 * with the lock. */
	if (!rp->token_stays)
		token_done(&rp->token);
	return r;
}

int replay_abort(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status,
    const char *text)
{
	struct replay_members *list = &rp->aborted;
	struct replay_member *grown;

	grown = array_room(list->items, list->nr, &list->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	list->items = grown;
	list->items[list->nr++] =
	    (struct replay_member){ row, member, status, text };
	return 0;
}

void replay_done(struct replay *rp)
{
	packed_snapshot_put(rp->snap);
	ref_records_free(&rp->ref_records);
	ref_records_free(&rp->older_records);
	free(rp->aborted.items);
}

bool replay_row_has_failed(const struct replay_row *row)
{
	return row->may_be_lost || (row->row.mount & JOURNAL_MOUNT_FAILED) != 0;
}

void replay_row_free(struct replay_row *row)
{
	if (row == NULL)
		return;
	record_done(&row->rec);
	free(row->dropped);
	free(row);
}
