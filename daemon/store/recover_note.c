/*
 * What recovery writes back into the journal: rows for what is parked, voids
 * for what did not happen or needs no further try.
 *
 * The happy path: nothing to write.
 *
 * What fails: memory, or the journal; the caller says what that means.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recover_internal.h"

static int add(struct notes *notes, const struct journal_row *row,
    const struct record *rec)
{
	struct journal_row *grown;
	size_t size;

	if (notes->nr == notes->size) {
		size = notes->size == 0 ? 8 : 2 * notes->size;
		grown = realloc(notes->rows, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		notes->rows = grown;
		notes->size = size;
	}
	grown = &notes->rows[notes->nr];
	*grown = *row;
	grown->body = record_encode(rec, &grown->len);
	if (grown->body == NULL)
		return -ENOMEM;
	notes->nr++;
	return 0;
}

/* A row of KIND that says MEMBERS and is ROW's otherwise. */
static int add_members(struct notes *notes, const struct replay_row *row,
    enum journal_kind kind, struct record_member *members, size_t nr)
{
	struct journal_row copy = row->row;
	struct record rec = row->rec;

	copy.kind = kind;
	copy.voids = kind == JOURNAL_VOID ? row->row.lsn : 0;
	rec.members = members;
	rec.nr_members = nr;
	return add(notes, &copy, &rec);
}

void notes_done(struct notes *notes)
{
	size_t i;

	for (i = 0; i < notes->nr; i++)
		free((void *)(uintptr_t)notes->rows[i].body);
	free(notes->rows);
	memset(notes, 0, sizeof(*notes));
}

/* ---- parked ---- */

int notes_park_row(struct notes *notes, const struct replay_row *row,
    uint64_t *parked)
{
	struct record_member *members;
	size_t i, nr = 0;
	int r = 0;

	members = calloc(row->rec.nr_members + 1, sizeof(*members));
	if (members == NULL)
		return -ENOMEM;
	for (i = 0; i < row->rec.nr_members; i++)
		if (!row->dropped[i] && row->rec.members[i].status == REFD_OK &&
		    row->rec.members[i].action != RECORD_NOTHING)
			members[nr++] = row->rec.members[i];
	if (nr > 0)
		r = add_members(notes, row, JOURNAL_PARKED, members, nr);
	*parked += nr;
	free(members);
	return r;
}

int notes_park(struct notes *notes, const struct replay_members *members,
    uint64_t *parked)
{
	struct record_member member;
	struct replay_row row;
	size_t i;
	int r = 0;

	for (i = 0; i < members->nr && r == 0; i++) {
		row = *members->items[i].row;
		/* Of no mount that is: whatever locks stand now are going to
		 * be removed, so by a later try it counts as cut. */
		row.row.mount = 0;
		member = *members->items[i].member;
		r = add_members(notes, &row, JOURNAL_PARKED, &member, 1);
		++*parked;
	}
	return r;
}

/* ---- voids ---- */

/* The name that was asked for, which an answer will say. */
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

int notes_void(struct notes *notes, const struct replay_members *members)
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
			.text = "another reference stood where its name had "
				"to go",
		};
		r = add_members(notes, m->row, JOURNAL_VOID, &member, 1);
	}
	return r;
}

static bool is_parked_again(const struct replay *rp,
    const struct record_member *member)
{
	size_t i;

	for (i = 0; i < rp->parked.nr; i++)
		if (rp->parked.items[i].member == member)
			return true;
	return false;
}

static bool is_voided(const struct replay *rp, const struct replay_row *row,
    const struct record_member *member)
{
	size_t i;

	for (i = 0; i < rp->voided.nr; i++)
		if (rp->voided.items[i].row == row &&
		    rp->voided.items[i].member->index == member->index)
			return true;
	return false;
}

/* Of a kill: its lock goes now, so it is parked anew, as after a cut. */
static int park_again(struct notes *notes, const struct replay_row *row,
    const struct record_member *member)
{
	struct replay_member m = { .row = row, .member = member };
	struct replay_members one = { .items = &m, .nr = 1 };
	uint64_t parked = 0;

	return notes_park(notes, &one, &parked);
}

int notes_finish(struct notes *notes, const struct recovery *rec,
    const struct replay *rp, const struct replay_row *row, uint64_t *parked)
{
	const struct record_member *m;
	struct record_member *done;
	size_t i, nr = 0;
	int r = 0;

	done = calloc(row->rec.nr_members + 1, sizeof(*done));
	if (done == NULL)
		return -ENOMEM;
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		m = &row->rec.members[i];
		if (row->dropped[i] || is_voided(rp, row, m))
			continue;
		if (!is_parked_again(rp, m) || row->rule == REPLAY_KILL)
			done[nr++] = *m;
		if (!is_parked_again(rp, m))
			continue;
		if (row->rule == REPLAY_KILL)
			r = park_again(notes, row, m);
		++*parked;
		/* Another line in its log is in nobody's way. */
		if (rec->still_parked != NULL && m->action != RECORD_LOG)
			rec->still_parked(rec->arg, m->worktree, m->name);
	}
	if (r == 0 && nr > 0)
		r = add_members(notes, row, JOURNAL_VOID, done, nr);
	free(done);
	return r;
}

/* ---- the journal ---- */

int notes_write(struct notes *notes, const struct recovery *rec)
{
	size_t i;
	int r;

	if (notes->nr == 0)
		return 0;
	r = journal_commit(rec->journal, notes->rows, notes->nr);
	for (i = 0; i < notes->nr && r == 0; i++)
		if (notes->rows[i].kind == JOURNAL_PARKED)
			rec->parked_at(rec->arg, notes->rows[i].repo,
			    notes->rows[i].lsn);
	return r > 0 ? -EIO : r;
}
