/*
 * Proves that a batch survives a failure at every point of its way through the
 * disk, including the journal's calls, in every mode of durability.
 *
 * After a failing call, updates with "ok" are there and no others. Nothing is
 * left locked, and refd goes on.
 *
 * After a crash, refs and journal agree, and atomic transactions are whole. No
 * lock and no staged file is left.
 *
 * A power loss takes no acknowledged update, tears no atomic transaction, and
 * leaves no empty ref and no torn log. The same holds for a second power loss
 * during recovery.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world.h"

/* The effects of the transaction under test, and the refs at the start. */
static const struct {
	const char *name;
	char old, new_c;
	bool logged;
} refs[] = {
	{ "a", '1', '2', true },
	{ "b", '0', '3', true },
	{ "c", '1', '0', false },
	{ "p", '1', '0', false },
	{ "q/r", '0', '4', true },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))
static const char spec[] = "a=2:1;b=3:0;-c:1;-p:1;q/r=4";
static const char updates_only[] = "a=2:1;b=3:0;q/r=4";

struct variant {
	bool atomic, state_elsewhere, updates_only;
	enum refd_durability mode; /* 0: journal */
};

static char context[512];
/* As in git, a log that the account may not remove stays. */
static bool log_may_stay;

static struct world *fresh(const struct variant *v)
{
	struct world *w = world_new(memfs_new(), v->state_elsewhere);
	struct txn *txn;

	w->mode = v->mode;
	world_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "@1 refs/heads/keep\n"
	    "@1 refs/heads/p\n");
	ck_assert_int_eq(world_start(w), 0);
	txn = world_apply(w, "a=1;c=1", false);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(world_checkpoint(w), 0);
	return w;
}

static const char *spec_of(const struct variant *v)
{
	return v->updates_only ? updates_only : spec;
}

/* The index in refs[] of the transaction's I-th update. */
static size_t ref_of(const struct variant *v, size_t i)
{
	return v->updates_only && i == 2 ? 4 : i;
}

static void check_litter(struct world *w)
{
	const char *what = world_litter(w);

	ck_assert_msg(what == NULL, "%s: %s", context, what);
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refd/stage"));
}

static void check_others(struct world *w)
{
	ck_assert_msg(world_ref(w, "keep") == '1',
	    "%s: a ref of nobody's business is at '%c'", context,
	    world_ref(w, "keep"));
}

/* Every ref has its old or new value. STATUSES, if not NULL, decides which.
 * Returns the number of refs with a new value. */
static size_t check_refs(struct world *w, const struct variant *v,
    const enum refd_status *statuses)
{
	size_t i, k, nr = v->updates_only ? 3 : NR_REFS, fresh_ones = 0;
	int lines;
	char c;

	for (i = 0; i < nr; i++) {
		k = ref_of(v, i);
		c = world_ref(w, refs[k].name);
		ck_assert_msg(c == refs[k].old || c == refs[k].new_c,
		    "%s: %s is at '%c'", context, refs[k].name, c);
		fresh_ones += c == refs[k].new_c;
		if (statuses != NULL && statuses[i] == REFD_OK)
			ck_assert_msg(c == refs[k].new_c,
			    "%s: %s was ok and is at '%c'", context,
			    refs[k].name, c);
		if (statuses != NULL && statuses[i] != REFD_OK &&
		    statuses[i] != REFD_UNKNOWN && statuses[i] != REFD_PENDING)
			ck_assert_msg(c == refs[k].old,
			    "%s: %s failed (%s) and is at '%c'", context,
			    refs[k].name, refd_status_name(statuses[i]), c);
		if (c == '0' && refs[k].new_c == '0' && !log_may_stay)
			ck_assert_msg(!world_has_log(w, refs[k].name),
			    "%s: %s is deleted and its log is there", context,
			    refs[k].name);
		lines = world_log_count(w, refs[k].name, refs[k].old,
		    refs[k].new_c);
		ck_assert_msg(lines >= 0, "%s: log of %s is torn", context,
		    refs[k].name);
		ck_assert_msg(lines <= 1, "%s: log of %s has %d lines", context,
		    refs[k].name, lines);
		if (statuses != NULL && statuses[i] == REFD_OK &&
		    refs[k].logged && w->owed == 0)
			ck_assert_msg(lines == 1,
			    "%s: log of %s lacks its "
			    "line",
			    context, refs[k].name);
	}
	if (v->atomic)
		ck_assert_msg(fresh_ones == 0 || fresh_ones == nr,
		    "%s: atomic, and %zu of %zu are new", context, fresh_ones,
		    nr);
	check_others(w);
	return fresh_ones;
}

/* Applies the transaction and fills STATUSES (all PENDING if it could not
 * begin). */
static void apply(struct world *w, const struct variant *v,
    enum refd_status *statuses)
{
	struct txn *txn;
	size_t i;

	for (i = 0; i < NR_REFS; i++)
		statuses[i] = REFD_PENDING;
	txn = world_apply(w, spec_of(v), v->atomic);
	if (txn == NULL)
		return;
	for (i = 0; i < txn->nr_updates; i++)
		statuses[i] = txn->updates[i].status;
	world_done(w, txn);
}

static bool has(const enum refd_status *statuses, enum refd_status status)
{
	size_t i;

	for (i = 0; i < NR_REFS; i++)
		if (statuses[i] == status)
			return true;
	return false;
}

static void restart(struct world *w)
{
	int r;

	r = world_start(w);
	ck_assert_msg(r == 0, "%s: recovery failed: %s", context, strerror(-r));
}

static const struct variant variants[] = {
	{ .atomic = false },
	{ .atomic = true },
	{ .atomic = true, .state_elsewhere = true },
	{ .atomic = true, .updates_only = true },
	{ .state_elsewhere = true, .updates_only = true },
	{ .mode = REFD_DURABILITY_BATCH },
	{ .atomic = true,
	    .state_elsewhere = true,
	    .mode = REFD_DURABILITY_FSYNC },
	{ .atomic = true, .mode = REFD_DURABILITY_NONE },
	{ .state_elsewhere = true, .mode = REFD_DURABILITY_PERIODIC },
};
/* The last two variants promise nothing after a power loss; see
 * test_durability_weak. */
#define NR_LASTING ((int)(sizeof(variants) / sizeof(*variants)) - 2)

CASE(.seconds = 300);

TEST(errno_sweep, .times = sizeof(variants) / sizeof(*variants))
{
	static const int errs[] = { -EIO, -ENOSPC, -EMFILE, -EACCES };
	const struct variant *v = &variants[_i];
	enum refd_status st[NR_REFS];
	unsigned long n;
	struct world *w;
	bool hit = true;
	size_t e;

	for (e = 0; e < sizeof(errs) / sizeof(*errs); e++) {
		hit = true;
		for (n = 0; hit; n += sweep_step()) {
			w = fresh(v);
			memfs_fail(w->fs, n, errs[e]);
			apply(w, v, st);
			hit = memfs_was_hit(w->fs);
			snprintf(context, sizeof(context),
			    "variant %d, call %lu (%s), %s", _i, n,
			    hit ? memfs_hit(w->fs) : "none",
			    strerror(-errs[e]));
			memfs_fail_none(w->fs);
			log_may_stay = errs[e] == -EACCES &&
			    strstr(context, "unlinkat logs/") != NULL;
			if (!has(st, REFD_UNKNOWN)) {
				check_refs(w, v, st);
			}
			ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
			ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
			/* The next start agrees, and all works again. */
			memfs_crash(w->fs);
			world_crash(w);
			restart(w);
			check_refs(w, v, st);
			check_litter(w);
			apply(w, v, st);
			ck_assert_msg(!has(st, REFD_IO) &&
				!has(st, REFD_NOSPACE),
			    "%s: does not work again", context);
			world_free(w);
		}
		ck_assert_uint_gt(n, 40);
	}
}

/* The same fault, but the process lives on: nothing may be left locked. */
TEST(errno_sweep_leaves_no_lock, .times = sizeof(variants) / sizeof(*variants))
{
	const struct variant *v = &variants[_i];
	enum refd_status st[NR_REFS];
	unsigned long n;
	struct world *w;
	bool hit = true;
	char *locks;

	for (n = 0; hit; n += sweep_step()) {
		w = fresh(v);
		memfs_fail(w->fs, n, -ENOSPC);
		apply(w, v, st);
		hit = memfs_was_hit(w->fs);
		snprintf(context, sizeof(context), "variant %d, call %lu (%s)",
		    _i, n, hit ? memfs_hit(w->fs) : "none");
		/* Only a restart repairs a failed unlock. */
		if (!has(st, REFD_UNKNOWN) && hit &&
		    strncmp(memfs_hit(w->fs), "unlinkat", 8) != 0) {
			locks = memfs_list_locks(w->fs, WORLD_REPO);
			ck_assert_msg(locks[0] == '\0', "%s: locks left: %s",
			    context, locks);
			free(locks);
		}
		world_free(w);
	}
}

/* The file systems are being synced, and nobody will know the result. */
static void mark_syncs(struct world *w)
{
	struct fs *fs;

	for (fs = w->store.repos.fs; fs != NULL; fs = fs->next)
		ck_assert_int_eq(
		    sync_failures_begin(w->store.repos.sync_failures, fs->mount,
			0),
		    0);
}

static bool kill_once(const struct variant *v, unsigned long n, bool marked)
{
	enum refd_status st[NR_REFS];
	struct world *w = fresh(v);
	bool hit;

	if (marked)
		mark_syncs(w);
	memfs_crash_at(w->fs, n);
	apply(w, v, st);
	hit = memfs_was_hit(w->fs);
	snprintf(context, sizeof(context), "variant %d, %s at %lu (%s)",
	    (int)(v - variants), marked ? "kill beside a sync" : "kill", n,
	    hit ? memfs_hit(w->fs) : "none");
	memfs_crash(w->fs);
	world_crash(w);
	restart(w);
	/* A process that could not write any more gave the last answers. Only
	 * ok is binding. */
	check_refs(w, v, hit ? NULL : st);
	check_litter(w);
	world_free(w);
	return hit;
}

TEST(crash_sweep, .times = sizeof(variants) / sizeof(*variants))
{
	const struct variant *v = &variants[_i];
	unsigned long n = 0;

	while (kill_once(v, n, false) && kill_once(v, n, true))
		n++;
	ck_assert_uint_ge(n, 15);
}

/* Loses the power at N, keeps the data that SEED chooses, and loses the power
 * again during recovery if AGAIN. False: the batch had ended before N. */
static bool cut_once(const struct variant *v, unsigned long n, uint64_t seed,
    bool strict, long again)
{
	struct memfs_choice choice = memfs_choose(seed);
	enum refd_status st[NR_REFS];
	struct world *w;
	bool hit;
	size_t i;

	w = fresh(v);
	memfs_set_mode(w->fs, strict ? MEMFS_STRICT : MEMFS_ORDERED);
	memfs_power_loss_at(w->fs, n);
	apply(w, v, st);
	hit = memfs_was_hit(w->fs);
	snprintf(context, sizeof(context),
	    "variant %d, cut at %lu (%s), seed %llu, %s, again %ld",
	    (int)(v - variants), n, hit ? memfs_hit(w->fs) : "none",
	    (unsigned long long)seed, strict ? "strict" : "ordered", again);
	memfs_power_loss(w->fs, &choice);
	world_crash(w);
	if (again >= 0) {
		memfs_power_loss_at(w->fs, (unsigned long)again);
		world_start(w);
		choice = memfs_choose(seed + 1);
		memfs_power_loss(w->fs, &choice);
		world_crash(w);
	}
	restart(w);
	for (i = 0; i < NR_REFS && hit; i++)
		if (st[i] != REFD_OK)
			st[i] = REFD_PENDING;
	check_refs(w, v, st);
	check_litter(w);
	world_free(w);
	return hit;
}

/* Of NR ways for a power loss to end, the number to try at a point
 * (sweep.h). */
static unsigned long ways(unsigned long nr)
{
	return sweep_step() > 1 ? nr / 4 : nr;
}

/* The I-th way to try. The next point tries other ways, if not all are
 * tried. */
static uint64_t way(unsigned long point, unsigned long i, unsigned long nr)
{
	return (point * ways(nr) + i) % nr;
}

TEST(power_loss_sweep, .times = NR_LASTING)
{
	const struct variant *v = &variants[_i];
	unsigned long n, i;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step())
		for (i = 0; i < ways(12); i++) {
			seed = way(n, i, 12);
			hit =
			    cut_once(v, n, n * 1000 + seed, seed % 4 == 3, -1);
		}
	ck_assert_uint_gt(n, 15);
	/* After the answer, many ways to lose data. */
	for (seed = 0; seed < 400; seed += sweep_step())
		cut_once(v, 1000000, seed, seed % 4 == 3, -1);
}

TEST(power_loss_sweep_twice, .times = NR_LASTING)
{
	const struct variant *v = &variants[_i];
	unsigned long i;
	uint64_t seed;
	long again;

	for (again = 0; again < 80; again += (long)sweep_step())
		for (i = 0; i < ways(8); i++) {
			seed = way((unsigned long)again, i, 8);
			cut_once(v, 1000000, (uint64_t)again * 100 + seed,
			    seed % 4 == 3, again);
		}
}
