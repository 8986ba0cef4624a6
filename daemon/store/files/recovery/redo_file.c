/*
 * Redoes one file: takes its lock, decides whether another writer wrote the ref
 * later, writes the value. replay_files.c states the order and the reasons.
 *
 * The happy path: lock, compare, write if different, then the log.
 *
 * Failures: a foreign lock defers the records. A name that another writer took
 * aborts the update, and no log line may tell of an update that did not happen.
 * A removed worktree must stay removed, so it is never made again. Any other
 * error is reported, and returned after the remaining refs of the repository,
 * because they can be redone all the same.
 */
#include "daemon/store/files/recovery/redo_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/recovery/saved.h"

const char redo_taken_text[] =
    "another reference stood where its name had to go";

void redo_save_and_report(struct replay *rp, enum store_finding finding,
    int dirfd, const char *worktree, const char *name, const char *text)
{
	char path[SAVED_PATH_MAX];
	struct store_found found = { .finding = finding,
		.repo = rp->repo->path,
		.ref = name,
		.text = text };

	if (saved_link(rp->sys, rp->repo, dirfd, worktree, name, path) == 0)
		found.evidence = path;
	rp->report->found(rp->report->arg, &found);
}

struct edit redo_edit(struct replay *rp, const struct replay_row *row,
    const char *name)
{
	return (struct edit){ .sys = rp->sys,
		.token = &rp->token,
		.name = name,
		.dirfd = -1,
		.format = row->rec.object_format,
		.evidence = row->evidence };
}

bool redo_is_out_of_reach(int err)
{
	return err == -EEXIST || err == -ENOTDIR || err == -ELOOP;
}

int redo_lock_edit(struct replay *rp, struct edit *e, mode_t dir_mode)
{
	int r = edit_lock(e, dir_mode);

	if (r == -EEXIST && redo_clear_dead(rp, e->dirfd, e->name))
		r = edit_lock(e, dir_mode);
	return r;
}

int redo_unlock_edit(struct replay *rp, struct edit *e)
{
	int r = edit_unlock(e);

	rp->token_stays = rp->token_stays || r < 0;
	return r;
}

int redo_unlock_own(struct replay *rp, int dirfd, const char *name)
{
	int r;

	r = token_unlock(&rp->token, dirfd, name);
	rp->token_stays = rp->token_stays || r < 0;
	return r;
}

/* The last deletion has removed the log with all lines before. */
static size_t first_line(const struct ref_records *records)
{
	size_t i = records->nr;

	while (i > 0 && records->items[i - 1].member->action != RECORD_DELETE)
		i--;
	return i;
}

/* Defers every record that nobody else finishes, because later records may need
 * log lines of their own. */
void redo_defer(const struct redo *redo, bool are_lines)
{
	const struct ref_records *records = redo->records;
	const struct ref_record *item;
	size_t i, k;

	for (i = are_lines ? first_line(records) : 0; i < records->nr; i++) {
		item = &records->items[i];
		k = (size_t)(item->member - item->row->rec.members);
		if (item->row->passed[k] ||
		    (item->row->evidence == EVIDENCE_CRASHED &&
			(item != redo->last || redo->held == NULL)))
			continue;
		if (are_lines)
			item->row->line_deferred[k] = item->member->log;
		else
			item->row->deferred[k] = true;
	}
}

/* ---- aborting an update ---- */

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
		return redo_is_out_of_reach(r) ? 0 : r;
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

/* ---- failures ---- */

/* Does a directory without refs stand where the value must go? Only a lock of
 * another writer can be in there, perhaps of a dead writer. After a crash this
 * does not count: the value was not published, and the live path would have
 * given up the update, too. */
static bool is_below_only_a_lock(struct replay *rp, const struct redo *redo,
    int err)
{
	char *below = NULL;
	int r;

	if ((err != -EISDIR && err != -ENOTEMPTY) || redo->value == NULL ||
	    redo->value->row->evidence == EVIDENCE_CRASHED)
		return false;
	r = loose_find_below(rp->sys, redo->edit.dirfd, redo->records->name,
	    &below);
	free(below);
	return r == 0;
}

static void report(struct replay *rp, const struct redo *redo,
    enum store_finding finding, const char *text)
{
	if (redo->value == NULL)
		redo_report_line(rp, finding, redo->records->name, text);
	else
		redo_report(rp, finding, redo->records->name, text);
}

/* Decides after ERR stopped REDO: deferred, aborted, left (0), or ERR. In a
 * strict recovery, a ref that has its value must not be deferred, so only its
 * log lines are deferred. In all other cases the records are deferred as they
 * are. */
static int decide_failed(struct replay *rp, struct redo *redo, int err)
{
	const bool are_lines = rp->is_strict && redo->value == NULL;
	const char *name = redo->records->name;

	if (is_below_only_a_lock(rp, redo, err))
		err = -EEXIST;
	switch (err) {
	case -EEXIST:
		redo_report_locked(rp, name, redo->value == NULL);
		redo_defer(redo, are_lines);
		return 0;
	case -ELOOP:
		report(rp, redo, STORE_DEFERRED,
		    "a directory on the way is a symbolic link by now; tried "
		    "again later");
		redo_defer(redo, are_lines);
		return 0;
	case -ENOTDIR:
	case -EISDIR:
	case -ENOTEMPTY:
		report(rp, redo,
		    redo->value != NULL ? STORE_DROPPED : STORE_LEFT,
		    "another reference stands where its name must go");
		return redo->value == NULL ?
		    0 :
		    redo_abort(rp, redo->value->row, redo->value->member,
			REFD_CONFLICT, redo_taken_text);
	case -ENOENT:
		if (redo->edit.dirfd >= 0)
			break;
		report(rp, redo, STORE_DROPPED, "its worktree is gone");
		return 0;
	}
	report(rp, redo, STORE_FAILED, strerror(-err));
	return err;
}

/* ---- one file ---- */

/* After a crash only records with a standing lock are unfinished. A standing
 * lock belongs to the last record, so all earlier values are published. */
bool redo_init(struct redo *redo, struct replay *rp,
    struct ref_records *records)
{
	size_t i;

	memset(redo, 0, sizeof(*redo));
	redo->records = records;
	redo->last = ref_records_last(records);
	if (redo->last == NULL)
		return false;
	redo->edit = redo_edit(rp, redo->last->row, records->name);
	redo->held = leftover_locks_lookup(rp->leftover,
	    redo->last->row->row.token, records->worktree, records->name);
	if (redo->held != NULL) {
		redo->edit.progress = PROGRESS_LOCKED;
		redo->edit.is_earlier = true;
	}
	redo->value = ref_records_value(records);
	if (redo->value != NULL &&
	    redo->value->row->evidence == EVIDENCE_CRASHED &&
	    (redo->value != redo->last || redo->held == NULL))
		redo->value = NULL;
	if (redo->value != NULL || redo->held != NULL)
		return true;
	for (i = 0; i < records->nr; i++)
		if (records->items[i].row->evidence != EVIDENCE_CRASHED)
			return true;
	return false;
}

/* 0; -ENOENT: the worktree is gone. */
static int open_place(struct replay *rp, struct redo *redo)
{
	redo->edit.dirfd =
	    repo_open_worktree(rp->sys, rp->repo, redo->records->worktree);
	return redo->edit.dirfd < 0 ? redo->edit.dirfd : 0;
}

void redo_close(struct replay *rp, const struct edit *e)
{
	if (e->dirfd >= 0 && e->dirfd != rp->repo->fd)
		SYS(rp->sys, close, e->dirfd);
}

int redo_lock(struct replay *rp, struct redo *redo)
{
	int r;

	rp->lock_stays = NULL;
	r = open_place(rp, redo);
	if (r == 0)
		r = loose_stays_inside(rp->sys, redo->edit.dirfd,
		    redo->records->name);
	if (r < 0 || redo->held != NULL)
		return r;
	return redo_lock_edit(rp, &redo->edit, redo->last->row->rec.dir_mode);
}

/* A lock of an earlier run goes with leftover_locks_clean(). */
static int unlock(struct replay *rp, struct redo *redo)
{
	redo->held = NULL;
	return redo_unlock_edit(rp, &redo->edit);
}

/* Was the value in packed-refs before our lock was taken? Yes if the records
 * know the value. Yes also if packed-refs is older than our lock, because a
 * power loss can bring an older file back that another writer had replaced. */
static bool packed_is_older(const struct replay *rp, const struct redo *redo,
    const struct refd_oid *packed)
{
	return ref_records_know(redo->records, packed) ||
	    rp->packed_ns < redo->value->row->row.locked_at_ns;
}

/* Did another writer change the ref after our lock was taken? After a failed
 * sync names are exact. So any well-formed difference, even an absent ref, is
 * then a later write, unless packed-refs was lost after the record. 1, 0, or
 * negative errno: packed-refs cannot be read. */
static int is_later(const struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	const struct replay_row *row = redo->value->row;
	bool holds = row->evidence == EVIDENCE_FAILED_SYNC;
	struct refd_oid packed;
	int is_packed = 0;

	if (row->evidence == EVIDENCE_CRASHED || (holds && redo->held != NULL))
		return false;
	holds = holds && rp->packed_lost_ns < row->row.locked_at_ns;
	if (redo->edit.dirfd == rp->repo->fd)
		is_packed =
		    packed_lookup(rp->snap, redo->records->name, &packed);
	if (is_packed < 0)
		return is_packed;
	if (!holds && ref_records_replaced(redo->records, loose))
		return 0;
	redo->is_gone = holds && !is_packed && m->action == RECORD_WRITE &&
	    (loose->kind == LOOSE_ABSENT || loose->kind == LOOSE_DIR);
	return redo->is_gone ||
	    rule_apply(m, holds ? INT64_MIN : row->row.locked_at_ns, loose,
		is_packed ? &packed : NULL,
		!holds && is_packed && packed_is_older(rp, redo, &packed)) ==
	    RULE_LATER;
}

static int write_value(struct replay *rp, struct redo *redo)
{
	const struct record_member *m = redo->value->member;
	int fd, r;

	fd = edit_stage(&redo->edit, &m->new_oid, m->target,
	    redo->value->row->rec.file_mode);
	r = fd < 0 ? fd : SYS(rp->sys, close, fd);
	if (r == 0)
		r = edit_place(&redo->edit);
	edit_discard(&redo->edit);
	return r;
}

bool redo_is_corrupt(const struct loose_value *loose)
{
	return loose->kind == LOOSE_BROKEN ||
	    (loose->kind == LOOSE_SYMREF && !loose->exact);
}

static const char *state_text(const struct loose_value *loose)
{
	switch (loose->kind) {
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		return "it was absent";
	case LOOSE_OID:
		return "it was at an older value";
	case LOOSE_SYMREF:
		return loose->exact ? "it was a symbolic reference" :
				      "it was empty or broken";
	case LOOSE_BROKEN:
		return "it was empty or broken";
	}
	return "";
}

enum store_finding redo_finding(const struct redo *redo)
{
	return redo->held != NULL ? STORE_ROLLED_FORWARD : STORE_REDONE;
}

/* Is the value in packed-refs, with no loose file above? Errors as in
 * is_later(). */
static int is_packed_value(const struct replay *rp, const struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	struct refd_oid packed;
	int r;

	if ((loose->kind != LOOSE_ABSENT && loose->kind != LOOSE_DIR) ||
	    m->target != NULL || redo->edit.dirfd != rp->repo->fd)
		return 0;
	r = packed_lookup(rp->snap, redo->records->name, &packed);
	return r > 0 ? refd_oid_eq(&packed, &m->new_oid) : r;
}

/* Gives up a name that is packed, if another writer made a ref below it,
 * because no file kept the writer from doing so. A lock below the name can be
 * enough, because its writer may still make the ref. But a lock that was taken
 * after our lock had gone does not count. */
static int leave_name(struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	struct packed_edit name = { .name = redo->records->name };
	char *below = NULL;
	int r;

	if (loose->kind != LOOSE_DIR ||
	    (redo->held != NULL && redo_is_out(rp, redo->value->row)))
		return 0;
	if (redo->held == NULL) {
		r = loose_find_below(rp->sys, redo->edit.dirfd,
		    redo->records->name, &below);
		free(below);
		if (r <= 0)
			return r;
	}
	r = redo_unpack(rp, redo->value->row, &name, 1);
	return r < 0 ? r : -ENOTEMPTY;
}

/* -ENOTDIR: git made and packed another ref that conflicts with the name, so
 * only packed-refs tells of this ref. After a power loss, a packed-refs that is
 * older than our lock proves nothing. The batch found the name free, so the
 * other ref must have been deleted before. */
static int look_for_packed(const struct replay *rp, const struct redo *redo,
    const struct loose_value *loose)
{
	const struct replay_row *row = redo->value->row;
	char found[REFD_PATH_MAX];
	int r;

	if ((loose->kind != LOOSE_ABSENT && loose->kind != LOOSE_DIR) ||
	    redo->edit.dirfd != rp->repo->fd ||
	    (row->evidence != EVIDENCE_CRASHED &&
		rp->packed_ns < row->row.locked_at_ns))
		return 0;
	r = packed_lookup(rp->snap, redo->records->name, NULL);
	if (r != 0)
		return r < 0 ? r : 0;
	r = packed_find_conflict(rp->snap, redo->records->name, found);
	return r > 0 ? -ENOTDIR : r;
}

static int redo_write(struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	int r;

	if (rule_is_value(m, loose) && !rp->is_memory_lost)
		return 0;
	r = is_packed_value(rp, redo, loose);
	if (r > 0) {
		r = leave_name(rp, redo, loose);
		if (r == 0 && !rp->is_memory_lost)
			return 0;
	}
	if (r == 0)
		r = look_for_packed(rp, redo, loose);
	if (r < 0)
		return r;
	/* Keep the evidence before the file is replaced. */
	if (redo_is_corrupt(loose))
		redo_save_and_report(rp, redo_finding(redo), redo->edit.dirfd,
		    redo->records->worktree, redo->records->name,
		    state_text(loose));
	r = write_value(rp, redo);
	if (r == 0 && !rule_is_value(m, loose) && !redo_is_corrupt(loose))
		redo_report(rp, redo_finding(redo), redo->records->name,
		    state_text(loose));
	return r;
}

int redo_look_again(struct replay *rp)
{
	struct packed_snapshot *snap;
	int r;

	r = packed_snapshot(rp->repo->packed, &snap);
	if (r < 0)
		return r;
	if (snap != rp->snap)
		rp->packed_ns = packed_written_ns(snap);
	packed_snapshot_put(rp->snap);
	rp->snap = snap;
	return 0;
}

int redo_begin(struct replay *rp, struct redo *redo, struct loose_value *loose)
{
	int r;

	r = redo_lock(rp, redo);
	if (r == 0)
		r = redo_read_disk(rp, redo->edit.dirfd, redo->records->name);
	if (r == 0)
		r = edit_read(&redo->edit, loose);
	/* Nothing is loose below a file, so a deletion goes on. */
	else if (r == -ENOTDIR && redo->edit.dirfd >= 0 &&
	    redo->value->member->action == RECORD_DELETE)
		r = 0;
	if (r == 0)
		r = redo_look_again(rp);
	if (r < 0)
		return r;
	r = is_later(rp, redo, loose);
	if (r <= 0)
		return r == 0 ? 1 : r;
	redo_report(rp, STORE_LEFT, redo->records->name,
	    redo->is_gone ? "another writer deleted it later" :
			    "another writer changed it later");
	return 0;
}

static int end_locked(struct replay *rp, struct redo *redo, int r)
{
	if (r < 0)
		r = decide_failed(rp, redo, r);
	if (unlock(rp, redo) < 0 && r == 0)
		r = -EIO;
	return r;
}

int redo_end_and_prune(struct replay *rp, struct redo *redo, int r)
{
	r = end_locked(rp, redo, r);
	if (redo->edit.dirfd >= 0)
		loose_prune_parents(rp->sys, redo->edit.dirfd,
		    redo->records->name, 2);
	redo_close(rp, &redo->edit);
	return r;
}

/* If the name is taken, no log line of the update may stay, so the value is
 * written first. */
int redo_one_write(struct replay *rp, struct redo *redo)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	int r;

	r = redo_begin(rp, redo, &loose);
	if (r == 0 && !redo->is_gone) {
		r = redo_log_of_left(rp, redo);
	} else if (r > 0) {
		r = redo_write(rp, redo, &loose);
		if (is_below_only_a_lock(rp, redo, r) &&
		    redo_clear_dead_below(rp, redo->edit.dirfd,
			redo->records->name))
			r = redo_write(rp, redo, &loose);
		if (r == 0)
			r = redo_log_of_value(rp, redo);
	}
	loose_value_done(&loose);
	return redo_end_and_prune(rp, redo, r);
}
