/*
 * The records of the new tables, and the report about them.
 *
 * Happy path: the value of each ref that is redone, and the missing log lines.
 *
 * Failures: the stack cannot be read, or memory is out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/recovery/stack_replay.h"
#include "proto/lib/array.h"

static struct stack_entry *add_entry(struct stack_ref *ref,
    enum stack_entry_kind kind, const struct ref_record *record)
{
	struct stack_place *place = ref->place;
	struct stack_entry *grown;

	grown =
	    array_room(place->entries, place->nr, &place->size, sizeof(*grown));
	if (grown == NULL)
		return NULL;
	place->entries = grown;
	grown = &place->entries[place->nr++];
	memset(grown, 0, sizeof(*grown));
	grown->name = ref->records->name;
	grown->kind = kind;
	grown->record = record;
	if (record == NULL)
		record = ref->last;
	place->update.mode |= record->row->rec.file_mode & 0666;
	return grown;
}

static int plan_value(struct stack_replay *sr, struct stack_ref *ref)
{
	struct odb *odb = sr->rp->repo->odb;
	const struct record_member *m = ref->last->member;
	struct stack_entry *entry;

	entry = add_entry(ref, STACK_ENTRY_VALUE, ref->last);
	if (entry == NULL)
		return -ENOMEM;
	/* Git trusts the peeled value, so a doubtful value is left out. Without
	 * a peeled value git reads the tag. */
	if (m->action == RECORD_WRITE && m->target == NULL && odb != NULL &&
	    odb_refresh(odb) == 0 && odb_type(odb, &m->new_oid) == OBJECT_TAG &&
	    odb_peel(odb, &m->new_oid, &entry->peeled) < 0)
		memset(&entry->peeled, 0, sizeof(entry->peeled));
	return 0;
}

struct tombstones {
	struct stack_ref *ref;
	uint64_t index; /* the largest */
};

/* stack_log_fn */
static int plan_tombstone(void *arg, const struct reftable_record *log)
{
	const struct tombstones *t = arg;
	struct stack_entry *entry;

	if (log->update_index > t->index)
		return 0;
	entry = add_entry(t->ref, STACK_ENTRY_TOMBSTONE, NULL);
	if (entry == NULL)
		return -ENOMEM;
	entry->index = log->update_index;
	return 0;
}

/* Plans a tombstone for each entry of the old log, because the rows delete the
 * ref and make it again. */
static int plan_tombstones(struct stack_ref *ref,
    const struct ref_record *deletion)
{
	struct tombstones t = { ref, deletion->member->update_index };

	return stack_reader_logs(&ref->place->reader, ref->records->name,
	    plan_tombstone, &t);
}

static int add_lines(struct stack_replay *sr, struct stack_ref *ref, size_t nr)
{
	size_t i;
	int r;

	r = stack_lines_find(&ref->place->reader, ref->records->name,
	    ref->nr_values > 0 && ref->verdict == STACK_LATER, sr->lines, nr);
	for (i = 0; i < nr && r >= 0; i++) {
		if (sr->lines[i].state == STACK_LINE_TAKEN)
			redo_report_line(sr->rp, STORE_LEFT, ref->records->name,
			    "its log line is lost: another writer's entry has "
			    "the place");
		if (sr->lines[i].state != STACK_LINE_FREE)
			continue;
		if (add_entry(ref, STACK_ENTRY_LINE, sr->lines[i].record) ==
		    NULL)
			r = -ENOMEM;
		sr->nr_lines[ref - sr->refs]++;
	}
	return r;
}

static int plan_log(struct stack_replay *sr, struct stack_ref *ref)
{
	const struct ref_record *record = ref->records->items, *deletion = NULL;
	bool exists = stack_refs_is_redone(ref) ?
	    ref->last->member->action == RECORD_WRITE :
	    ref->found.exists;
	size_t nr = 0;
	int r = 0;

	for (; record < ref->records->items + ref->records->nr; record++) {
		if (!stack_refs_is_live(ref, record))
			continue;
		if (record->member->action == RECORD_DELETE) {
			deletion = record;
			nr = 0;
		} else if (record->member->log) {
			sr->lines[nr++].record = record;
		}
	}
	/* A deleted ref has no log, so no line is added; stack_table_make()
	 * adds the tombstones. */
	if (!exists)
		return 0;
	if (stack_refs_is_redone(ref) && deletion != NULL)
		r = plan_tombstones(ref, deletion);
	return r < 0 ? r : add_lines(sr, ref, nr);
}

int stack_plan_refs(struct stack_replay *sr)
{
	struct stack_ref *ref;
	int r = 0;

	for (ref = sr->refs; ref < sr->refs + sr->nr_refs && r >= 0; ref++) {
		if (sr->rp->stepped != NULL)
			sr->rp->stepped(sr->rp->step_arg, ref->records->nr);
		if (stack_refs_is_redone(ref))
			r = plan_value(sr, ref);
		if (r >= 0)
			r = plan_log(sr, ref);
		if (r < 0)
			r = stack_places_fail(sr, ref->place,
			    &ref->place->reader.fault, r);
	}
	return r < 0 ? r : 0;
}

/* ---- the report ---- */

static const char *state_text(const struct stack_ref *ref)
{
	if (ref->last->member->action == RECORD_DELETE)
		return "it was there again; deleted";
	if (ref->found.target != NULL)
		return "it was a symbolic reference";
	return ref->found.exists ? "it was at an older value" : "it was absent";
}

static void report_ref(const struct stack_replay *sr, struct stack_ref *ref)
{
	const size_t added = sr->nr_lines[ref - sr->refs];
	char text[64];

	if (stack_refs_is_redone(ref))
		redo_report(sr->rp,
		    ref->last->row->evidence == EVIDENCE_CRASHED ?
			STORE_ROLLED_FORWARD :
			STORE_REDONE,
		    ref->records->name, state_text(ref));
	else if (ref->nr_values > 0 && ref->verdict == STACK_LATER)
		redo_report(sr->rp, STORE_LEFT, ref->records->name,
		    ref->found.exists ? "another writer changed it later" :
					"another writer deleted it later");
	if (added > 0 && !stack_refs_is_redone(ref)) {
		snprintf(text, sizeof(text), "%zu lines added", added);
		redo_report(sr->rp, STORE_LOG_REPAIRED, ref->records->name,
		    text);
	}
}

void stack_plan_report(const struct stack_replay *sr)
{
	size_t i;

	for (i = 0; i < sr->nr_refs; i++)
		report_ref(sr, &sr->refs[i]);
}
