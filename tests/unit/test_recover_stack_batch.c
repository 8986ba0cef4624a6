/*
 * Proves that recovery understands the rows of real batches in reftables: a
 * transaction with a move, a creation, a deletion, a confirmed value, and a
 * symbolic HEAD of a worktree. Git has appended a table before, and has synced
 * the files, but not their names. A crash or a power loss comes at every
 * change of the disk, and the disk dies at every call. After the next start
 * journal and refs agree, and every answer `ok` is true.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/stack_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/tables_rig.h"

static const struct stack_txn_ref refs[] = {
	{ 0, "", "refs/heads/a", '1', '2', "0>1 ", "1>2 0>1 " },
	{ 1, "", "refs/heads/b", '0', '3', "", "0>3 " },
	{ 2, "", "refs/heads/c", '1', '0', "0>1 ", "" },
	{ 3, "", "refs/heads/side", '0', '4', "", "0>4 " },
	{ 3, "wt", "HEAD", '>', '>', "", "0>4 " },
	{ 4, "wt", "refs/bisect/bad", '0', '4', "", "0>4 " },
	{ 5, "", "refs/heads/keep", '1', '1', NULL, NULL },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))
static const char spec[] = "a=2:1;b=3:0;-c:1;@worktrees/wt/HEAD=4:0;"
			   "@worktrees/wt/refs/bisect/bad=4;keep=1:1";

struct applied {
	struct world *w;
	struct scripted_txn h;
	bool was_answered[NR_REFS]; /* with ok, by update */
};

static void *set_up(struct memfs *fs, void *arg)
{
	struct applied *s = calloc(1, sizeof(*s));

	s->w = tbl_make(fs, true);
	ck_assert_int_eq(world_start(s->w), 0);
	wr_ok("a=1;c=1");
	ck_assert_int_eq(world_checkpoint(s->w), 0);
	stack_txn_git_ref(s->w, "refs/heads/g", '0', '1');
	s->h = (struct scripted_txn){ .w = s->w, .atomic = arg != NULL };
	return s;
}

static int apply(void *state)
{
	struct applied *s = state;
	struct txn *txn = world_apply(s->w, spec, s->h.atomic);
	size_t i;

	if (txn == NULL)
		return -EIO;
	s->h.txid = txn->req.txid;
	for (i = 0; i < txn->nr_updates; i++)
		s->was_answered[i] = txn->updates[i].status == REFD_OK;
	world_done(s->w, txn);
	return 0;
}

/* The power loss may have kept git's lock, which has git's list. Recovery
 * defers everything until somebody removes the lock. */
static int remove_lock_of_git(struct applied *s)
{
	static const char lock[] = STACK_DIR "/tables.list.lock";

	if (!memfs_exists(s->w->fs, lock) || memfs_holds(s->w->fs, lock, ""))
		return 0;
	wr_unlink(lock);
	return s->w->deferred > 0 ? world_retry(s->w) : 0;
}

static int start_again(void *state)
{
	struct applied *s = state;
	int r;

	world_crash(s->w);
	r = world_start(s->w);
	return r < 0 ? r : remove_lock_of_git(s);
}

static const char *look(void *state, const struct sweep_now *now)
{
	struct applied *s = state;
	size_t i, nr = 0;
	const char *what;
	bool happened;

	if (now->when == SWEEP_ALIVE)
		return NULL;
	for (i = 0; i < NR_REFS; i++) {
		happened = scripted_status(&s->h, refs[i].index) == REFD_OK;
		if (!happened && s->was_answered[refs[i].index])
			return "an answered update is lost";
		what = stack_txn_look(s->w, &refs[i], happened);
		if (what != NULL)
			return what;
		nr += happened;
	}
	if (s->h.atomic && nr > 0 && nr < NR_REFS)
		return "an atomic transaction is torn";
	return world_litter(s->w);
}

static void tear_down(void *state)
{
	tbl_free();
	free(state);
}

static struct sweep sweep_of(int atomic)
{
	return (struct sweep){ .name = "batch",
		.arg = (void *)(uintptr_t)(unsigned)atomic,
		.setup = set_up,
		.run = apply,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 5 };
}

CASE(.name = "batch", .seconds = 600);

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

TEST(disk_dies_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_dead(&s, -EIO, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 100);
}

/* Git deletes a ref; refd deletes it again, confirms it, or makes a different
 * ref. After `ok`, no power loss brings back the ref as it was before git. */
static const char *const on_git[] = { "-a", "b=1;-a", "b=2" };

CASE(.name = "alone", .setup = tbl_setup, .teardown = tbl_teardown);

TEST(deleted_by_git_before, .times = sizeof(on_git) / sizeof(*on_git))
{
	wr_ok("a=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	stack_txn_git_ref(w, "refs/heads/a", '1', '0');
	wr_ok(on_git[_i]);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(stack_txn_value(w, "", "refs/heads/a", NULL), '0');
}
