/*
 * Proves the promises of the weaker modes, on a disk that forgets.
 *
 * Mode periodic never loses a durable value in favour of a value that was not
 * durable. After the sync of an interval, all values are there without the
 * journal.
 *
 * Mode none does not stop the next start, and does not endanger other values in
 * packed-refs.
 *
 * Transactions of one batch each get and pay for their own mode. No transaction
 * gets less than the daemon's mode. Recovery under one mode handles records of
 * another mode. A flush of the journal covers earlier commits without a flush.
 */
#include <errno.h>

#include "tests/lib/durability_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

/* ---- the weak modes ---- */

CASE(.seconds = 120);

TEST(periodic_loses_nothing_older)
{
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		for (seed = 0; seed < 10; seed++) {
			dw_say("periodic", 0, n * 1000 + seed);
			dw_fresh(PERIODIC, seed & 1);
			dw_set_disk(false);
			memfs_power_loss_at(dw->fs, n);
			world_done(dw, world_apply(dw, DW_SPEC, false));
			hit = memfs_was_hit(dw->fs);
			dw_power_loss(n * 1000 + seed);
			dw_check_at("a", "12");
			dw_check_at("d", "1");
			dw_check_at("keep", "1");
			dw_restart();
			dw_check_at("a", "12");
			dw_check_at("d", "1");
			dw_check_at("keep", "1");
			dw_no_locks();
			world_free(dw);
		}
	}
}

TEST(periodic_lasts_after_its_sync)
{
	uint64_t seed;

	for (seed = 0; seed < 100; seed += sweep_step()) {
		dw_say("periodic", 1, seed);
		dw_fresh(PERIODIC, seed & 1);
		dw_set_disk(seed & 2);
		dw_apply_ok(DW_SPEC, seed & 4);
		ck_assert(journal_is_unflushed(dw->store.journal));
		ck_assert_int_eq(
		    seed & 8 ? world_checkpoint(dw) : world_tick(dw), 0);
		ck_assert(!journal_is_unflushed(dw->store.journal));
		dw_apply_ok("a=7", false);
		dw_power_loss(seed);
		dw_check_at("b", "3");
		dw_check_at("c", "0");
		dw_check_at("p", "0");
		dw_restart();
		/* Here writing out is only a hint. */
		dw_check_at("a", seed & 2 ? "27?" : "27");
		world_free(dw);
	}
}

/* The mark in the repository never exceeds the journal's last row. Otherwise
 * the journal would pass for an older copy of itself. */
TEST(a_power_loss_in_its_sync)
{
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		for (seed = 0; seed < 8; seed++) {
			dw_say("in its sync", 0, n * 1000 + seed);
			dw_fresh(PERIODIC, seed & 1);
			dw_set_disk(seed & 2);
			dw_apply_ok("b=1;m=1", false);
			memfs_power_loss_at(dw->fs, n);
			if (seed & 4)
				world_checkpoint(dw);
			else
				world_tick(dw);
			hit = memfs_was_hit(dw->fs);
			dw_power_loss(n * 1000 + seed);
			dw_restart();
			dw_apply_ok("n=5", false);
			world_free(dw);
		}
	}
	ck_assert_uint_gt(n, 4);
}

TEST(none_recovers)
{
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += 3 * sweep_step()) {
		for (seed = 0; seed < 10; seed++) {
			dw_say("none", 0, n * 1000 + seed);
			dw_fresh(NONE, seed & 1);
			dw_set_disk(seed & 2);
			memfs_power_loss_at(dw->fs, n);
			world_done(dw, world_apply(dw, DW_SPEC, false));
			hit = memfs_was_hit(dw->fs);
			dw_power_loss(n * 1000 + seed);
			dw_restart();
			dw_no_locks();
			world_free(dw);
		}
	}
}

/* packed-refs holds durable values of other clients, and their records are
 * gone. */
TEST(none_risks_no_others)
{
	unsigned long n;
	uint64_t seed;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		for (seed = 0; seed < 10; seed++) {
			dw_say("none, others", 0, n * 1000 + seed);
			dw_fresh(NONE, seed & 1);
			dw_set_disk(seed & 2);
			memfs_power_loss_at(dw->fs, n);
			world_done(dw, world_apply(dw, "-p:1", false));
			hit = memfs_was_hit(dw->fs);
			dw_power_loss(n * 1000 + seed);
			dw_check_at("keep", "1");
			dw_restart();
			dw_check_at("keep", "1");
			world_free(dw);
		}
	}
	ck_assert_uint_gt(n, 4);
}

/* ---- together ---- */

TEST(each_share_gets_its_own, .times = 4)
{
	static const char *const specs[2] = { "a=2:1;-c:1", "b=3;x/y=4;-p" };
	const enum refd_durability modes[2] = { 0, _i & 1 ? FSYNC : BATCH };
	struct txn *txns[2];
	uint64_t seed;
	size_t i, k;

	for (seed = 0; seed < 80; seed += sweep_step()) {
		dw_say("mixed", _i, seed);
		dw_fresh(NONE, seed & 1);
		dw_set_disk(seed & 2);
		for (i = 0; i < 2; i++) {
			/* In both orders. */
			k = _i & 2 ? i : 1 - i;
			dw->asked = modes[k];
			txns[i] = world_begin(dw, specs[k], false);
			ck_assert_ptr_nonnull(txns[i]);
		}
		world_batch(dw, txns, 2);
		ck_assert(dw_all_ok(txns[0]) && dw_all_ok(txns[1]));
		world_done(dw, txns[0]);
		world_done(dw, txns[1]);
		dw_power_loss(seed);
		dw_check_at("b", "3");
		dw_check_at("x/y", "4");
		dw_check_at("p", "0");
		dw_check_at("keep", "1");
		dw_restart();
		/* The record that was flushed for the other slice covers
		 * both. */
		dw_check_at("a", "2");
		dw_check_at("c", "0");
		world_free(dw);
	}
}

static bool hits(enum memfs_call call, unsigned long n,
    enum refd_durability mode, bool beside_none)
{
	struct txn *txns[2];
	size_t i, nr = 0;
	bool hit;

	dw_fresh(NONE, true);
	dw->asked = mode;
	txns[nr++] = world_begin(dw, "b=3;x/y=4", false);
	dw->asked = NONE;
	if (beside_none)
		txns[nr++] = world_begin(dw, "a=2:1;n/z=5;-c:1", false);
	memfs_fail_call(dw->fs, call, n, -EIO);
	world_batch(dw, txns, nr);
	hit = memfs_was_hit(dw->fs);
	memfs_fail_none(dw->fs);
	for (i = 0; i < nr; i++)
		world_done(dw, txns[i]);
	world_free(dw);
	return hit;
}

static unsigned long count_calls(enum memfs_call call,
    enum refd_durability mode, bool beside_none)
{
	unsigned long n;

	for (n = 0; hits(call, n, mode, beside_none); n++)
		;
	return n;
}

/* A client of mode none adds no flush to the batch of a durable client. */
TEST(a_share_pays_for_itself_alone, .times = 5)
{
	static const enum memfs_call calls[] = { MEMFS_FSYNC, MEMFS_FDATASYNC,
		MEMFS_SYNCFS, MEMFS_WRITE_OUT_BEGIN };
	enum refd_durability mode = NONE + _i;
	unsigned long alone, all = 0;
	size_t i;

	dw_say("a share", _i, 0);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		alone = count_calls(calls[i], mode, false);
		ck_assert_uint_eq(count_calls(calls[i], mode, true), alone);
		all += alone;
	}
	ck_assert_int_eq(all > 0, mode != NONE);
}

TEST(a_weaker_wish_gets_the_daemons)
{
	uint64_t seed;

	for (seed = 0; seed < 100; seed += sweep_step()) {
		dw_say("weaker", 0, seed);
		dw_fresh(JOURNAL, seed & 1);
		dw->asked = NONE;
		dw_apply_ok(DW_SPEC, false);
		dw_power_loss(seed);
		dw_restart();
		dw_check_there();
		world_free(dw);
	}
}

TEST(one_mode_after_another, .times = 25)
{
	enum refd_durability before = NONE + (_i % 5), after = NONE + _i / 5;
	uint64_t seed;

	for (seed = 0; seed < 20; seed++) {
		dw_say("switched", _i, seed);
		dw_fresh(before, seed & 1);
		dw_set_disk(seed & 2);
		dw_apply_ok("a=2:1;b=3", false);
		dw->mode = after;
		if (seed & 4) {
			memfs_crash(dw->fs);
			world_crash(dw);
			dw_restart();
			dw_check_at("a", "2");
		} else {
			dw_power_loss(seed);
			dw_restart();
			if (before >= JOURNAL)
				dw_check_at("a", "2");
		}
		dw_set_disk(seed & 2);
		/* Mode none must not break the other refs. */
		dw_apply_ok("n=5", false);
		dw_power_loss(seed + 1);
		dw_restart();
		if (after >= JOURNAL)
			dw_check_at("n", "5");
		world_free(dw);
	}
}

/* ---- the journal's part ---- */

TEST(a_flush_takes_all_before_it)
{
	uint64_t seed;
	int i, lasting;

	for (seed = 0; seed < 60; seed += sweep_step()) {
		dw_say("flush", 0, seed);
		dw_fresh(NONE, true);
		/* The WAL begins a new round in between, half full of old
		 * frames. */
		for (i = 0; i < 20; i++) {
			dw_apply_ok(i % 2 ? "a=2" : "a=1", false);
			if (i % 7 == 6)
				ck_assert_int_eq(
				    journal_checkpoint(dw->store.journal, 1),
				    0);
		}
		dw->asked = JOURNAL;
		dw_apply_ok("a=6", false);
		dw->asked = REFD_DURABILITY_DEFAULT;
		lasting = (int)journal_last_lsn(dw->store.journal);
		for (i = 0; i < 9; i++) {
			dw_apply_ok(i % 2 ? "b=2" : "b=1", false);
			if (i == (int)(seed % 9))
				ck_assert_int_eq(
				    journal_checkpoint(dw->store.journal, 1),
				    0);
		}
		dw_power_loss(seed);
		dw_restart();
		ck_assert_uint_ge(journal_last_lsn(dw->store.journal),
		    (uint64_t)lasting);
		dw_check_at("a", "6");
		world_free(dw);
	}
}

static bool commit_syncs(void)
{
	bool hit;

	memfs_fail_call(dw->fs, MEMFS_FDATASYNC, 0, -EIO);
	world_done(dw, world_apply(dw, "a=3", false));
	hit = memfs_was_hit(dw->fs);
	memfs_fail_none(dw->fs);
	return hit;
}

/* A commit in mode none costs no sync, with one exception. If the WAL begins a
 * new round, its header must be on disk before frames overwrite the old frames.
 * Behind the old header, such frames would pass for the newest ones. */
TEST(the_header_is_synced)
{
	dw_fresh(NONE, true);
	dw_apply_ok("a=2", false);
	ck_assert(!commit_syncs());
	ck_assert_int_eq(journal_flush(dw->store.journal), 0);
	ck_assert_int_eq(journal_checkpoint(dw->store.journal, 1), 0);
	ck_assert(commit_syncs());
	world_free(dw);
}
