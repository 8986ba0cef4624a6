/*
 * Proves that the store applies the batch that came with a transaction, if it
 * admits the transaction unchanged, also after a barrier. The transaction comes
 * back without its batch being applied if the repository is a different one, or
 * if the transaction is refused, replayed, or given up.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/store/repos/repo.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
static uint64_t repo_key;

/* New objects need the barrier. A first transaction tells the number of the
 * repository. */
static void setup(void)
{
	struct refd_txid id;
	struct txn *txn;

	disk = sys_kernel;
	disk.fs_type = sr_other_fs_type;
	sr_sys = &disk;
	sr_setup();
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/first", sr_commit);
	repo_key = store_repo_key(txn->repo);
	sr_apply(txn);
	sr_done_with(txn);
}

/* Names the number KEY as the repository's. */
static struct txn *submit(const struct refd_txid *id, const char *name,
    const char *hex, uint64_t key)
{
	struct txn *txn = sr_make_txn(id, sr_repo, name, hex);

	txn_lay_out(txn);
	txn->direct = sr_make_batch(txn);
	txn->direct_repo = key;
	store_admit(sr_store, txn);
	return txn;
}

/* TXN, its batch and a ref of NAME are back. */
static void expect_applied(struct txn *txn, const char *name)
{
	struct store_done done = sr_wait_done();

	ck_assert_ptr_eq(done.applied, txn->direct);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_int_ne(txn->times.admitted_ns, 0);
	tmp_run("git -C r.git rev-parse -q --verify %s", name);
	batch_free(done.applied);
	sr_done_with(txn);
}

static void expect_not_applied(struct txn *txn)
{
	struct store_done done = sr_wait_done();

	ck_assert_ptr_eq(done.admitted, txn);
	batch_free(txn->direct);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(applied)
{
	struct refd_txid id;

	refd_txid_make(&id);
	expect_applied(submit(&id, "refs/heads/a", sr_commit, repo_key),
	    "refs/heads/a");
}

TEST(applied_after_a_barrier)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct store_stats stats;
	struct refd_txid id;
	uint64_t before;

	store_stats(sr_store, &stats);
	before = stats.barriers;
	sr_make_commit("new", hex);
	refd_txid_make(&id);
	expect_applied(submit(&id, "refs/heads/a", hex, repo_key),
	    "refs/heads/a");
	store_stats(sr_store, &stats);
	ck_assert_uint_eq(stats.barriers, before + 1);
}

TEST(another_repository)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = submit(&id, "refs/heads/a", sr_commit, repo_key + 1);
	expect_not_applied(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

TEST(refused)
{
	static const char absent[] = "1111111111111111111111111111111111111111";
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = submit(&id, "refs/heads/a", absent, repo_key);
	expect_not_applied(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_NOOBJECT);
	sr_done_with(txn);
	tmp_run("git -C r.git config core.repositoryformatversion 1 && "
		"git -C r.git config extensions.objectformat sha256");
	refd_txid_make(&id);
	txn = submit(&id, "refs/heads/a", sr_commit, repo_key);
	expect_not_applied(txn);
	ck_assert_int_eq(txn->refused, REFD_UNSUPPORTED);
	sr_done_with(txn);
}

TEST(replayed)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	expect_applied(submit(&id, "refs/heads/a", sr_commit, repo_key),
	    "refs/heads/a");
	tmp_run("git -C r.git update-ref -d refs/heads/a");
	txn = submit(&id, "refs/heads/a", sr_commit, repo_key);
	expect_not_applied(txn);
	sr_done_with_replayed(txn);
	tmp_run("! git -C r.git rev-parse -q --verify refs/heads/a");
}

TEST(given_up)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_make_txn(&id, sr_repo, "refs/heads/a", sr_commit);
	txn_lay_out(txn);
	txn->direct = sr_make_batch(txn);
	txn->direct_repo = repo_key;
	atomic_store(&txn->is_given_up, true);
	store_admit(sr_store, txn);
	expect_not_applied(txn);
	sr_done_with(txn);
	tmp_run("! git -C r.git rev-parse -q --verify refs/heads/a");
}

/* The next transaction is admitted when the earlier one is completely gone. */
TEST(one_after_the_other)
{
	struct refd_txid id;
	char name[32];
	int i;

	for (i = 0; i < 100; i++) {
		refd_txid_make(&id);
		snprintf(name, sizeof(name), "refs/heads/n%d", i);
		expect_applied(submit(&id, name, sr_commit, repo_key), name);
	}
}
