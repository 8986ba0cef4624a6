/*
 * Proves the recovery of a transaction in two reftables, that of the repository
 * and that of a worktree, with a log-only HEAD, a symbolic ref, a creation and
 * a deletion. A crash or a power loss comes at every change of the disk, in the
 * transaction and in recovery; the disk dies at every call; every call of a
 * replay fails once. After the next start the transaction is there as a whole
 * or not at all, every line once, without a lock, a staged file or a table
 * without a list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/stack_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

static const struct stack_txn_ref refs[] = {
	{ 0, "", "refs/heads/main", '1', '2', "0>1 ", "1>2 0>1 " },
	{ 0, "", "HEAD", '>', '>', "", "1>2 " },
	{ 1, "", "refs/heads/new", '0', '2', "", "0>2 " },
	{ 2, "", "refs/heads/x", '1', '0', "0>1 ", "" },
	{ 3, "", "refs/heads/sym", '0', '>', "", "0>2 " },
	{ 4, "wt", "HEAD", '1', '2', "", "1>2 " },
	{ 5, "wt", "refs/bisect/bad", '0', '2', "", "0>2 " },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))

struct swept {
	struct world *w;
	struct stack_txn t;
	bool is_atomic;
};

static void *set_up(struct memfs *fs, void *arg)
{
	struct swept *s = calloc(1, sizeof(*s));

	s->is_atomic = arg != NULL;
	s->w = stack_txn_world(fs);
	ck_assert_int_eq(world_start(s->w), 0);
	s->t.h.w = s->w;
	s->t.h.atomic = s->is_atomic;
	s->t.end = STACK_TXN_DONE;
	return s;
}

static int apply(void *state)
{
	struct swept *s = state;
	struct record_member m[] = {
		stack_txn_member(0, "", "refs/heads/main", '2'),
		stack_txn_member(0, "", "HEAD", '2'),
		stack_txn_member(1, "", "refs/heads/new", '2'),
		stack_txn_member(2, "", "refs/heads/x", '0'),
		stack_txn_member(3, "", "refs/heads/sym", '2'),
		stack_txn_member(4, "wt", "HEAD", '2'),
		stack_txn_member(5, "wt", "refs/bisect/bad", '2'),
	};

	m[1].action = RECORD_LOG;
	m[1].answers = false;
	m[4].target = "refs/heads/new";
	return stack_txn_apply(&s->t, m, NR_REFS);
}

static int start_again(void *state)
{
	struct swept *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static const char *look(void *state, const struct sweep_now *now)
{
	struct swept *s = state;
	const char *what;
	bool happened;
	size_t i;

	if (now->when == SWEEP_ALIVE)
		return NULL;
	for (i = 0; i < NR_REFS; i++) {
		happened = scripted_status(&s->t.h, refs[i].index) == REFD_OK;
		if (!now->was_hit && !happened)
			return "it was done and the journal does not know it";
		what = stack_txn_look(s->w, &refs[i], happened);
		if (what != NULL)
			return what;
	}
	return now->when == SWEEP_AFTER_KILL ? stack_txn_litter(s->w) :
					       world_litter(s->w);
}

static void tear_down(void *state)
{
	struct swept *s = state;

	world_free(s->w);
	free(s);
}

static struct sweep sweep_of(int atomic)
{
	return (struct sweep){ .name = "stacks",
		.arg = (void *)(uintptr_t)(unsigned)atomic,
		.setup = set_up,
		.run = apply,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 5 };
}

CASE(.seconds = 600);

TEST(crash_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 20);
}

TEST(power_loss_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 40);
}

TEST(power_loss_anywhere_and_in_recovery)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(0);

	s.choices = 3;
	s.second_cuts = 1;
	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
}

TEST(disk_dies_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_dead(&s, -EIO, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 100);
}

/* ---- a replay that fails, or is killed ---- */

/* A crash after the row, or a power loss that takes the renames. */
static struct swept *lost(int after_power_loss)
{
	struct swept *s = set_up(memfs_new(), NULL);

	s->t.end = after_power_loss ? STACK_TXN_DONE : STACK_TXN_LOGGED;
	apply(s);
	if (after_power_loss) {
		struct memfs_choice choice = memfs_choose(1);

		choice.keep[0] = 0;
		memfs_power_loss(s->w->fs, &choice);
	} else {
		memfs_crash(s->w->fs);
	}
	world_crash(s->w);
	return s;
}

/* After a power loss the table of the transaction may stay, for git. */
static void expect_redone(struct swept *s, bool after_power_loss,
    const char *at)
{
	const char *what = NULL;
	size_t i;

	for (i = 0; i < NR_REFS && what == NULL; i++)
		what = stack_txn_look(s->w, &refs[i], true);
	if (what == NULL)
		what = after_power_loss ? world_litter(s->w) :
					  stack_txn_litter(s->w);
	ck_assert_msg(what == NULL, "%s: %s", at, what);
}

/* The armed fault meets a start. A retry, or the next start, then has all. AT
 * gets the place of the fault, number N. False: nothing met the fault. */
static bool start_beside_fault(struct swept *s, unsigned long n, char at[200])
{
	int r = world_start(s->w);
	bool hit = memfs_was_hit(s->w->fs);

	snprintf(at, 200, "%lu, %s: %d", n, memfs_hit(s->w->fs), r);
	memfs_fail_none(s->w->fs);
	if (r == 0 && s->w->deferred > 0) {
		/* A failed file system is deferred first. */
		world_tick(s->w);
		r = world_retry(s->w);
		ck_assert_msg(r == 0, "%s: retry: %d", at, r);
	}
	if (r < 0) {
		world_crash(s->w);
		memfs_crash(s->w->fs);
		r = world_start(s->w);
		ck_assert_msg(r == 0, "%s: start: %d", at, r);
	}
	return hit;
}

/* A start fails, or defers everything. Then a retry or the next start redoes
 * everything. */
TEST(every_call_fails_once, .times = 6)
{
	static const int errs[] = { -EIO, -ENOSPC, -ENOMEM };
	char at[200];
	struct swept *s;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		s = lost(_i % 2);
		memfs_fail(s->w->fs, n, errs[_i / 2]);
		hit = start_beside_fault(s, n, at);
		expect_redone(s, _i % 2, at);
		tear_down(s);
	}
	ck_assert_uint_gt(n, 100);
}

/* A rename may take effect and fail. The new list then names the new table, so
 * the failed start must not remove this table. */
TEST(a_failed_rename_has_happened, .times = 2)
{
	char at[200];
	struct swept *s;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		s = lost(_i);
		memfs_fail_after(s->w->fs, MEMFS_RENAMEAT, n, -EIO);
		hit = start_beside_fault(s, n, at);
		ck_assert_msg(s->w->deferred == 0, "%s: deferred", at);
		expect_redone(s, _i, at);
		tear_down(s);
	}
	ck_assert_uint_gt(n, 2);
}

TEST(killed_anywhere, .times = 2)
{
	char at[200];
	struct swept *s;
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		s = lost(_i);
		memfs_crash_at(s->w->fs, n);
		world_start(s->w);
		hit = memfs_was_hit(s->w->fs);
		snprintf(at, sizeof(at), "change %lu, %s", n,
		    memfs_hit(s->w->fs));
		memfs_crash(s->w->fs);
		world_crash(s->w);
		ck_assert_msg(world_start(s->w) == 0, "%s: start", at);
		expect_redone(s, _i, at);
		tear_down(s);
	}
	ck_assert_uint_gt(n, 10);
}
