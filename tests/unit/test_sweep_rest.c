/*
 * Proves for three special cases that journal and refs agree after the next
 * start, and that no acknowledged update is missing. A crash or a power loss
 * comes at every change of the disk, and every call fails once.
 *
 * A session: from the locks to the commit, with a deletion.
 *
 * An abort: a foreign writer takes a name of the batch during the flush, alone
 * and in an atomic transaction.
 *
 * A checkpoint of published refs, with SQLite's own checkpoint.
 *
 * Power losses and failing calls are tried on all cases only with
 * REFD_TEST_LONG, and then with more ways to lose, more errors, and a second
 * power loss.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define TAKEN WORLD_REPO "/refs/heads/t"

struct work {
	const char *name, *spec;
	bool atomic, takes_name, is_session, is_checkpoint;
};

static const struct work works[] = {
	{ "session", "a=2:1;b=2:0;-p:1", true, false, true, false },
	{ "session, one by one", "a=2:1;-p:1", false, false, true, false },
	{ "abort", "a=2:1;t=2:0", false, true, false, false },
	{ "abort, atomic", "b=2:0;t=2:0;z=2:0", true, true, false, false },
	{ "checkpoint", "a=2:1;b=2:0;-p:1", false, false, false, true },
};
#define NR_WORKS ((int)(sizeof(works) / sizeof(*works)))

static const struct {
	const char *name;
	char before;
} refs[] = { { "a", '1' }, { "b", '0' }, { "t", '0' }, { "z", '0' },
	{ "p", '1' } };
#define NR_REFS (sizeof(refs) / sizeof(*refs))

struct state {
	struct world *w;
	const struct work *work;
	struct refd_txid id;
	bool is_sent;
	int nr_commits;
	/* The answer to every update of the spec. */
	enum refd_status said[8];
	char *names[8];
	size_t nr;
};

static int commit_and_take_the_name(void *arg, struct journal_row *rows,
    size_t nr, bool flush);

/* Found by the callbacks, so only one test state may exist at a time. */
static struct state *current;

static void note(struct state *s, const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		free(s->names[i]);
		s->names[i] = strdup(txn->updates[i].ask->name + 11);
		s->said[i] = txn->updates[i].status;
	}
	s->nr = txn->nr_updates;
}

static int send(struct state *s)
{
	struct txn *txn;

	if (s->work->is_session)
		txn = world_session(s->w, s->work->spec, s->work->atomic);
	else
		txn = world_begin(s->w, s->work->spec, s->work->atomic);
	if (txn == NULL)
		return -EIO;
	s->id = txn->req.txid;
	s->is_sent = true;
	if (!s->work->is_session)
		world_batch(s->w, &txn, 1);
	else if (txn->prepared != NULL)
		world_session_end(s->w, txn, true);
	note(s, txn);
	world_done(s->w, txn);
	return 0;
}

static void *set_up(struct memfs *fs, void *arg)
{
	struct state *s = calloc(1, sizeof(*s));

	current = s;
	s->work = arg;
	s->w = world_new(fs, true);
	world_write(fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "@1 refs/heads/keep\n"
	    "@1 refs/heads/p\n");
	ck_assert_int_eq(world_start(s->w), 0);
	world_done(s->w, world_apply(s->w, "a=1", false));
	ck_assert_int_eq(world_checkpoint(s->w), 0);
	if (s->work->takes_name)
		s->w->store.pipeline->applier.commit = commit_and_take_the_name;
	if (s->work->is_checkpoint)
		ck_assert_int_eq(send(s), 0);
	return s;
}

static int commit_and_take_the_name(void *arg, struct journal_row *rows,
    size_t nr, bool flush)
{
	const struct sys *sys = memfs_other(current->w->fs);
	int r = pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);
	char *five;

	/* After the power loss, the foreign writer does nothing either. */
	if (current->nr_commits++ > 0 ||
	    SYS(sys, mkdirat, AT_FDCWD, TAKEN, 0777) < 0)
		return r;
	five = world_text("@5\n");
	scripted_git_writes(current->w, TAKEN "/y", five);
	free(five);
	scripted_sync(current->w);
	return r;
}

static int run(void *state)
{
	struct state *s = state;

	if (!s->work->is_checkpoint)
		return send(s);
	world_tick(s->w);
	return world_checkpoint(s->w);
}

static int start_again(void *state)
{
	struct state *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static char before_of(const char *name)
{
	size_t i;

	for (i = 0; i < NR_REFS; i++)
		if (strcmp(refs[i].name, name) == 0)
			return refs[i].before;
	return '?';
}

/* After an abort, the power loss can bring the link back. This limit is in
 * docs/limits.md. */
static bool is_back(const struct state *s, const struct sweep_now *now,
    enum refd_status status, char is)
{
	return s->work->atomic && s->work->takes_name &&
	    now->when == SWEEP_AFTER_CUT && status == REFD_ABORTED && is == '2';
}

static const char *look_at(struct state *s, const struct sweep_now *now,
    size_t i, size_t *nr_new)
{
	static char text[200];
	struct scripted_txn h = { .w = s->w, .txid = s->id };
	enum refd_status status = scripted_status(&h, (uint32_t)i);
	char is = world_ref(s->w, s->names[i]);
	char after = s->names[i][0] == 'p' ? '0' : '2';

	*nr_new += is == after;
	snprintf(text, sizeof(text), "%s is at '%c', was %s, recorded as %s",
	    s->names[i], is, refd_status_name(s->said[i]),
	    refd_status_name(status));
	if (is != (status == REFD_OK ? after : before_of(s->names[i])) &&
	    !is_back(s, now, status, is))
		return text;
	if (s->said[i] == REFD_OK && status != REFD_OK)
		return text;
	return NULL;
}

static const char *look(void *state, const struct sweep_now *now)
{
	struct state *s = state;
	const char *what;
	size_t i, nr_new = 0;

	if (now->when == SWEEP_ALIVE)
		return NULL;
	if (now->was_hit &&
	    (now->kind == SWEEP_KILL || now->kind == SWEEP_CUT) &&
	    !s->work->is_checkpoint)
		/* The stopped process gave no answer. */
		memset(s->said, 0xff, sizeof(s->said));
	for (i = 0; i < s->nr; i++) {
		what = look_at(s, now, i, &nr_new);
		if (what != NULL)
			return what;
	}
	/* After a power loss, a taken name may have been taken later, from an
	 * acknowledged transaction: the rest of the transaction is redone. */
	if (s->work->atomic && nr_new > 0 && nr_new < s->nr &&
	    !(s->work->takes_name && now->when == SWEEP_AFTER_CUT))
		return "an atomic transaction is torn";
	if (world_ref(s->w, "keep") != '1')
		return "a packed ref is gone";
	return world_litter(s->w);
}

static void tear_down(void *state)
{
	struct state *s = state;
	size_t i;

	for (i = 0; i < s->nr; i++)
		free(s->names[i]);
	world_free(s->w);
	free(s);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = works[i].name,
		.arg = (void *)(uintptr_t)&works[i],
		.setup = set_up,
		.run = run,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.may_sync_again = works[i].is_checkpoint,
		.choices = getenv("REFD_TEST_LONG") != NULL ? 24 : 1,
		.second_cuts = getenv("REFD_TEST_LONG") != NULL ? 2 : 0 };
}

static bool is_long(void)
{
	return getenv("REFD_TEST_LONG") != NULL;
}

CASE(.seconds = 300);

TEST(killed, .times = NR_WORKS)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}

TEST(cut, .from = is_long() ? 0 : 3, .times = is_long() ? NR_WORKS : 1)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}

TEST(failing, .from = is_long() ? 0 : 3,
    .times = is_long() ? NR_WORKS : NR_WORKS - 3)
{
	static const int all[] = { -EIO, -ENOSPC, -EDQUOT, 0 };
	static const int one[] = { -EIO, 0 };
	const int *errs = is_long() ? all : one;
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_errno(&s, errs, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}
