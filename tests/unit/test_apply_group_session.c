/*
 * Proves, on the leader of a group, that a session is a row of the group from
 * its commit on, and leaves no lock if the log refuses the row. An update
 * through a symbolic ref changes the ref at the end, and its row has this name.
 */
#include <errno.h>

#include "tests/lib/leader_rig.h"
#include "tests/lib/suite.h"

/* ---- symbolic refs ---- */

static struct suite_case tables = { .name = "tables",
	.setup = ldr_begin_tables,
	.teardown = ldr_end };

CASE(.name = "files", .setup = ldr_begin_files, .teardown = ldr_end,
    .also = &tables);

/* A name that HEAD leads to clashes with no other name after the commit: the
 * scheduler knows the name before the ref is made. */
TEST(a_symbolic_ref_is_followed)
{
	struct txn *txn;

	ldr_lead();
	txn = world_apply(w, "@HEAD=1", false);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_REOPEN);
	ck_assert_str_eq(txn->updates[0].final_name, "refs/heads/main");
	ck_assert_int_eq(ldr_value("main"), '0');
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert_int_eq(ldr_value("main"), '1');
	ck_assert_str_eq(ldr_names, "HEAD refs/heads/main");
	wr_ok("@HEAD=2:1");
	ck_assert_str_eq(ldr_names, "HEAD refs/heads/main");
	ck_assert_int_eq(ldr_value("main"), '2');
	/* The end has another value than the group gave it. */
	ldr_write_beside("main=1:2");
	ldr_told = "refs/heads/main";
	txn = world_apply(w, "@HEAD=3:2", false);
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_DIVERGED);
	ck_assert_uint_gt(ldr_nr_told, 0);
	world_done(w, txn);
}

/* ---- sessions ---- */

/* The node leads no more, or in another epoch. */
static int refuse(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	(void)arg, (void)rows, (void)nr, (void)flush;
	return -EREMOTE;
}

static struct txn *prepare(const char *spec)
{
	struct txn *txn = world_session(w, spec, true);

	ck_assert_ptr_nonnull(txn->prepared);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	return txn;
}

static void end_session(struct txn *txn, enum refd_status status, char is)
{
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, status);
	world_done(w, txn);
	ck_assert_int_eq(ldr_value("a"), is);
	wr_expect_locks("");
}

TEST(a_session_is_a_row)
{
	struct applier *ap = &w->store.pipeline->applier;
	ldr_commit_fn *commit;
	uint64_t lsn;
	struct txn *txn;

	ldr_lead();
	wr_ok("a=1:0");
	lsn = journal_shared_lsn(w->store.journal);
	txn = prepare("a=2:1");
	wr_ok("b=1:0");
	ck_assert_uint_eq(journal_shared_lsn(w->store.journal), lsn + 1);
	end_session(txn, REFD_OK, '2');
	ck_assert_uint_eq(journal_shared_lsn(w->store.journal), lsn + 2);
	ck_assert_str_eq(ldr_names, "refs/heads/a refs/heads/a");
	txn = prepare("a=3:2");
	commit = ap->commit;
	ap->commit = refuse;
	end_session(txn, REFD_BUSY, '2');
	ap->commit = commit;
	wr_ok("a=3:2");
}

/* Without a lock on a file, another program can write meanwhile. */
TEST(a_session_meets_another_value, .in = &tables)
{
	struct txn *txn;

	ldr_lead();
	wr_ok("a=1:0");
	txn = prepare("a=2:1");
	tbl_git("a", '3');
	end_session(txn, REFD_BUSY, '3');
	tbl_git("a", '1');
	wr_ok("a=2:1");
}
