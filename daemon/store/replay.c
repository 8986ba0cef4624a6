/*
 * Redoing records in one repository.
 *
 * The happy path:
 *	objects	records whose object was pruned are passed over, an atomic
 *		transaction's whole
 *	chains	what each ref should be, by the last record of its chain
 *	delete	deletions first: they make room for later names; one
 *		packed-refs rewrite for all of them
 *	write	the values, each under its ref's lock
 *	logs	NULs and torn tails cut, missing lines appended
 *
 * What is not redone, and said so:
 *	a well-formed loose file that is younger than our lock, or a value in
 *	packed-refs that neither the chain nor our prepare ever saw: another
 *	writer's, later
 *	a foreign lock stands: parked, to be tried again
 *	a directory or a file of another stands where the name must go: voided
 *	a worktree that is gone: never made again
 */
#include "daemon/store/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/redo.h"

/* ---- objects ---- */

static void drop_pruned(struct replay *rp, struct replay_row *row)
{
	const struct record_member *m;
	bool missing = false;
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++) {
		m = &row->rec.members[i];
		if (row->dropped[i] || m->status != REFD_OK ||
		    m->action != RECORD_WRITE ||
		    rp->has_object(rp->arg, rp->repo, &m->new_oid) != 0)
			continue;
		redo_report(rp, STORE_OBJECT_MISSING, m->name,
		    "the object was pruned since; the newest older value "
		    "whose object is there counts");
		row->dropped[i] = true;
		missing = true;
	}
	for (i = 0; missing && row->rec.atomic && i < row->rec.nr_members; i++)
		row->dropped[i] = true;
}

/* ---- the repository ---- */

/* A kill leaves only what still has its lock. */
static bool is_to_redo(struct replay *rp, const struct redo *redo)
{
	return redo->last->row->rule == REPLAY_CUT ||
	    stale_lookup(rp->stale, redo->last->row->row.token,
		redo->chain->name) != NULL;
}

static int replay_chains(struct replay *rp)
{
	struct redo *redos, redo;
	struct chain *chain, *next;
	size_t nr = 0;
	int r = 0, err;

	redos = calloc(HASH_COUNT(rp->chains) + 1, sizeof(*redos));
	if (redos == NULL)
		return -ENOMEM;
	HASH_ITER(hh, rp->chains, chain, next) {
		memset(&redo, 0, sizeof(redo));
		redo.chain = chain;
		redo.last = &chain->links[chain->nr - 1];
		redo.dirfd = -1;
		if (redo.last->member->action == RECORD_DELETE &&
		    is_to_redo(rp, &redo))
			redos[nr++] = redo;
	}
	r = redo_deletions(rp, redos, nr);
	free(redos);
	HASH_ITER(hh, rp->chains, chain, next) {
		memset(&redo, 0, sizeof(redo));
		redo.chain = chain;
		redo.last = &chain->links[chain->nr - 1];
		redo.dirfd = -1;
		if (redo.last->member->action == RECORD_DELETE ||
		    !is_to_redo(rp, &redo))
			continue;
		err = redo_one_write(rp, &redo);
		if (err < 0)
			r = err;
	}
	return r;
}

/* Is M the first of its worktree that has a line for HEAD's log? */
static bool begins_worktree(const struct replay_row *rows,
    const struct record_member *m)
{
	const struct record_member *other;
	size_t i;

	for (; rows != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++) {
			other = &rows->rec.members[i];
			if (other == m)
				return true;
			if (other->status == REFD_OK &&
			    other->action == RECORD_LOG &&
			    strcmp(other->worktree, m->worktree) == 0)
				return false;
		}
	return true;
}

static int replay_heads(struct replay *rp, const struct replay_row *rows)
{
	const struct record_member *m;
	const struct replay_row *row;
	int r = 0, err, fd;
	size_t i;

	for (row = rows; row != NULL; row = row->next)
		for (i = 0; i < row->rec.nr_members; i++) {
			m = &row->rec.members[i];
			if (m->status != REFD_OK || m->action != RECORD_LOG ||
			    !begins_worktree(rows, m))
				continue;
			fd = repo_open_worktree(rp->sys, rp->repo, m->worktree);
			err = fd < 0 ? 0 : redo_head(rp, rows, m->worktree, fd);
			if (fd >= 0 && fd != rp->repo->fd)
				SYS(rp->sys, close, fd);
			r = err < 0 ? err : r;
		}
	return r;
}

static int take_snapshot(struct replay *rp)
{
	int r;

	r = packed_snapshot(rp->repo->packed, &rp->snap);
	if (r != -EBADMSG)
		return r;
	/* Kept aside as evidence; what it held that the journal does not know
	 * can't be told from here. */
	r = SYS(rp->sys, renameat, rp->repo->fd, "packed-refs",
	    rp->repo->refd_fd, "packed-refs.corrupt");
	redo_report(rp, STORE_FAILED, "packed-refs",
	    "malformed; kept as refd/packed-refs.corrupt");
	return r < 0 ? r : packed_snapshot(rp->repo->packed, &rp->snap);
}

int replay_repo(struct replay *rp, struct replay_row *rows)
{
	struct replay_row *row;
	bool cut = false;
	int r;

	for (row = rows; row != NULL; row = row->next) {
		cut = cut || row->rule == REPLAY_CUT;
		if (row->rule == REPLAY_CUT)
			drop_pruned(rp, row);
	}
	if (!cut && rp->stale->nr_locks == 0)
		return 0;
	r = token_init(&rp->token, rp->sys, rp->repo->stage_fd, rp->token_id);
	if (r == 0)
		r = take_snapshot(rp);
	if (r == 0)
		r = redo_undo_blocked(rp, rows);
	if (r == 0)
		r = chains_build(&rp->chains, rows);
	if (r == 0)
		r = replay_chains(rp);
	if (r == 0)
		r = replay_heads(rp, rows);
	token_done(&rp->token);
	return r;
}

void replay_done(struct replay *rp)
{
	packed_snapshot_put(rp->snap);
	chains_free(&rp->chains);
	free(rp->parked.items);
	free(rp->voided.items);
}

void replay_row_free(struct replay_row *row)
{
	if (row == NULL)
		return;
	record_done(&row->rec);
	free(row->dropped);
	free(row);
}
