/*
 * Proves two facts about log entries: how a committer line becomes an entry,
 * and which lines of rows are missing in the log of a reftable. The key
 * decides, so an entry of another writer takes the place of a line. Lines of an
 * earlier life of the ref are left out.
 */
#include <string.h>

#include "daemon/store/tables/recovery/stack_lines.h"
#include "daemon/store/tables/stack/stack_log.h"
#include "tests/lib/stack_rig.h"
#include "tests/lib/suite.h"

#define REF "refs/heads/main"

/* ---- entries ---- */

static const struct refd_oid one = { { 1 } }, two = { { 2 } };

static void expect_text(const struct reftable_text *text, const char *want)
{
	ck_assert_uint_eq(text->len, strlen(want));
	ck_assert_mem_eq(text->at, want, text->len);
}

CASE(.setup = stk_setup, .teardown = stk_teardown);

TEST(committers)
{
	static const struct {
		const char *committer, *name, *email;
		uint64_t time_s;
		int16_t zone;
	} cases[] = {
		{ "A U Thor <a@x.org> 1700000000 +0130", "A U Thor", "a@x.org",
		    1700000000, 130 },
		{ "  A  <a b> 7 -0830", "A", "a b", 7, -830 },
		{ "<> 0 +0000", "", "", 0, 0 },
		{ "A <a> b> 5 +0100", "A", "a", 5, 100 },
		{ "A <a> x +0100", "A", "a", 0, 0 },
		{ "A <a> 5 0100", "A", "a", 5, 0 },
		{ "A <a> 5 +99999999999999999999", "A", "a", 5, 0 },
		{ "A <a", "A", "", 0, 0 },
		{ "nobody", "nobody", "", 0, 0 },
		{ "", "", "", 0, 0 },
	};
	struct reftable_log log;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		stack_log_set(&log, &one, &two, cases[i].committer, "why");
		expect_text(&log.name, cases[i].name);
		expect_text(&log.email, cases[i].email);
		expect_text(&log.message, "why");
		ck_assert_uint_eq(log.time_s, cases[i].time_s);
		ck_assert_int_eq(log.zone, cases[i].zone);
	}
}

TEST(equal_entries)
{
	static char longest[5001], cut[2049];
	struct reftable_log a, b;

	memset(longest, 'x', sizeof(longest) - 1);
	memset(cut, 'x', sizeof(cut) - 1);
	stack_log_set(&a, &one, &two, "A <a> 5 +0100", "why\n");
	stack_log_set(&b, &one, &two, "A <a> 5 +0100", "why");
	ck_assert(stack_log_eq(&a, &b));
	stack_log_set(&b, &one, &two, "A <a> 6 +0100", "why");
	ck_assert(!stack_log_eq(&a, &b));
	stack_log_set(&b, &one, &one, "A <a> 5 +0100", "why");
	ck_assert(!stack_log_eq(&a, &b));
	stack_log_set(&b, &one, &two, "A <b> 5 +0100", "why");
	ck_assert(!stack_log_eq(&a, &b));
	stack_log_set(&b, &one, &two, "A <a> 5 +0100", "why not");
	ck_assert(!stack_log_eq(&a, &b));
	/* A table has the beginning of a long message. */
	stack_log_set(&a, &one, &two, "A <a> 5 +0100", cut);
	stack_log_set(&b, &one, &two, "A <a> 5 +0100", longest);
	ck_assert(stack_log_eq(&a, &b));
	ck_assert(!stack_log_eq(&b, &a));
}

/* ---- lines ---- */

static struct replay_row row = { .rec = { .committer =
					      "A U Thor <a@example.org> "
					      "1700000000 -0830",
				     .message = "ours" } };

struct case_of_lines {
	struct record_member members[4];
	struct ref_record records[4];
	struct stack_line lines[4];
	size_t nr;
	struct stack_snapshot *snap;
	struct stack_reader reader;
};

static struct refd_oid oid_of(uint8_t byte)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, byte, REFD_SHA1_BYTES);
	return oid;
}

/* A line from FROM to TO, with the key INDEX. */
static void add(struct case_of_lines *c, uint8_t from, uint8_t to,
    uint64_t index, uint64_t base)
{
	struct record_member *m = &c->members[c->nr];

	*m = (struct record_member){ .had_old = from != 0,
		.old_oid = oid_of(from),
		.new_oid = oid_of(to),
		.update_index = index,
		.base_index = base };
	c->records[c->nr] = (struct ref_record){ &row, m };
	c->lines[c->nr].record = &c->records[c->nr];
	c->nr++;
}

/* WANT has a letter per line, by index: free, there, or x for taken. */
static void expect_lines(struct case_of_lines *c, bool is_later,
    const char *want)
{
	static const char letters[] = { [STACK_LINE_FREE] = 'f',
		[STACK_LINE_THERE] = 't',
		[STACK_LINE_TAKEN] = 'x' };
	size_t i;

	ck_assert_int_eq(stack_snapshot(stk.stack, &c->snap, &stk.fault), 0);
	ck_assert_int_eq(stack_reader_init(&c->reader, c->snap, rh_budget()),
	    0);
	ck_assert_int_eq(
	    stack_lines_find(&c->reader, REF, is_later, c->lines, c->nr), 0);
	for (i = 0; i < c->nr; i++) {
		ck_assert_int_eq(letters[c->lines[i].state], want[i]);
		if (!is_later)
			ck_assert_int_eq(stack_lines_has(&c->reader, REF,
					     c->lines[i].record),
			    want[i] == 't');
	}
	stack_reader_done(&c->reader);
	stack_snapshot_put(c->snap);
}

static void put(uint64_t index, uint8_t from, uint8_t to, const char *message)
{
	const struct reftable_record log =
	    rh_log(REF, index, from, to, message);

	stk_git(index, &log, 1);
}

TEST(keys_decide)
{
	struct case_of_lines c = { .nr = 0 };

	/* Two updates with equal lines: one of them is there. */
	put(4, 1, 2, "ours\n");
	add(&c, 1, 2, 6, 5);
	add(&c, 1, 2, 4, 3);
	expect_lines(&c, false, "tf");
}

TEST(a_place_is_taken)
{
	struct case_of_lines c = { .nr = 0 };

	put(4, 1, 5, "git\n");
	put(9, 5, 6, "git\n");
	add(&c, 1, 2, 3, 1); /* below both */
	add(&c, 1, 2, 4, 3); /* git's key */
	add(&c, 1, 2, 7, 3); /* git's entry would get a false order */
	add(&c, 5, 2, 8, 4);
	expect_lines(&c, false, "fxxf");
}

/* Git deleted the ref and its log, and made both anew. */
TEST(an_earlier_life)
{
	struct reftable_record gone = rh_log(REF, 1, 0, 1, "");
	struct case_of_lines c = { .nr = 0 };

	gone.is_deletion = true;
	stk_git(5, &gone, 1);
	put(6, 0, 7, "git\n");
	add(&c, 1, 2, 3, 1);
	add(&c, 7, 8, 8, 6);
	expect_lines(&c, false, "ff");
	expect_lines(&c, true, "tf");
}
