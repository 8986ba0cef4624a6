/*
 * Proves when a store with all its threads puts new objects into the record of
 * a transaction instead of syncing the file system: in mode journal, for
 * transactions of bounded size outside of sessions, if no transaction of the
 * repository waits for a sync. The checkpoint deletes the objects from the
 * journal. A transaction that has waited is refused if one of these objects is
 * gone.
 */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/objects/new_objects.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
static _Atomic int nr_syncfs;
static _Atomic bool is_other_type;

static int disk_syncfs(const struct sys *sys, int fd)
{
	nr_syncfs++;
	return sys_kernel.syncfs(sys, fd);
}

/* The test may run anywhere. */
static int disk_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	(void)sys;
	(void)fd;
	*type = is_other_type ? 0x4d44 : 0xef53;
	return 0;
}

/* Waits until all objects are older than a sync. */
static void settle(void)
{
	const struct sys *sys = &sys_kernel;
	struct txn *txn;
	struct refd_txid id;

	SYS(sys, sleep_ns, 150 * 1000 * 1000);
	refd_txid_make(&id);
	txn = sr_make_txn(&id, sr_repo, "refs/heads/settled", sr_commit);
	txn->req.durability = REFD_DURABILITY_FSYNC;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	sr_done_with(txn);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.syncfs = disk_syncfs;
	disk.fs_type = disk_fs_type;
	is_other_type = false;
	sr_sys = &disk;
	sr_interval_ns = 3600LL * 1000000000;
	sr_setup();
	settle();
}

static void teardown(void)
{
	sr_teardown();
	sr_sys = &sys_kernel;
}

static struct txn *make(const char *hex)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_make_txn(&id, sr_repo, "refs/heads/a", hex);
}

/* Admits TXN. True: the objects are in TXN, and nothing was synced. */
static bool has_objects(struct txn *txn)
{
	int before = nr_syncfs;
	bool has;

	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	has = txn->objects != NULL;
	ck_assert_int_eq(nr_syncfs - before, !has);
	return has;
}

static size_t objects_in_journal(void)
{
	struct journal *j = sr_store->journal;
	uint64_t lsn = journal_last_lsn(j);
	uint8_t *bytes;
	size_t len;

	ck_assert_int_eq(journal_read_objects(j, lsn, &bytes, &len), 0);
	free(bytes);
	return len;
}

static void checkpoint(void)
{
	struct store_question *cp = question_new(STORE_ASK_CHECKPOINT);

	store_ask(sr_store, cp);
	ck_assert_ptr_eq(sr_wait_done().answered, cp);
	ck_assert_int_eq(cp->answer.kind, REFD_ANSWER_PAIRS);
	question_free(cp);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(a_new_commit)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct store_stats stats;
	struct txn *txn;

	sr_make_commit("new", hex);
	txn = make(hex);
	ck_assert(has_objects(txn));
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert_uint_eq(objects_in_journal(), txn->objects->len);
	sr_done_with(txn);
	store_stats(sr_store, &stats);
	ck_assert_uint_eq(stats.barrier_copies, 1);
	checkpoint();
	ck_assert_uint_eq(objects_in_journal(), 0);
}

TEST(what_the_barrier_serves, .times = 4)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct txn *txn;

	sr_make_commit("new", hex);
	txn = make(hex);
	switch (_i) {
	case 0:
		txn->req.durability = REFD_DURABILITY_BATCH;
		break;
	case 1:
		txn->req.durability = REFD_DURABILITY_FSYNC;
		break;
	case 2:
		txn->req.verb = REFD_VERB_SESSION;
		break;
	case 3:
		is_other_type = true;
		break;
	}
	ck_assert(!has_objects(txn));
	sr_done_with(txn);
}

/* Updates to old commits put the same objects into the log again and again. */
TEST(a_repository_has_a_budget)
{
	struct store_stats stats;
	struct txn *txn;
	int nr = 0, before = nr_syncfs;

	tmp_run("head -c 60000 /dev/urandom >blob && "
		"git -C r.git hash-object -w ../blob");
	for (nr = 0; nr_syncfs == before && nr < 100; nr++) {
		txn = make(sr_commit);
		store_admit(sr_store, txn);
		ck_assert_ptr_eq(sr_wait_done().admitted, txn);
		sr_done_with(txn);
	}
	ck_assert_int_gt(nr, 5);
	ck_assert_int_lt(nr, 12);
	store_stats(sr_store, &stats);
	ck_assert_uint_gt(stats.barrier_copies, 5);
}

/* A transaction whose path got another repository is admitted again. */
TEST(admitted_again)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct txn *txn;

	sr_make_commit("new", hex);
	txn = make(hex);
	ck_assert(has_objects(txn));
	repo_put(&sr_store->repos, txn->repo);
	txn->repo = NULL;
	txn->readmitted = true;
	ck_assert(has_objects(txn));
	repo_put(&sr_store->repos, txn->repo);
	txn->repo = NULL;
	settle();
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_ptr_null(txn->objects);
	sr_done_with(txn);
}

/* A transaction that has waited is admitted again, with its repository. All
 * objects that a push of loose objects has brought must still be there: git
 * prunes them in no certain order. */
TEST(admitted_after_a_wait, .times = 5)
{
	static const struct {
		bool is_copied, value_goes, blob_goes, repo_goes;
		enum refd_status status;
	} cases[] = {
		{ true, false, false, false, REFD_PENDING },
		{ false, true, false, false, REFD_NOOBJECT },
		{ true, false, true, false, REFD_NOOBJECT },
		/* The barrier made the objects durable. */
		{ false, false, true, false, REFD_PENDING },
		/* The copied objects are of a different repository. */
		{ true, false, true, true, REFD_PENDING },
	};
	char hex[REFD_OID_MAX_HEX + 1], *blob;
	struct txn *txn;

	sr_make_commit("new", hex);
	blob = tmp_output("echo text | git -C r.git hash-object -w --stdin");
	blob[REFD_SHA1_HEX] = '\0';
	txn = make(hex);
	is_other_type = !cases[_i].is_copied;
	ck_assert(has_objects(txn) == cases[_i].is_copied);
	if (cases[_i].value_goes)
		tmp_run("rm -f r.git/objects/%.2s/%s", hex, hex + 2);
	if (cases[_i].blob_goes)
		tmp_run("rm -f r.git/objects/%.2s/%s", blob, blob + 2);
	if (cases[_i].repo_goes) {
		repo_put(&sr_store->repos, txn->repo);
		txn->repo = NULL;
	}
	txn->readmitted = true;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->updates[0].status, cases[_i].status);
	if (cases[_i].status != REFD_PENDING)
		ck_assert_ptr_nonnull(strstr(txn->updates[0].text,
		    cases[_i].blob_goes ? blob : hex));
	sr_done_with(txn);
	free(blob);
}
