/*
 * Proves the rule of recovery for a ref in a reftable (stack_rule.h), by random
 * histories: batches of refd, updates, deletions and merges by git,
 * checkpoints, and up to four power losses, with git at work before recovery in
 * half of them. In a second run JGit works too: it may count on from an older
 * list, so that tables have indices of tables before, and git counts on from
 * these. After each recovery the value of every ref is that of the last write
 * that happened: a record in the surviving stack, or a row. So no row has an
 * answer that is not true, with or without a client that waits for it.
 *
 * Two exceptions. A ref that git deleted, and whose deletion git merged away,
 * may be restored. And a row may be redone over a record that another writer
 * wrote after the loss with index and value of the record that the row
 * replaced. Values are few, so git often repeats a lost update with the same
 * value at the same index.
 *
 * REFD_TEST_LONG: 2,000,000 histories.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/recovery/stack_rule.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"

static struct refd_oid oid_of(unsigned value)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, (int)value, 20);
	return oid;
}

/* A row that moves the ref from OLD to NEW (0: none), with its indices. */
static struct record_member row(unsigned old, uint64_t old_index, unsigned new,
    uint64_t update_index, uint64_t base_index)
{
	return (struct record_member){ .status = REFD_OK,
		.action = new != 0 ? RECORD_WRITE : RECORD_DELETE,
		.new_oid = oid_of(new),
		.had_old = old != 0,
		.old_oid = oid_of(old),
		.old_index = old_index,
		.update_index = update_index,
		.base_index = base_index };
}

static struct stack_found found(unsigned value, uint64_t index)
{
	return (struct stack_found){ .index = index,
		.exists = value != 0,
		.oid = oid_of(value) };
}

#define REFS     4
#define VALUES   3
#define MEMBERS  3 /* of a row */
#define ROWS     64
#define VERSIONS 128

struct rec {
	uint64_t index;   /* 0: no record */
	uint64_t earlier; /* the largest index of the tables before */
	unsigned value;   /* 0: a deletion */
	unsigned time;    /* of the write */
	unsigned row;     /* of the log line; 0: none of refd */
	/* Git merged a deletion of this time away, and no record is left. */
	unsigned ghost;
};

/* Only the newest record of a ref counts, so a list is an array of records. */
struct list {
	uint64_t max, last; /* the largest index; of the last table */
	bool is_foreign;    /* refd did not write the list */
	struct rec refs[REFS];
};

struct model_row {
	unsigned id, time;
	bool is_answered, is_logged, is_forgotten;
	size_t nr;
	unsigned refs[MEMBERS];
	struct record_member m[MEMBERS];
};

struct model {
	struct gen g;
	struct list versions[VERSIONS]; /* the last is present */
	size_t nr;                      /* versions[0] is durable */
	struct model_row rows[ROWS];
	size_t nr_rows;
	unsigned time;
	unsigned losses;
	uint64_t spent;
	unsigned restored, repeated; /* the two exceptions */
	bool with_jgit;
};

static struct list *present(struct model *md)
{
	return &md->versions[md->nr - 1];
}

static struct list *push(struct model *md)
{
	ck_assert_uint_lt(md->nr, VERSIONS);
	md->versions[md->nr] = *present(md);
	return &md->versions[md->nr++];
}

static void make_durable(struct model *md)
{
	md->versions[0] = *present(md);
	md->nr = 1;
}

static unsigned any(struct model *md, unsigned n)
{
	return gen_below(&md->g, n);
}

/* ---- git ---- */

/* Appends a table of one record with INDEX. */
static void append(struct model *md, uint64_t index)
{
	struct list *list = push(md);

	list->refs[any(md, REFS)] = (struct rec){ .index = index,
		.earlier = list->max,
		.value = any(md, VALUES + 1),
		.time = ++md->time };
	list->is_foreign = true;
	list->last = index;
	if (list->max < index)
		list->max = index;
}

/* Git counts on from the last table. */
static void git_writes(struct model *md)
{
	append(md, present(md)->last + 1);
}

/* JGit may have read an older list, and appends to the present list. */
static void jgit_writes(struct model *md)
{
	size_t age = any(md, 3);

	append(md, md->versions[md->nr - 1 - age % md->nr].max + 1);
}

/* All tables become one: deletions vanish. */
static void git_merges(struct model *md)
{
	struct list *list = push(md);
	size_t i;

	list->is_foreign = true;
	list->last = list->max;
	for (i = 0; i < REFS; i++) {
		list->refs[i].earlier = 0;
		if (list->refs[i].index != 0 && list->refs[i].value == 0)
			list->refs[i] =
			    (struct rec){ .ghost = list->refs[i].time };
	}
}

static void git_works(struct model *md)
{
	if (any(md, 3) == 0)
		git_merges(md);
	else if (md->with_jgit && any(md, 3) == 0)
		jgit_writes(md);
	else
		git_writes(md);
}

/* ---- refd ---- */

static void plan_member(struct model *md, struct model_row *r, unsigned ref,
    uint64_t index)
{
	const struct rec *x = &present(md)->refs[ref];
	unsigned value = any(md, VALUES + 1);
	struct record_member *m = &r->m[r->nr];

	if (value == 0 && x->value == 0)
		value = 1;
	*m = row(x->value, x->index, value, index, present(md)->max);
	/* A confirmation writes no record. */
	if (value == x->value && any(md, 2))
		m->update_index = x->index;
	m->index = (uint32_t)r->nr;
	r->refs[r->nr++] = ref;
}

static void put_row(struct list *list, const struct model_row *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (r->m[i].update_index > r->m[i].base_index)
			list->refs[r->refs[i]] =
			    (struct rec){ .index = r->m[i].update_index,
				    .earlier = list->max,
				    .value = r->m[i].new_oid.bytes[0],
				    .time = r->time,
				    .row = r->is_logged ? r->id : 0 };
}

static void lose_power(struct model *md);

/* A batch of up to two rows: flushes, rename, answer. */
static void refd_batch(struct model *md)
{
	struct model_row *r[2];
	unsigned nr = 1 + any(md, 2), i, ref, end;
	uint64_t index;
	struct list *list;

	if (md->nr_rows + nr > ROWS)
		return;
	/* stack_sync_base() */
	if (present(md)->is_foreign)
		make_durable(md);
	index = present(md)->max > md->spent ? present(md)->max : md->spent;
	index += 1 + (any(md, 4) == 0) * 16;
	for (i = 0; i < nr; i++) {
		r[i] = &md->rows[md->nr_rows++];
		memset(r[i], 0, sizeof(*r[i]));
		r[i]->id = (unsigned)md->nr_rows;
		r[i]->is_logged = any(md, 2);
	}
	for (ref = 0; ref < REFS; ref++) {
		i = any(md, nr + 1);
		if (i < nr && r[i]->nr < MEMBERS)
			plan_member(md, r[i], ref, index);
	}
	md->spent = index;
	for (i = 0; i < nr; i++)
		r[i]->time = ++md->time;
	end = md->losses < 4 ? any(md, 12) : 11;
	/* The loss comes during the flushes: each may have ended, or not. */
	if (end < 3) {
		if (end == 0)
			md->nr_rows -= nr;
		else if (end == 1)
			make_durable(md);
		lose_power(md);
		return;
	}
	make_durable(md);
	list = push(md);
	for (i = 0; i < nr; i++)
		put_row(list, r[i]);
	if (list->max < index)
		list->max = list->last = index;
	list->is_foreign = false;
	for (i = 0; i < nr; i++)
		r[i]->is_answered = end != 3;
	if (end == 3)
		lose_power(md);
}

static void checkpoint(struct model *md)
{
	size_t i;

	make_durable(md);
	for (i = 0; i < md->nr_rows; i++)
		md->rows[i].is_forgotten = true;
}

/* ---- recovery ---- */

static struct stack_found found_in(const struct list *list, unsigned ref)
{
	struct stack_found x =
	    found(list->refs[ref].value, list->refs[ref].index);

	x.earlier = list->refs[ref].earlier;
	return x;
}

static uint64_t proved_in(const struct model *md, const struct list *list)
{
	const struct model_row *r = md->rows;
	uint64_t proved = 0;
	struct stack_found x;
	size_t k;

	for (; r < md->rows + md->nr_rows; r++)
		for (k = 0; k < r->nr; k++) {
			x = found_in(list, r->refs[k]);
			if (!r->is_forgotten &&
			    list->refs[r->refs[k]].row == r->id &&
			    stack_rule_is_there(&r->m[k], &x) &&
			    x.index > proved)
				proved = x.index;
		}
	return proved;
}

/* The rows of REF that are not forgotten, and their members. */
static size_t rows_of(struct model *md, unsigned ref, struct model_row **rows,
    const struct record_member **members)
{
	size_t i, k, nr = 0;

	for (i = 0; i < md->nr_rows; i++)
		for (k = 0; k < md->rows[i].nr; k++)
			if (!md->rows[i].is_forgotten &&
			    md->rows[i].refs[k] == ref) {
				rows[nr] = &md->rows[i];
				members[nr++] = &md->rows[i].m[k];
			}
	return nr;
}

/* Was X written after the loss, as a repetition of what a row replaced? Without
 * an answer, the row may happen after it. Only JGit makes it possible for a row
 * with an answer. */
static bool is_repeated(const struct model *md, struct model_row **rows,
    const struct record_member **members, size_t nr, const struct rec *x)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (members[i]->old_oid.bytes[0] == x->value &&
		    (!rows[i]->is_answered ||
			(md->with_jgit && members[i]->old_index == x->index)))
			return true;
	return false;
}

/* Is REF right in NOW? WAS: before recovery. */
static void check_ref(struct model *md, const struct list *was,
    const struct list *now, unsigned ref, struct model_row **rows,
    const struct record_member **members, size_t nr)
{
	const struct rec *x = &was->refs[ref], *y = &now->refs[ref];
	unsigned time = x->index != 0 ? x->time : x->ghost, want = x->value;
	bool is_ghost = x->index == 0 && x->ghost != 0;
	size_t i;

	for (i = 0; i < nr; i++)
		if (rows[i]->time > time)
			want = members[i]->new_oid.bytes[0];
	if (y->value != want && is_ghost && y->value != 0)
		md->restored++;
	else if (y->value != want && nr > 0 &&
	    y->value == members[nr - 1]->new_oid.bytes[0] &&
	    is_repeated(md, rows, members, nr, x))
		md->repeated++;
	else
		ck_assert_msg(y->value == want,
		    "ref %u is %u, and should be %u", ref, y->value, want);
}

static void recover(struct model *md)
{
	const struct list was = *present(md);
	const struct record_member *members[REFS][ROWS];
	struct model_row *rows[REFS][ROWS];
	size_t nr[REFS], i;
	uint64_t proved = proved_in(md, &was), index = was.max;
	struct list now = was;
	struct stack_found x;
	unsigned ref;

	md->spent = 0;
	for (i = 0; i < md->nr_rows; i++)
		for (ref = 0; ref < md->rows[i].nr; ref++)
			if (!md->rows[i].is_forgotten &&
			    md->rows[i].m[ref].update_index > index)
				index = md->rows[i].m[ref].update_index;
	index++;
	for (ref = 0; ref < REFS; ref++) {
		nr[ref] = rows_of(md, ref, rows[ref], members[ref]);
		x = found_in(&was, ref);
		if (nr[ref] == 0)
			continue;
		if (stack_rule_apply(members[ref], nr[ref], &x, proved) !=
		    STACK_REDO)
			continue;
		now.refs[ref] = (struct rec){ .index = index,
			.earlier = was.max,
			.value = members[ref][nr[ref] - 1]->new_oid.bytes[0],
			.time = rows[ref][nr[ref] - 1]->time };
		now.max = now.last = index;
	}
	make_durable(md);
	*push(md) = now;
	/* Before the rows are forgotten, the power can be lost again. */
	if (md->losses < 4 && any(md, 6) == 0) {
		lose_power(md);
		return;
	}
	for (ref = 0; ref < REFS; ref++)
		check_ref(md, &was, &now, ref, rows[ref], members[ref],
		    nr[ref]);
	md->spent = index;
	checkpoint(md);
}

static void lose_power(struct model *md)
{
	unsigned nr;

	md->losses++;
	md->nr = 1 + any(md, (unsigned)md->nr);
	md->versions[0] = *present(md);
	md->nr = 1;
	for (nr = any(md, 2) ? any(md, 4) : 0; nr > 0; nr--)
		git_works(md);
	recover(md);
}

static void one_history(struct model *md, uint64_t seed)
{
	unsigned steps;

	md->g.state = seed * 2654435761u + 1;
	md->nr = 1;
	memset(md->versions, 0, sizeof(md->versions[0]));
	md->versions[0].max = md->versions[0].last = 1;
	md->nr_rows = md->time = md->losses = 0;
	md->spent = 0;
	for (steps = 4 + any(md, 14); steps > 0; steps--) {
		switch (any(md, 8)) {
		case 0:
			checkpoint(md);
			break;
		case 1:
		case 2:
		case 3:
			git_works(md);
			break;
		default:
			refd_batch(md);
		}
	}
	if (md->losses < 4)
		lose_power(md);
}

CASE(.seconds = getenv("REFD_TEST_LONG") != NULL ? 3600 : 120);

TEST(histories, .times = 2)
{
	uint64_t nr = getenv("REFD_TEST_LONG") != NULL ? 2000000 : 100000, i;
	struct model *md = calloc(1, sizeof(*md));

	md->with_jgit = _i == 1;
	for (i = 1; i <= nr; i++)
		one_history(md, i);
	printf("# %u restored, %u repeated\n", md->restored, md->repeated);
	free(md);
}
