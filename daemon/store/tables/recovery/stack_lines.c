/*
 * Happy path: one pass over the newest entries of the log, down to the oldest
 * line.
 */
#include "daemon/store/tables/recovery/stack_lines.h"

#include <stdlib.h>

#include "daemon/store/tables/stack/stack_log.h"

void stack_lines_entry(const struct ref_record *record,
    struct reftable_log *log)
{
	static const struct refd_oid null_oid;
	const struct record_member *m = record->member;

	stack_log_set(log, m->had_old ? &m->old_oid : &null_oid, &m->new_oid,
	    record->row->rec.committer, record->row->rec.message);
}

static bool is_entry(const struct ref_record *record,
    const struct reftable_record *found)
{
	struct reftable_log log;

	stack_lines_entry(record, &log);
	return found->update_index == record->member->update_index &&
	    stack_log_eq(&found->log, &log);
}

static int compare(const void *va, const void *vb)
{
	const struct stack_line *a = va, *b = vb;
	uint64_t x = a->record->member->update_index;
	uint64_t y = b->record->member->update_index;

	return (x > y) - (x < y);
}

struct line_search {
	struct stack_line *lines;
	size_t left; /* lines that are not decided yet, from the first on */
	bool is_later;
};

/* stack_log_fn. Entries come the newest first, so FOUND is the entry with the
 * largest index up to that of the last undecided line. */
static int look(void *arg, const struct reftable_record *found)
{
	struct line_search *s = arg;
	const struct record_member *m;
	struct stack_line *line;

	for (; s->left > 0; s->left--) {
		line = &s->lines[s->left - 1];
		m = line->record->member;
		if (found->update_index > m->update_index)
			break;
		if (is_entry(line->record, found))
			line->state = STACK_LINE_THERE;
		else if (found->update_index > m->base_index)
			line->state = STACK_LINE_TAKEN;
	}
	/* At this entry the ref was made anew, so the other lines are of an
	 * earlier life of the ref. */
	if (s->is_later && refd_oid_is_null(&found->log.from))
		while (s->left > 0)
			s->lines[--s->left].state = STACK_LINE_THERE;
	return s->left == 0;
}

int stack_lines_find(struct stack_reader *reader, const char *name,
    bool is_later, struct stack_line *lines, size_t nr)
{
	struct line_search s = { lines, nr, is_later };
	size_t i;
	int r;

	if (nr == 0)
		return 0;
	for (i = 0; i < nr; i++)
		lines[i].state = STACK_LINE_FREE;
	qsort(lines, nr, sizeof(*lines), compare);
	r = stack_reader_logs(reader, name, look, &s);
	return r < 0 ? r : 0;
}

struct wanted_entry {
	const struct ref_record *record;
	bool is_there;
};

/* stack_log_fn */
static int look_for_one(void *arg, const struct reftable_record *found)
{
	struct wanted_entry *w = arg;

	w->is_there = is_entry(w->record, found);
	return found->update_index <= w->record->member->update_index;
}

int stack_lines_has(struct stack_reader *reader, const char *name,
    const struct ref_record *record)
{
	struct wanted_entry w = { record, false };
	int r = stack_reader_logs(reader, name, look_for_one, &w);

	return r < 0 ? r : w.is_there;
}
