#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sweep.h"

#define CHOICES    24
#define POINTS_MAX 200000

/* One run. */
struct pass {
	const struct sweep *s;
	struct sweep_report *report;
	struct sweep_now now;
	struct memfs *fs;
	void *state;
	unsigned long bad_syncs, bad_fds;
	char at[160];
};

static void begin(struct pass *p)
{
	p->report->runs++;
	p->fs = memfs_new();
	memfs_set_mode(p->fs, p->now.mode);
	p->state = p->s->setup(p->fs, p->s->arg);
	p->now.was_hit = false;
	p->now.when = SWEEP_ALIVE;
	p->now.again = ULONG_MAX;
	p->now.at = p->at;
	p->at[0] = '\0';
	p->bad_fds = memfs_bad_fds(p->fs);
	p->bad_syncs = memfs_bad_syncs(p->fs);
}

static void finish(struct pass *p)
{
	memfs_fail_none(p->fs);
	p->s->done(p->state);
}

static void run(struct pass *p)
{
	p->now.result = p->s->run(p->state);
	p->now.was_hit = memfs_was_hit(p->fs);
	snprintf(p->at, sizeof(p->at), "%s", memfs_hit(p->fs));
	memfs_fail_none(p->fs);
}

/* ---- findings ---- */

static const char *const kinds[] = { "one failing call", "a dead disk",
	"a kill", "a power cut" };
static const char *const whens[] = { "still alive", "recovered from a kill",
	"recovered from a cut" };

static bool found(struct pass *p, const char *what)
{
	const struct sweep_now *now = &p->now;
	char again[64] = "", *dump = memfs_dump(p->fs);

	if (now->again != ULONG_MAX)
		snprintf(again, sizeof(again), ", recovery cut at change %lu",
		    now->again);
	snprintf(p->report->text, sizeof(p->report->text),
	    "%s, %s, %s at %s %lu%s%s%s%s%s, %s, run() was %d: %s\n"
	    "choice: seed %llu data %d keep %ld %ld %ld %ld\n%s",
	    p->s->name, now->mode == MEMFS_STRICT ? "strict" : "ordered",
	    kinds[now->kind], now->kind <= SWEEP_DEAD ? "call" : "change",
	    now->n, now->at[0] != '\0' ? ", " : " (none)", now->at,
	    now->err != 0 ? ", " : "", now->err != 0 ? strerror(-now->err) : "",
	    again, whens[now->when], now->result, what,
	    (unsigned long long)now->choice.seed, (int)now->choice.data,
	    now->choice.keep[0], now->choice.keep[1], now->choice.keep[2],
	    now->choice.keep[3], dump);
	free(dump);
	return false;
}

static bool look(struct pass *p)
{
	const char *wrong;

	if (memfs_bad_fds(p->fs) != p->bad_fds)
		return found(p, "a closed descriptor was used");
	if (!p->s->may_sync_again && memfs_bad_syncs(p->fs) != p->bad_syncs)
		return found(p, "a failed sync was tried again");
	wrong = p->s->check(p->state, &p->now);
	return wrong == NULL || found(p, wrong);
}

static bool recover_and_look(struct pass *p)
{
	char text[64];
	int r;

	r = p->s->recover(p->state);
	if (r == 0)
		return look(p);
	snprintf(text, sizeof(text), "recovery returned %d", r);
	return found(p, text);
}

static bool cut_and_look(struct pass *p, const struct memfs_choice *choice)
{
	p->now.choice = *choice;
	memfs_power_loss(p->fs, choice);
	p->now.when = SWEEP_AFTER_CUT;
	return recover_and_look(p);
}

/* ---- outcomes of a power loss ---- */

#define NOTHING_LASTS 1

/* Number of outcomes of a power loss to try at a point, out of NR: FEW if there
 * is no time for all. */
static unsigned nr_tried(unsigned nr, unsigned few)
{
	return sweep_step() > 1 && few < nr ? few : nr;
}

/* The I-th outcome of NR. With FEW, the next point has different outcomes. */
static unsigned tried(const struct pass *p, unsigned i, unsigned nr,
    unsigned few)
{
	return nr_tried(nr, few) == nr ? i :
					 (unsigned)((p->now.n * few + i) % nr);
}

/* The first outcomes show most bugs; then random outcomes follow. */
static struct memfs_choice corner(unsigned i)
{
	static const struct {
		long keep;
		enum memfs_data data;
	} corners[] = { { LONG_MAX, MEMFS_DATA_NONE }, { 0, MEMFS_DATA_NONE },
		{ LONG_MAX, MEMFS_DATA_NULS }, { 0, MEMFS_DATA_ALL },
		{ LONG_MAX, MEMFS_DATA_ALL } };
	struct memfs_choice choice = memfs_choose(i);
	unsigned m;

	if (i >= sizeof(corners) / sizeof(corners[0]))
		return choice;
	choice.data = corners[i].data;
	for (m = 0; m < MEMFS_MOUNTS_MAX; m++)
		choice.keep[m] = corners[i].keep;
	return choice;
}

#define KINDS_OF_DATA 4

/* The number of pending changes on each mount, and of all combinations of
 * prefixes. */
struct prefixes {
	size_t pending[MEMFS_MOUNTS_MAX];
	unsigned nr_mounts;
	double total;
};

static struct prefixes count_prefixes(struct memfs *fs)
{
	struct prefixes pre = { .nr_mounts = memfs_nr_mounts(fs), .total = 1 };
	unsigned m;

	for (m = 0; m < pre.nr_mounts; m++) {
		pre.pending[m] = memfs_nr_pending(fs, m);
		pre.total *= (double)(pre.pending[m] + 1);
	}
	return pre;
}

/* The I-th outcome if all are tried: every prefix with each kind of data. */
static struct memfs_choice enumerated(const struct prefixes *pre, unsigned i)
{
	static const enum memfs_data data[KINDS_OF_DATA] = { MEMFS_DATA_NONE,
		MEMFS_DATA_NULS, MEMFS_DATA_ALL, MEMFS_DATA_MIXED };
	struct memfs_choice choice = memfs_choose(i);
	unsigned m, rest = i / KINDS_OF_DATA;

	choice.data = data[i % KINDS_OF_DATA];
	for (m = 0; m < pre->nr_mounts; m++) {
		choice.keep[m] = (long)(rest % (pre->pending[m] + 1));
		rest /= (unsigned)(pre->pending[m] + 1);
	}
	return choice;
}

unsigned long sweep_step(void)
{
	const char *text = getenv("SWEEP_STEP");
	unsigned long step = text != NULL ? strtoul(text, NULL, 10) : 1;

	return step > 0 ? step : 1;
}

/* ---- failing calls ---- */

#define CUTS_AFTER 4
#define FEW_AFTER  1

static void run_with_fault(struct pass *p)
{
	begin(p);
	if (p->now.kind == SWEEP_DEAD)
		memfs_die(p->fs, p->now.n, p->now.err);
	else
		memfs_fail(p->fs, p->now.n, p->now.err);
	run(p);
}

/* Checks the process at the end of the run, with a working disk. */
static bool look_after_fault(struct pass *p)
{
	if (p->now.kind == SWEEP_ERRNO)
		return look(p);
	memfs_crash(p->fs);
	p->now.when = SWEEP_AFTER_KILL;
	return recover_and_look(p);
}

static bool fault_point(struct pass *p)
{
	struct memfs_choice choice;
	unsigned i;
	bool ok;

	run_with_fault(p);
	ok = p->s->recover == NULL && p->now.kind == SWEEP_DEAD ?
	    true :
	    look_after_fault(p);
	finish(p);
	if (p->s->recover == NULL)
		return ok;
	for (i = 0; ok && i < nr_tried(CUTS_AFTER, FEW_AFTER); i++) {
		choice = corner(tried(p, i, CUTS_AFTER, FEW_AFTER));
		run_with_fault(p);
		ok = cut_and_look(p, &choice);
		finish(p);
	}
	return ok;
}

static void endless(const struct sweep *s)
{
	fprintf(stderr, "sweep: %s does not come to an end\n", s->name);
	abort();
}

static bool each_point(struct pass *p, bool (*point)(struct pass *p))
{
	p->now.n = 0;
	do {
		p->report->points += sweep_step();
		if (!point(p))
			return false;
		p->now.n += sweep_step();
		if (p->now.n > POINTS_MAX)
			endless(p->s);
	} while (p->now.was_hit);
	return true;
}

bool sweep_errno(const struct sweep *s, const int *errs,
    struct sweep_report *report)
{
	struct pass p = { .s = s, .report = report };

	p.now.kind = SWEEP_ERRNO;
	for (; *errs != 0; errs++) {
		p.now.err = *errs;
		if (!each_point(&p, fault_point))
			return false;
	}
	return true;
}

bool sweep_dead(const struct sweep *s, int err, struct sweep_report *report)
{
	struct pass p = { .s = s, .report = report };

	p.now.kind = SWEEP_DEAD;
	p.now.err = err;
	return each_point(&p, fault_point);
}

/* ---- crashes ---- */

static bool kill_run(struct pass *p)
{
	begin(p);
	memfs_crash_at(p->fs, p->now.n);
	run(p);
	memfs_crash(p->fs);
	p->now.when = SWEEP_AFTER_KILL;
	return recover_and_look(p);
}

static bool kill_point(struct pass *p)
{
	struct memfs_choice choice;
	unsigned i;
	bool ok = true;

	for (i = 0; ok && i < nr_tried(CUTS_AFTER, FEW_AFTER); i++) {
		choice = corner(tried(p, i, CUTS_AFTER, FEW_AFTER));
		ok = kill_run(p) && cut_and_look(p, &choice);
		finish(p);
	}
	return ok;
}

bool sweep_crash(const struct sweep *s, struct sweep_report *report)
{
	struct pass p = { .s = s, .report = report };

	p.now.kind = SWEEP_KILL;
	return each_point(&p, kill_point);
}

/* ---- power losses ---- */

static void run_to_cut(struct pass *p)
{
	begin(p);
	memfs_power_loss_at(p->fs, p->now.n);
	run(p);
}

/* Runs again to the same point, with a second power loss at change K of
 * recovery. */
static bool cut_recovery(struct pass *p, const struct memfs_choice *choice,
    unsigned long k, const struct memfs_choice *then)
{
	bool ok;

	run_to_cut(p);
	memfs_power_loss(p->fs, choice);
	p->now.again = k;
	memfs_power_loss_at(p->fs, k);
	p->s->recover(p->state);
	ok = cut_and_look(p, then);
	finish(p);
	return ok;
}

#define SECOND_MAX 12
#define FEW_SECOND 2

/* A second power loss at each of the NR changes of recovery and after the last,
 * or at some of them. At each place, the outcome without any pending change,
 * and a random outcome. */
static bool cut_recovery_anywhere(struct pass *p,
    const struct memfs_choice *choice, unsigned long nr)
{
	uint64_t mix = choice->seed + p->now.n * 0x9e3779b97f4a7c15ULL;
	unsigned long i, k, max = nr_tried(SECOND_MAX, FEW_SECOND);
	unsigned long tries = nr < max ? nr + 1 : max;
	struct memfs_choice then;
	bool ok = true;

	for (i = 0; ok && i < 2 * tries; i++) {
		mix = mix * 6364136223846793005ULL + 1442695040888963407ULL;
		k = nr < max ? i / 2 : (mix >> 33) % (nr + 1);
		then = i % 2 == 0 ? corner(NOTHING_LASTS) :
				    memfs_choose(mix >> 20);
		ok = cut_recovery(p, choice, k, &then);
	}
	return ok;
}

static bool one_choice(struct pass *p, const struct memfs_choice *choice,
    bool again)
{
	unsigned long before, changes;
	bool ok;

	before = memfs_nr_changes(p->fs);
	ok = cut_and_look(p, choice);
	changes = memfs_nr_changes(p->fs) - before;
	finish(p);
	if (ok && again)
		ok = cut_recovery_anywhere(p, choice, changes);
	return ok;
}

#define FEW_CUTS 2

static bool cut_point(struct pass *p)
{
	unsigned i, k, nr = p->s->choices > 0 ? p->s->choices : CHOICES;
	struct memfs_choice choice;
	struct prefixes pre;
	bool all, ok = true;

	for (i = 0; ok && i < nr_tried(nr, FEW_CUTS); i++) {
		run_to_cut(p);
		pre = count_prefixes(p->fs);
		all = pre.total * KINDS_OF_DATA <= nr;
		if (all)
			nr = (unsigned)pre.total * KINDS_OF_DATA;
		k = tried(p, i, nr, FEW_CUTS);
		choice = all ? enumerated(&pre, k) : corner(k);
		ok = one_choice(p, &choice, i < p->s->second_cuts);
	}
	return ok;
}

bool sweep_power_loss(const struct sweep *s, struct sweep_report *report)
{
	struct pass p = { .s = s, .report = report };

	p.now.kind = SWEEP_CUT;
	p.now.mode = MEMFS_STRICT;
	if (!each_point(&p, cut_point))
		return false;
	p.now.mode = MEMFS_ORDERED;
	return each_point(&p, cut_point);
}
