/*
 * Proves look-ups of refs and logs in a stack of several tables: the newest
 * record counts, a tombstone hides older records, and refs above and below a
 * name are found. In any order of names the results are those of a search
 * without memory. All work has a bound.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

static struct stack_snapshot *snap;
static struct stack_reader reader;

static void start(void)
{
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	ck_assert_int_eq(stack_reader_init(&reader, snap, rh_budget()), 0);
}

static void end(void)
{
	stack_reader_done(&reader);
	stack_reader_done(&reader);
	stack_snapshot_put(snap);
}

static int find(const char *name)
{
	const struct reftable_record *ref = NULL;
	int r = stack_reader_find(&reader, name, &ref);

	if (r > 0)
		ck_assert_str_eq(ref->name, name);
	return r > 0 ? ref->ref.oid.bytes[0] : r;
}

static void add_tables(void)
{
	struct reftable_record second[] = {
		rh_ref("refs/heads/a", 2, 2),
		rh_ref("refs/heads/dir/x", 2, 2),
		rh_ref("refs/heads/dir/y", 2, 2),
		rh_log("refs/heads/a", 2, 0, 2, "a\n"),
		rh_log("refs/heads/dir/x", 2, 0, 2, "x\n"),
	};
	struct reftable_record third[] = {
		rh_ref("refs/heads/a", 3, 3),
		rh_deleted("refs/heads/dir/x", 3),
		rh_log("refs/heads/a", 3, 2, 3, "a\n"),
		rh_log("refs/heads/dir/x", 2, 0, 0, ""),
	};

	third[3].is_deletion = true;
	stk_git(2, second, 5);
	stk_git(3, third, 4);
}

CASE(.setup = stk_setup, .teardown = stk_teardown);

TEST(look_ups)
{
	const struct reftable_record *ref;

	add_tables();
	start();
	ck_assert_int_eq(find("refs/heads/a"), 3);
	ck_assert_uint_eq(reader.earlier_index, 2);
	ck_assert_int_eq(find("refs/heads/main"), 1);
	ck_assert_uint_eq(reader.earlier_index, 0);
	ck_assert_int_eq(find("refs/heads/dir/x"), 0);
	ck_assert_uint_eq(reader.deleted_index, 3);
	ck_assert_uint_eq(reader.earlier_index, 2);
	ck_assert_int_eq(find("refs/heads/dir/y"), 2);
	ck_assert_int_eq(find("refs/heads/dir"), 0);
	ck_assert_uint_eq(reader.deleted_index, 0);
	ck_assert_int_eq(find("refs/heads/zzz"), 0);
	ck_assert_int_eq(find(""), 0);
	ck_assert_int_eq(stack_reader_find(&reader, "HEAD", &ref), 1);
	ck_assert_int_eq(ref->ref.kind, REFTABLE_REF_SYMREF);
	ck_assert_uint_eq(ref->update_index, 1);
	end();
}

TEST(a_table_with_a_used_index)
{
	const struct reftable_record late = rh_ref("refs/heads/a", 2, 9);

	add_tables();
	stk_git(2, &late, 1);
	start();
	ck_assert_uint_eq(snap->max_index, 3);
	ck_assert_uint_eq(stack_next_index(stk.stack, snap), 4);
	ck_assert_int_eq(find("refs/heads/a"), 9);
	ck_assert_uint_eq(reader.earlier_index, 3);
	end();
}

/* stack_log_fn */
static int add_index(void *arg, const struct reftable_record *log)
{
	uint64_t *sum = arg;

	*sum = *sum * 10 + log->update_index;
	return 0;
}

TEST(logs)
{
	uint64_t sum = 0;

	add_tables();
	start();
	ck_assert_int_eq(
	    stack_reader_logs(&reader, "refs/heads/a", add_index, &sum), 0);
	ck_assert_uint_eq(sum, 32);
	ck_assert_int_eq(stack_reader_has_log(&reader, "refs/heads/a"), 1);
	ck_assert_int_eq(stack_reader_has_log(&reader, "refs/heads/main"), 1);
	ck_assert_int_eq(stack_reader_has_log(&reader, "refs/heads/dir/x"), 0);
	ck_assert_int_eq(stack_reader_has_log(&reader, "refs/heads/dir/y"), 0);
	ck_assert_int_eq(stack_reader_has_log(&reader, "refs/heads/"), 0);
	ck_assert_int_eq(stack_reader_has_log(&reader, ""), 0);
	end();
}

static bool skip_y(void *arg, const char *name)
{
	(void)arg;
	return strcmp(name, "refs/heads/dir/y") == 0;
}

static bool skip_a(void *arg, const char *name)
{
	(void)arg;
	return strcmp(name, "refs/heads/a") == 0;
}

static const char *conflict(const char *name, stack_skip_fn *skip)
{
	static char found[REFD_PATH_MAX];
	int r = stack_reader_conflict(&reader, name, skip, NULL, found);

	ck_assert_int_ge(r, 0);
	return r > 0 ? found : "";
}

TEST(conflicts)
{
	char name[REFD_PATH_MAX];

	add_tables();
	start();
	ck_assert_str_eq(conflict("refs/heads/a/b/c", NULL), "refs/heads/a");
	ck_assert_str_eq(conflict("refs/heads/a/b/c", skip_a), "");
	/* The skipped ref is not forgotten. */
	ck_assert_str_eq(conflict("refs/heads/a/b/d", NULL), "refs/heads/a");
	ck_assert_str_eq(conflict("refs/heads/dir", NULL), "refs/heads/dir/y");
	ck_assert_str_eq(conflict("refs/heads/dir", skip_y), "");
	ck_assert_str_eq(conflict("refs/heads/dir/x", NULL), "");
	ck_assert_str_eq(conflict("refs/heads/dir/z", NULL), "");
	ck_assert_str_eq(conflict("refs/heads/di", NULL), "");
	ck_assert_str_eq(conflict("refs/heads/a", NULL), "");
	ck_assert_str_eq(conflict("refs", NULL), "refs/heads/a");
	ck_assert_str_eq(conflict("HEAD/x", NULL), "HEAD");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_str_eq(conflict(name, NULL), "");
	end();
}

/* stack_record_fn */
static int add_name(void *arg, const struct reftable_record *record)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s@%u ", record->name,
	    (unsigned)record->update_index);
	return 0;
}

TEST(each)
{
	char text[1000] = "";

	add_tables();
	start();
	ck_assert_int_eq(stack_reader_each(&reader, REFTABLE_REFS,
			     "refs/heads/", add_name, text),
	    0);
	ck_assert_str_eq(text,
	    "refs/heads/a@3 refs/heads/dir/y@2 refs/heads/main@1 ");
	text[0] = '\0';
	ck_assert_int_eq(
	    stack_reader_each(&reader, REFTABLE_LOGS, "", add_name, text), 0);
	ck_assert_str_eq(text, "refs/heads/a@3 refs/heads/main@1 ");
	end();
}

/* ---- memory of the reader ---- */

#define NAMES 5000

static void name_of(char name[64], unsigned i)
{
	snprintf(name, 64, "refs/heads/%04u/a-long-name-of-a-branch", i);
}

/* Table T has every name whose number is divisible by T. */
static void add_many(unsigned t)
{
	struct reftable_record *records = calloc(NAMES, sizeof(*records));
	static char names[NAMES][64];
	unsigned i;
	size_t nr = 0;

	for (i = t; i < NAMES; i += t) {
		name_of(names[i], i);
		records[nr++] = i % 7 == 0 ? rh_deleted(names[i], t) :
					     rh_ref(names[i], t, (uint8_t)t);
	}
	stk_git(t, records, nr);
	free(records);
}

static int expected(unsigned i)
{
	if (i == 0 || (i % 2 != 0 && i % 3 != 0) || i % 7 == 0)
		return 0;
	return i % 3 == 0 ? 3 : 2;
}

static void check_one(unsigned i)
{
	char name[64];

	name_of(name, i);
	ck_assert_msg(find(name) == expected(i), "%s", name);
}

TEST(ascending_names_are_cheap)
{
	unsigned long calls;
	unsigned i;

	add_many(2);
	add_many(3);
	start();
	calls = memfs_nr_calls(stk.fs);
	for (i = 0; i < NAMES; i++)
		check_one(i);
	/* Not one call per name and table. */
	ck_assert_uint_lt(memfs_nr_calls(stk.fs) - calls, NAMES / 5);
	end();
}

TEST(any_order_of_names)
{
	char name[64], found[REFD_PATH_MAX];
	unsigned i = 0, n;

	add_many(2);
	add_many(3);
	start();
	srand(1);
	for (n = 0; n < 20000; n++) {
		/* Steps forward and backward, and jumps. */
		i = n % 10 == 0 ?
		    (unsigned)rand() % NAMES :
		    (i + (unsigned)rand() % 9 + NAMES - 3) % NAMES;
		check_one(i);
		if (n % 3 != 0)
			continue;
		snprintf(name, sizeof(name), "refs/heads/%04u", i);
		ck_assert_int_eq(stack_reader_conflict(&reader, name, NULL,
				     NULL, found),
		    expected(i) > 0);
	}
	end();
}

TEST(a_table_becomes_shorter)
{
	int fd;

	add_many(2);
	start();
	ck_assert_int_eq(find("refs/heads/0002/a-long-name-of-a-branch"), 2);
	fd = SYS(stk.other, openat, stk.other_dir, snap->tables.tables[1].name,
	    O_RDWR, 0);
	SYS(stk.other, ftruncate, fd, 5000);
	SYS(stk.other, close, fd);
	ck_assert_int_eq(find("refs/heads/4444/a-long-name-of-a-branch"),
	    -EBADMSG);
	ck_assert_str_eq(reader.fault.why, "the file became shorter");
	end();
}

/* Every look-up passes records of a block that stays in memory. */
TEST(one_restart_point)
{
	struct rh_bytes bytes = rh_one_block(3, 150000);
	struct reftable_budget budget = REFTABLE_BUDGET(4 * bytes.len);
	char name[8] = "a";
	unsigned nr = 0;
	int r = 0;

	rh_add(stk.other, stk.other_dir, &bytes, 3, 3, 3);
	ck_assert_int_eq(stack_snapshot(stk.stack, &snap, &stk.fault), 0);
	ck_assert_int_eq(stack_reader_init(&reader, snap, &budget), 0);
	/* In this order, none needs a block again. */
	for (; r == 0 && name[0] <= 'z'; name[0]++, nr++)
		r = stack_reader_find(&reader, name, NULL);
	ck_assert_int_eq(r, -EFBIG);
	ck_assert_uint_gt(nr, 2);
	ck_assert_str_eq(reader.fault.why, "too much must be read");
	stack_reader_done(&reader);
	ck_assert_uint_eq(budget.memory, REFTABLE_MEMORY_MAX);
	stack_snapshot_put(snap);
	rh_free(&bytes);
}
