/*
 * Writes the results of recovery into the journal: deferred rows, and abort
 * records of updates that did not happen or need no further attempt.
 *
 * The happy path: nothing to write.
 *
 * Failures: memory, or the journal; the caller decides. If other machines have
 * the rows, deferred rows and abort records would be of this machine alone, so
 * they are refused. But a log line may wait, because logs are of one machine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/recover_internal.h"
#include "proto/lib/array.h"

static int add_row(struct recover_notes *notes, const struct journal_row *row,
    const struct record *rec)
{
	struct journal_row *grown;

	grown =
	    array_room(notes->rows, notes->nr, &notes->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	notes->rows = grown;
	grown = &notes->rows[notes->nr];
	*grown = *row;
	grown->body = record_encode(rec, &grown->len);
	if (grown->body == NULL)
		return -ENOMEM;
	notes->nr++;
	return 0;
}

static bool are_lines(const struct record_member *members, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (members[i].action != RECORD_LOG)
			return false;
	return true;
}

/* Adds a copy of ROW with KIND and MEMBERS. */
static int add_members(struct recover_notes *notes,
    const struct replay_row *row, enum journal_kind kind,
    struct record_member *members, size_t nr)
{
	struct journal_row copy = row->row;
	struct record rec = row->rec;

	copy.kind = kind;
	copy.shared_lsn = 0; /* the other nodes know nothing of the row */
	copy.refers_to = kind == JOURNAL_DEFERRED ? row->origin : row->row.lsn;
	rec.has_objects = rec.has_objects && kind == JOURNAL_DEFERRED;
	rec.members = members;
	rec.nr_members = nr;
	if (kind == JOURNAL_ABORT ||
	    (kind == JOURNAL_DEFERRED && !notes->may_defer &&
		!are_lines(members, nr)))
		notes->gives_up = true;
	return add_row(notes, &copy, &rec);
}

void recover_notes_done(struct recover_notes *notes)
{
	size_t i;

	for (i = 0; i < notes->nr; i++)
		free((void *)(uintptr_t)notes->rows[i].body);
	free(notes->rows);
	memset(notes, 0, sizeof(*notes));
}

/* ---- deferred ---- */

/* Is member I of ROW still to be redone? */
static bool is_live(const struct replay_row *row, size_t i)
{
	return !row->dropped[i] && row->rec.members[i].status == REFD_OK &&
	    row->rec.members[i].action != RECORD_NOTHING;
}

bool recover_rows_have_refs(const struct replay_row *rows)
{
	size_t i;

	for (; rows != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++)
			if (is_live(rows, i) &&
			    rows->rec.members[i].action != RECORD_LOG)
				return true;
	return false;
}

/* Replaces the deferred row ROW, if ROW is one, by a new deferred row with the
 * NR members of KEPT. MOUNT 0: the locks of the members are gone. HAS_OBJECTS:
 * a replay may need the objects of ROW. */
static int replace(struct recover_notes *notes, const struct replay_row *row,
    struct record_member *kept, size_t nr, uint64_t mount, bool has_objects)
{
	struct replay_row copy = *row;
	int r = 0;

	if (row->row.kind == JOURNAL_DEFERRED)
		r = add_members(notes, row, JOURNAL_DEFERRED_END, NULL, 0);
	copy.row.mount = mount;
	copy.rec.has_objects = row->rec.has_objects && has_objects;
	if (r == 0 && nr > 0)
		r = add_members(notes, &copy, JOURNAL_DEFERRED, kept, nr);
	return r;
}

/* M becomes the log line of its update alone. */
static void leave_line(struct record_member *m)
{
	m->answers = false;
	m->action = RECORD_LOG;
	m->target = NULL;
	m->is_line = false;
	m->had_packed = false;
}

/* Writes a deferred row for the unfinished members of ROW. If DEFERRED is NULL,
 * these are all members. Otherwise these are only the members, and the log
 * lines, that this replay has deferred. MOUNT says by which rule the members
 * are redone. */
static int keep_deferred(struct recover_notes *notes,
    const struct replay_row *row, const bool *deferred, uint64_t mount,
    uint64_t *nr_deferred)
{
	/* The sync after the replay of a deferred row made its objects durable,
	 * so no further replay needs them. */
	const bool is_restored = deferred != NULL &&
	    row->row.kind == JOURNAL_DEFERRED && row->rec.has_objects;
	bool has_changed = is_restored;
	struct record_member *kept;
	size_t i, nr = 0;
	int r = 0;

	kept = calloc(row->rec.nr_members + 1, sizeof(*kept));
	if (kept == NULL)
		return -ENOMEM;
	for (i = 0; i < row->rec.nr_members; i++) {
		if (!is_live(row, i) ||
		    (deferred != NULL && !deferred[i] &&
			!row->line_deferred[i]))
			continue;
		kept[nr] = row->rec.members[i];
		if (deferred != NULL && !deferred[i]) {
			has_changed |= kept[nr].action != RECORD_LOG;
			leave_line(&kept[nr]);
		}
		nr++;
	}
	if (row->row.kind != JOURNAL_DEFERRED || nr < row->rec.nr_members ||
	    mount != row->row.mount || has_changed)
		r = replace(notes, row, kept, nr, mount,
		    !is_restored && (deferred == NULL || !are_lines(kept, nr)));
	*nr_deferred += nr;
	free(kept);
	return r;
}

int recover_notes_defer_row(struct recover_notes *notes,
    const struct replay_row *row, uint64_t mount, uint64_t *deferred)
{
	return keep_deferred(notes, row, NULL, mount, deferred);
}

static bool any_is_locked(struct leftover_locks *leftover,
    const struct replay_row *row)
{
	const struct record_member *m;
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++) {
		m = &row->rec.members[i];
		if (row->deferred[i] &&
		    leftover_locks_lookup(leftover, row->row.token, m->worktree,
			m->name) != NULL)
			return true;
	}
	return false;
}

/* Recovery is about to remove all standing locks, so a later attempt counts ROW
 * as lost in a power loss. Without a lock to remove, ROW keeps its evidence. */
static uint64_t later_mount(struct leftover_locks *leftover,
    const struct replay_row *row)
{
	if (row->evidence == EVIDENCE_FAILED_SYNC &&
	    !any_is_locked(leftover, row))
		return row->row.mount | JOURNAL_MOUNT_FAILED;
	return replay_row_has_failed(row) ? JOURNAL_MOUNT_LOST : 0;
}

int recover_notes_replayed(struct recover_notes *notes,
    struct leftover_locks *leftover, const struct replay_row *row,
    uint64_t *deferred)
{
	return keep_deferred(notes, row, row->deferred,
	    later_mount(leftover, row), deferred);
}

/* ---- abort records ---- */

/* The requested name, for the answer. */
static const char *asked_name(const struct replay_row *row,
    const struct record_member *member)
{
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++)
		if (row->rec.members[i].index == member->index &&
		    row->rec.members[i].answers)
			return row->rec.members[i].name;
	return member->name;
}

int recover_notes_abort(struct recover_notes *notes,
    const struct replay_members *members)
{
	const struct replay_member *m;
	struct record_member member;
	size_t i;
	int r = 0;

	for (i = 0; i < members->nr && r == 0; i++) {
		m = &members->items[i];
		member = (struct record_member){
			.index = m->member->index,
			.status = m->status,
			.answers = true,
			.name = asked_name(m->row, m->member),
			.text = m->text,
		};
		r = add_members(notes, m->row, JOURNAL_ABORT, &member, 1);
	}
	return r;
}

/* ---- the journal ---- */

int recover_notes_write(struct recover_notes *notes, struct commit_log *log)
{
	int r;

	if (notes->nr == 0)
		return 0;
	if (notes->gives_up && journal_shares_rows(commit_log_journal(log)))
		return -ENOTRECOVERABLE;
	r = commit_log_commit(log, notes->rows, notes->nr, COMMIT_LOG_DURABLE);
	return r > 0 ? -EIO : r;
}
