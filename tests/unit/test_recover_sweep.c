/*
 * Proves the recovery of one transaction with symbolic refs, HEAD and a linked
 * worktree. A crash or a power loss comes at every change of the disk, in the
 * transaction and in recovery. After the next start the transaction is there as
 * a whole or not at all, every line once, without a lock or a staged file. A
 * start that stopped at an error has lost nothing. Directories in refd/stage/,
 * as e2fsck makes them, are no hindrance.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define R    WORLD_REPO
#define WT   WORLD_REPO "/worktrees/wt"
#define ONES "@1\n"
#define TWOS "@2\n"

/* The published files and their logs. */
static const struct file {
	uint32_t index;
	const char *path, *before, *after; /* NULL: nothing there */
	const char *log;                   /* NULL: no log */
	char old, new_c;
} files[] = {
	{ 0, R "/refs/heads/main", ONES, TWOS, R "/logs/refs/heads/main", '1',
	    '2' },
	{ 0, R "/HEAD", "ref: refs/heads/main\n", "ref: refs/heads/main\n",
	    R "/logs/HEAD", '1', '2' },
	{ 1, R "/refs/heads/s", "ref: refs/heads/a\n", "ref: refs/heads/b\n",
	    R "/logs/refs/heads/s", '1', '1' },
	{ 2, R "/refs/heads/n/s", NULL, "ref: refs/heads/b\n",
	    R "/logs/refs/heads/n/s", '0', '1' },
	{ 3, WT "/HEAD", "ref: refs/heads/a\n", TWOS, WT "/logs/HEAD", '1',
	    '2' },
	{ 4, WT "/refs/bisect/bad", NULL, TWOS, WT "/logs/refs/bisect/bad", '0',
	    '2' },
	{ 5, R "/refs/remotes/o/HEAD", "ref: refs/heads/a\n", NULL, NULL, '1',
	    '0' },
};
#define NR_FILES (sizeof(files) / sizeof(*files))
static const char spec[] = "@HEAD=2:1;!s>b;n/s>b;!@worktrees/wt/HEAD=2;"
			   "@worktrees/wt/refs/bisect/bad=2;"
			   "!-@refs/remotes/o/HEAD";

struct recovered_state {
	struct world *w;
	struct scripted_txn h;
	const struct variant *v;
};

static const struct variant {
	bool atomic, state_elsewhere;
	bool by_hand; /* or by the applier */
} variants[] = { { false, true, true }, { true, false, true },
	{ false, true, false }, { true, false, false } };
#define NR_VARIANTS ((int)(sizeof(variants) / sizeof(*variants)))

static void *set_up(struct memfs *fs, void *arg)
{
	const struct variant *v = arg;
	struct recovered_state *s = calloc(1, sizeof(*s));
	size_t i;

	s->v = v;
	s->w = world_new(fs, v->state_elsewhere);
	world_write(fs, R "/refs/heads/a", ONES);
	world_write(fs, R "/refs/heads/b", ONES);
	for (i = 0; i < NR_FILES; i++)
		if (files[i].before != NULL)
			world_write(fs, files[i].path, files[i].before);
	memfs_write(fs, R "/logs/refs/remotes/o/HEAD", "");
	memfs_mkdirs(fs, R "/refd/stage/0000000000000001-0");
	memfs_mkdirs(fs, R "/refd/stage/more");
	ck_assert_int_eq(world_start(s->w), 0);
	s->h = (struct scripted_txn){ .w = s->w,
		.atomic = v->atomic,
		.publish = SCRIPTED_ALL };
	return s;
}

static int apply_by_hand(struct recovered_state *s)
{
	struct record_member m[] = {
		scripted_member(RECORD_LOG, "HEAD", '1', '2'),
		scripted_member(RECORD_WRITE, "refs/heads/main", '1', '2'),
		scripted_symref("refs/heads/s", "refs/heads/b"),
		scripted_symref("refs/heads/n/s", "refs/heads/b"),
		scripted_in("wt",
		    scripted_member(RECORD_WRITE, "HEAD", '1', '2')),
		scripted_in("wt",
		    scripted_member(RECORD_WRITE, "refs/bisect/bad", '0', '2')),
		scripted_member(RECORD_DELETE, "refs/remotes/o/HEAD", '1', '0'),
	};
	size_t i;

	m[0].answers = true;
	m[3].had_old = false;
	for (i = 2; i < sizeof(m) / sizeof(*m); i++) {
		m[i].index = (uint32_t)i - 1;
		m[i].answers = true;
	}
	return SCRIPTED_APPLY(&s->h, m);
}

static int apply(void *state)
{
	struct recovered_state *s = state;
	struct txn *txn;

	if (s->v->by_hand)
		return apply_by_hand(s);
	txn = world_apply(s->w, spec, s->v->atomic);
	if (txn == NULL)
		return -EIO;
	s->h.txid = txn->req.txid;
	world_done(s->w, txn);
	return 0;
}

static int start_again(void *state)
{
	struct recovered_state *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static const char *check_file(struct world *w, const struct file *f,
    bool happened)
{
	static char text[256];
	const char *value = happened ? f->after : f->before;
	char *want = value != NULL ? world_text(value) : NULL;
	bool holds = memfs_holds(w->fs, f->path, want);
	int lines;

	free(want);
	snprintf(text, sizeof(text), "%s: %s", f->path,
	    happened ? "not as it was published" : "not as it was before");
	if (!holds)
		return text;
	if (f->log == NULL)
		return !happened ||
			!memfs_exists(w->fs, R "/logs/refs/remotes/o/HEAD") ?
		    NULL :
		    "the log of what was deleted is there";
	lines = scripted_log_lines(w, f->log, f->old, f->new_c);
	snprintf(text, sizeof(text), "%s: its line is there %d times", f->log,
	    lines);
	return lines == happened ? NULL : text;
}

static const char *look(void *state, const struct sweep_now *now)
{
	struct recovered_state *s = state;
	size_t i, nr = 0;
	const char *what;
	bool happened;

	if (now->when == SWEEP_ALIVE)
		return NULL;
	for (i = 0; i < NR_FILES; i++) {
		happened = scripted_status(&s->h, files[i].index) == REFD_OK;
		if (!now->was_hit && !happened)
			return "it was done and the journal does not know it";
		what = check_file(s->w, &files[i], happened);
		if (what != NULL)
			return what;
		nr += happened;
	}
	if (s->v->atomic && nr > 0 && nr < NR_FILES)
		return "an atomic transaction is torn";
	return world_litter(s->w);
}

static void tear_down(void *state)
{
	struct recovered_state *s = state;

	world_free(s->w);
	free(s);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = "files",
		.arg = (void *)(uintptr_t)&variants[i],
		.setup = set_up,
		.run = apply,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 5 };
}

CASE(.seconds = 300);

TEST(crash_anywhere, .times = NR_VARIANTS)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 30);
}

/* The first and the last variant: by hand, and by the applier. */
static int every_other(int i)
{
	return i == 0 ? 0 : NR_VARIANTS - 1;
}

TEST(power_loss_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(every_other(_i));

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 60);
}

TEST(disk_dies_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(every_other(_i));

	s.may_sync_again = true;
	ck_assert_msg(sweep_dead(&s, -EIO, &report), "%s", report.text);
}

/* Everything was answered. A power loss comes, and a second one at every change
 * of recovery. */
TEST(power_loss_and_again_in_recovery)
{
	const struct variant *v = &variants[NR_VARIANTS - 1];
	struct sweep_now now = { .when = SWEEP_AFTER_CUT };
	struct memfs_choice choice;
	const char *what;
	struct recovered_state *s;
	unsigned long k;
	uint64_t seed;
	bool hit = true;

	for (k = 0; hit; k += sweep_step())
		for (seed = 1; seed <= 6; seed++) {
			s = set_up(memfs_new(), (void *)(uintptr_t)v);
			ck_assert_int_eq(apply(s), 0);
			choice = memfs_choose(seed);
			memfs_power_loss(s->w->fs, &choice);
			memfs_power_loss_at(s->w->fs, k);
			start_again(s);
			hit = memfs_was_hit(s->w->fs);
			choice = memfs_choose(seed + k);
			memfs_power_loss(s->w->fs, &choice);
			ck_assert_int_eq(start_again(s), 0);
			what = look(s, &now);
			ck_assert_msg(what == NULL, "seed %d, again %lu: %s",
			    (int)seed, k, what);
			tear_down(s);
		}
	ck_assert_uint_gt(k, 20);
}

/* ---- failing starts ---- */

/* A crash with all locks left, or a power loss without any file. */
static struct recovered_state *stopped(bool by_cut)
{
	struct recovered_state *s =
	    set_up(memfs_new(), (void *)(uintptr_t)&variants[by_cut ? 0 : 1]);
	struct memfs_choice choice = memfs_choose(1);

	s->h.publish = by_cut ? SCRIPTED_ALL : 0;
	apply(s);
	choice.data = MEMFS_DATA_NONE;
	choice.keep[0] = choice.keep[1] = 0;
	if (by_cut)
		memfs_power_loss(s->w->fs, &choice);
	else
		memfs_crash(s->w->fs);
	world_crash(s->w);
	return s;
}

TEST(a_start_that_fails_loses_nothing, .times = 2)
{
	struct sweep_now now = { .when = SWEEP_AFTER_KILL };
	static const int errs[] = { -EIO, -ENOSPC, -EMFILE };
	struct recovered_state *s;
	const char *what;
	unsigned long k;
	char at[64];
	bool hit;
	size_t e;

	for (e = 0; e < sizeof(errs) / sizeof(*errs); e++)
		for (k = 0, hit = true; hit; k += sweep_step()) {
			s = stopped(_i == 1);
			memfs_fail(s->w->fs, k, errs[e]);
			world_start(s->w);
			hit = memfs_was_hit(s->w->fs);
			snprintf(at, sizeof(at), "%s", memfs_hit(s->w->fs));
			memfs_fail_none(s->w->fs);
			memfs_crash(s->w->fs);
			world_crash(s->w);
			ck_assert_int_eq(world_start(s->w), 0);
			ck_assert_msg(s->w->deferred == 0, "fault %lu (%s)", k,
			    at);
			what = look(s, &now);
			ck_assert_msg(what == NULL, "fault %lu (%s), %s: %s", k,
			    at, strerror(-errs[e]), what);
			tear_down(s);
		}
	ck_assert_uint_gt(k, 50);
}
