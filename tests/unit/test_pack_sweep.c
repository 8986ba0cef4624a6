/*
 * Proves the safety of packing between updates through refd. After any failed
 * call, any crash and any power loss, before and after the next start, every
 * ref has its last acknowledged value or the value of an update without an
 * answer, no deleted ref is back, a ref of nobody's business stays, and no file
 * is left behind. The updates before the round are not yet in a checkpoint.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/pack_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define R      WORLD_REPO
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"

static const struct variant {
	bool state_elsewhere;
	enum refd_durability mode;
} variants[] = {
	{ .state_elsewhere = true },
	{ .mode = REFD_DURABILITY_FSYNC },
};
#define NR_VARIANTS ((int)(sizeof(variants) / sizeof(*variants)))

/* The refs, and their values before the run. */
static const char *const names[] = { "a", "b", "n", "d/e", "old", "keep" };
static const char begin[] = "110111";
#define NR_NAMES (sizeof(names) / sizeof(*names))

struct pack_state {
	struct world *w;
	char value[NR_NAMES];    /* acknowledged */
	char maybe[NR_NAMES][4]; /* of updates without an answer since */
};

static void *set_up(struct memfs *fs, void *arg)
{
	const struct variant *v = arg;
	struct pack_state *s = calloc(1, sizeof(*s));

	s->w = world_new(fs, v->state_elsewhere);
	s->w->mode = v->mode;
	memcpy(s->value, begin, NR_NAMES);
	world_write(fs, R "/packed-refs",
	    HEADER "@1 refs/heads/a\n@1 refs/heads/keep\n");
	world_write(fs, R "/refs/heads/b", "@1\n");
	world_write(fs, R "/refs/heads/d/e", "@1\n");
	world_write(fs, R "/refs/heads/old", "@1\n");
	ck_assert_int_eq(world_start(s->w), 0);
	return s;
}

static void apply(struct pack_state *s, size_t i, char value)
{
	char spec[32];
	struct txn *txn;

	snprintf(spec, sizeof(spec), value == '0' ? "-%s" : "%s=%c", names[i],
	    value);
	txn = world_apply(s->w, spec, false);
	if (txn != NULL && txn->updates[0].status == REFD_OK) {
		s->value[i] = value;
		s->maybe[i][0] = '\0';
	} else if (txn != NULL && txn->updates[0].status == REFD_UNKNOWN) {
		strncat(s->maybe[i], &value, 1);
	}
	world_done(s->w, txn);
}

static int run(void *state)
{
	struct pack_state *s = state;
	struct pack_round pr;
	int r;

	apply(s, 0, '2');
	apply(s, 1, '3');
	apply(s, 2, '4');
	r = pack_rig_round(s->w, &pr);
	apply(s, 1, '5');
	apply(s, 3, '0');
	apply(s, 0, '0');
	return r;
}

static int start_again(void *state)
{
	struct pack_state *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static const char *look(void *state, const struct sweep_now *now)
{
	static char text[128];
	struct pack_state *s = state;
	size_t i;
	char c;

	if (!now->was_hit && now->result < 0)
		return "the round failed";
	for (i = 0; i < NR_NAMES; i++) {
		c = world_ref(s->w, names[i]);
		snprintf(text, sizeof(text), "%s is at '%c', not '%c' or '%s'",
		    names[i], c, s->value[i], s->maybe[i]);
		if (c != s->value[i] && strchr(s->maybe[i], c) == NULL)
			return text;
	}
	if (now->when == SWEEP_ALIVE ||
	    (now->kind == SWEEP_ERRNO && now->mode == MEMFS_STRICT))
		return NULL;
	return world_litter(s->w);
}

static void tear_down(void *state)
{
	struct pack_state *s = state;

	world_free(s->w);
	free(s);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = "pack",
		.arg = (void *)(uintptr_t)&variants[i],
		.setup = set_up,
		.run = run,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 6,
		.second_cuts = 1 };
}

CASE(.seconds = 240);

TEST(an_error_anywhere, .times = NR_VARIANTS)
{
	static const int errs[] = { -EIO, -ENOSPC, 0 };
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	s.may_sync_again = true;
	ck_assert_msg(sweep_errno(&s, errs, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 60);
}

TEST(a_dead_disk, .times = NR_VARIANTS)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	s.may_sync_again = true;
	ck_assert_msg(sweep_dead(&s, -EIO, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 60);
}

TEST(a_crash_anywhere, .times = NR_VARIANTS)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 15);
}

TEST(a_power_loss_anywhere, .times = NR_VARIANTS)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 30);
}
