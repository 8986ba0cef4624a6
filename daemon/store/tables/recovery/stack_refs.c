/*
 * Decides about each ref of a repository with reftables.
 *
 * Happy path: the rule (stack_rule.h) says that a ref stands, or gets the last
 * value of its rows.
 *
 * Not redone:
 *	another ref stands where the name must go: the update is aborted, an
 *	atomic transaction as a whole. Rows of other refs then change, so all
 *	refs are decided again
 *	another writer changed the ref later: reported. If the batch was open
 *	and lost its lock, the update never happened, and is aborted as above
 *	a worktree that is gone: never made again
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/recovery/stack_replay.h"

static bool is_passed(const struct ref_record *record)
{
	return record->row->passed[record->member - record->row->rec.members];
}

bool stack_replay_is_due(const struct stack_place *place,
    const struct ref_record *record)
{
	return record->row->evidence != EVIDENCE_CRASHED ||
	    (place->held != NULL &&
		place->held->token == record->row->row.token);
}

bool stack_refs_is_live(const struct stack_ref *ref,
    const struct ref_record *record)
{
	return !is_passed(record) && stack_replay_is_due(ref->place, record);
}

static bool has_value(const struct ref_record *record)
{
	return record->member->action == RECORD_WRITE ||
	    record->member->action == RECORD_DELETE;
}

/* ---- the list ---- */

static int compare_refs(const void *va, const void *vb)
{
	const struct stack_ref *a = va, *b = vb;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return strcmp(a->records->name, b->records->name);
}

static int list_refs(struct stack_replay *sr, size_t *most)
{
	struct ref_records *records, *next;
	struct stack_place *place;

	HASH_ITER(hh, sr->rp->ref_records, records, next) {
		place = stack_places_find(sr, records->worktree);
		if (place->is_gone) {
			redo_report(sr->rp, STORE_DROPPED, records->name,
			    "its worktree is gone");
			continue;
		}
		sr->refs[sr->nr_refs++] =
		    (struct stack_ref){ .records = records, .place = place };
		if (records->nr > *most)
			*most = records->nr;
	}
	qsort(sr->refs, sr->nr_refs, sizeof(*sr->refs), compare_refs);
	return 0;
}

/* Does the log prove that a table of REF is in the stack? */
static int prove(struct stack_ref *ref)
{
	const struct ref_record *record = ref->records->items;
	const struct ref_record *end = record + ref->records->nr;
	uint64_t index;
	int r;

	for (; record < end; record++) {
		index = record->member->update_index;
		if (!stack_refs_is_live(ref, record) || !record->member->log ||
		    index <= ref->place->proved || !has_value(record) ||
		    !stack_rule_is_there(record->member, &ref->found))
			continue;
		r = stack_lines_has(&ref->place->reader, ref->records->name,
		    record);
		if (r < 0)
			return r;
		if (r > 0)
			ref->place->proved = index;
	}
	return 0;
}

static int read_refs(struct stack_replay *sr)
{
	struct stack_ref *ref;
	int r = 0;

	for (ref = sr->refs; ref < sr->refs + sr->nr_refs && r == 0; ref++) {
		r = stack_look_found(&ref->place->reader, ref->records->name,
		    &ref->found);
		ref->records->stack_ref = ref;
		if (r < 0)
			r = stack_places_fail(sr, ref->place,
			    &ref->place->reader.fault, r);
	}
	for (ref = sr->refs; ref < sr->refs + sr->nr_refs && r == 0; ref++) {
		r = prove(ref);
		if (r < 0)
			r = stack_places_fail(sr, ref->place,
			    &ref->place->reader.fault, r);
	}
	return r;
}

int stack_refs_list(struct stack_replay *sr)
{
	size_t nr = HASH_COUNT(sr->rp->ref_records), most = 1;
	int r;

	sr->refs = calloc(nr + 1, sizeof(*sr->refs));
	sr->nr_lines = calloc(nr + 1, sizeof(*sr->nr_lines));
	if (sr->refs == NULL || sr->nr_lines == NULL)
		return -ENOMEM;
	r = list_refs(sr, &most);
	sr->members = calloc(most, sizeof(*sr->members));
	sr->values = calloc(most, sizeof(*sr->values));
	sr->lines = calloc(most, sizeof(*sr->lines));
	if (sr->members == NULL || sr->values == NULL || sr->lines == NULL)
		return -ENOMEM;
	return r < 0 ? r : read_refs(sr);
}

void stack_refs_done(struct stack_replay *sr)
{
	size_t i;

	for (i = 0; i < sr->nr_refs; i++)
		stack_found_done(&sr->refs[i].found);
	free(sr->refs);
	free(sr->members);
	free(sr->values);
	free(sr->lines);
	free(sr->nr_lines);
}

/* ---- verdicts ---- */

/* Aborts the update of RECORD, or its atomic transaction. */
static int abort_update(struct stack_replay *sr,
    const struct ref_record *record, const char *text)
{
	const struct replay_row *row = record->row;
	const uint32_t index = record->member->index;
	bool *is_noted = calloc(row->rec.nr_updates + 1, sizeof(*is_noted));
	const struct record_member *m;
	size_t i;
	int r = is_noted != NULL ? 0 : -ENOMEM;

	redo_report(sr->rp, STORE_DROPPED, record->member->name, text);
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		m = &row->rec.members[i];
		if (m->status != REFD_OK || row->dropped[i] || row->passed[i] ||
		    (!row->rec.atomic && m->index != index))
			continue;
		row->passed[i] = true;
		if (m->index >= row->rec.nr_updates || is_noted[m->index])
			continue;
		is_noted[m->index] = true;
		r = replay_abort(sr->rp, row, m,
		    m->index == index ? REFD_CONFLICT : REFD_ABORTED, text);
	}
	free(is_noted);
	return r;
}

/* Has the log the line of RECORD? Only a published table can have brought the
 * line, so the daemon was then killed between the rename of the list and the
 * end of the batch. 1, 0 or negative errno. */
static int was_published(struct stack_replay *sr, const struct stack_ref *ref,
    const struct ref_record *record)
{
	struct stack_reader *reader = &ref->place->reader;
	int r = record->member->log ?
	    stack_lines_has(reader, ref->records->name, record) :
	    0;

	return r < 0 ? stack_places_fail(sr, ref->place, &reader->fault, r) : r;
}

/* *AGAIN: rows were aborted. */
static int decide(struct stack_replay *sr, struct stack_ref *ref, bool *again)
{
	const struct ref_record *record = ref->records->items;
	size_t nr = 0;
	int r;

	for (; record < ref->records->items + ref->records->nr; record++)
		if (stack_refs_is_live(ref, record) && has_value(record)) {
			sr->values[nr] = record;
			sr->members[nr++] = record->member;
		}
	ref->verdict = STACK_STANDS;
	ref->nr_values = nr;
	if (nr == 0)
		return 0;
	ref->last = sr->values[nr - 1];
	ref->verdict =
	    stack_rule_apply(sr->members, nr, &ref->found, ref->place->proved);
	/* Only the last batch can be open, because batches take turns. */
	if (ref->verdict != STACK_LATER || !ref->last->row->lost_lock)
		return 0;
	r = was_published(sr, ref, ref->last);
	if (r != 0)
		return r < 0 ? r : 0;
	*again = true;
	return abort_update(sr, ref->last, redo_unlocked_text);
}

bool stack_refs_is_redone(const struct stack_ref *ref)
{
	return ref->nr_values > 0 && ref->verdict == STACK_REDO &&
	    !ref->is_taken;
}

static struct stack_ref *find_redone(const struct stack_replay *sr,
    const struct stack_place *place, const char *name, size_t len)
{
	char key[2 * REFD_PATH_MAX];
	struct ref_records *records;

	snprintf(key, sizeof(key), "%s/%.*s", place->worktree, (int)len, name);
	HASH_FIND_STR(sr->rp->ref_records, key, records);
	if (records == NULL || records->stack_ref == NULL ||
	    !stack_refs_is_redone(records->stack_ref))
		return NULL;
	return records->stack_ref;
}

struct skipping {
	const struct stack_replay *sr;
	const struct stack_place *place;
};

/* stack_skip_fn */
static bool is_deleted(void *arg, const char *name)
{
	const struct skipping *s = arg;
	const struct stack_ref *ref =
	    find_redone(s->sr, s->place, name, strlen(name));

	return ref != NULL && ref->last->member->action == RECORD_DELETE;
}

/* Is a name above REF made by this replay too? */
static bool is_below_redone(const struct stack_replay *sr,
    const struct stack_ref *ref)
{
	const char *name = ref->records->name, *slash = name;
	const struct stack_ref *above;

	while ((slash = strchr(slash, '/')) != NULL) {
		above =
		    find_redone(sr, ref->place, name, (size_t)(slash - name));
		if (above != NULL &&
		    above->last->member->action == RECORD_WRITE)
			return true;
		slash++;
	}
	return false;
}

static int look_for_conflict(struct stack_replay *sr, struct stack_ref *ref,
    bool *again)
{
	struct skipping s = { sr, ref->place };
	char found[REFD_PATH_MAX];
	int r;

	if (!stack_refs_is_redone(ref) || ref->found.exists ||
	    ref->last->member->action != RECORD_WRITE)
		return 0;
	r = is_below_redone(sr, ref) ?
	    1 :
	    stack_reader_conflict(&ref->place->reader, ref->records->name,
		is_deleted, &s, found);
	if (r < 0)
		return stack_places_fail(sr, ref->place,
		    &ref->place->reader.fault, r);
	if (r == 0)
		return 0;
	ref->is_taken = *again = true;
	return abort_update(sr, ref->last,
	    "another reference stands where its name must go");
}

int stack_refs_decide(struct stack_replay *sr)
{
	bool again;
	size_t i;
	int r = 0;

	do {
		again = false;
		for (i = 0; i < sr->nr_refs && r == 0; i++)
			r = decide(sr, &sr->refs[i], &again);
		for (i = 0; i < sr->nr_refs && r == 0 && !again; i++)
			r = look_for_conflict(sr, &sr->refs[i], &again);
	} while (again && r == 0);
	return r;
}

void stack_refs_defer(struct stack_replay *sr)
{
	const struct ref_record *record;
	struct ref_records *records, *next;
	const struct stack_place *place;

	HASH_ITER(hh, sr->rp->ref_records, records, next) {
		place = stack_places_find(sr, records->worktree);
		for (record = records->items;
		    record < records->items + records->nr; record++)
			if (!place->is_gone && !is_passed(record) &&
			    stack_replay_is_due(place, record))
				record->row->deferred[record->member -
				    record->row->rec.members] = true;
	}
}
