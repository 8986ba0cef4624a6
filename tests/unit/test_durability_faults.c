/*
 * Proves the effects of a failed system call of a transaction, in every mode of
 * durability, for EIO, ENOSPC and EDQUOT. An update with `ok` is there, a
 * refused update has not happened, and the next start finishes an `unknown`
 * update. The journal agrees with the refs. Other updates lose nothing, no lock
 * stays, and no descriptor is synced again after a failed sync. This holds
 * after a crash in all modes, and after a power loss in the modes that promise
 * so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/durability_world.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

static const struct {
	const char *name;
	char old, new_c;
} refs[] = { { "a", '1', '2' }, { "b", '0', '3' }, { "c", '1', '0' },
	{ "p", '1', '0' }, { "x/y/z", '0', '4' }, { "d", '1', '1' } };
#define NR_REFS (sizeof(refs) / sizeof(*refs))

static enum refd_status said[NR_REFS];
static struct refd_txid id;

/* Call N of the batch fails. False: the batch made fewer calls. */
static bool run(enum refd_durability mode, unsigned long n, int err,
    bool strict, bool atomic)
{
	struct txn *txn;
	bool hit;
	size_t i;

	dw_fresh(mode, true);
	dw_set_disk(strict);
	txn = world_begin(dw, DW_SPEC, atomic);
	ck_assert_ptr_nonnull(txn);
	id = txn->req.txid;
	memfs_fail(dw->fs, n, err);
	world_batch(dw, &txn, 1);
	hit = memfs_was_hit(dw->fs);
	snprintf(dw_context, sizeof(dw_context), "mode %d, call %lu (%s), %s",
	    (int)mode, n, memfs_hit(dw->fs), strerror(-err));
	memfs_fail_none(dw->fs);
	for (i = 0; i < NR_REFS; i++)
		said[i] = txn->updates[i].status;
	world_done(dw, txn);
	ck_assert_msg(store_fatal(&dw->store) == NULL, "%s: fatal", dw_context);
	ck_assert_uint_eq(memfs_bad_syncs(dw->fs), 0);
	ck_assert_uint_eq(memfs_bad_fds(dw->fs), 0);
	return hit;
}

/* The values in files alone, for modes that need no journal. */
static void check_files(void)
{
	size_t i;

	for (i = 0; i < NR_REFS; i++)
		if (said[i] == REFD_OK)
			dw_check_at(refs[i].name,
			    (char[]){ refs[i].new_c, '\0' });
}

static void check_truth(bool atomic)
{
	enum refd_status status;
	struct scripted_txn h = { .w = dw, .txid = id };
	size_t i, done = 0;

	for (i = 0; i < NR_REFS; i++) {
		status = scripted_status(&h, (uint32_t)i);
		dw_check_at(refs[i].name,
		    (char[]){ status == REFD_OK ? refs[i].new_c : refs[i].old,
			'\0' });
		done += status == REFD_OK;
		if (said[i] != REFD_UNKNOWN)
			ck_assert_msg((said[i] == REFD_OK) ==
				(status == REFD_OK),
			    "%s: %s was answered %s, and then %s", dw_context,
			    refs[i].name, refd_status_name(said[i]),
			    refd_status_name(status));
	}
	if (atomic)
		ck_assert(done == 0 || done == NR_REFS);
	dw_check_at("keep", "1");
	dw_no_locks();
}

/* A disk that keeps names in any order may keep a lock and lose the token that
 * identifies the lock. The record is deferred until an administrator removes
 * the lock. */
static void remove_strange_locks(bool strict)
{
	char *locks, *path, *rest;

	if (dw->deferred == 0)
		return;
	ck_assert_msg(strict, "%s: a record is deferred", dw_context);
	locks = memfs_list_locks(dw->fs, WORLD_REPO);
	for (path = strtok_r(locks, "\n", &rest); path != NULL;
	    path = strtok_r(NULL, "\n", &rest))
		ck_assert_int_eq(
		    SYS(memfs_other(dw->fs), unlinkat, AT_FDCWD, path), 0);
	free(locks);
	ck_assert_int_eq(world_retry(dw), 0);
	ck_assert_msg(dw->deferred == 0, "%s: a record stays deferred",
	    dw_context);
}

CASE(.seconds = 120);

TEST(each_call_fails, .times = 15)
{
	static const int errs[] = { -EIO, -ENOSPC, -EDQUOT };
	enum refd_durability mode = NONE + _i % 5;
	int err = errs[_i / 5];
	bool hit = true, is_cut, strict, atomic;
	unsigned long n;

	for (n = 0; hit; n += sweep_step()) {
		/* Every choice meets at least one of the three errors. */
		is_cut = (n + (unsigned)_i / 5) % 2 && mode >= JOURNAL;
		strict = n % 3 == 0;
		atomic = (n / 2 + (unsigned)_i / 5) % 2;
		hit = run(mode, n, err, strict, atomic);
		if (is_cut) {
			dw_power_loss(n);
			if (mode > JOURNAL)
				check_files();
		} else {
			memfs_crash(dw->fs);
			world_crash(dw);
		}
		dw_restart();
		remove_strange_locks(strict && is_cut);
		check_truth(atomic);
		world_free(dw);
	}
	ck_assert_uint_gt(n, 60);
}
