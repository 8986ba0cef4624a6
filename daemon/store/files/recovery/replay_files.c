/*
 * Redoes the records of one repository whose refs are in files.
 *
 * The happy path:
 *	undo	creations that were taken back before the power loss, and are
 *		present again
 *	records	the last record of each file decides
 *	locks	after a crash, locks that somebody removed are taken again
 *	delete	deletions first: they make room for later names; one
 *		packed-refs rewrite for all
 *	write	the values, each under its ref's lock, and its log: NULs and
 *		torn tails cut, missing lines appended
 *	logs	of files that got only log lines
 *
 * If recovery stops and begins again, an earlier value in the file would be
 * younger than our lock, and would look foreign. So only the last value is
 * written.
 *
 * Not redone, but reported:
 *	a well-formed loose file younger than our lock, or a value in
 *	packed-refs that neither the records nor our prepare ever saw:
 *	another writer's, later
 *	a foreign lock stands: deferred, to be tried again
 *	another writer's directory, file or packed ref stands where the name
 *	must go: aborted, with all other files of the update
 *	a worktree that is gone: never made again
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/files/recovery/redo_files.h"
#include "daemon/store/recovery/saved.h"

static bool is_deletion(const struct redo *redo)
{
	return redo->value != NULL &&
	    redo->value->member->action == RECORD_DELETE;
}

static int replay_deletions(struct replay *rp)
{
	struct ref_records *records, *next;
	struct redo *redos;
	size_t nr = 0;
	int r;

	redos = calloc(HASH_COUNT(rp->ref_records) + 1, sizeof(*redos));
	if (redos == NULL)
		return -ENOMEM;
	HASH_ITER(hh, rp->ref_records, records, next)
		if (redo_init(&redos[nr], rp, records) &&
		    is_deletion(&redos[nr]))
			nr++;
	r = redo_deletions(rp, redos, nr);
	free(redos);
	return r;
}

/* If the name of an update was taken, HEAD's log must not get a line either, so
 * files that only get log lines come last. */
static int replay_writes(struct replay *rp, bool with_log_only)
{
	struct ref_records *records, *next;
	struct redo redo;
	int r = 0, err;

	HASH_ITER(hh, rp->ref_records, records, next) {
		if (rp->stepped != NULL &&
		    records->has_log_only == with_log_only)
			rp->stepped(rp->step_arg, records->nr);
		if (records->has_log_only != with_log_only ||
		    !redo_init(&redo, rp, records) || is_deletion(&redo))
			continue;
		err = redo.value != NULL ? redo_one_write(rp, &redo) :
					   redo_log_alone(rp, &redo);
		if (err < 0)
			r = err;
	}
	return r;
}

static int replay_refs(struct replay *rp)
{
	int r, err;

	r = replay_deletions(rp);
	err = replay_writes(rp, false);
	r = err < 0 ? err : r;
	err = replay_writes(rp, true);
	return err < 0 ? err : r;
}

/* Takes the present packed-refs. A power loss may have torn any line, so all
 * lines are checked. -EBADMSG: malformed. */
static int look(struct replay *rp)
{
	int r = redo_look_again(rp);

	return r == 0 ? packed_check(rp->snap) : r;
}

/* Saves packed-refs as evidence, because the journal cannot tell all its lost
 * refs. */
static int save(struct replay *rp)
{
	char path[SAVED_PATH_MAX];
	const struct store_found found = { .finding = STORE_CORRUPT,
		.repo = rp->repo->path,
		.ref = "packed-refs",
		.text = "malformed; what it held that the journal does not "
			"know is to be looked for there",
		.evidence = path };
	int r = saved_move(rp->sys, rp->repo, "packed-refs", path);

	if (r == 0)
		rp->report->found(rp->report->arg, &found);
	rp->packed_lost_ns = INT64_MAX;
	return r;
}

/* Saves a malformed packed-refs, under its lock. Another writer that holds the
 * lock may be about to replace the file, so then the repository waits. The file
 * may also have been replaced before this lock was taken, so look() is
 * repeated, and a good file stays. */
static int save_malformed(struct replay *rp)
{
	int r = redo_lock_packed(rp, 0777);

	if (r == -EEXIST)
		return -EBUSY;
	if (r < 0)
		return r;
	r = look(rp);
	if (r == -EBADMSG)
		r = save(rp);
	if (redo_unlock_own(rp, rp->repo->fd, "packed-refs") < 0 && r == 0)
		r = -EIO;
	return r;
}

/* An empty packed-refs has lost its contents too. An interrupted replay has
 * already moved a malformed file away, so the time of the move counts. */
static int64_t packed_lost_ns(struct replay *rp)
{
	struct sys_stat st;
	int r;

	r = SYS(rp->sys, lstatat, rp->repo->fd, "packed-refs", &st);
	if (r == 0 ? st.size == 0 : r != -ENOENT)
		return INT64_MAX;
	return saved_packed_ns(rp->sys, rp->repo);
}

static int take_snapshot(struct replay *rp)
{
	int r;

	r = redo_read_disk(rp, rp->repo->fd, "packed-refs");
	if (r < 0)
		return r;
	rp->packed_lost_ns = packed_lost_ns(rp);
	r = look(rp);
	if (r != -EBADMSG)
		return r;
	if (rp->is_strict) {
		redo_report(rp, STORE_CORRUPT, "packed-refs",
		    "malformed, and the journal does not know all its refs; "
		    "not moved aside");
		return -ENOTRECOVERABLE;
	}
	r = save_malformed(rp);
	return r < 0 ? r : redo_look_again(rp);
}

int replay_files(struct replay *rp, struct replay_row *rows)
{
	int r;

	r = redo_undo_aborted(rp, rows);
	if (r == 0)
		r = take_snapshot(rp);
	if (r == 0)
		r = ref_records_build(&rp->ref_records, rows);
	if (r == 0)
		r = redo_unlocked(rp, rows);
	if (r == 0)
		r = redo_undo_blocked(rp, rows);
	if (r == 0)
		r = ref_records_build(&rp->older_records, rp->older);
	if (r == 0)
		r = replay_refs(rp);
	return r;
}
