/*
 * Redoes all deletions of a repository together: every ref's lock first, then
 * the lock of packed-refs (unless none of the refs is present), and one rewrite
 * for all packed refs; then logs, loose files and locks. Without the lock, a
 * git that packs refs would pack a loose file again until the file is gone.
 *
 * Failures: as in redo_file.c, per ref. If packed-refs cannot be locked or
 * rewritten, the refs that are present fail. A name below a present file cannot
 * be locked, and cannot be loose, so this name is only removed from
 * packed-refs.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/recovery/redo_files.h"

/* 1: present; 0: absent; or negative errno. */
static int find_packed(const struct replay *rp, const struct redo *redo)
{
	return redo->edit.dirfd == rp->repo->fd ?
	    packed_lookup(rp->snap, redo->records->name, NULL) :
	    0;
}

static int begin_delete(struct replay *rp, struct redo *redo)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	int r, packed = 0;

	r = redo_begin(rp, redo, &loose);
	redo->deletes_loose =
	    r > 0 && loose.kind != LOOSE_ABSENT && loose.kind != LOOSE_DIR;
	redo->is_corrupt = redo->deletes_loose && redo_is_corrupt(&loose);
	if (r > 0)
		packed = find_packed(rp, redo);
	redo->in_packed = packed > 0;
	loose_value_done(&loose);
	return packed < 0 ? packed : r;
}

static int finish_delete(struct replay *rp, struct redo *redo)
{
	int r;

	r = redo_log(rp, redo);
	if (r == 0 && redo->is_corrupt)
		redo_save_and_report(rp, redo_finding(redo), redo->edit.dirfd,
		    redo->records->worktree, redo->records->name,
		    "it was there again, empty or broken; deleted");
	if (r == 0 && redo->deletes_loose)
		r = edit_remove(&redo->edit, true);
	if (r == 0 && !redo->is_corrupt &&
	    (redo->deletes_loose || redo->in_packed))
		redo_report(rp, redo_finding(redo), redo->records->name,
		    "it was there again; deleted");
	return r;
}

int redo_lock_packed(struct replay *rp, mode_t dir_mode)
{
	int r = token_lock(&rp->token, rp->repo->fd, "packed-refs", dir_mode);

	if (r == -EEXIST && redo_clear_dead(rp, rp->repo->fd, "packed-refs"))
		r = token_lock(&rp->token, rp->repo->fd, "packed-refs",
		    dir_mode);
	return r;
}

/* HELD: the lock of a crashed run, if any. */
static int lock_packed(struct replay *rp, const struct leftover_lock *held,
    const struct record *rec)
{
	return held != NULL ? 0 : redo_lock_packed(rp, rec->dir_mode);
}

static int unlock_packed(struct replay *rp, struct leftover_lock *held)
{
	if (held != NULL)
		return leftover_locks_unlock(rp->leftover, held);
	return redo_unlock_own(rp, rp->repo->fd, "packed-refs");
}

/* Under packed-refs' lock. The lines that stay are as old as before, so the
 * time of the former file counts. */
static int rewrite_packed(struct replay *rp, struct packed_edit *names,
    size_t nr, mode_t mode)
{
	int64_t packed_ns = 0;
	int r;

	r = redo_look_again(rp);
	if (r == 0) {
		packed_ns = rp->packed_ns;
		r = packed_rewrite(rp->repo->packed, names, nr, mode);
	}
	if (r == 0)
		r = redo_look_again(rp);
	if (r == 0)
		rp->packed_ns = packed_ns;
	return r;
}

int redo_unpack(struct replay *rp, const struct replay_row *row,
    struct packed_edit *names, size_t nr)
{
	struct leftover_lock *held = leftover_locks_lookup(rp->leftover,
	    row->row.token, "", "packed-refs");
	int r;

	r = lock_packed(rp, held, &row->rec);
	if (r < 0)
		return r;
	r = rewrite_packed(rp, names, nr, row->rec.file_mode);
	if (unlock_packed(rp, held) < 0 && r == 0)
		r = -EIO;
	return r;
}

/* The lock of packed-refs by a batch of REDOS, if any. */
static struct leftover_lock *held_lock(struct replay *rp,
    const struct redo *redos, size_t nr)
{
	struct leftover_lock *held = NULL;
	size_t i;

	for (i = 0; i < nr && held == NULL; i++)
		held = leftover_locks_lookup(rp->leftover,
		    redos[i].last->row->row.token, "", "packed-refs");
	return held;
}

/* Under packed-refs' lock, so nobody packs any more. */
static int delete_packed(struct replay *rp, struct redo *redos,
    const int *states, size_t nr)
{
	struct packed_edit *names;
	size_t i, k = 0;
	int r;

	names = calloc(nr, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	r = redo_look_again(rp);
	for (i = 0; i < nr && r == 0; i++) {
		if (states[i] > 0)
			r = find_packed(rp, &redos[i]);
		redos[i].in_packed = r > 0;
		r = r < 0 ? r : 0;
		if (redos[i].in_packed)
			names[k++].name = redos[i].records->name;
	}
	if (r == 0 && k > 0)
		r = rewrite_packed(rp, names, k,
		    redos[0].last->row->rec.file_mode);
	free(names);
	return r;
}

static bool is_there(const struct redo *redo)
{
	return redo->deletes_loose || redo->in_packed;
}

static bool any_is_there(const struct redo *redos, size_t nr)
{
	size_t i = 0;

	while (i < nr && !is_there(&redos[i]))
		i++;
	return i < nr;
}

/* STATE is the result of begin_delete(). ERR: packed-refs could not be locked
 * or rewritten. */
static int end_delete(struct replay *rp, struct redo *redo, int state, int err)
{
	if (state > 0)
		state =
		    err < 0 && is_there(redo) ? err : finish_delete(rp, redo);
	else if (state == 0)
		state = redo_log_of_left(rp, redo);
	return redo_end_and_prune(rp, redo, state);
}

int redo_deletions(struct replay *rp, struct redo *redos, size_t nr)
{
	struct leftover_lock *held;
	bool locks = false;
	int r = 0, err = 0, *states;
	size_t i;

	if (nr == 0)
		return 0;
	states = calloc(nr, sizeof(*states));
	if (states == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		states[i] = begin_delete(rp, &redos[i]);
	held = held_lock(rp, redos, nr);
	if (any_is_there(redos, nr)) {
		err = lock_packed(rp, held, &redos[0].last->row->rec);
		locks = err == 0;
	}
	if (locks)
		err = delete_packed(rp, redos, states, nr);
	for (i = 0; i < nr; i++) {
		states[i] = end_delete(rp, &redos[i], states[i], err);
		if (states[i] < 0)
			r = states[i];
	}
	if (locks && unlock_packed(rp, held) < 0 && r == 0)
		r = -EIO;
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
	/* All earlier locks are gone, and stage/ is empty, so the name of the
	 * token is free again. */
	rp->token_stays = false;
	r = token_init(&rp->token, rp->sys, rp->repo->stage_fd, rp->token_id);
	if (r == 0)
		r = redo_lock_packed(rp, 0777);
	if (r == 0) {
		r = SYS(rp->sys, unlinkat, rp->repo->fd, fresh);
		if (redo_unlock_own(rp, rp->repo->fd, "packed-refs") < 0)
			r = -EIO;
	}
	if (!rp->token_stays)
		token_done(&rp->token);
	/* The file belongs to the holder of the lock, so it may stay. */
	return r == -EEXIST || r == -ENOENT ? 0 : r;
}
