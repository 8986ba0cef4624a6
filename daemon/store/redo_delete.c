/*
 * Redoing deletions, all of a repository at once: every ref's lock first,
 * then one packed-refs rewrite under its lock for those that are packed
 * again, then logs, loose files and locks.
 *
 * What fails: as in redo.c, each for itself; a packed-refs that can't be
 * rewritten fails those that are in it. A name below what is a file by now
 * can't be locked, nor be there loose: it is only taken out of packed-refs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/loose.h"
#include "daemon/store/redo.h"

static int begin_delete(struct replay *rp, struct redo *redo)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	struct refd_oid packed;
	int r;

	r = redo_begin(rp, redo, &loose);
	redo->deletes_loose =
	    r > 0 && loose.kind != LOOSE_ABSENT && loose.kind != LOOSE_DIR;
	redo->is_corrupt = redo->deletes_loose && redo_is_corrupt(&loose);
	redo->in_packed = r > 0 && redo->dirfd == rp->repo->fd &&
	    packed_lookup(rp->snap, redo->chain->name, &packed);
	loose_value_done(&loose);
	return r;
}

static int finish_delete(struct replay *rp, struct redo *redo)
{
	int r;

	r = redo_log(rp, redo);
	if (r == 0 && redo->is_corrupt)
		redo_report_lost(rp, redo_finding(redo), redo->dirfd,
		    redo->chain->worktree, redo->chain->name,
		    "it was there again, empty or broken; deleted");
	if (r == 0 && redo->deletes_loose)
		r = SYS(rp->sys, unlinkat, redo->dirfd, redo->chain->name);
	if (r == 0 && !redo->is_corrupt &&
	    (redo->deletes_loose || redo->in_packed))
		redo_report(rp, redo_finding(redo), redo->chain->name,
		    "it was there again; deleted");
	return r == -ENOENT ? 0 : r;
}

static int by_name(const void *va, const void *vb)
{
	const struct packed_edit *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

static int rewrite(struct replay *rp, const struct packed_edit *names,
    size_t nr, const struct record *rec)
{
	bool changed;
	int r;

	r = packed_rewrite_begin(rp->repo->packed, names, nr, rec->file_mode,
	    true, &changed);
	if (r < 0 || !changed)
		return r;
	r = packed_rewrite_finish(rp->repo->packed);
	if (r < 0)
		packed_rewrite_abandon(rp->repo->packed);
	return r;
}

/* The lock may be one that a killed run left, HELD. */
static int rewrite_locked(struct replay *rp, struct stale_lock *held,
    const struct packed_edit *names, size_t nr, const struct record *rec)
{
	int r;

	if (held != NULL) {
		r = rewrite(rp, names, nr, rec);
		stale_unlock(rp->stale, held);
		return r;
	}
	r = token_lock(&rp->token, rp->repo->fd, "packed-refs", rec->dir_mode);
	if (r < 0)
		return r;
	r = rewrite(rp, names, nr, rec);
	redo_unlock_own(rp, rp->repo->fd, "packed-refs");
	return r;
}

int redo_unpack(struct replay *rp, const struct replay_row *row,
    const struct packed_edit *names, size_t nr)
{
	struct stale_lock *held =
	    stale_lookup(rp->stale, row->row.token, "", "packed-refs");
	struct packed_snapshot *snap;
	int r;

	r = rewrite_locked(rp, held, names, nr, &row->rec);
	if (r == 0)
		r = packed_snapshot(rp->repo->packed, &snap);
	if (r < 0)
		return r;
	packed_snapshot_put(rp->snap);
	rp->snap = snap;
	return 0;
}

/* If that was one of these. */
static struct stale_lock *held_lock(struct replay *rp, const struct redo *redos,
    size_t nr)
{
	struct stale_lock *held = NULL;
	size_t i;

	for (i = 0; i < nr && held == NULL; i++)
		held = stale_lookup(rp->stale, redos[i].last->row->row.token,
		    "", "packed-refs");
	return held;
}

static int delete_packed(struct replay *rp, struct redo *redos, size_t nr)
{
	struct packed_edit *names;
	size_t i, k = 0;
	int r = 0;

	names = calloc(nr, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		if (redos[i].in_packed)
			names[k++].name = redos[i].chain->name;
	if (k > 0) {
		qsort(names, k, sizeof(*names), by_name);
		r = rewrite_locked(rp, held_lock(rp, redos, nr), names, k,
		    &redos[0].last->row->rec);
	}
	free(names);
	return r;
}

int redo_deletions(struct replay *rp, struct redo *redos, size_t nr)
{
	int r = 0, err, *states;
	size_t i;

	if (nr == 0)
		return 0;
	states = calloc(nr, sizeof(*states));
	if (states == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		states[i] = begin_delete(rp, &redos[i]);
	err = delete_packed(rp, redos, nr);
	for (i = 0; i < nr; i++) {
		if (states[i] > 0)
			states[i] = err < 0 && redos[i].in_packed ?
			    err :
			    finish_delete(rp, &redos[i]);
		else if (states[i] == 0)
			states[i] = redo_log_of_left(rp, &redos[i]);
		if (states[i] < 0)
			states[i] = redo_failed(rp, &redos[i], states[i]);
		if (redo_unlock(rp, &redos[i]) < 0 && states[i] == 0)
			states[i] = -EIO;
		if (redos[i].dirfd >= 0)
			loose_prune_parents(rp->sys, redos[i].dirfd,
			    redos[i].chain->name, 2);
		redo_close(rp, &redos[i]);
		if (states[i] < 0)
			r = states[i];
	}
	free(states);
	return r;
}

int redo_sweep_packed(struct replay *rp)
{
	static const char fresh[] = "packed-refs.new";
	struct sys_stat st;
	int r;

	r = SYS(rp->sys, lstatat, rp->repo->fd, fresh, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = token_init(&rp->token, rp->sys, rp->repo->stage_fd, rp->token_id);
	if (r == 0)
		r = token_lock(&rp->token, rp->repo->fd, "packed-refs", 0777);
	if (r == 0) {
		r = SYS(rp->sys, unlinkat, rp->repo->fd, fresh);
		if (redo_unlock_own(rp, rp->repo->fd, "packed-refs") < 0)
			r = -EIO;
	}
	if (!rp->token_stays)
		token_done(&rp->token);
	/* Whose lock it is, his is the file. */
	return r == -EEXIST || r == -ENOENT ? 0 : r;
}
