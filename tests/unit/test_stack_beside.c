/*
 * Proves in random histories that folding and merging get along with git, which
 * appends, merges under the locks of its tables, and cleans at any point: every
 * ref has the last value, and git finds each table which it has locked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_merge.h"
#include "daemon/store/tables/stack/stack_sweep.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

static struct stack_update u;

static size_t nr_tables(void)
{
	struct stack_snapshot *snap;
	size_t nr;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	nr = snap->tables.nr;
	stack_snapshot_put(snap);
	return nr;
}

static void tidy(void)
{
	if (stack_tidy_begin(stk.stack))
		stack_tidy_end(stk.stack, 1, 1);
}

#define POOL  10
#define STEPS 3000

static uint8_t value[POOL]; /* 0: absent */
static char names[POOL][16];

/* Git's merge: its tables are locked while it writes. */
static struct {
	bool is_running;
	size_t nr;
	char tables[64][REFTABLE_TABLE_NAME_MAX + 8];
	uint64_t min_index, max_index;
	struct rh_bytes bytes;
} merging;

static unsigned dice(unsigned n)
{
	return (unsigned)rand() % n;
}

static struct stack_snapshot *now(void)
{
	struct stack_snapshot *snap;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	return snap;
}

static void git_writes(void)
{
	struct stack_snapshot *snap = now();
	const uint64_t index = snap->max_index + 1;
	unsigned i = dice(POOL);
	struct reftable_record rec;

	value[i] = dice(3) == 0 ? 0 : (uint8_t)(1 + dice(200));
	rec = value[i] == 0 ? rh_deleted(names[i], index) :
			      rh_ref(names[i], index, value[i]);
	stk_git(index, &rec, 1);
	stack_snapshot_put(snap);
}

static bool lock_table(const char *table, bool is_lock)
{
	char lock[REFTABLE_TABLE_NAME_MAX + 8];
	int fd;

	snprintf(lock, sizeof(lock), "%s.lock", table);
	if (!is_lock)
		return SYS(stk.other, unlinkat, stk.other_dir, lock) == 0;
	fd = SYS(stk.other, openat, stk.other_dir, lock,
	    O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd >= 0)
		SYS(stk.other, close, fd);
	return fd >= 0;
}

static void git_begins_merge(void)
{
	struct stack_snapshot *snap = now();
	const struct reftable_stack *t = &snap->tables;
	size_t first, end, i;

	if (t->nr < 2 || t->nr > 60) {
		stack_snapshot_put(snap);
		return;
	}
	first = dice((unsigned)t->nr - 1);
	end = first + 2 + dice((unsigned)(t->nr - first - 1));
	for (i = end; i > first; i--)
		ck_assert(lock_table(t->tables[i - 1].name, true));
	merging.nr = end - first;
	for (i = first; i < end; i++)
		strcpy(merging.tables[i - first], t->tables[i].name);
	merging.min_index = t->tables[first].context.min_index;
	merging.max_index = t->tables[end - 1].max_index;
	ck_assert_int_eq(rh_merge(t, first, end, &merging.bytes, &stk.fault),
	    0);
	merging.is_running = true;
	stack_snapshot_put(snap);
}

/* As stack_compact_range(): all its tables are still there, in order. */
static void git_ends_merge(void)
{
	struct stack_snapshot *snap = now();
	const struct reftable_stack *t = &snap->tables;
	struct rh_bytes list = { 0 };
	char name[REFTABLE_WRITER_NAME];
	size_t at = 0, i;

	while (at < t->nr && strcmp(t->tables[at].name, merging.tables[0]) != 0)
		at++;
	for (i = 0; i < merging.nr; i++) {
		ck_assert_msg(at + i < t->nr, "a locked table has gone");
		ck_assert_str_eq(t->tables[at + i].name, merging.tables[i]);
	}
	reftable_writer_name(merging.min_index, merging.max_index, ++stk.random,
	    name);
	rh_put(stk.other, stk.other_dir, name, merging.bytes.data,
	    merging.bytes.len);
	for (i = 0; i < t->nr; i++) {
		if (i > at && i < at + merging.nr)
			continue;
		rh_append(&list, i == at ? name : t->tables[i].name,
		    strlen(i == at ? name : t->tables[i].name));
		rh_append(&list, "\n", 1);
	}
	rh_put(stk.other, stk.other_dir, "new", list.data, list.len);
	SYS(stk.other, renameat, stk.other_dir, "new", stk.other_dir,
	    REFTABLE_LIST);
	for (i = 0; i < merging.nr; i++) {
		SYS(stk.other, unlinkat, stk.other_dir, merging.tables[i]);
		lock_table(merging.tables[i], false);
	}
	rh_free(&merging.bytes);
	rh_free(&list);
	merging.is_running = false;
	stack_snapshot_put(snap);
}

static void git_acts(void)
{
	const unsigned d = dice(10);

	if (d < 5)
		git_writes();
	else if (d < 6)
		stk_git_clean();
	else if (merging.is_running)
		git_ends_merge();
	else if (d < 8)
		git_begins_merge();
}

static void write_by_us(void)
{
	const unsigned i = dice(POOL);
	const uint8_t to = dice(4) == 0 ? 0 : (uint8_t)(1 + dice(200));
	const struct reftable_record rec =
	    to == 0 ? rh_deleted(names[i], 0) : rh_ref(names[i], 0, to);
	unsigned n;
	int r = 0;

	ck_assert_int_eq(stk_begin(&u), 0);
	u.may_fold = true;
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
	for (n = dice(4); n > 0; n--)
		git_acts();
	ck_assert_int_eq(stack_update_lock(&u), 0);
	for (n = 0; r == 0; n++) {
		ck_assert_uint_lt(n, 2);
		if (n > 0) {
			ck_assert_int_eq(stack_update_begin(&u), 0);
			ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
		}
		r = stack_base_check(&u);
		ck_assert_int_ge(r, 0);
	}
	ck_assert_int_eq(stack_update_list(&u), 0);
	ck_assert_int_eq(stack_update_place(&u), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	value[i] = to;
}

static void merge_by_us(void)
{
	int r;

	memset(&u, 0, sizeof(u));
	ck_assert_int_eq(
	    token_init(&stk.token, stk.sys, stk.stage_fd, ++stk.batch), 0);
	stack_update_init(&u, stk.stack, stk.git_fd, &stk.token, 0);
	r = stack_merge_make(&u);
	ck_assert_int_ge(r, 0);
	if (dice(2) == 0)
		git_acts();
	if (r > 0) {
		r = stack_merge_publish(&u, NULL, INT64_MIN, false);
		ck_assert(r == 0 || r == -EAGAIN);
	}
	ck_assert_int_eq(stk_end(&u), 0);
}

static void check_values(void)
{
	const char *list = stk_list(REFTABLE_REFS);
	char want[256];
	const char *at;
	unsigned i, is;

	for (i = 0; i < POOL; i++) {
		snprintf(want, sizeof(want), "%s=", names[i]);
		at = strstr(list, want);
		is = at != NULL ? (unsigned)atoi(at + strlen(want)) : 0;
		ck_assert_msg(is == value[i], "%s%u in %s", want, value[i],
		    list);
	}
}

/* A first table that is too large for folding, with all names. */
static void add_large_table(void)
{
	static char more[2000][32];
	struct reftable_record records[POOL + 2000];
	unsigned i;

	for (i = 0; i < POOL; i++) {
		value[i] = 7;
		records[i] = rh_ref(names[i], 2, 7);
	}
	for (i = 0; i < 2000; i++) {
		snprintf(more[i], sizeof(more[i]), "refs/more/%u", 10000 + i);
		records[POOL + i] = rh_ref(more[i], 2, 1);
	}
	stk_git(2, records, POOL + 2000);
}

CASE(.setup = stk_setup, .teardown = stk_teardown, .seconds = 120);

TEST(beside_git, .times = 3)
{
	unsigned step, i;
	size_t most = 0;

	srand((unsigned)_i + 1);
	for (i = 0; i < POOL; i++)
		snprintf(names[i], sizeof(names[i]), "refs/heads/%u", i);
	if (_i > 0)
		add_large_table();
	for (step = 0; step < STEPS / (_i > 0 ? 5 : 1); step++) {
		if (dice(3) == 0)
			git_acts();
		if (dice(5) == 0)
			merge_by_us();
		else
			write_by_us();
		if (dice(10) == 0)
			tidy();
		check_values();
		if (most < nr_tables())
			most = nr_tables();
	}
	/* Git holds the locks of its merges for long here. */
	ck_assert_uint_lt(most, 100);
	ck_assert_uint_eq(stk_nr_staged(), 0);
	if (merging.is_running)
		git_ends_merge();
}
