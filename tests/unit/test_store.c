/*
 * Proves the hand-over to the store's threads, with real git repositories, real
 * disks and all threads running. Every transaction comes back once. The journal
 * answers for a used id. A refusal has a reason. A stop leaves nothing to
 * replay. Under ThreadSanitizer, the tests also show that no two threads touch
 * the same data.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const char absent[] = "1111111111111111111111111111111111111111";

CASE(.setup = sr_setup, .teardown = sr_teardown, .seconds = 120);

TEST(one_and_its_id_again)
{
	struct store_question query = { .kind = STORE_ASK_ID };
	struct store_done done;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert(!txn->replayed);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert(txn->updates[0].recorded);
	sr_done_with(txn);
	/* A resend gets the first outcome. */
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert(txn->replayed);
	ck_assert_uint_gt(txn->lsn, 0);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	/* Other content under the id is refused. */
	txn = sr_admit(&id, sr_repo, "refs/heads/b", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_BADREQUEST);
	/* The token of the first transaction is not returned. */
	ck_assert_uint_eq(txn->lsn, 0);
	sr_done_with(txn);
	query.req.txid = id;
	store_ask(sr_store, &query);
	done = sr_wait_done();
	ck_assert_ptr_eq(done.answered, &query);
	ck_assert_int_eq(query.answer.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(query.answer.nr_results, 1);
	ck_assert_str_eq(query.answer.results[0].name, "refs/heads/a");
	ck_assert_int_eq(query.answer.outcome, REFD_COMMITTED);
	refd_answer_done(&query.answer);
	query.peer.uid = 4711;
	store_ask(sr_store, &query);
	sr_wait_done();
	ck_assert_int_eq(query.answer.kind, REFD_ANSWER_NEVER_SEEN);
}

/* Root's query finds the rows of all accounts, and joins no two outcomes. */
TEST(an_id_of_two_accounts)
{
	struct store_question query = { .kind = STORE_ASK_ID };
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", absent);
	txn->peer.uid = 4711;
	sr_apply(txn);
	sr_done_with(txn);
	txn = sr_admit(&id, sr_repo, "refs/heads/b", sr_commit);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	query.req.txid = id;
	store_ask(sr_store, &query);
	ck_assert_ptr_eq(sr_wait_done().answered, &query);
	ck_assert_uint_eq(query.answer.nr_results, 1);
	ck_assert_str_eq(query.answer.results[0].name, "refs/heads/a");
	ck_assert_int_eq(query.answer.results[0].status, REFD_NOOBJECT);
	refd_answer_done(&query.answer);
}

/* The journal has a member for HEAD and a member for the branch. Only one
 * answers. */
TEST(one_through_head)
{
	struct store_question query = { .kind = STORE_ASK_ID };
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "HEAD", sr_commit);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	txn = sr_admit(&id, sr_repo, "HEAD", sr_commit);
	sr_done_with_replayed(txn);
	query.req.txid = id;
	store_ask(sr_store, &query);
	ck_assert_ptr_eq(sr_wait_done().answered, &query);
	ck_assert_uint_eq(query.answer.nr_results, 1);
	ck_assert_str_eq(query.answer.results[0].name, "HEAD");
	ck_assert_int_eq(query.answer.outcome, REFD_COMMITTED);
	refd_answer_done(&query.answer);
}

TEST(refusals)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, "/", "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_NOREPO);
	sr_done_with(txn);
	tmp_mkdir("empty");
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_state, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_NOREPO);
	ck_assert_ptr_nonnull(txn->why);
	sr_done_with(txn);
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/../a", sr_commit);
	ck_assert_int_eq(txn->updates[0].status, REFD_BADNAME);
	sr_done_with(txn);
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", absent);
	ck_assert_int_eq(txn->updates[0].status, REFD_NOOBJECT);
	sr_done_with(txn);
	refd_txid_make(&id);
	tmp_run("git -C r.git config core.repositoryformatversion 1 && "
		"git -C r.git config extensions.objectformat sha256");
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_UNSUPPORTED);
	ck_assert_ptr_nonnull(
	    strstr(txn->why, "is for object-format sha1, and "));
	ck_assert_ptr_nonnull(strstr(txn->why, "has object-format sha256"));
	sr_done_with(txn);
}

/* Prepares a session that deletes NAME, and commits the session. */
static void delete_by_session(const char *name)
{
	static const char none[] = "0000000000000000000000000000000000000000";
	struct refd_txid id;
	struct batch *b;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, name, none);
	b = sr_make_batch(txn);
	b->session = BATCH_PREPARE;
	store_apply(sr_store, b);
	ck_assert_ptr_eq(sr_wait_done().applied, b);
	ck_assert_ptr_nonnull(txn->prepared);
	b->session = BATCH_COMMIT;
	store_apply(sr_store, b);
	ck_assert_ptr_eq(sr_wait_done().applied, b);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	batch_free(b);
	sr_done_with(txn);
}

/* A rewrite of a large packed-refs does not count as preparing, and neither
 * does the end of its session. If sessions were counted for ever, the scheduler
 * would hand over no more batches. */
TEST(sessions_leave_room_to_prepare)
{
	tmp_run("{ echo '# pack-refs with: peeled fully-peeled sorted ';"
		" seq -f '%s refs/heads/p%%06.0f' 150000; } >r.git/packed-refs",
	    sr_commit);
	delete_by_session("refs/heads/p000001");
	delete_by_session("refs/heads/p000002");
	delete_by_session("refs/heads/p000003");
	ck_assert(store_takes(sr_store));
}

/* Many transactions in flight at once, batches on both committers, checkpoints
 * in between. */
TEST(many_at_once)
{
	enum { NR = 300, ROUNDS = 3 };
	size_t admitted, applied, round;
	struct store_done done;
	struct refd_txid id;
	char name[64], *refs;

	for (round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < NR; i++) {
			snprintf(name, sizeof(name), "refs/heads/r%zu/n%zu",
			    round, i);
			refd_txid_make(&id);
			store_admit(sr_store,
			    sr_make_txn(&id, sr_repo, name, sr_commit));
		}
		admitted = applied = 0;
		while (applied < NR) {
			done = sr_wait_done();
			if (done.admitted != NULL) {
				admitted++;
				ck_assert_int_eq(done.admitted->refused,
				    REFD_OK);
				store_apply(sr_store,
				    sr_make_batch(done.admitted));
				continue;
			}
			ck_assert_int_eq(
			    done.applied->slices[0].updates[0]->status,
			    REFD_OK);
			sr_done_with(done.applied->slices[0].txn);
			batch_free(done.applied);
			applied++;
		}
		ck_assert_uint_eq(admitted, NR);
	}
	sr_close();
	refs = tmp_output("git -C r.git for-each-ref | wc -l");
	ck_assert_int_eq(atoi(refs), NR * ROUNDS);
	free(refs);
	tmp_run("git -C r.git fsck");
	refs = tmp_output("find r.git -name '*.lock'");
	ck_assert_str_eq(refs, "");
	free(refs);
	/* A clean stop leaves nothing to replay. */
	sr_found_count = 0;
	sr_open();
	ck_assert_uint_eq(sr_found_count, 0);
}

static void no_wake(void *arg)
{
	(void)arg;
}

TEST(one_daemon_at_a_time)
{
	const char *roots[] = { tmp_root };
	struct store_config cfg = { .sys = &sys_kernel,
		.state_dir = sr_state,
		.roots = roots,
		.nr_roots = 1,
		.max_open_repos = 4,
		.wake = no_wake };
	struct store *second;
	char *why;

	ck_assert_int_eq(store_open(&cfg, &second, &why), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(why, sr_state));
	free(why);
}

/* A copied repository gets a new id, a moved repository keeps the id. */
TEST(copies_and_moves)
{
	char *first, *copy, path[4200];
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	tmp_run("cp -a r.git copy.git");
	first = tmp_get("r.git/refd/id");
	snprintf(path, sizeof(path), "%s/copy.git", tmp_root);
	refd_txid_make(&id);
	txn = sr_admit(&id, path, "refs/heads/b", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	copy = tmp_get("copy.git/refd/id");
	ck_assert_int_ne(memcmp(first, copy, 37), 0);
	free(copy);
	tmp_run("mv r.git moved.git");
	snprintf(path, sizeof(path), "%s/moved.git", tmp_root);
	refd_txid_make(&id);
	txn = sr_admit(&id, path, "refs/heads/c", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	copy = tmp_get("moved.git/refd/id");
	ck_assert_int_eq(memcmp(first, copy, 37), 0);
	free(copy);
	free(first);
}

/* A daemon of root does not read files of other accounts, so refd assumes that
 * the original of the copy still exists. */
TEST(copy_of_what_another_account_has)
{
	char *first, *copy, path[4200];
	struct refd_txid id;
	struct txn *txn;

	if (!suite_is_root(__func__))
		return;
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	tmp_run("cp -a r.git copy.git && chown -R 1001 r.git");
	first = tmp_get("r.git/refd/id");
	snprintf(path, sizeof(path), "%s/copy.git", tmp_root);
	refd_txid_make(&id);
	txn = sr_admit(&id, path, "refs/heads/b", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	copy = tmp_get("copy.git/refd/id");
	ck_assert_int_ne(memcmp(first, copy, 37), 0);
	free(copy);
	free(first);
}

/* Nothing is ever written to either repository. */
static uint64_t a_type;
static const char *type_of;

static int some_type(const struct sys *sys, int fd, uint64_t *type)
{
	char path[4096];
	int r = sys_kernel.fs_type(sys, fd, type);

	if (r == 0 && sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strcmp(path, type_of) == 0)
		*type = a_type;
	return r;
}

TEST(network_file_systems)
{
	const char *roots[] = { tmp_root };
	struct sys sys = sys_kernel;
	struct store_config cfg = { .sys = &sys,
		.state_dir = sr_state,
		.roots = roots,
		.nr_roots = 1,
		.max_open_repos = 4,
		.wake = no_wake };
	struct refd_txid id;
	struct store *store;
	struct txn *txn;
	char *why;

	sr_close();
	sys.fs_type = some_type;
	type_of = sr_state;
	a_type = 0x6969;
	ck_assert_int_eq(store_open(&cfg, &store, &why), -EMEDIUMTYPE);
	ck_assert_ptr_nonnull(strstr(why, "NFS"));
	free(why);
	a_type = 0x01021994;
	ck_assert_int_eq(store_open(&cfg, &store, &why), 0);
	ck_assert_ptr_nonnull(strstr(why, "in memory"));
	free(why);
	store_free(store);
	sr_sys = &sys;
	type_of = sr_repo;
	a_type = 0xff534d42;
	sr_open();
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(txn->why, "CIFS"));
	sr_done_with(txn);
	tmp_run("test ! -e r.git/refd");
	sr_close();
	sr_sys = &sys_kernel;
}
