/*
 * Proves the hand-over: transactions given to the store's threads come back
 * once each, with real git repositories, real disks and all threads running;
 * the journal answers for an id that was used; what is refused says why; and
 * a stop leaves nothing to replay. Run under ThreadSanitizer it is also what
 * shows that no two threads touch the same thing.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/store/store.h"
#include "tests/lib/tmp.h"

static struct store *store;
static char state_dir[4096], repo_dir[4096], commit[REFD_OID_HEX + 1];
static int wake_fd;
static uint64_t found_count;

static void wake(void *arg)
{
	(void)arg;
	eventfd_write(wake_fd, 1);
}

static void found(void *arg, enum store_finding finding, const char *repo,
    const char *ref, const char *text)
{
	(void)arg;
	(void)finding;
	(void)repo;
	(void)ref;
	(void)text;
	found_count++;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

static void open_store(void)
{
	const char *roots[] = { tmp_root };
	struct store_config cfg = {
		.sys = &sys_kernel,
		.state_dir = state_dir,
		.roots = roots,
		.nr_roots = 1,
		.durability = REFD_DURABILITY_JOURNAL,
		.checkpoint_interval_ns = 20 * 1000000,
		.prepare_max_ns = 10 * 1000000,
		.max_open_repos = 4,
		.wake = wake,
	};
	struct store_report report = { found, progress, NULL };
	uint64_t parked;
	char *why;

	ck_assert_msg(store_open(&cfg, &store, &why) == 0, "%s", why);
	ck_assert_int_eq(store_recover(store, &report, &parked), 0);
	ck_assert_uint_eq(parked, 0);
	ck_assert_int_eq(store_start(store), 0);
}

static void close_store(void)
{
	ck_assert_int_eq(store_stop(store), 0);
	store_free(store);
	store = NULL;
}

static void setup(void)
{
	char *out;

	tmp_setup();
	snprintf(state_dir, sizeof(state_dir), "%s/state", tmp_root);
	snprintf(repo_dir, sizeof(repo_dir), "%s/r.git", tmp_root);
	tmp_run("git init -q --bare r.git");
	out =
	    tmp_output("GIT_DIR=r.git GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a "
		       "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a "
		       "git commit-tree -m x "
		       "$(GIT_DIR=r.git git hash-object -t tree -w /dev/null)");
	ck_assert_uint_ge(strlen(out), REFD_OID_HEX);
	memcpy(commit, out, REFD_OID_HEX);
	free(out);
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	open_store();
}

static void teardown(void)
{
	if (store != NULL)
		close_store();
	close(wake_fd);
	tmp_teardown();
}

/* A transaction that owns what it holds, as one that came by the wire. */
static struct txn *make_txn(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex)
{
	struct refd_update update = { .action = REFD_UPDATE, .name = name };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.txid = *id,
		.git_dir = git_dir,
		.umask = 022,
		.updates = &update,
		.nr_updates = 1 };
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { NULL, 0, 0, false };
	struct refd_request own;
	enum refd_status status;
	struct txn *txn = NULL;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	ck_assert_int_eq(refd_oid_parse(hex, &update.new_oid), 0);
	refd_request_encode(&req, &buf);
	while (at < buf.len) {
		at += (size_t)pkt_parse(buf.data + at, buf.len - at, &pkt);
		if (refd_request_decode(dec, &pkt, &own, &status, &why) ==
		    REFD_DECODE_DONE)
			txn = txn_new(&own);
	}
	ck_assert_ptr_nonnull(txn);
	refd_request_decoder_free(dec);
	pkt_buf_done(&buf);
	return txn;
}

static struct store_done wait_done(void)
{
	struct pollfd pfd = { .fd = wake_fd, .events = POLLIN };
	struct store_done done;
	eventfd_t value;

	while (!store_reap(store, &done)) {
		ck_assert_int_eq(poll(&pfd, 1, 60000), 1);
		eventfd_read(wake_fd, &value);
	}
	return done;
}

static struct txn *admit(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex)
{
	struct txn *txn = make_txn(id, git_dir, name, hex);
	struct store_done done;

	store_admit(store, txn);
	done = wait_done();
	ck_assert_ptr_eq(done.admitted, txn);
	return txn;
}

static void done_with(struct txn *txn)
{
	if (txn->repo != NULL)
		store_release(store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
}

static struct window *make_window(struct txn *txn)
{
	struct window *w = calloc(1, sizeof(*w));

	w->parts = calloc(1, sizeof(*w->parts));
	w->nr_parts = 1;
	w->parts[0].txn = txn;
	w->parts[0].updates = calloc(1, sizeof(*w->parts[0].updates));
	w->parts[0].updates[0] = &txn->updates[0];
	w->parts[0].nr = 1;
	return w;
}

static void apply(struct txn *txn)
{
	struct store_done done;

	ck_assert_int_eq(txn->refused, REFD_OK);
	store_apply(store, make_window(txn));
	done = wait_done();
	ck_assert_ptr_nonnull(done.applied);
	window_free(done.applied);
}

START_TEST(one_and_its_id_again)
{
	struct store_query query = { .uid = 0 };
	struct store_done done;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = admit(&id, repo_dir, "refs/heads/a", commit);
	ck_assert(!txn->replayed);
	apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	ck_assert(txn->updates[0].recorded);
	ck_assert_uint_gt(txn->lsn, 0);
	done_with(txn);
	/* The same again is answered by the first outcome. */
	txn = admit(&id, repo_dir, "refs/heads/a", commit);
	ck_assert(txn->replayed);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	done_with(txn);
	/* Something else under the id is refused. */
	txn = admit(&id, repo_dir, "refs/heads/b", commit);
	ck_assert_int_eq(txn->refused, REFD_BADREQUEST);
	done_with(txn);
	query.txid = id;
	store_lookup(store, &query);
	done = wait_done();
	ck_assert_ptr_eq(done.answered, &query);
	ck_assert(query.found);
	ck_assert_uint_eq(query.answer.nr_results, 1);
	ck_assert_str_eq(query.answer.results[0].name, "refs/heads/a");
	ck_assert_int_eq(query.answer.outcome, REFD_COMMITTED);
	refd_answer_done(&query.answer);
	query.uid = 4711;
	store_lookup(store, &query);
	wait_done();
	ck_assert(!query.found);
}
END_TEST

/* The journal has a member for HEAD, and one for the branch; one answers. */
START_TEST(one_through_head)
{
	struct store_query query = { .uid = 0 };
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = admit(&id, repo_dir, "HEAD", commit);
	apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	done_with(txn);
	txn = admit(&id, repo_dir, "HEAD", commit);
	ck_assert(txn->replayed);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	done_with(txn);
	query.txid = id;
	store_lookup(store, &query);
	ck_assert_ptr_eq(wait_done().answered, &query);
	ck_assert_uint_eq(query.answer.nr_results, 1);
	ck_assert_str_eq(query.answer.results[0].name, "HEAD");
	ck_assert_int_eq(query.answer.outcome, REFD_COMMITTED);
	refd_answer_done(&query.answer);
}
END_TEST

START_TEST(refusals)
{
	static const char absent[] = "1111111111111111111111111111111111111111";
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = admit(&id, "/", "refs/heads/a", commit);
	ck_assert_int_eq(txn->refused, REFD_NOREPO);
	done_with(txn);
	tmp_mkdir("empty");
	refd_txid_make(&id);
	txn = admit(&id, state_dir, "refs/heads/a", commit);
	ck_assert_int_eq(txn->refused, REFD_NOREPO);
	ck_assert_ptr_nonnull(txn->why);
	done_with(txn);
	refd_txid_make(&id);
	txn = admit(&id, repo_dir, "refs/heads/../a", commit);
	ck_assert_int_eq(txn->updates[0].status, REFD_BADNAME);
	done_with(txn);
	refd_txid_make(&id);
	txn = admit(&id, repo_dir, "refs/heads/a", absent);
	ck_assert_int_eq(txn->updates[0].status, REFD_NOOBJECT);
	done_with(txn);
	/* Nothing weaker than what was asked for is ever called ok. */
	refd_txid_make(&id);
	txn = make_txn(&id, repo_dir, "refs/heads/a", commit);
	txn->req.durability = REFD_DURABILITY_FSYNC;
	store_admit(store, txn);
	ck_assert_ptr_eq(wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_UNSUPPORTED);
	done_with(txn);
	refd_txid_make(&id);
	tmp_run("git -C r.git config core.repositoryformatversion 1 && "
		"git -C r.git config extensions.objectformat sha256");
	txn = admit(&id, repo_dir, "refs/heads/a", commit);
	ck_assert_int_eq(txn->refused, REFD_UNSUPPORTED);
	done_with(txn);
}
END_TEST

/* Many in flight at once, windows on both committers, checkpoints between. */
START_TEST(many_at_once)
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
			store_admit(store,
			    make_txn(&id, repo_dir, name, commit));
		}
		admitted = applied = 0;
		while (applied < NR) {
			done = wait_done();
			if (done.admitted != NULL) {
				admitted++;
				ck_assert_int_eq(done.admitted->refused,
				    REFD_OK);
				store_apply(store, make_window(done.admitted));
				continue;
			}
			ck_assert_int_eq(
			    done.applied->parts[0].updates[0]->status, REFD_OK);
			done_with(done.applied->parts[0].txn);
			window_free(done.applied);
			applied++;
		}
		ck_assert_uint_eq(admitted, NR);
	}
	close_store();
	refs = tmp_output("git -C r.git for-each-ref | wc -l");
	ck_assert_int_eq(atoi(refs), NR * ROUNDS);
	free(refs);
	tmp_run("git -C r.git fsck");
	refs = tmp_output("find r.git -name '*.lock'");
	ck_assert_str_eq(refs, "");
	free(refs);
	/* A clean stop leaves nothing to replay. */
	found_count = 0;
	open_store();
	ck_assert_uint_eq(found_count, 0);
}
END_TEST

START_TEST(one_daemon_at_a_time)
{
	const char *roots[] = { tmp_root };
	struct store_config cfg = { .sys = &sys_kernel,
		.state_dir = state_dir,
		.roots = roots,
		.nr_roots = 1,
		.max_open_repos = 4,
		.wake = wake };
	struct store *second;
	char *why;

	ck_assert_int_eq(store_open(&cfg, &second, &why), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(why, state_dir));
	free(why);
}
END_TEST

/* A copy of a repository gets an id of its own; a moved one keeps its. */
START_TEST(copies_and_moves)
{
	char *first, *copy, path[4200];
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = admit(&id, repo_dir, "refs/heads/a", commit);
	apply(txn);
	done_with(txn);
	tmp_run("cp -a r.git copy.git");
	first = tmp_get("r.git/refd/id");
	snprintf(path, sizeof(path), "%s/copy.git", tmp_root);
	refd_txid_make(&id);
	txn = admit(&id, path, "refs/heads/b", commit);
	apply(txn);
	done_with(txn);
	copy = tmp_get("copy.git/refd/id");
	ck_assert_int_ne(memcmp(first, copy, 37), 0);
	free(copy);
	tmp_run("mv r.git moved.git");
	snprintf(path, sizeof(path), "%s/moved.git", tmp_root);
	refd_txid_make(&id);
	txn = admit(&id, path, "refs/heads/c", commit);
	apply(txn);
	done_with(txn);
	copy = tmp_get("moved.git/refd/id");
	ck_assert_int_eq(memcmp(first, copy, 37), 0);
	free(copy);
	free(first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store");
	TCase *tc = tcase_create("store");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, one_and_its_id_again);
	tcase_add_test(tc, one_through_head);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, many_at_once);
	tcase_add_test(tc, one_daemon_at_a_time);
	tcase_add_test(tc, copies_and_moves);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
