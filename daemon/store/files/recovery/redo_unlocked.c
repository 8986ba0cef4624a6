/*
 * After a crash, finds records that were never published, and whose locks
 * another program removed. People and timers remove locks, because git's
 * message tells them to. Then a missing lock does not prove that the record was
 * published: without this search the journal would say ok for a ref that never
 * changed. The same search follows a failed sync, because a kill during a sync
 * looks the same. Names are exact then, too, so a token and a value in stage/
 * prove as much.
 *
 * Only batches count whose token is in stage/, because a batch that ended has
 * removed its token. The lock of each record of such a batch is taken again,
 * and the ref is read:
 *
 *	the recorded value	published; with the value still in stage/ only
 *				the lines of the log can be missing
 *	the value before	redone, as if the lock had stood
 *	any other value		aborted and reported, if the record was never
 *				published; the value is another writer's
 *
 * A value in stage/ was never published, because publishing renames its file. A
 * row has values, but no names of files, so equal values of a batch count as
 * one.
 *
 * Deletions and lines of packed-refs have no file in stage/, so packed-refs
 * tells about such records. The record was not published if the lock or
 * packed-refs.new of the batch still stands, or if packed-refs is older than
 * the locks of the batch. A younger packed-refs without the line is another
 * writer's file, and may have replaced refd's file. Then nobody knows whether
 * the record was published, and the update is aborted, because only the client
 * can tell whether the change is still wanted.
 *
 * Failures: as in redo_file.c. A lock of another writer counts as another
 * value, because the record can no longer be told from a later write.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/recovery/redo_files.h"
#include "daemon/store/files/recovery/rule.h"
#include "proto/lib/array.h"

static const char no_line_text[] =
    "its lock was removed, and another writer has written packed-refs since, "
    "without the reference";

/* A value in stage/ of an open batch. */
struct staged {
	uint64_t batch;
	struct loose_value value; /* the target is owned */
};

struct unlocked_search {
	struct replay *rp;
	struct staged *staged;
	size_t nr, size;
	bool has_fresh; /* packed-refs.new stands */
	/* sys_stat_written_ns(), or INT64_MIN: no file. */
	int64_t packed_written_ns;
};

static int compare_staged(const void *va, const void *vb)
{
	const struct staged *a = va, *b = vb;

	if (a->batch != b->batch)
		return a->batch < b->batch ? -1 : 1;
	return memcmp(&a->value.oid, &b->value.oid, sizeof(a->value.oid));
}

static int read_staged(struct unlocked_search *s, const char *name)
{
	struct replay *rp = s->rp;
	struct staged *grown,
	    item = { leftover_locks_batch_of(name), { .kind = LOOSE_ABSENT } };
	int r;

	if (!leftover_locks_is_open(rp->leftover, item.batch))
		return 0;
	r = loose_read(rp->sys, rp->repo->stage_fd, name,
	    rp->repo->object_format, &item.value);
	if (r < 0)
		return r;
	if (item.value.kind != LOOSE_OID)
		memset(&item.value.oid, 0, sizeof(item.value.oid));
	grown = array_room(s->staged, s->nr, &s->size, sizeof(*grown));
	if (grown == NULL) {
		loose_value_done(&item.value);
		return -ENOMEM;
	}
	s->staged = grown;
	s->staged[s->nr++] = item;
	return 0;
}

static int read_stage(struct unlocked_search *s)
{
	const struct sys *sys = s->rp->sys;
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(sys, dir_open, s->rp->repo->stage_fd, ".", &dir);
	if (r < 0)
		return r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = strchr(entry.name, '-') != NULL ?
		    read_staged(s, entry.name) :
		    0;
		if (r < 0)
			break;
	}
	SYS(sys, dir_close, dir);
	if (s->nr > 0)
		qsort(s->staged, s->nr, sizeof(*s->staged), compare_staged);
	return r;
}

static int read_packed(struct unlocked_search *s)
{
	const struct replay *rp = s->rp;
	struct sys_stat st;
	int r;

	r = SYS(rp->sys, lstatat, rp->repo->fd, "packed-refs.new", &st);
	s->has_fresh = r == 0;
	if (r < 0 && r != -ENOENT)
		return r;
	r = SYS(rp->sys, lstatat, rp->repo->fd, "packed-refs", &st);
	s->packed_written_ns = r == 0 ? sys_stat_written_ns(&st) : INT64_MIN;
	return r == -ENOENT ? 0 : r;
}

static bool is_staged(const struct unlocked_search *s,
    const struct replay_row *row, const struct record_member *m)
{
	size_t low = 0, high = s->nr, mid;
	struct staged key = { .batch = row->row.token };

	if (m->action != RECORD_WRITE || m->is_line)
		return false;
	if (m->target == NULL)
		key.value.oid = m->new_oid;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare_staged(&key, &s->staged[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < s->nr && compare_staged(&key, &s->staged[low]) == 0; low++)
		if (rule_is_value(m, &s->staged[low].value))
			return true;
	return false;
}

/* Is the rewrite of packed-refs for M, by the batch of ROW, not in place? */
static bool is_packing(const struct unlocked_search *s,
    const struct replay_row *row, const struct record_member *m)
{
	if (m->worktree[0] != '\0' ||
	    (m->action != RECORD_DELETE && !m->is_line))
		return false;
	return s->has_fresh ||
	    leftover_locks_lookup(s->rp->leftover, row->row.token, "",
		"packed-refs") != NULL ||
	    s->packed_written_ns < row->row.locked_at_ns;
}

/* Was M never published, whatever value the ref has now? The caller knows that
 * the line of M does not stand in packed-refs. The locks of deletions go last,
 * with the token. */
static bool is_unpublished(const struct unlocked_search *s,
    const struct replay_row *row, const struct record_member *m)
{
	return m->action == RECORD_DELETE || m->is_line || is_staged(s, row, m);
}

/* 1: a line of packed-refs that stands was published, even if a file hides the
 * line by now. 0, or negative errno: packed-refs cannot be read. */
static int line_stands(const struct replay *rp, const struct record_member *m)
{
	struct refd_oid oid;
	int r;

	if (!m->is_line)
		return 0;
	r = packed_lookup(rp->snap, m->name, &oid);
	return r > 0 ? refd_oid_eq(&oid, &m->new_oid) : r;
}

enum found {
	FOUND_NEW,
	FOUND_OLD,        /* the value before, and the file, if there was one */
	FOUND_OLD_PACKED, /* or absent: as before, if nothing was published */
	FOUND_OTHER
};

static int compare_value(struct replay *rp, const struct record_member *m,
    const struct loose_value *loose, enum found *found)
{
	struct refd_oid packed;
	int is_packed = 0;

	*found = FOUND_OTHER;
	if (loose->kind != LOOSE_ABSENT && loose->kind != LOOSE_DIR) {
		if (rule_is_value(m, loose))
			*found = FOUND_NEW;
		else if (rule_is_replaced(m, loose))
			*found = FOUND_OLD;
		return 0;
	}
	if (m->worktree[0] == '\0')
		is_packed = packed_lookup(rp->snap, m->name, &packed);
	if (is_packed < 0)
		return is_packed;
	if (m->action == RECORD_DELETE ? !is_packed :
					 is_packed && m->target == NULL &&
		    refd_oid_eq(&packed, &m->new_oid))
		*found = FOUND_NEW;
	else if (is_packed ? m->had_old && refd_oid_eq(&packed, &m->old_oid) :
			     !m->had_old)
		*found = FOUND_OLD_PACKED;
	return 0;
}

/* The lock of M is refd's again, and counts as the batch's. */
static int keep_lock(struct replay *rp, const struct replay_row *row,
    const struct record_member *m)
{
	/* The token identifies the lock, should recovery stop, so the token
	 * stays. */
	rp->token_stays = true;
	return leftover_locks_add(rp->leftover, row->row.token, m->worktree,
	    m->name);
}

static bool is_open(struct replay *rp, const struct replay_row *row, size_t i)
{
	const struct record_member *m = &row->rec.members[i];

	return !row->dropped[i] && !row->passed[i] && m->status == REFD_OK &&
	    m->action != RECORD_NOTHING &&
	    leftover_locks_lookup(rp->leftover, row->row.token, m->worktree,
		m->name) == NULL;
}

/* Takes the lock of L, whose log gets a line of this update. The update does
 * not wait for its line. So the line is lost if another writer holds the lock,
 * perhaps to add a line, or if something else stands on the way to L. */
static int keep_line(struct replay *rp, const struct replay_row *row,
    const struct record_member *l)
{
	int fd = repo_open_worktree(rp->sys, rp->repo, l->worktree), r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = token_lock(&rp->token, fd, l->name, row->rec.dir_mode);
	if (fd != rp->repo->fd)
		SYS(rp->sys, close, fd);
	if (r < 0)
		return redo_is_out_of_reach(r) ? 0 : r;
	return keep_lock(rp, row, l);
}

enum verdict {
	PUBLISHED,
	KEPT,
	TAKEN, /* given up: another writer has the ref */
	HIDDEN /* given up: another writer wrote packed-refs */
};

/* E holds the lock of M. */
static int judge(struct unlocked_search *s, const struct replay_row *row,
    const struct record_member *m, struct edit *e, enum verdict *verdict)
{
	const bool staged = is_staged(s, row, m);
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	struct replay *rp = s->rp;
	enum found found = FOUND_OTHER;
	int r;

	r = edit_read(e, &loose);
	if (r == 0)
		r = redo_look_again(rp);
	if (r == 0)
		r = compare_value(rp, m, &loose, &found);
	loose_value_done(&loose);
	if (r < 0)
		return r;
	if (found == FOUND_OLD ||
	    (found == FOUND_OLD_PACKED && (staged || is_packing(s, row, m))) ||
	    (found == FOUND_NEW && staged)) {
		r = keep_lock(rp, row, m);
		e->is_earlier = true;
		*verdict = KEPT;
	} else if (found != FOUND_NEW && is_unpublished(s, row, m)) {
		*verdict =
		    m->is_line && found == FOUND_OLD_PACKED ? HIDDEN : TAKEN;
	}
	return r;
}

static int look_at(struct unlocked_search *s, const struct replay_row *row,
    const struct record_member *m, enum verdict *verdict)
{
	struct replay *rp = s->rp;
	struct edit e = redo_edit(rp, row, m->name);
	int r = line_stands(rp, m);

	if (r != 0)
		return r < 0 ? r : 0;
	e.dirfd = repo_open_worktree(rp->sys, rp->repo, m->worktree);
	if (e.dirfd < 0)
		return e.dirfd == -ENOENT ? 0 : e.dirfd;
	r = edit_lock(&e, row->rec.dir_mode);
	if (r == 0)
		r = judge(s, row, m, &e, verdict);
	else if (redo_is_out_of_reach(r)) {
		if (is_unpublished(s, row, m))
			*verdict = TAKEN;
		r = 0;
	}
	if (redo_unlock_edit(rp, &e) < 0 && r == 0)
		r = -EIO;
	if (!e.is_earlier)
		loose_prune_parents(rp->sys, e.dirfd, e.name, 2);
	redo_close(rp, &e);
	return r;
}

/* Nothing of an atomic transaction may stay, unless a part was published. */
static int give_up(struct replay *rp, const struct replay_row *row,
    const struct record_member *m, const char *text)
{
	int r;

	redo_report(rp, STORE_DROPPED, m->name, text);
	if (rp->is_strict)
		return 0;
	r = redo_abort(rp, row, m, REFD_CONFLICT, text);
	if (r == 0 && row->rec.atomic && !redo_is_out(rp, row))
		r = redo_undo_row(rp, row, m->index, text);
	return r;
}

/* Is member I the last value of its ref, without a lock? A later batch had to
 * wait until the member was published, so no earlier value is unpublished. */
static bool is_candidate(struct replay *rp, const struct replay_row *row,
    size_t i)
{
	const struct record_member *m = &row->rec.members[i];
	char key[2 * REFD_PATH_MAX];
	const struct ref_records *records;
	const struct ref_record *last;

	if ((m->action != RECORD_WRITE && m->action != RECORD_DELETE) ||
	    !is_open(rp, row, i))
		return false;
	snprintf(key, sizeof(key), "%s/%s", m->worktree, m->name);
	records = ref_records_find(rp->ref_records, key);
	last = records != NULL ? ref_records_value(records) : NULL;
	return last != NULL && last->member == m;
}

/* Takes the locks of the lines of updates that are KEPT, by index. */
static int keep_lines(struct replay *rp, const struct replay_row *row,
    const bool *kept)
{
	const struct record_member *m = row->rec.members;
	size_t i;
	int r = 0;

	for (i = 0; i < row->rec.nr_members && r == 0; i++)
		if (m[i].action == RECORD_LOG && kept[m[i].index] &&
		    is_open(rp, row, i))
			r = keep_line(rp, row, &m[i]);
	return r;
}

/* All locks are taken again before an update is given up, because an atomic
 * transaction is taken back under its locks. */
static int look_at_row(struct unlocked_search *s, const struct replay_row *row)
{
	const size_t nr = row->rec.nr_members;
	const struct record_member *m = row->rec.members;
	enum verdict *verdicts = calloc(nr + 1, sizeof(*verdicts));
	bool *kept = calloc(row->rec.nr_updates + 1, sizeof(*kept));
	size_t i;
	int r = verdicts != NULL && kept != NULL ? 0 : -ENOMEM;

	for (i = 0; i < nr && r == 0; i++) {
		if (m[i].index >= row->rec.nr_updates ||
		    !is_candidate(s->rp, row, i))
			continue;
		r = look_at(s, row, &m[i], &verdicts[i]);
		if (verdicts[i] == KEPT)
			kept[m[i].index] = true;
	}
	if (r == 0)
		r = keep_lines(s->rp, row, kept);
	leftover_locks_sort(s->rp->leftover);
	for (i = 0; i < nr && r == 0; i++)
		if (verdicts[i] >= TAKEN && !row->passed[i])
			r = give_up(s->rp, row, &m[i],
			    verdicts[i] == TAKEN ? redo_unlocked_text :
						   no_line_text);
	free(verdicts);
	free(kept);
	return r;
}

int redo_unlocked(struct replay *rp, const struct replay_row *rows)
{
	struct unlocked_search s = { .rp = rp };
	const struct replay_row *row;
	bool is_read = false;
	size_t i;
	int r = 0;

	for (row = rows; row != NULL && r == 0; row = row->next) {
		if (row->evidence == EVIDENCE_POWER_LOSS ||
		    !leftover_locks_is_open(rp->leftover, row->row.token))
			continue;
		if (!is_read) {
			is_read = true;
			r = read_stage(&s);
			if (r == 0)
				r = read_packed(&s);
		}
		if (r == 0)
			r = look_at_row(&s, row);
	}
	for (i = 0; i < s.nr; i++)
		loose_value_done(&s.staged[i].value);
	free(s.staged);
	return r;
}
