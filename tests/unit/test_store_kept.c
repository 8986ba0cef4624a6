/*
 * Proves that the next start finishes a committed transaction that could not be
 * published completely, whatever was checkpointed in between. A deletion in it
 * delays no other work. Until then the outcome is unknown, also for look-ups by
 * id and for resends. Recovery in the running daemon ends this state as well.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/admission/admissions_internal.h"
#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

static struct sys faulty;
static const char *fails_at;     /* target of a failing rename */
static int fails_with;           /* its error */
static _Atomic int syncs_fail;   /* how many */
static struct refd_txid last_id; /* of the last transaction */
static char second[REFD_OID_MAX_HEX + 1];

static int faulty_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath);

static int faulty_syncfs(const struct sys *sys, int fd)
{
	(void)sys;
	if (syncs_fail > 0) {
		syncs_fail--;
		return -EIO;
	}
	return SYS(&sys_kernel, syncfs, fd);
}

static void setup(void)
{
	faulty = sys_kernel;
	faulty.renameat = faulty_renameat;
	faulty.syncfs = faulty_syncfs;
	faulty.fs_type = sr_other_fs_type;
	fails_at = NULL;
	fails_with = -EIO;
	syncs_fail = 0;
	sr_sys = &faulty;
	sr_setup();
	sr_make_commit("y", second);
}

static int faulty_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	(void)sys;
	if (fails_at != NULL && strcmp(newpath, fails_at) == 0)
		return fails_with;
	return SYS(&sys_kernel, renameat, olddirfd, oldpath, newdirfd, newpath);
}

static const char *const names[] = { "refs/heads/a", "refs/heads/b" };

static void parse(const char *hex, struct refd_oid *oid)
{
	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, oid), 0);
}

/* Updates both refs to HEX in one atomic transaction, or deletes both. */
static struct txn *make_txn(const char *hex, const struct refd_txid *id)
{
	struct refd_update updates[2] = { { .name = names[0] },
		{ .name = names[1] } };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = sr_repo,
		.umask = 022,
		.atomic = true,
		.updates = updates,
		.nr_updates = 2 };

	updates[0].action = updates[1].action =
	    hex != NULL ? REFD_UPDATE : REFD_DELETE;
	if (hex != NULL) {
		parse(hex, &updates[0].new_oid);
		parse(hex, &updates[1].new_oid);
	}
	req.txid = *id;
	return txn_help_own(&req);
}

/* Returns the status of the last update. */
static enum refd_status apply(const char *hex)
{
	struct batch *b = calloc(1, sizeof(*b));
	enum refd_status status;
	struct txn *txn;
	size_t i;

	refd_txid_make(&last_id);
	txn = make_txn(hex, &last_id);
	store_admit(sr_store, txn);
	sr_wait_done();
	ck_assert_int_eq(txn->refused, REFD_OK);
	b->slices = calloc(1, sizeof(*b->slices));
	b->nr_slices = 1;
	b->slices[0].txn = txn;
	b->slices[0].nr = 2;
	b->slices[0].updates = calloc(2, sizeof(*b->slices[0].updates));
	for (i = 0; i < 2; i++)
		b->slices[0].updates[i] = &txn->updates[i];
	store_apply(sr_store, b);
	batch_free(sr_wait_done().applied);
	status = txn->updates[1].status;
	store_release(sr_store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
	return status;
}

/* Looks up the last transaction by its id. */
static enum refd_status ask(void)
{
	struct store_question query = { .req.txid = last_id };
	enum refd_status status;

	store_ask(sr_store, &query);
	ck_assert_ptr_eq(sr_wait_done().answered, &query);
	ck_assert_int_eq(query.answer.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(query.answer.nr_results, 2);
	status = query.answer.results[1].status;
	ck_assert_int_eq(status == REFD_UNKNOWN,
	    query.answer.outcome == REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&query.answer);
	return status;
}

/* Sends the last transaction again. Its value was HEX. */
static enum refd_status send_again(const char *hex)
{
	struct txn *txn = make_txn(hex, &last_id);
	enum refd_status status;

	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert(txn->replayed);
	status = txn->updates[1].status;
	txn_free(txn);
	return status;
}

static char *read_ref(const char *name)
{
	return tmp_output(
	    "git -C r.git for-each-ref '--format=%%(objectname)' %s", name);
}

static void wait_checkpoints(uint64_t nr)
{
	struct store_stats stats;
	uint64_t upto;

	store_stats(sr_store, &stats);
	upto = stats.checkpoints + nr;
	while (stats.checkpoints < upto) {
		poll(NULL, 0, 5);
		store_stats(sr_store, &stats);
	}
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

/* After checkpoints and after a restart. */
TEST(what_could_not_be_renamed)
{
	char *value;

	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	fails_at = "b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	fails_at = NULL;
	wait_checkpoints(3);
	ck_assert_int_eq(ask(), REFD_UNKNOWN);
	ck_assert_int_eq(send_again(second), REFD_UNKNOWN);
	sr_close();
	sr_open();
	ck_assert_int_eq(ask(), REFD_OK);
	ck_assert_int_eq(send_again(second), REFD_OK);
	value = read_ref("refs/heads/b");
	ck_assert_str_eq(strtok(value, "\n"), second);
	free(value);
	value = read_ref("refs/heads/a");
	ck_assert_str_eq(strtok(value, "\n"), second);
	free(value);
	value = tmp_output("find r.git -name '*.lock'");
	ck_assert_str_eq(value, "");
	free(value);
}

/* A retry of recovery ends the update after its row was read. */
static int end_meanwhile(void *arg, const struct journal_row *row)
{
	int *nr = arg;

	if ((*nr)++ == 0)
		deferred_end_update(sr_store->deferred, row->lsn, 1);
	return 0;
}

TEST(rows_are_read_again_after_an_end)
{
	struct journal_reader *reader = NULL;
	int nr = 0;

	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	fails_at = "b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	ck_assert_int_eq(lookup_rows(sr_store->admissions, &reader,
			     JOURNAL_ANY_UID, &last_id, end_meanwhile, &nr),
	    0);
	ck_assert_int_eq(nr, 2);
	journal_reader_close(reader);
}

/* packed-refs comes first: the error proves that nothing was published, and
 * everything is taken back. */
TEST(what_could_not_be_deleted)
{
	char *value;

	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	tmp_run("git -C r.git pack-refs --all");
	fails_at = "packed-refs";
	fails_with = -ENOSPC;
	ck_assert_int_eq(apply(NULL), REFD_ABORTED);
	fails_at = NULL;
	ck_assert_int_eq(ask(), REFD_ABORTED);
	ck_assert(!tmp_exists("r.git/packed-refs.lock"));
	wait_checkpoints(3);
	sr_close();
	sr_open();
	value = tmp_output("git -C r.git for-each-ref | wc -l");
	ck_assert_int_eq(atoi(value), 2);
	free(value);
}

/* Another writer took the name by then. */
TEST(what_is_void_in_the_end)
{
	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	fails_at = "b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	fails_at = NULL;
	ck_assert_int_eq(ask(), REFD_UNKNOWN);
	sr_close();
	tmp_run("rm r.git/refs/heads/b && mkdir r.git/refs/heads/b && "
		"cp r.git/refs/heads/a r.git/refs/heads/b/c");
	sr_open();
	ck_assert_int_eq(ask(), REFD_CONFLICT);
	ck_assert_int_eq(send_again(second), REFD_CONFLICT);
}

/* The file system fails to sync, and every record is redone that was not yet
 * forgotten. */
TEST(what_is_finished_while_it_runs)
{
	char third[REFD_OID_MAX_HEX + 1];
	struct store_stats stats;
	struct refd_txid id;
	struct txn *txn;
	char *value;

	refd_txid_make(&id);
	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	fails_at = "b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	fails_at = NULL;
	ck_assert_int_eq(ask(), REFD_UNKNOWN);
	/* A new object needs a sync. Without it the checkpoint has no work
	 * while the record is kept, once earlier changes are synced. */
	wait_checkpoints(2);
	sr_make_commit("z", third);
	syncs_fail = 1;
	txn = sr_admit(&id, sr_repo, "refs/heads/c", third);
	ck_assert_int_eq(txn->updates[0].status, REFD_IO);
	sr_done_with(txn);
	while (ask() == REFD_UNKNOWN)
		poll(NULL, 0, 5);
	ck_assert_int_eq(ask(), REFD_OK);
	ck_assert_int_eq(syncs_fail, 0);
	/* The refs are counted off after the outcome is known. */
	do {
		poll(NULL, 0, 5);
		store_stats(sr_store, &stats);
	} while (stats.awaiting_refs != 0);
	value = read_ref("refs/heads/b");
	ck_assert_str_eq(strtok(value, "\n"), second);
	free(value);
}
