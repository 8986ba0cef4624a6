/*
 * An atomic transaction that was committed, but could not be published as a
 * whole, because another writer took one of its names before a crash, or the
 * disk failed.
 *
 * The happy path: all names are free, and nothing happens here.
 *
 * Otherwise recovery undoes the transaction, as publish.c would have done.
 * Creations are published first, as links of their staged values. So a creation
 * on disk is one of two names of a file, and is unlinked. Or all creations are
 * in packed-refs, and are taken out. No update of an existing ref was begun,
 * because updates follow the last creation. All locks of the transaction still
 * stand, so no other writer has moved anything. The abort is recorded before
 * the locks go.
 *
 * If a lock of the transaction is missing, nothing is undone, because locks go
 * only after all names were found free. A lock file below a packed name changes
 * nothing then, because its writer would have found the name taken.
 *
 * After a power loss a creation that was taken back can be present again,
 * because the disk kept the link and lost the removal. The file is often empty.
 * Recovery deletes the file once more, unless the file is well-formed and
 * younger than our lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/recovery/redo_files.h"
#include "daemon/store/files/recovery/rule.h"

/* 1: a packed ref conflicts with the name of MEMBER, or any file is below, for
 * example a lock. */
static int is_taken(struct replay *rp, const struct leftover_lock *lock,
    const struct record_member *member)
{
	char found[REFD_PATH_MAX];
	int r = 0;

	if (member->action != RECORD_WRITE)
		return 0;
	if (lock->dirfd == rp->repo->fd)
		r = packed_find_conflict(rp->snap, member->name, found);
	return r != 0 ?
	    r :
	    loose_dir_holds_file(rp->sys, lock->dirfd, member->name);
}

/* Unlinks the creation if the link was made, that is if the staged value has
 * the same inode. A second name alone proves nothing, because people copy
 * repositories by links. */
static int unlink_creation(struct replay *rp, const struct replay_row *row,
    const struct leftover_lock *lock, const struct record_member *member)
{
	struct edit e = redo_edit(rp, row, member->name);
	struct sys_stat st;
	int r;

	e.dirfd = lock->dirfd;
	r = SYS(rp->sys, lstatat, e.dirfd, e.name, &st);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0 ||
	    !leftover_locks_is_value(rp->leftover, lock->token, st.ino))
		return r;
	e.progress = PROGRESS_LINKED;
	return edit_take_back(&e);
}

static struct leftover_lock *lock_of(struct replay *rp,
    const struct replay_row *row, size_t i)
{
	const struct record_member *m = &row->rec.members[i];

	if (row->dropped[i] || row->passed[i] || m->status != REFD_OK)
		return NULL;
	return leftover_locks_lookup(rp->leftover, row->row.token, m->worktree,
	    m->name);
}

bool redo_is_out(struct replay *rp, const struct replay_row *row)
{
	const struct record_member *m;
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++) {
		m = &row->rec.members[i];
		if (!row->dropped[i] && !row->passed[i] &&
		    m->status == REFD_OK && m->action == RECORD_WRITE &&
		    lock_of(rp, row, i) == NULL)
			return true;
	}
	return false;
}

/* Removes the creations of ROW from packed-refs. */
static int unpack_creations(struct replay *rp, const struct replay_row *row)
{
	const struct record_member *m;
	struct packed_edit *names;
	size_t i, nr = 0;
	int r = 0;

	names = calloc(row->rec.nr_members, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	for (i = 0; i < row->rec.nr_members && r >= 0; i++) {
		m = &row->rec.members[i];
		if (m->action != RECORD_WRITE || m->had_old ||
		    m->worktree[0] != '\0' || lock_of(rp, row, i) == NULL)
			continue;
		r = packed_lookup(rp->snap, m->name, NULL);
		if (r > 0)
			names[nr++].name = m->name;
	}
	if (r >= 0 && nr > 0)
		r = redo_unpack(rp, row, names, nr);
	free(names);
	return r < 0 ? r : 0;
}

int redo_undo_row(struct replay *rp, const struct replay_row *row,
    uint32_t index, const char *text)
{
	const struct record_member *m;
	struct leftover_lock *lock;
	size_t i;
	int r;

	r = unpack_creations(rp, row);
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		lock = lock_of(rp, row, i);
		if (lock != NULL && row->rec.members[i].action == RECORD_WRITE)
			r = unlink_creation(rp, row, lock,
			    &row->rec.members[i]);
	}
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		m = &row->rec.members[i];
		if (lock_of(rp, row, i) != NULL)
			r = redo_abort(rp, row, m,
			    m->index == index ? REFD_CONFLICT : REFD_ABORTED,
			    text);
	}
	return r;
}

static int undo_taken(struct replay *rp, const struct replay_row *row,
    size_t taken)
{
	redo_report(rp, STORE_DROPPED, row->rec.members[taken].name,
	    "another reference stands where its name must go; the atomic "
	    "transaction it is of is taken back");
	/* In a strict recovery the repository waits (recover_findings.c).
	 * Nothing is taken back here, because an import names refs that were
	 * there before. */
	return rp->is_strict ?
	    0 :
	    redo_undo_row(rp, row, row->rec.members[taken].index,
		redo_taken_text);
}

int redo_undo_blocked(struct replay *rp, struct replay_row *rows)
{
	struct leftover_lock *lock;
	struct replay_row *row;
	size_t i;
	int r;

	for (row = rows; row != NULL; row = row->next) {
		if (row->evidence != EVIDENCE_CRASHED || !row->rec.atomic ||
		    row->rec.nr_members < 2 || redo_is_out(rp, row))
			continue;
		for (i = 0; i < row->rec.nr_members; i++) {
			lock = lock_of(rp, row, i);
			r = lock == NULL ?
			    0 :
			    is_taken(rp, lock, &row->rec.members[i]);
			if (r > 0)
				r = undo_taken(rp, row, i);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* ---- after a power loss ---- */

/* Was the value linked for M, and not written by another writer? */
static bool is_back(const struct replay_row *row, const struct record_member *m,
    const struct loose_value *loose)
{
	return redo_is_corrupt(loose) ||
	    (rule_is_value(m, loose) &&
		loose->written_ns <= row->row.locked_at_ns);
}

/* The log belongs to this creation alone, so the log goes too. */
static int delete_restored(struct replay *rp, struct edit *e,
    const struct record_member *m, const struct loose_value *loose)
{
	static const char why[] =
	    "it was there again, of a transaction that was taken back; deleted";
	int r;

	if (redo_is_corrupt(loose))
		redo_save_and_report(rp, STORE_REDONE, e->dirfd, m->worktree,
		    m->name, why);
	else
		redo_report(rp, STORE_REDONE, m->name, why);
	r = edit_remove_log(e);
	if (r < 0 && !redo_is_no_log(r))
		return r;
	return edit_remove(e, true);
}

/* A writer that has the lock now takes care of the ref, so the ref is left
 * alone. */
static int delete_restored_locked(struct replay *rp,
    const struct replay_row *row, const struct record_member *m, struct edit *e)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	int r;

	r = redo_lock_edit(rp, e, row->rec.dir_mode);
	if (r < 0)
		return r == -EEXIST ? 0 : r;
	r = redo_read_disk(rp, e->dirfd, e->name);
	if (r == 0)
		r = edit_read(e, &loose);
	if (r == 0 && is_back(row, m, &loose))
		r = delete_restored(rp, e, m, &loose);
	loose_value_done(&loose);
	if (redo_unlock_edit(rp, e) < 0 && r == 0)
		r = -EIO;
	loose_prune_parents(rp->sys, e->dirfd, e->name, 2);
	return r;
}

static int delete_restored_member(struct replay *rp,
    const struct replay_row *row, const struct record_member *m)
{
	struct edit e = redo_edit(rp, row, m->name);
	struct sys_stat st;
	int r;

	e.dirfd = repo_open_worktree(rp->sys, rp->repo, m->worktree);
	if (e.dirfd < 0)
		return e.dirfd == -ENOENT ? 0 : e.dirfd;
	r = SYS(rp->sys, lstatat, e.dirfd, e.name, &st);
	if (r == 0 && S_ISREG(st.mode))
		r = delete_restored_locked(rp, row, m, &e);
	redo_close(rp, &e);
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
}

int redo_undo_aborted(struct replay *rp, const struct replay_row *rows)
{
	const struct record_member *m;
	const struct replay_row *row;
	size_t i;
	int r = 0;

	for (row = rows; row != NULL; row = row->next) {
		if (row->evidence == EVIDENCE_CRASHED || !row->rec.atomic)
			continue;
		for (i = 0; i < row->rec.nr_members && r == 0; i++) {
			m = &row->rec.members[i];
			if (row->dropped[i] && m->action == RECORD_WRITE &&
			    !m->had_old && m->target == NULL)
				r = delete_restored_member(rp, row, m);
		}
	}
	return r;
}
