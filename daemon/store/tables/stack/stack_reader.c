/*
 * Happy path: a record of a later table hides earlier records, so a look-up
 * asks the newest table first. A search merges the tables from a key on, and of
 * equal keys the newest table counts.
 *
 * Failures: a damaged table ends the call. A reader may be used further.
 */
#include "daemon/store/tables/stack/stack_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_merged.h"

/* The work of a step of a search, for each table, because a step compares the
 * cursors of all tables. */
#define STEP_WORK 16

/* The position in one table. */
struct stack_cursor {
	struct reftable_iterator it;
	bool has; /* it.cursor has a record that was not used */
};

int stack_reader_init(struct stack_reader *r, const struct stack_snapshot *snap,
    struct reftable_budget *budget)
{
	const size_t nr = snap->tables.nr;
	size_t i;

	memset(r, 0, sizeof(*r));
	r->snap = snap;
	r->budget = budget;
	r->refs = calloc(2 * nr + 1, sizeof(*r->refs));
	if (r->refs == NULL)
		return -ENOMEM;
	r->logs = r->refs + nr;
	for (i = 0; i < 2 * nr; i++)
		r->refs[i].it.budget = budget;
	return 0;
}

void stack_reader_done(struct stack_reader *r)
{
	size_t i;

	for (i = 0; r->refs != NULL && i < 2 * r->snap->tables.nr; i++)
		reftable_iterator_done(&r->refs[i].it);
	free(r->refs);
	r->refs = r->logs = NULL;
}

/* Puts the cursor of table I on the first record with KEY or a greater key. */
static int seek(struct stack_reader *r, enum reftable_section section, size_t i,
    const uint8_t *key, size_t key_len)
{
	struct stack_cursor *c =
	    section == REFTABLE_REFS ? &r->refs[i] : &r->logs[i];
	int n;

	c->has = false;
	n = reftable_iterator_seek(&c->it, &r->snap->tables.tables[i], section,
	    key, key_len, &r->fault);
	if (n == 0)
		n = reftable_iterator_next(&c->it, &r->fault);
	c->has = n > 0;
	return n < 0 ? n : 0;
}

static bool is_name(const char *name)
{
	const size_t len = strlen(name);

	return len > 0 && len <= REFTABLE_NAME_MAX;
}

int stack_reader_record(struct stack_reader *r, enum reftable_section section,
    const uint8_t *key, size_t key_len, const struct reftable_record **rec)
{
	const struct stack_cursor *cursors =
	    section == REFTABLE_REFS ? r->refs : r->logs;
	const struct reftable_cursor *found;
	size_t i;
	int n;

	r->earlier_index = 0;
	r->budget->work += STACK_WORK_EACH;
	for (i = r->snap->tables.nr; i-- > 0;) {
		n = seek(r, section, i, key, key_len);
		if (n < 0)
			return n;
		found = &cursors[i].it.cursor;
		if (!cursors[i].has ||
		    reftable_block_compare(found->key, found->key_len, key,
			key_len) != 0)
			continue;
		r->earlier_index =
		    reftable_stack_max_index(r->snap->tables.tables, i);
		*rec = &found->record;
		return 1;
	}
	return 0;
}

int stack_reader_find(struct stack_reader *r, const char *name,
    const struct reftable_record **ref)
{
	const struct reftable_record *rec;
	int n = 0;

	r->deleted_index = r->earlier_index = 0;
	if (is_name(name))
		n = stack_reader_record(r, REFTABLE_REFS, (const uint8_t *)name,
		    strlen(name), &rec);
	if (n <= 0)
		return n;
	if (rec->is_deletion)
		r->deleted_index = rec->update_index;
	else if (ref != NULL)
		*ref = rec;
	return !rec->is_deletion;
}

/* ---- searches in all tables ---- */

static int compare(const struct stack_cursor *a, const struct stack_cursor *b)
{
	return reftable_block_compare(a->it.cursor.key, a->it.cursor.key_len,
	    b->it.cursor.key, b->it.cursor.key_len);
}

/* Puts all cursors on the first record with KEY or a greater key. */
static int start(struct stack_reader *r, enum reftable_section section,
    const char *key, size_t key_len)
{
	size_t i;
	int n = 0;

	for (i = 0; n == 0 && i < r->snap->tables.nr; i++)
		n = seek(r, section, i, (const uint8_t *)key, key_len);
	return n;
}

/* The cursor with the least key, of the newest table, or NULL at the end. */
static struct stack_cursor *least(struct stack_reader *r,
    struct stack_cursor *cursors)
{
	struct stack_cursor *best = NULL;
	size_t i;

	for (i = r->snap->tables.nr; i-- > 0;)
		if (cursors[i].has &&
		    (best == NULL || compare(&cursors[i], best) < 0))
			best = &cursors[i];
	return best;
}

/* Moves all cursors with the key of AT on, AT last, because AT has the key. */
static int pass(struct stack_reader *r, struct stack_cursor *cursors,
    struct stack_cursor *at)
{
	struct stack_cursor *c;
	const size_t nr = r->snap->tables.nr;
	size_t i;
	int n;

	/* All cursors were compared, so all of them count as work. */
	n = reftable_table_spend(at->it.table, at->it.block.position, r->budget,
	    nr * STEP_WORK, &r->fault);
	if (n < 0)
		return n;
	for (i = 0; i <= nr; i++) {
		c = i < nr ? &cursors[i] : at;
		if (!c->has || (c == at) != (i == nr) || compare(c, at) != 0)
			continue;
		n = reftable_iterator_next(&c->it, &r->fault);
		c->has = n > 0;
		if (n < 0)
			return n;
	}
	return 0;
}

/* ---- logs ---- */

int stack_reader_logs(struct stack_reader *r, const char *name,
    stack_log_fn *fn, void *arg)
{
	struct stack_cursor *c;
	int n;

	if (!is_name(name))
		return 0;
	r->budget->work += STACK_WORK_EACH;
	/* The key of a log record is the name, NUL and a number, so all entries
	 * of NAME follow. */
	n = start(r, REFTABLE_LOGS, name, strlen(name) + 1);
	while (n == 0 && (c = least(r, r->logs)) != NULL &&
	    strcmp(c->it.cursor.record.name, name) == 0) {
		if (!c->it.cursor.record.is_deletion)
			n = fn(arg, &c->it.cursor.record);
		if (n == 0)
			n = pass(r, r->logs, c);
	}
	return n;
}

static int stop(void *arg, const struct reftable_record *log)
{
	(void)arg;
	(void)log;
	return 1;
}

int stack_reader_has_log(struct stack_reader *r, const char *name)
{
	return stack_reader_logs(r, name, stop, NULL);
}

/* ---- conflicts ---- */

/* Is it known, without a further search, that no ref has the first LEN bytes of
 * NAME as its name? */
static bool is_clear_dir(const struct stack_reader *r, const char *name,
    size_t len)
{
	return strncmp(r->clear_dir, name, len) == 0 &&
	    (r->clear_dir[len] == '\0' || r->clear_dir[len] == '/');
}

static int find_above(struct stack_reader *r, const char *name,
    stack_skip_fn *skip, void *arg, char found[REFD_PATH_MAX])
{
	const char *last = strrchr(name, '/'), *slash;
	const size_t dir_len = last != NULL ? (size_t)(last - name) : 0;
	bool is_clear = true;
	int n;

	for (slash = name; (slash = strchr(slash, '/')) != NULL; slash++) {
		if (is_clear_dir(r, name, (size_t)(slash - name)))
			continue;
		memcpy(found, name, (size_t)(slash - name));
		found[slash - name] = '\0';
		n = stack_reader_find(r, found, NULL);
		if (n < 0 || (n > 0 && (skip == NULL || !skip(arg, found))))
			return n;
		is_clear = is_clear && n == 0;
	}
	if (is_clear) {
		memcpy(r->clear_dir, name, dir_len);
		r->clear_dir[dir_len] = '\0';
	}
	return 0;
}

static int find_below(struct stack_reader *r, const char *name,
    stack_skip_fn *skip, void *arg, char found[REFD_PATH_MAX])
{
	const size_t len = strlen(name) + 1;
	const struct reftable_record *rec;
	char dir[REFD_PATH_MAX + 1];
	struct stack_cursor *c;
	int n;

	r->budget->work += STACK_WORK_EACH;
	memcpy(dir, name, len - 1);
	memcpy(dir + len - 1, "/", 2);
	n = start(r, REFTABLE_REFS, dir, len);
	while (n == 0 && (c = least(r, r->refs)) != NULL &&
	    strncmp(c->it.cursor.record.name, dir, len) == 0) {
		rec = &c->it.cursor.record;
		if (!rec->is_deletion &&
		    (skip == NULL || !skip(arg, rec->name))) {
			memcpy(found, rec->name, strlen(rec->name) + 1);
			return 1;
		}
		n = pass(r, r->refs, c);
	}
	return n;
}

int stack_reader_conflict(struct stack_reader *r, const char *name,
    stack_skip_fn *skip, void *arg, char found[REFD_PATH_MAX])
{
	int n;

	if (!is_name(name))
		return 0;
	n = find_above(r, name, skip, arg, found);
	return n != 0 ? n : find_below(r, name, skip, arg, found);
}

/* ---- all records ---- */

int stack_reader_each(struct stack_reader *r, enum reftable_section section,
    const char *prefix, stack_record_fn *fn, void *arg)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	char last[REFD_PATH_MAX] = "";
	int n;

	n = reftable_merged_open(&r->snap->tables, section, prefix, false,
	    r->budget, &merged, &r->fault);
	if (n < 0)
		return n;
	while ((n = reftable_merged_next(merged, &rec, &r->fault)) > 0) {
		n = 0;
		if (strncmp(rec->name, prefix, strlen(prefix)) != 0)
			break;
		if (section == REFTABLE_LOGS) {
			if (strcmp(rec->name, last) == 0)
				continue;
			memcpy(last, rec->name, strlen(rec->name) + 1);
		}
		n = fn(arg, rec);
		if (n != 0)
			break;
	}
	reftable_merged_free(merged);
	return n;
}
