/*
 * Aborts an update during recovery: notes the update for an abort record, and
 * takes back its log lines of a crashed run.
 */
#include <errno.h>

#include "daemon/store/recovery/redo.h"
#include "daemon/store/refs/loose.h"

static int retract_from_log(struct edit *e, const struct replay_row *row,
    const struct record_member *member)
{
	int r = edit_retract(e, &row->rec, member);

	return redo_is_no_log(r) ? 0 : r;
}

static int retract_locked(struct replay *rp, struct edit *e,
    const struct replay_row *row, const struct record_member *member)
{
	int r = edit_lock(e, row->rec.dir_mode);

	if (r < 0)
		return r == -EEXIST || r == -ENOTDIR ? 0 : r;
	r = retract_from_log(e, row, member);
	redo_unlock_edit(rp, e);
	loose_prune_parents(rp->sys, e->dirfd, e->name, 2);
	return r;
}

/* Takes back the log line of a crashed run, if any: the last line of the log,
 * unless the lock was gone by then and another writer added a line. */
static int retract_line(struct replay *rp, const struct replay_row *row,
    const struct record_member *member)
{
	struct edit e = redo_edit(rp, row, member->name);
	struct leftover_lock *lock;
	int r;

	if (row->evidence != EVIDENCE_CRASHED || !member->log)
		return 0;
	lock = leftover_locks_lookup(rp->leftover, row->row.token,
	    member->worktree, member->name);
	if (lock != NULL) {
		e.dirfd = lock->dirfd;
		return retract_from_log(&e, row, member);
	}
	e.dirfd = repo_open_worktree(rp->sys, rp->repo, member->worktree);
	if (e.dirfd < 0)
		return e.dirfd == -ENOENT ? 0 : e.dirfd;
	r = retract_locked(rp, &e, row, member);
	redo_close(rp, &e);
	return r;
}

int redo_abort(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status,
    const char *text)
{
	const struct record_member *m;
	size_t i;
	int r;

	r = replay_abort(rp, row, member, status, text);
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		m = &row->rec.members[i];
		if (m->index != member->index || m->status != REFD_OK)
			continue;
		row->passed[i] = true;
		r = retract_line(rp, row, m);
	}
	return r;
}
