/*
 * Proves the promises of the modes batch and fsync, on a disk that forgets.
 * After a power loss, acknowledged results are there without the journal:
 * values, deletions, log lines, new directories, and confirmed values. No ref
 * is ever empty on the way. After recovery an atomic transaction is whole and
 * no lock is left. A client can ask for these modes from a daemon of any mode.
 * No update is ok after its sync failed.
 */
#include <errno.h>
#include <fcntl.h>

#include "tests/lib/durability_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

/* ---- modes without the need of a journal ---- */

static const struct strong {
	enum refd_durability daemon, asked;
	bool strict, atomic, state_elsewhere;
} strong[] = {
	{ FSYNC, 0, true, false, false },
	{ FSYNC, 0, false, true, true },
	{ BATCH, 0, true, true, false },
	{ BATCH, 0, false, false, true },
	{ NONE, FSYNC, true, false, true },
	{ PERIODIC, BATCH, false, true, false },
	{ JOURNAL, FSYNC, true, true, false },
	{ JOURNAL, BATCH, true, false, true },
};
#define NR_STRONG ((int)(sizeof(strong) / sizeof(*strong)))

static void fresh_strong(const struct strong *s)
{
	dw_fresh(s->daemon, s->state_elsewhere);
	dw_set_disk(s->strict);
	dw->asked = s->asked;
}

CASE(.seconds = 120);

TEST(stands_without_the_journal, .times = NR_STRONG)
{
	const struct strong *s = &strong[_i];
	uint64_t seed;

	for (seed = 0; seed < 100; seed += sweep_step()) {
		dw_say("stands", _i, seed);
		fresh_strong(s);
		dw_apply_ok(DW_SPEC, s->atomic);
		dw_power_loss(seed);
		dw_check_there();
		dw_no_locks();
		dw_restart();
		dw_check_there();
		world_free(dw);
	}
}

/* No other update syncs a directory for the deletion. */
TEST(a_deletion_alone_stands, .times = NR_STRONG)
{
	const struct strong *s = &strong[_i];
	uint64_t seed;

	for (seed = 0; seed < 40; seed += sweep_step()) {
		dw_say("deletion", _i, seed);
		fresh_strong(s);
		dw_apply_ok(seed & 1 ? "-c:1" : "-p:1", s->atomic);
		dw_power_loss(seed);
		dw_check_at(seed & 1 ? "c" : "p", "0");
		dw_check_at("keep", "1");
		ck_assert_msg(world_has_log(dw, "c") == !(seed & 1),
		    "%s: the log is back", dw_context);
		dw_no_locks();
		world_free(dw);
	}
}

/* All of DW_SPEC or nothing. */
static void check_whole(void)
{
	bool is_new = world_ref(dw, "a") == '2';

	dw_check_at("b", is_new ? "3" : "0");
	dw_check_at("c", is_new ? "0" : "1");
	dw_check_at("p", is_new ? "0" : "1");
	dw_check_at("x/y/z", is_new ? "4" : "0");
}

TEST(no_ref_is_empty_on_the_way, .times = NR_STRONG)
{
	const struct strong *s = &strong[_i];
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		for (seed = 0; seed < 6; seed++) {
			dw_say("on the way", _i, n * 1000 + seed);
			fresh_strong(s);
			memfs_power_loss_at(dw->fs, n);
			world_done(dw, world_apply(dw, DW_SPEC, s->atomic));
			hit = memfs_was_hit(dw->fs);
			dw_power_loss(n * 1000 + seed);
			dw_check_at("a", "12");
			dw_check_at("b", "03");
			dw_check_at("c", "01");
			dw_check_at("p", "01");
			dw_check_at("x/y/z", "04");
			dw_check_at("d", "1");
			dw_check_at("keep", "1");
			dw_restart();
			if (s->atomic)
				check_whole();
			dw_no_locks();
			world_free(dw);
		}
	}
	ck_assert_uint_gt(n, 15);
}

/* A foreign, unsynced value that our update only confirms. */
TEST(what_is_confirmed_stands_too, .times = NR_STRONG)
{
	static const char text[] = "3535353535353535353535353535353535353535\n";
	const struct strong *s = &strong[_i];
	const struct sys *sys;
	uint64_t seed;
	int fd;

	for (seed = 0; seed < 40; seed += sweep_step()) {
		dw_say("confirmed", _i, seed);
		fresh_strong(s);
		sys = memfs_other(dw->fs);
		fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/new",
		    O_WRONLY | O_CREAT, 0644);
		ck_assert_int_eq(
		    SYS(sys, write_all, fd, text, sizeof(text) - 1), 0);
		SYS(sys, close, fd);
		ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD, WORLD_REPO "/new",
				     AT_FDCWD, WORLD_REPO "/refs/heads/a"),
		    0);
		dw_apply_ok("a=5", false);
		dw_power_loss(seed);
		dw_check_at("a", "5");
		world_free(dw);
	}
}

/* After N calls of kind CALL, the next call fails. An ok is durable all the
 * same, and an unknown result is recorded. False: no call was hit. */
static bool fail_one(const struct strong *s, enum memfs_call call,
    unsigned long n, int err, bool *was_unknown)
{
	static const char *const names[] = { "a", "b", "c", "p", "x/y/z", "d" };
	static const char olds[] = "10110", news[] = "23004";
	enum refd_status st[6];
	struct txn *txn;
	bool hit;
	size_t i;

	dw_say("failing", (int)(s - strong), n);
	fresh_strong(s);
	memfs_fail_call(dw->fs, call, n, err);
	txn = world_apply(dw, DW_SPEC, s->atomic);
	ck_assert_ptr_nonnull(txn);
	for (i = 0; i < 6; i++)
		st[i] = txn->updates[i].status;
	world_done(dw, txn);
	hit = memfs_was_hit(dw->fs);
	memfs_fail_none(dw->fs);
	ck_assert_uint_eq(memfs_bad_syncs(dw->fs), 0);
	ck_assert_uint_eq(memfs_bad_fds(dw->fs), 0);
	dw_no_locks();
	dw_power_loss(n);
	for (i = 0; i < 5; i++)
		if (st[i] == REFD_OK)
			dw_check_at(names[i], (char[]){ news[i], '\0' });
	dw_restart();
	for (i = 0; i < 5; i++) {
		if (st[i] == REFD_OK || st[i] == REFD_UNKNOWN)
			dw_check_at(names[i], (char[]){ news[i], '\0' });
		else
			dw_check_at(names[i], (char[]){ olds[i], '\0' });
		if (st[i] == REFD_UNKNOWN) {
			*was_unknown = true;
			ck_assert_uint_gt(dw->kept, 0);
		}
		if (hit && st[i] != REFD_OK && st[i] != REFD_UNKNOWN)
			ck_assert_msg(st[i] == REFD_ABORTED ||
				st[i] ==
				    (err == -ENOSPC ? REFD_NOSPACE : REFD_IO),
			    "%s: %s is %s", dw_context, names[i],
			    refd_status_name(st[i]));
	}
	world_free(dw);
	return hit;
}

TEST(no_ok_over_a_failed_sync, .times = NR_STRONG)
{
	static const enum memfs_call calls[] = { MEMFS_FSYNC, MEMFS_SYNCFS,
		MEMFS_WRITE_OUT_BEGIN, MEMFS_WRITE_OUT_WAIT };
	bool was_unknown = false;
	unsigned long n, hits = 0;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (n = 0; fail_one(&strong[_i], calls[i], n,
			 n % 2 ? -ENOSPC : -EIO, &was_unknown);
		    n++)
			hits++;
	ck_assert_uint_ge(hits, 2);
	ck_assert(was_unknown);
}
