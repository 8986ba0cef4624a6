/*
 * Proves the check of the base of an update under the list lock. Git appends,
 * merges and cleans between the base and the lock, and JGit appends tables with
 * used indices. Whatever they do, the stack has their refs and the update's
 * refs afterwards, and the update never overwrites a change which its checks
 * did not see.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/reftable_rig.h"
#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

static struct stack_update u;

/* ---- one change by git ---- */

static const struct reftable_record ours[] = {
	{ .section = REFTABLE_REFS,
	    .name = "refs/heads/our/ref",
	    .ref = { .kind = REFTABLE_REF_OID, .oid = { { 9 } } } },
};

static void prepare(void)
{
	ck_assert_int_eq(stk_begin(&u), 0);
	ck_assert_int_eq(stk_table(&u, ours, 1), 0);
}

/* Is the base still right? */
static bool check(void)
{
	int r;

	if (!edit_is_locked(&u.list))
		ck_assert_int_eq(stack_update_lock(&u), 0);
	r = stack_base_check(&u);
	ck_assert_int_ge(r, 0);
	return r > 0;
}

static void ref_by_git(const char *name)
{
	struct stack_snapshot *snap;
	struct reftable_record rec;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	rec = rh_ref(name, snap->max_index + 1, 7);
	stk_git(rec.update_index, &rec, 1);
	stack_snapshot_put(snap);
}

static void log_by_git(const char *name)
{
	struct stack_snapshot *snap;
	struct reftable_record rec;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	rec = rh_log(name, snap->max_index + 1, 0, 7, "m\n");
	stk_git(rec.update_index, &rec, 1);
	stack_snapshot_put(snap);
}

static void clean(void)
{
	ref_by_git("refs/heads/x");
	stk_git_clean();
}

static void rewrite(void)
{
	char *list;
	size_t len;

	sys_read_file(stk.other, stk.other_dir, REFTABLE_LIST,
	    REFTABLE_LIST_MAX, &list, &len);
	rh_put(stk.other, stk.other_dir, "new", list, len);
	SYS(stk.other, renameat, stk.other_dir, "new", stk.other_dir,
	    REFTABLE_LIST);
	free(list);
}

static void nothing(void)
{
}

static void unrelated(void)
{
	ref_by_git("refs/heads/x");
}

static void unrelated_twice_and_merged(void)
{
	ref_by_git("refs/heads/x");
	ref_by_git("refs/heads/y");
	stk_git_merge(1, 4);
}

static void merged(void)
{
	stk_git_merge(1, 3);
}

static void merged_from_the_first(void)
{
	stk_git_merge(0, 2);
}

static void the_name(void)
{
	ref_by_git("refs/heads/our/ref");
}

static void the_log(void)
{
	log_by_git("refs/heads/our/ref");
}

static void above(void)
{
	ref_by_git("refs/heads/our");
}

static void below(void)
{
	ref_by_git("refs/heads/our/ref/x");
}

/* JGit counted on from the first list. */
static void the_name_by_jgit(void)
{
	const struct reftable_record rec = rh_ref("refs/heads/our/ref", 2, 8);

	stk_git(2, &rec, 1);
}

static void the_log_by_jgit(void)
{
	const struct reftable_record rec =
	    rh_log("refs/heads/our/ref", 1, 0, 7, "m\n");

	stk_git(2, &rec, 1);
}

static void unrelated_by_jgit(void)
{
	const struct reftable_record rec = rh_ref("refs/heads/x", 2, 8);

	stk_git(2, &rec, 1);
	stk_git_merge(1, 4);
}

static void the_name_and_merged(void)
{
	ref_by_git("refs/heads/our/ref");
	stk_git_merge(1, 4);
}

static const struct change_by_git {
	const char *what;
	void (*fn)(void);
	bool is_same; /* the list */
	bool has_gap; /* the index of our table stays free */
} changes[] = {
	{ "nothing", nothing, true, false },
	{ "a copy of the list", rewrite, false, false },
	{ "our index", unrelated, false, false },
	{ "an unrelated ref", unrelated, false, true },
	{ "two refs, merged", unrelated_twice_and_merged, false, true },
	{ "a merge", merged, false, false },
	{ "a merge of the first", merged_from_the_first, false, false },
	{ "the ref", the_name, false, true },
	{ "the log", the_log, false, true },
	{ "a ref above", above, false, true },
	{ "a ref below", below, false, true },
	{ "the ref, merged", the_name_and_merged, false, true },
	{ "the ref, with its index", the_name_by_jgit, false, true },
	{ "the log, with an old index", the_log_by_jgit, false, true },
	{ "a used index, merged", unrelated_by_jgit, false, true },
	{ "our table cleaned away", clean, false, false },
};

/* Our ref came before git's changes, in an old table: no new record. */
static void old_tables(void)
{
	ref_by_git("refs/heads/our/ref");
	ref_by_git("refs/heads/z");
}

CASE(.setup = stk_setup, .teardown = stk_teardown, .seconds = 120);

TEST(every_change, .times = sizeof(changes) / sizeof(*changes))
{
	const struct change_by_git *c = &changes[_i];

	old_tables();
	if (c->has_gap)
		stack_spend_index(stk.stack, 10);
	prepare();
	c->fn();
	ck_assert_msg(check() == c->is_same, "%s", c->what);
	if (!c->is_same) {
		/* The new round under the lock. */
		ck_assert_int_eq(stack_update_begin(&u), 0);
		ck_assert_int_eq(stk_table(&u, ours, 1), 0);
		ck_assert(check());
	}
	ck_assert_int_eq(stack_update_list(&u), 0);
	ck_assert_int_eq(stack_update_place(&u), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	ck_assert_ptr_nonnull(
	    strstr(stk_list(REFTABLE_REFS), "refs/heads/our/ref=9 "));
	ck_assert_ptr_nonnull(
	    strstr(stk_list(REFTABLE_REFS), "refs/heads/z=7 "));
}

TEST(the_directory_is_replaced)
{
	prepare();
	SYS(stk.other, renameat, AT_FDCWD, "/repo/reftable", AT_FDCWD,
	    "/repo/old");
	ck_assert_int_eq(stack_base_check(&u), -ESTALE);
	ck_assert_int_eq(stk_end(&u), 0);
}

/* A table with folded tables would hide new records of git. */
TEST(a_fold_needs_the_same_list)
{
	ref_by_git("refs/heads/y");
	prepare();
	u.first_folded = 1;
	unrelated();
	ck_assert(!check());
	ck_assert_int_eq(stk_end(&u), 0);
}

/* ---- bounds ---- */

static char many_names[5000][64];

/* 5,000 refs: more than 256 KiB without compression. */
static struct reftable_record *many(uint64_t index)
{
	struct reftable_record *records = calloc(5000, sizeof(*records));
	unsigned i;

	for (i = 0; i < 5000; i++) {
		snprintf(many_names[i], sizeof(many_names[i]),
		    "refs/heads/many/%06u-%06u", i, i * 7919 % 5000);
		records[i] = rh_ref(many_names[i], index, 1);
	}
	return records;
}

TEST(bounded)
{
	struct reftable_record *records;
	struct stack_snapshot *snap;
	unsigned long calls;
	unsigned i;

	prepare();
	for (i = 2; i < 5; i++) {
		records = many(i);
		stk_git(i, records, 5000);
		free(records);
	}
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	ck_assert(stack_turn_take(stk.stack, 0));
	stack_snapshot_put(snap);
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	calls = memfs_nr_calls(stk.fs);
	ck_assert(!check());
	ck_assert_uint_lt(memfs_nr_calls(stk.fs) - calls, 20);
	ck_assert_int_eq(stk_end(&u), 0);
	stack_snapshot_put(snap);
	stack_turn_give(stk.stack);
}

/* ---- random histories ---- */

#define POOL  12
#define STEPS 3000

static const char *const pool[POOL] = { "refs/heads/a", "refs/heads/b",
	"refs/heads/c", "refs/heads/d", "refs/heads/e", "refs/heads/f",
	"refs/tags/a", "refs/tags/b", "refs/tags/c", "refs/tags/d",
	"refs/tags/e", "refs/tags/f" };
static uint8_t value[POOL]; /* 0: absent */
static bool written[POOL];  /* by git since the base */

static unsigned dice(unsigned n)
{
	return (unsigned)rand() % n;
}

static struct reftable_record record_of(unsigned i, uint64_t index)
{
	return value[i] == 0 ? rh_deleted(pool[i], index) :
			       rh_ref(pool[i], index, value[i]);
}

static void git_acts(void)
{
	struct stack_snapshot *snap;
	struct reftable_record rec;
	unsigned i = dice(POOL);
	size_t nr, first;
	uint64_t index;

	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	nr = snap->tables.nr;
	if (dice(3) > 0 || nr == 1) {
		value[i] = dice(3) == 0 ? 0 : (uint8_t)(1 + dice(200));
		written[i] = true;
		index = snap->tables.tables[nr - 1].max_index + 1;
		/* JGit counted on from an older list. */
		if (dice(4) == 0 && index > 4)
			index -= dice(4);
		rec = record_of(i, index);
		stk_git(index, &rec, 1);
	} else if (dice(4) == 0) {
		stk_git_clean();
	} else {
		first = dice((unsigned)nr - 1);
		stk_git_merge(first,
		    nr > 30 ? nr :
			      first + 2 + dice((unsigned)(nr - first - 1)));
	}
	stack_snapshot_put(snap);
}

static void check_values(void)
{
	char want[64];
	const char *list = stk_list(REFTABLE_REFS);
	const char *at;
	unsigned i, is;

	ck_assert_str_ne(list, "");
	for (i = 0; i < POOL; i++) {
		snprintf(want, sizeof(want), "%s=", pool[i]);
		at = strstr(list, want);
		is = at != NULL ? (unsigned)atoi(at + strlen(want)) : 0;
		ck_assert_msg(is == value[i], "%s%u in %s", want, value[i],
		    list);
	}
}

/* The values that our checks saw. */
static uint8_t seen[POOL];

static void round_of_checks(unsigned target)
{
	struct stack_reader reader;
	const struct reftable_record *ref;
	struct reftable_record rec;
	int r;

	ck_assert_int_eq(stack_reader_init(&reader, u.base, rh_budget()), 0);
	r = stack_reader_find(&reader, pool[target], &ref);
	ck_assert_int_ge(r, 0);
	seen[target] = r > 0 ? ref->ref.oid.bytes[0] : 0;
	stack_reader_done(&reader);
	rec = rh_ref(pool[target], 0, 222);
	if (dice(2) == 0)
		stack_spend_index(stk.stack, u.base->max_index + 3);
	ck_assert_int_eq(stk_table(&u, &rec, 1), 0);
}

TEST(random_histories)
{
	unsigned step, n, target, same = 0, changed = 0;
	int r;

	srand(7);
	for (step = 0; step < STEPS; step++) {
		target = dice(POOL);
		ck_assert_int_eq(stk_begin(&u), 0);
		memset(written, 0, sizeof(written));
		round_of_checks(target);
		for (n = dice(5); n > 0; n--)
			git_acts();
		ck_assert_int_eq(stack_update_lock(&u), 0);
		r = stack_base_check(&u);
		ck_assert_int_ge(r, 0);
		same += r > 0;
		changed += r == 0;
		if (r == 0) {
			ck_assert_int_eq(stack_update_begin(&u), 0);
			round_of_checks(target);
		} else {
			ck_assert(!written[target]);
		}
		ck_assert_uint_eq(seen[target], value[target]);
		ck_assert_int_eq(stack_update_list(&u), 0);
		ck_assert_int_eq(stack_update_place(&u), 0);
		ck_assert_int_eq(stk_end(&u), 0);
		value[target] = 222;
		check_values();
	}
	ck_assert_uint_gt(same, STEPS / 20);
	ck_assert_uint_gt(changed, STEPS / 20);
}
