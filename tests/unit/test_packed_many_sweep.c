/*
 * Proves the safety of a batch with a large transaction of new refs, which go
 * to packed-refs, and with a foreign deletion in the same packed-refs.new.
 * After any failed call, any crash and any power loss, refs and journal agree
 * after the next start, answers hold, an atomic transaction is whole, and no
 * file is left behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define R      WORLD_REPO
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"
#define KEEP   "@1 refs/heads/keep\n"
#define P      "@1 refs/heads/p\n"

static const struct variant {
	bool atomic, state_elsewhere;
	enum refd_durability mode;
} variants[] = {
	{ .atomic = true },
	{ .state_elsewhere = true, .mode = REFD_DURABILITY_FSYNC },
};
#define NR_VARIANTS ((int)(sizeof(variants) / sizeof(*variants)))

/* The first transaction makes these refs; the second deletes "p". */
static const char *const made[] = { "b", "q/r", "@refs/tags/t" };
#define NR_MADE (sizeof(made) / sizeof(*made))

struct packed_state {
	struct world *w;
	const struct variant *v;
	struct refd_txid ids[2];
	bool was_ok[NR_MADE + 1];
};

static void *set_up(struct memfs *fs, void *arg)
{
	struct packed_state *s = calloc(1, sizeof(*s));

	s->v = arg;
	s->w = world_new(fs, s->v->state_elsewhere);
	s->w->packed_least = NR_MADE;
	s->w->mode = s->v->mode;
	world_write(fs, R "/packed-refs", HEADER KEEP P);
	ck_assert_int_eq(world_start(s->w), 0);
	return s;
}

static int apply(void *state)
{
	struct packed_state *s = state;
	struct txn *txns[2];
	size_t i;

	txns[0] =
	    world_begin(s->w, "b=3:0;q/r=3:0;@refs/tags/t=3:0", s->v->atomic);
	txns[1] = world_begin(s->w, "-p:1", false);
	if (txns[0] != NULL && txns[1] != NULL)
		world_batch(s->w, txns, 2);
	for (i = 0; i < 2; i++)
		if (txns[i] != NULL)
			s->ids[i] = txns[i]->req.txid;
	for (i = 0; i < NR_MADE && txns[0] != NULL; i++)
		s->was_ok[i] = txns[0]->updates[i].status == REFD_OK;
	if (txns[1] != NULL)
		s->was_ok[NR_MADE] = txns[1]->updates[0].status == REFD_OK;
	world_done(s->w, txns[0]);
	world_done(s->w, txns[1]);
	return 0;
}

static int start_again(void *state)
{
	struct packed_state *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static const char *look(void *state, const struct sweep_now *now)
{
	static char text[128];
	struct packed_state *s = state;
	struct scripted_txn h = { .w = s->w };
	bool is_ok, gone;
	size_t i, nr = 0;
	char c;

	if (world_ref(s->w, "keep") != '1')
		return "a ref of nobody's business is gone";
	if (now->when == SWEEP_ALIVE)
		return NULL;
	h.txid = s->ids[0];
	for (i = 0; i < NR_MADE; i++) {
		is_ok = scripted_status(&h, (uint32_t)i) == REFD_OK;
		c = world_ref(s->w, made[i]);
		snprintf(text, sizeof(text), "%s is at '%c', %sok now, %sok",
		    made[i], c, is_ok ? "" : "not ",
		    s->was_ok[i] ? "" : "not ");
		if (c != (is_ok ? '3' : '0') || (s->was_ok[i] && !is_ok) ||
		    (!is_ok && !now->was_hit))
			return text;
		nr += is_ok;
	}
	if (s->v->atomic && nr > 0 && nr < NR_MADE)
		return "an atomic transaction is torn";
	h.txid = s->ids[1];
	is_ok = scripted_status(&h, 0) == REFD_OK;
	gone = world_ref(s->w, "p") == '0';
	if (gone != is_ok || (s->was_ok[NR_MADE] && !is_ok))
		return "the deletion is not what the journal says";
	return world_litter(s->w);
}

static void tear_down(void *state)
{
	struct packed_state *s = state;

	world_free(s->w);
	free(s);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = "many",
		.arg = (void *)(uintptr_t)&variants[i],
		.setup = set_up,
		.run = apply,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 4 };
}

CASE(.seconds = 120);

TEST(an_error_anywhere, .times = NR_VARIANTS)
{
	static const int errs[] = { -EIO, -ENOSPC, 0 };
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	s.may_sync_again = true;
	ck_assert_msg(sweep_errno(&s, errs, &report), "%s", report.text);
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
