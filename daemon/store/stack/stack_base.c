/*
 * Is the base of an update still the present list?
 *
 * Happy path: the list has the same bytes. Names of tables are random and never
 * come back, so the content is the same too.
 *
 * Otherwise git appended tables, and perhaps merged tables, as after nearly
 * every update. If the first table is still there, git dropped no tombstone:
 * every record of the base is still in the stack, or hidden by a new record.
 * New records are in tables which the base lacks, beside old ones that git
 * merged. No index tells the two apart, because a writer may use an index again
 * (reftable_stack.h). So the newest record with the key is looked up in both
 * stacks. A log entry that git rewrote keeps its key: refd neither reads nor
 * hides such an entry by a table of its own.
 *
 * Failures: a damaged stack, a directory which was replaced.
 */
#include "daemon/store/stack/stack_update.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/stack/stack_reader.h"

/* ---- names ---- */

/* The order of NAME and the first LEN bytes of KEY. */
static int compare(const char *name, const char *key, size_t len)
{
	int order = strncmp(name, key, len);

	return order != 0 ? order : name[len] != '\0';
}

/* The first of NAMES that is not less than the first LEN bytes of KEY. */
static size_t first(const char *const *names, size_t nr, const char *key,
    size_t len)
{
	size_t low = 0, mid;

	while (low < nr) {
		mid = low + (nr - low) / 2;
		if (compare(names[mid], key, len) < 0)
			low = mid + 1;
		else
			nr = mid;
	}
	return low;
}

static bool has(const char *const *names, size_t nr, const char *key,
    size_t len)
{
	const size_t i = first(names, nr, key, len);

	return i < nr && compare(names[i], key, len) == 0;
}

bool stack_base_touches(const char *const *names, size_t nr, const char *name)
{
	const size_t len = strlen(name);
	char dir[REFTABLE_NAME_MAX + 2];
	const char *slash;
	size_t i;

	for (slash = name; (slash = strchr(slash, '/')) != NULL; slash++)
		if (has(names, nr, name, (size_t)(slash - name)))
			return true;
	if (has(names, nr, name, len))
		return true;
	if (len > REFTABLE_NAME_MAX)
		return false;
	memcpy(dir, name, len);
	memcpy(dir + len, "/", 2);
	i = first(names, nr, dir, len + 1);
	return i < nr && strncmp(names[i], dir, len + 1) == 0;
}

/* ---- new records ---- */

/* Logs of STACK_SCAN_MAX bytes may inflate to some times as much. */
#define SCAN_WORK_MAX (16 * STACK_SCAN_MAX)

struct scan {
	const struct stack_snapshot *base, *now;
	struct stack_reader was, is; /* of the two */
	stack_touches_fn *touches;
	void *arg;
	struct reftable_fault *fault;
	struct reftable_budget budget;
};

static bool has_table(const struct stack_snapshot *snap, const char *name)
{
	size_t i;

	for (i = 0; i < snap->tables.nr; i++)
		if (strcmp(snap->tables.tables[i].name, name) == 0)
			return true;
	return false;
}

static bool is_same_ref(const struct reftable_ref *a,
    const struct reftable_ref *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == REFTABLE_REF_SYMREF)
		return a->target.len == b->target.len &&
		    memcmp(a->target.at, b->target.at, a->target.len) == 0;
	return refd_oid_eq(&a->oid, &b->oid);
}

static bool is_same(const struct reftable_record *a,
    const struct reftable_record *b)
{
	return a->update_index == b->update_index &&
	    a->is_deletion == b->is_deletion &&
	    (a->section == REFTABLE_LOGS || a->is_deletion ||
		is_same_ref(&a->ref, &b->ref));
}

/* 1: the stacks have different records with the key of CURSOR. */
static int is_changed(struct scan *s, enum reftable_section section,
    const struct reftable_cursor *cursor)
{
	const struct reftable_record *was, *is;
	int had, has;

	had = stack_reader_record(&s->was, section, cursor->key,
	    cursor->key_len, &was);
	if (had < 0)
		*s->fault = s->was.fault;
	if (had < 0)
		return had;
	has = stack_reader_record(&s->is, section, cursor->key, cursor->key_len,
	    &is);
	if (has < 0)
		*s->fault = s->is.fault;
	if (has < 0)
		return has;
	return had != has || (had > 0 && !is_same(was, is));
}

/* 1: a new record of TABLE touches a name. */
static int scan_section(struct scan *s, const struct reftable_table *table,
    enum reftable_section section)
{
	struct reftable_iterator it = { .budget = &s->budget };
	int r = reftable_iterator_seek(&it, table, section, (const uint8_t *)"",
	    0, s->fault);

	while (r == 0) {
		r = reftable_iterator_next(&it, s->fault);
		if (r <= 0)
			break;
		r = s->touches(s->arg, it.cursor.record.name) ?
		    is_changed(s, section, &it.cursor) :
		    0;
	}
	reftable_iterator_done(&it);
	return r;
}

static int scan_tables(struct scan *s)
{
	const struct reftable_stack *t = &s->now->tables;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < t->nr; i++) {
		if (has_table(s->base, t->tables[i].name))
			continue;
		r = scan_section(s, &t->tables[i], REFTABLE_REFS);
		if (r == 0)
			r = scan_section(s, &t->tables[i], REFTABLE_LOGS);
	}
	return r;
}

/* 1: a new record touches a name, or there is too much to read. */
static int scan(struct scan *s)
{
	const struct reftable_stack *t = &s->now->tables;
	uint64_t bytes = 0;
	size_t i;
	int r;

	for (i = 0; i < t->nr; i++)
		if (!has_table(s->base, t->tables[i].name))
			bytes += t->tables[i].file_size;
	if (bytes > STACK_SCAN_MAX)
		return 1;
	r = stack_reader_init(&s->was, s->base, &s->budget);
	if (r == 0)
		r = stack_reader_init(&s->is, s->now, &s->budget);
	if (r == 0)
		r = scan_tables(s);
	stack_reader_done(&s->was);
	stack_reader_done(&s->is);
	/* A block that inflates to megabytes: the new round decides. */
	return r == -EFBIG ? 1 : r;
}

/* ---- the check ---- */

/* Has another program removed our table? Git cleans up unlisted tables whose
 * index is not above the list. */
static int lost_table(struct stack_update *u)
{
	struct sys_stat st;
	int r = 0;

	if (!u->has_table)
		return 0;
	r = SYS(u->stack->sys, lstatat, u->stack->dirfd, u->table, &st);
	if (r == -ENOENT)
		return 1;
	return r < 0 ?
	    r :
	    st.ino != u->table_stat.ino || st.dev != u->table_stat.dev;
}

static bool may_grow(const struct stack_update *u,
    const struct stack_snapshot *now)
{
	const struct reftable_stack *was = &u->base->tables;

	return strcmp(was->tables[0].name, now->tables.tables[0].name) == 0 &&
	    u->first_folded == u->end_folded &&
	    (!u->has_table || u->index > now->max_index);
}

/* NR folded tables begin at FIRST of NOW. */
static void replace_base(struct stack_update *u, struct stack_snapshot *now,
    size_t first, size_t nr)
{
	stack_snapshot_put(u->base);
	stack_snapshot_hold(now);
	u->base = now;
	u->first_folded = first;
	u->end_folded = first + nr;
	u->is_base_synced = false;
}

/* A merge needs its tables in the list, in order, as in git. If no table was
 * before, the merged table lacks tombstones, and no table may be before now. */
static int find_merged(struct stack_update *u, struct stack_snapshot *now,
    enum stack_base *result)
{
	const struct reftable_table *was =
	    u->base->tables.tables + u->first_folded;
	const size_t nr = u->end_folded - u->first_folded;
	const struct reftable_stack *is = &now->tables;
	size_t at = 0, i;
	int r;

	while (at < is->nr && strcmp(is->tables[at].name, was->name) != 0)
		at++;
	if (at + nr > is->nr || (u->first_folded == 0 && at > 0))
		return 0;
	for (i = 0; i < nr; i++)
		if (strcmp(is->tables[at + i].name, was[i].name) != 0)
			return 0;
	replace_base(u, now, at, nr);
	r = stack_fold_lock(u);
	if (r < 0)
		return r == -EEXIST ? 0 : r;
	*result = STACK_BASE_GREW;
	return 0;
}

static int compare_lists(struct stack_update *u, stack_touches_fn *touches,
    void *arg, struct stack_snapshot *now, enum stack_base *result)
{
	struct scan s = { .base = u->base,
		.now = now,
		.touches = touches,
		.arg = arg,
		.fault = &u->fault,
		.budget = REFTABLE_BUDGET(SCAN_WORK_MAX) };
	int r;

	if (strcmp(now->tables.list, u->base->tables.list) == 0) {
		r = stack_fold_lock(u);
		if (r < 0)
			return r == -EEXIST ? 0 : r;
		*result = STACK_BASE_SAME;
		return 0;
	}
	if (u->is_merge)
		return find_merged(u, now, result);
	if (!may_grow(u, now))
		return 0;
	r = scan(&s);
	if (r != 0)
		return r < 0 ? r : 0;
	*result = STACK_BASE_GREW;
	replace_base(u, now, now->tables.nr, 0);
	return 0;
}

/* Our own table lies beside a list that is empty by now. The next round drops
 * the table, and reads the stack again. */
static bool is_emptied(struct stack_update *u)
{
	struct reftable_fault ignored;
	struct reftable_stack now;
	bool is_empty;

	if (!u->has_table ||
	    reftable_stack_read_list(u->stack->sys, u->stack->dirfd, &now,
		&ignored) < 0)
		return false;
	is_empty = now.list_len == 0;
	free(now.list);
	return is_empty;
}

int stack_base_check(struct stack_update *u, stack_touches_fn *touches,
    void *arg, enum stack_base *result)
{
	struct stack_snapshot *now;
	int r = 0;

	*result = STACK_BASE_CHANGED;
	memset(&u->fault, 0, sizeof(u->fault));
	snprintf(u->fault.table, sizeof(u->fault.table), "%s", REFTABLE_LIST);
	if (u->git_fd >= 0)
		r = stack_is_there(u->stack, u->git_fd);
	if (r == 0)
		r = lost_table(u);
	if (r != 0)
		return r < 0 ? r : 0;
	r = stack_snapshot(u->stack, &now, &u->fault);
	if (r < 0)
		return r == -EBADMSG && is_emptied(u) ? 0 : r;
	r = compare_lists(u, touches, arg, now, result);
	stack_snapshot_put(now);
	return r;
}
