/*
 * Proves that no failed call, crash or power loss during a batch damages a
 * stack of reftables, and that answers are true. Git has appended a table
 * before, and has synced nothing.
 *
 * After an answer other than `unknown`, every ref has the answered value, and
 * no lock or staged file is left. After a power loss at any point, with any
 * part of the unsynced data, readers see a whole stack, if git's files were
 * synced or refd has given an `ok`. The next start agrees with the answers, an
 * atomic transaction is whole in both stacks, and nothing is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/tables_rig.h"

/* The updates of the transaction. */
static const struct {
	const char *name;
	char old, new_c;
	bool in_worktree;
} refs[] = {
	{ "a", '1', '2', false },
	{ "b", '0', '3', false },
	{ "c", '1', '0', false },
	{ "side", '0', '4', false },
	{ "@refs/bisect/bad", '0', '4', true },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))
static const char spec[] = "a=2:1;b=3:0;-c:1;@worktrees/wt/HEAD=4:0;"
			   "@worktrees/wt/refs/bisect/bad=4";

struct variant {
	bool atomic;
	enum refd_durability mode; /* 0: journal */
};

static const struct variant variants[] = {
	{ .atomic = false },
	{ .atomic = true },
	{ .atomic = true, .mode = REFD_DURABILITY_BATCH },
	{ .mode = REFD_DURABILITY_FSYNC },
	{ .atomic = true, .mode = REFD_DURABILITY_NONE },
};
#define NR_VARIANTS ((int)(sizeof(variants) / sizeof(*variants)))

static char context[512];

static void fresh(const struct variant *v)
{
	tbl_make(memfs_new(), true);
	w->mode = v->mode;
	wr_start();
	wr_ok("a=1;c=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	tbl_git("g", '1');
}

static char value(size_t i)
{
	char c;

	tbl_use(refs[i].in_worktree ? "wt" : "");
	c = tbl_ref(refs[i].name);
	tbl_use("");
	return c;
}

static void check_whole(void)
{
	ck_assert_msg(tbl_ref("keep") == '1', "%s: %s", context,
	    stk_list(REFTABLE_REFS));
	tbl_use("wt");
	ck_assert_msg(tbl_ref("@HEAD") == '>', "%s: worktree: %s", context,
	    stk_list(REFTABLE_REFS));
	tbl_use("");
}

/* Can the ref I with this answer have the value C? */
static bool may_be(size_t i, enum refd_status status, char c)
{
	if (status != REFD_OK && status != REFD_UNKNOWN &&
	    status != REFD_PENDING)
		return c == refs[i].old;
	return c == refs[i].new_c || (status != REFD_OK && c == refs[i].old);
}

static void check_refs(const struct variant *v, const enum refd_status *status)
{
	size_t i, nr = 0;
	char c;

	check_whole();
	for (i = 0; i < NR_REFS; i++) {
		c = value(i);
		ck_assert_msg(may_be(i, status[i], c),
		    "%s: %s is at %c after %s", context, refs[i].name, c,
		    refd_status_name(status[i]));
		nr += c == refs[i].new_c;
	}
	if (v->atomic)
		ck_assert_msg(nr == 0 || nr == NR_REFS, "%s: %zu are new",
		    context, nr);
}

/* The process is gone. The next start agrees with the answers, and leaves
 * nothing. */
static void check_restart(const struct variant *v,
    const enum refd_status *status)
{
	const char *what;
	int r = world_start(w);

	ck_assert_msg(r == 0, "%s: recovery: %s", context, strerror(-r));
	check_refs(v, status);
	what = world_litter(w);
	ck_assert_msg(what == NULL, "%s: %s", context, what);
	world_crash(w);
}

/* true: an answer is `unknown`. */
static bool apply(const struct variant *v, enum refd_status *status)
{
	struct txn *txn = world_apply(w, spec, v->atomic);
	bool is_unknown = false;
	size_t i;

	for (i = 0; i < NR_REFS; i++) {
		status[i] = txn != NULL ? txn->updates[i].status : REFD_PENDING;
		is_unknown = is_unknown || status[i] == REFD_UNKNOWN;
	}
	world_done(w, txn);
	return is_unknown;
}

/* Only a retry repairs a failed unlock. */
static void check_litter(void)
{
	const char *what = world_litter(w);

	if (strncmp(memfs_hit(w->fs), "unlinkat", 8) != 0)
		ck_assert_msg(what == NULL, "%s: %s", context, what);
}

static bool fail_once(const struct variant *v, unsigned long n, int err)
{
	enum refd_status status[NR_REFS];
	bool hit, is_unknown;

	fresh(v);
	memfs_fail(w->fs, n, err);
	is_unknown = apply(v, status);
	hit = memfs_was_hit(w->fs);
	snprintf(context, sizeof(context), "call %lu (%s), %s", n,
	    hit ? memfs_hit(w->fs) : "none", strerror(-err));
	if (!is_unknown) {
		check_refs(v, status);
		if (hit)
			check_litter();
	}
	memfs_fail_none(w->fs);
	check_whole();
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
	memfs_crash(w->fs);
	world_crash(w);
	check_restart(v, status);
	tbl_free();
	return hit;
}

CASE(.seconds = 300);

TEST(errno_sweep, .times = NR_VARIANTS)
{
	static const int errs[] = { -EIO, -ENOSPC, -EMFILE, -EACCES };
	unsigned long n;
	size_t e;

	for (e = 0; e < sizeof(errs) / sizeof(*errs); e++) {
		for (n = 0; fail_once(&variants[_i], n, errs[e]);
		    n += sweep_step())
			;
		ck_assert_uint_gt(n, 40);
	}
}

static bool kill_once(const struct variant *v, unsigned long n)
{
	enum refd_status status[NR_REFS];
	size_t i;
	bool hit;

	fresh(v);
	memfs_crash_at(w->fs, n);
	apply(v, status);
	hit = memfs_was_hit(w->fs);
	snprintf(context, sizeof(context), "kill at %lu (%s)", n,
	    hit ? memfs_hit(w->fs) : "none");
	memfs_crash(w->fs);
	world_crash(w);
	/* A process that could not write any more gave the last answers. Only
	 * ok is binding. */
	for (i = 0; i < NR_REFS; i++)
		if (hit && status[i] != REFD_OK)
			status[i] = REFD_PENDING;
	check_restart(v, status);
	tbl_free();
	return hit;
}

TEST(killed, .times = NR_VARIANTS)
{
	unsigned long n = 0;

	while (kill_once(&variants[_i], n))
		n++;
	ck_assert_uint_ge(n, 15);
}

static bool cut_once(const struct variant *v, unsigned long n, uint64_t seed)
{
	struct memfs_choice choice = memfs_choose(seed);
	const bool is_synced = seed % 2 == 0;
	enum refd_status status[NR_REFS];
	bool hit, is_ok = false;
	size_t i;

	fresh(v);
	if (is_synced)
		SYS(stk.other, syncfs, stk.other_dir);
	memfs_set_mode(w->fs, seed % 4 == 3 ? MEMFS_STRICT : MEMFS_ORDERED);
	memfs_power_loss_at(w->fs, n);
	apply(v, status);
	hit = memfs_was_hit(w->fs);
	snprintf(context, sizeof(context), "cut at %lu (%s), seed %llu", n,
	    hit ? memfs_hit(w->fs) : "none", (unsigned long long)seed);
	memfs_power_loss(w->fs, &choice);
	world_crash(w);
	tbl_reopen();
	for (i = 0; i < NR_REFS; i++)
		is_ok = is_ok || status[i] == REFD_OK;
	/* Without an answer, nobody has promised to save the files of git. */
	if (is_synced || is_ok)
		check_whole();
	for (i = 0; i < NR_REFS; i++)
		if (hit && status[i] != REFD_OK)
			status[i] = REFD_PENDING;
	if ((is_synced || is_ok) && v->mode != REFD_DURABILITY_NONE)
		check_restart(v, status);
	tbl_free();
	return hit;
}

TEST(power_loss, .times = NR_VARIANTS)
{
	const struct variant *v = &variants[_i];
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step())
		for (seed = 0; seed < 12; seed++)
			hit = cut_once(v, n, n * 1000 + seed);
	ck_assert_uint_gt(n, 15);
	for (seed = 0; seed < 200; seed += sweep_step())
		cut_once(v, 1000000, seed);
}
