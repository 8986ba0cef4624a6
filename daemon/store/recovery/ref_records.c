#include "daemon/store/recovery/ref_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/reflog.h"
#include "daemon/store/files/recovery/rule.h"
#include "proto/lib/array.h"

static struct ref_records *records_of_ref(struct ref_records **all,
    const char *worktree, const char *name)
{
	struct ref_records *records;
	char *key;

	key = malloc(strlen(worktree) + strlen(name) + 2);
	if (key == NULL)
		return NULL;
	strcpy(key, worktree);
	strcat(key, "/");
	strcat(key, name);
	HASH_FIND_STR(*all, key, records);
	if (records != NULL) {
		free(key);
		return records;
	}
	records = calloc(1, sizeof(*records));
	if (records == NULL) {
		free(key);
		return NULL;
	}
	records->key = key;
	records->worktree = worktree;
	records->name = name;
	HASH_ADD_KEYPTR(hh, *all, records->key, strlen(records->key), records);
	if (records->hh.tbl != NULL)
		return records;
	free(records->key);
	free(records);
	return NULL;
}

/* The record of the same update in another row, the original or the deferred
 * copy. NULL: none. */
static struct ref_record *find_copy(const struct ref_records *records,
    const struct replay_row *row, const struct record_member *member)
{
	struct ref_record *item;
	size_t i;

	for (i = records->nr; i > 0; i--) {
		item = &records->items[i - 1];
		if (item->row->origin != row->origin)
			break;
		if (item->row != row && item->member->index == member->index)
			return item;
	}
	return NULL;
}

static bool is_log_only(const struct record_member *member)
{
	return member->action == RECORD_LOG;
}

static int add_record(struct ref_records *records, const struct replay_row *row,
    const struct record_member *member)
{
	struct ref_record *copy = find_copy(records, row, member), *grown, line;

	/* The log line was deferred first, then the whole update. */
	if (copy != NULL && is_log_only(copy->member) && !is_log_only(member)) {
		line = *copy;
		copy->row = row;
		copy->member = member;
		if (row->evidence != EVIDENCE_CRASHED)
			return 0;
		row = line.row;
		member = line.member;
	} else if (copy != NULL && copy->row->evidence != EVIDENCE_CRASHED) {
		/* Only one of the two rows redoes the update and its line. A
		 * start that crashed may have removed the lock of the original,
		 * and the copy does not need the lock, so the copy is taken. */
		if (copy->row->evidence == EVIDENCE_FAILED_SYNC &&
		    row->evidence == EVIDENCE_POWER_LOSS &&
		    !is_log_only(member)) {
			copy->row = row;
			copy->member = member;
		}
		return 0;
	}
	grown = array_room(records->items, records->nr, &records->size,
	    sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	records->items = grown;
	records->items[records->nr].row = row;
	records->items[records->nr++].member = member;
	return 0;
}

static bool is_passed(const struct ref_record *item)
{
	return item->row->passed[item->member - item->row->rec.members];
}

int ref_records_build(struct ref_records **all, const struct replay_row *rows)
{
	const struct record_member *m;
	const struct replay_row *row;
	struct ref_records *records;
	size_t i;

	for (row = rows; row != NULL; row = row->next)
		for (i = 0; i < row->rec.nr_members; i++) {
			m = &row->rec.members[i];
			if (row->dropped[i] || row->passed[i] ||
			    m->status != REFD_OK || m->action == RECORD_NOTHING)
				continue;
			records = records_of_ref(all, m->worktree, m->name);
			if (records == NULL || add_record(records, row, m) < 0)
				return -ENOMEM;
			if (m->action == RECORD_LOG)
				records->has_log_only = true;
		}
	return 0;
}

void ref_records_free(struct ref_records **all)
{
	struct ref_records *records, *next;

	HASH_ITER(hh, *all, records, next) {
		HASH_DEL(*all, records);
		free(records->items);
		free(records->key);
		free(records);
	}
}

const struct ref_records *ref_records_find(const struct ref_records *all,
    const char *key)
{
	const struct ref_records *records;

	HASH_FIND_STR(all, key, records);
	return records;
}

const struct ref_record *ref_records_last(const struct ref_records *records)
{
	size_t i = records->nr;

	while (i > 0)
		if (!is_passed(&records->items[--i]))
			return &records->items[i];
	return NULL;
}

const struct ref_record *ref_records_value(const struct ref_records *records)
{
	size_t i = records->nr;

	while (i > 0)
		if (!is_passed(&records->items[--i]) &&
		    records->items[i].member->action != RECORD_LOG)
			return &records->items[i];
	return NULL;
}

bool ref_records_know(const struct ref_records *records,
    const struct refd_oid *oid)
{
	const struct record_member *m;
	size_t i;

	for (i = 0; i < records->nr; i++) {
		m = records->items[i].member;
		if ((m->action == RECORD_WRITE &&
			refd_oid_eq(&m->new_oid, oid)) ||
		    (m->had_old && refd_oid_eq(&m->old_oid, oid)) ||
		    (m->had_packed && refd_oid_eq(&m->packed_oid, oid)))
			return true;
	}
	return false;
}

bool ref_records_replaced(const struct ref_records *records,
    const struct loose_value *loose)
{
	size_t i;

	for (i = 0; i < records->nr; i++)
		if (rule_is_replaced(records->items[i].member, loose))
			return true;
	return false;
}

/* ---- lines ---- */

static int append_line(struct ref_records_lines *lines, char *line)
{
	char **grown;

	grown =
	    array_room(lines->lines, lines->nr, &lines->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	lines->lines = grown;
	lines->lines[lines->nr++] = line;
	return 0;
}

void ref_records_lines_done(struct ref_records_lines *lines)
{
	while (lines->nr > 0)
		free(lines->lines[--lines->nr]);
	free(lines->lines);
	free(lines->last);
	memset(lines, 0, sizeof(*lines));
}

/* IS_DUE says whether the record is to be redone, or is known to be done. */
static int collect_line(struct ref_records_lines *lines,
    const struct ref_record *item, bool is_due)
{
	size_t len;
	char *line;
	int r = 0;

	if (item->member->action == RECORD_DELETE) {
		ref_records_lines_done(lines);
		lines->begin_log = true;
		lines->deletes = is_due;
		return 0;
	}
	/* The ref was absent, so its deletion has removed the log too. */
	if (item->member->action == RECORD_WRITE && !item->member->had_old &&
	    item->member->target == NULL && !lines->deletes) {
		ref_records_lines_done(lines);
		lines->begin_log = true;
	}
	/* A finished write after the deletion is in the present log, so the log
	 * stays. */
	if (!is_due && item->member->action == RECORD_WRITE)
		lines->deletes = false;
	if (!is_due || !item->member->log)
		return 0;
	line = edit_line(&item->row->rec, item->member, &len);
	if (line == NULL)
		return -ENOMEM;
	lines->row = item->row;
	if (item->row->evidence == EVIDENCE_CRASHED)
		lines->last = line;
	else
		r = append_line(lines, line);
	if (r < 0)
		free(line);
	return r;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two updates within a second may have equal lines, so the lines of OLDER that
 * are equal to lines of LINES are put in front. */
static int add_known(struct ref_records_lines *lines,
    const struct ref_records *older)
{
	struct ref_records_lines known;
	char **sorted, **all = NULL;
	size_t i, nr = 0;
	int r;

	r = ref_records_log_lines(older, NULL, false, NULL, &known);
	sorted = calloc(lines->nr, sizeof(*sorted));
	if (r == 0 && sorted != NULL)
		all = calloc(known.nr + lines->nr, sizeof(*all));
	if (all == NULL) {
		free(sorted);
		ref_records_lines_done(&known);
		return -ENOMEM;
	}
	memcpy(sorted, lines->lines, lines->nr * sizeof(*sorted));
	qsort(sorted, lines->nr, sizeof(*sorted), compare_lines);
	for (i = 0; i < known.nr; i++)
		if (bsearch(&known.lines[i], sorted, lines->nr, sizeof(*sorted),
			compare_lines) != NULL) {
			all[nr++] = known.lines[i];
			known.lines[i] = NULL;
		}
	free(sorted);
	ref_records_lines_done(&known);
	memcpy(all + nr, lines->lines, lines->nr * sizeof(*all));
	free(lines->lines);
	lines->lines = all;
	lines->known = nr;
	lines->nr += nr;
	lines->size = lines->nr;
	return 0;
}

int ref_records_log_lines(const struct ref_records *records,
    const struct ref_record *after, bool held, const struct ref_records *older,
    struct ref_records_lines *out)
{
	const struct ref_record *item, *last = ref_records_last(records);
	int r = 0;

	memset(out, 0, sizeof(*out));
	item = after != NULL ? after + 1 : records->items;
	for (; item < records->items + records->nr && r == 0; item++)
		if (!is_passed(item))
			r = collect_line(out, item,
			    item->row->evidence != EVIDENCE_CRASHED ||
				(item == last && held));
	if (r == 0 && older != NULL && out->nr > 0 && !out->begin_log)
		r = add_known(out, older);
	if (r < 0)
		ref_records_lines_done(out);
	return r;
}
