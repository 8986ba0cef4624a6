/*
 * Proves that a turn of admission reads a bounded number of objects, so that a
 * transaction of many objects keeps no other repository waiting. If a different
 * repository is at the path in the next turn, all updates are checked again,
 * with the objects of this repository.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

/* Four turns of 128 objects. */
#define NR_UPDATES 400

static struct sys disk;
static _Atomic int nr_turns, replaced_in;

/* The first call of a turn. */
static int disk_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	if (strcmp(path, "r.git") == 0 && ++nr_turns == replaced_in)
		tmp_run("mv r.git old.git && mv new.git r.git");
	return sys_kernel.open_below(sys, dirfd, path, is_plain);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.open_below = disk_open_below;
	nr_turns = replaced_in = 0;
	sr_sys = &disk;
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
	tmp_run("git init -q --bare new.git");
}

/* Only the object of the first update exists. A look for a missing object costs
 * as much. */
static struct txn *admit_many(void)
{
	static struct refd_update updates[NR_UPDATES];
	static char names[NR_UPDATES][32];
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = sr_repo,
		.umask = 022,
		.updates = updates,
		.nr_updates = NR_UPDATES };
	struct txn *txn;
	size_t i;

	refd_txid_make(&req.txid);
	for (i = 0; i < NR_UPDATES; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%zu", i);
		updates[i] = (struct refd_update){ .action = REFD_UPDATE,
			.name = names[i] };
		memcpy(updates[i].new_oid.bytes, &i, sizeof(i));
		updates[i].new_oid.bytes[19] = 1;
	}
	ck_assert_int_eq(refd_oid_parse(sr_commit, REFD_FORMAT_SHA1,
			     &updates[0].new_oid),
	    0);
	txn = txn_help_own(&req);
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	return txn;
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(a_turn_reads_a_bounded_number)
{
	struct txn *txn = admit_many();

	ck_assert_int_ge(nr_turns, 4);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_int_eq(txn->updates[1].status, REFD_NOOBJECT);
	sr_done_with(txn);
}

TEST(another_repository_in_the_next_turn)
{
	struct txn *txn;

	replaced_in = 2;
	txn = admit_many();
	ck_assert_int_gt(nr_turns, 2);
	ck_assert_int_eq(txn->updates[0].status, REFD_NOOBJECT);
	sr_done_with(txn);
}
