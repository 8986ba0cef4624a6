/*
 * Proves that a stack stays readable whatever happens to an update: every call
 * fails once, the process ends at every change of the disk, and power is lost
 * there. Readers see the list before or the list after, each whole. After `ok`,
 * a power loss takes at most the rename.
 *
 * In the second case git appended a table without a flush. After the update has
 * flushed the base, the stack is whole too: the flush of the directory makes
 * git's list durable, so git's table must be durable before.
 *
 * In the last case the table replaces all others. They go after a checkpoint: a
 * power loss before may bring back the list before.
 *
 * Beside an update or a merge, a tool copies the list without a flush. The copy
 * has the same bytes, and must be durable before its name.
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
#include "tests/lib/sweep.h"

#define BEFORE "HEAD>refs/heads/main refs/heads/main=1 "
#define GIT    "HEAD>refs/heads/main refs/heads/a=5 refs/heads/main=1 "
#define AFTER  "HEAD>refs/heads/main refs/heads/b=9 refs/heads/main=1 "
#define BOTH                                                                   \
	"HEAD>refs/heads/main refs/heads/a=5 refs/heads/b=9 "                  \
	"refs/heads/main=1 "

struct state {
	bool has_git;    /* git appended an unsynced table */
	bool covers_all; /* one fsync for all */
	bool folds;      /* the table replaces all others */
	bool is_based;   /* the base is durable: the journal may have a row */
	bool is_flushed; /* all flushes succeeded */
	bool is_placed;
	bool is_doubtful; /* a failed rename may have happened */
};

static const struct variant {
	const char *name;
	bool has_git, covers_all, folds;
} variants[] = {
	{ "alone", false, false, false },
	{ "beside git", true, false, false },
	{ "one fsync, alone", false, true, false },
	{ "one fsync, beside git", true, true, false },
	{ "folds, alone", false, false, true },
	{ "folds, beside git", true, false, true },
};
#define VARIANTS ((int)(sizeof(variants) / sizeof(*variants)))

static void *set_up(struct memfs *fs, void *arg)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 2, 5);
	const struct variant *variant = arg;
	struct state *s = calloc(1, sizeof(*s));

	s->has_git = variant->has_git;
	s->covers_all = variant->covers_all;
	s->folds = variant->folds;
	stk_make(fs);
	if (s->has_git)
		stk_git(2, &rec, 1);
	ck_assert_int_eq(stk_open(), 0);
	return s;
}

static int update(struct state *s, struct stack_update *u)
{
	const struct reftable_record rec = rh_ref("refs/heads/b", 0, 9);
	bool covers_all;
	int r = stk_begin(u);

	u->may_fold = s->folds;
	if (r == 0)
		r = stk_table(u, &rec, 1);
	if (r == 0)
		r = stack_update_lock(u);
	if (r == 0)
		r = stack_base_check(u);
	if (r >= 0)
		r = stack_update_list(u);
	covers_all =
	    s->covers_all && SYS(stk.sys, fsync_covers_all, stk.git_fd) > 0;
	if (r == 0)
		r = stack_sync_base(u, INT64_MIN, covers_all);
	s->is_based = r == 0;
	if (r < 0)
		return r;
	stack_sync_begin(u, NULL, covers_all);
	r = stack_sync_end(u);
	s->is_flushed = r == 0;
	if (r == 0)
		r = stack_update_place(u);
	s->is_placed = r == 0;
	s->is_doubtful = u->list.progress == PROGRESS_DEFERRED;
	return r;
}

static int run(void *state)
{
	struct stack_update u;
	int r = update(state, &u), err = stk_end(&u);

	/* A checkpoint. */
	if (r == 0 && stack_tidy_begin(stk.stack) &&
	    SYS(stk.sys, syncfs, stk.stage_fd) == 0)
		stack_tidy_end(stk.stack, 1, 1);
	return r < 0 ? r : err;
}

/* The next start: the lock and the names in stage/ go. */
static int recover(void *state)
{
	uint64_t inodes[8];
	struct sys_dirent entry;
	struct sys_dir *dir;
	size_t nr = 0, i, j;
	int r;

	(void)state;
	stk_close();
	stk.other_dir = SYS(stk.other, openat, AT_FDCWD, "/repo/reftable",
	    O_RDONLY | O_DIRECTORY, 0);
	r = stk_open();
	if (r < 0)
		return r;
	r = SYS(stk.sys, dir_open, stk.stage_fd, ".", &dir);
	if (r < 0)
		return r;
	while ((r = SYS(stk.sys, dir_next, dir, &entry)) > 0)
		if (nr < 8)
			inodes[nr++] = entry.ino;
	SYS(stk.sys, dir_close, dir);
	for (i = 0; i < nr; i++)
		for (j = i; j > 0 && inodes[j - 1] > inodes[j]; j--) {
			const uint64_t swap = inodes[j];

			inodes[j] = inodes[j - 1];
			inodes[j - 1] = swap;
		}
	if (r == 0)
		r = stack_sweep(stk.stack, inodes, nr, &stk.fault);
	/* A stack that git left unreadable stays so. */
	return r == -EBADMSG ? 0 : r;
}

static bool is_one_of(const struct state *s, const char *list)
{
	if (strcmp(list, s->has_git ? BOTH : AFTER) == 0)
		return s->is_flushed;
	return strcmp(list, s->has_git ? GIT : BEFORE) == 0 ||
	    (s->has_git && !s->is_based && strcmp(list, BEFORE) == 0);
}

static const char *look(void *state, const struct sweep_now *now)
{
	const struct state *s = state;
	static char text[300];
	const char *list = stk_list(REFTABLE_REFS);

	snprintf(text, sizeof(text), "%s%s: %s",
	    s->is_flushed   ? "flushed" :
		s->is_based ? "base flushed" :
			      "not flushed",
	    s->is_placed ? ", placed" : "", list);
	/* Before the flush, a power loss may empty git's own table. */
	if (s->has_git && !s->is_based && now->when == SWEEP_AFTER_CUT)
		return NULL;
	if (!is_one_of(s, list))
		return text;
	if (now->when != SWEEP_AFTER_CUT && s->is_placed &&
	    strcmp(list, s->has_git ? BOTH : AFTER) != 0)
		return text;
	/* Nothing is left of a failed update, if the disk lets us. All stays if
	 * the list may name the table. */
	if (now->when == SWEEP_ALIVE && now->kind == SWEEP_ERRNO &&
	    strncmp(now->at, "unlinkat", 8) != 0 &&
	    (stk_nr_staged() > 0) != s->is_doubtful)
		return s->is_doubtful ? "no name is left in stage/" :
					"a name is left in stage/";
	return NULL;
}

static void done(void *state)
{
	stk_close();
	memfs_free(stk.fs);
	free(state);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = variants[i].name,
		.arg = (void *)&variants[i],
		.setup = set_up,
		.run = run,
		.recover = recover,
		.check = look,
		.done = done };
}

CASE(.seconds = 120);

TEST(every_flush, .times = VARIANTS)
{
	const struct sweep s = sweep_of(_i);
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 0);
}

TEST(every_crash, .times = VARIANTS)
{
	const struct sweep s = sweep_of(_i);
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
}

TEST(every_failure, .times = VARIANTS)
{
	static const int errs[] = { -EIO, -ENOSPC, -EMFILE, 0 };
	const struct sweep s = sweep_of(_i);
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_errno(&s, errs, &report), "%s", report.text);
}

/* ---- a copy of the list ---- */

static bool is_copied;

/* In memory alone, and not under our lock. */
static void copy_list(struct memfs *fs, void *arg)
{
	size_t len;
	char *list;

	(void)arg;
	if (memfs_exists(fs, "/repo/reftable/tables.list.lock"))
		return;
	list = memfs_read(fs, "/repo/reftable/tables.list", &len);
	rh_put(stk.other, stk.other_dir, "copy", list, len);
	SYS(stk.other, renameat, stk.other_dir, "copy", stk.other_dir,
	    REFTABLE_LIST);
	free(list);
	is_copied = true;
}

/* As a batch does. */
static int update_beside(struct stack_update *u)
{
	const struct reftable_record rec = rh_ref("refs/heads/b", 0, 9);
	int r = stk_begin(u);

	if (r == 0)
		r = stk_table(u, &rec, 1);
	if (r == 0)
		r = stack_sync_base(u, INT64_MIN, false);
	if (r == 0 || r == -ESTALE)
		r = stack_update_lock(u);
	if (r == 0 && (r = stack_base_check(u)) == 0) {
		r = stack_update_begin(u);
		if (r == 0)
			r = stk_table(u, &rec, 1);
		if (r == 0)
			r = stack_base_check(u);
	}
	if (r > 0)
		r = stack_update_list(u);
	if (r == 0)
		r = stack_sync_all(u, NULL, INT64_MIN, false);
	return r == 0 ? stack_update_place(u) : r;
}

static int merge_beside(struct stack_update *u)
{
	int r;

	memset(u, 0, sizeof(*u));
	r = token_init(&stk.token, stk.sys, stk.stage_fd, ++stk.batch);
	stack_update_init(u, stk.stack, stk.git_fd, &stk.token, 0);
	if (r == 0)
		r = stack_merge_make(u);
	ck_assert_int_ge(r, 0);
	if (r > 0)
		r = stack_sync_table(u);
	return r == 0 ? stack_merge_publish(u, NULL, INT64_MIN, false) : r;
}

/* Loses the power after the update, less the rename. */
static void copied_at(int (*fn)(struct stack_update *u), unsigned long n)
{
	const struct reftable_record rec = rh_ref("refs/heads/a", 0, 5);
	const struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	struct stack_update u;
	const char *list;

	stk_make(memfs_new());
	ck_assert_int_eq(stk_open(), 0);
	ck_assert_int_eq(stk_write(&rec, 1), 0);
	ck_assert_int_eq(stk_write(&rec, 1), 0);
	is_copied = false;
	memfs_between(stk.fs, n, copy_list, NULL);
	ck_assert_int_eq(fn(&u), 0);
	ck_assert_int_eq(stk_end(&u), 0);
	memfs_power_loss(stk.fs, &nothing);
	stk_close();
	stk.other_dir = SYS(stk.other, openat, AT_FDCWD, "/repo/reftable",
	    O_RDONLY | O_DIRECTORY, 0);
	list = stk_list(REFTABLE_REFS);
	ck_assert_msg(strcmp(list, GIT) == 0, "copied at call %lu: %s", n,
	    list);
	memfs_free(stk.fs);
}

TEST(a_copied_list_is_durable, .times = 2)
{
	unsigned long n = 0;

	do
		copied_at(_i == 0 ? update_beside : merge_beside, n++);
	while (is_copied);
	ck_assert_uint_gt(n, 5);
}
