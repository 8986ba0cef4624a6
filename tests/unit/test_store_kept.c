/*
 * Proves that what was committed and could not be published to its end is
 * finished by the next start, whatever was checkpointed in between, and that
 * a deletion among it holds up no other.
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

static struct sys faulty;
static const char *fails_at; /* renaming to it */
static struct store *store;
static char state_dir[4096], repo_dir[4096], commit[REFD_OID_HEX + 1];
static char second[REFD_OID_HEX + 1];
static int wake_fd;
static uint64_t found_count;

static void wake(void *arg)
{
	(void)arg;
	eventfd_write(wake_fd, 1);
}

static void found(void *arg, const struct store_found *found)
{
	(void)arg;
	(void)found;
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
		.sys = &faulty,
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

static int faulty_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath);

static void make_commit(const char *message, char hex[REFD_OID_HEX + 1])
{
	char command[512], *out;

	snprintf(command, sizeof(command),
	    "GIT_DIR=r.git GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a "
	    "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a "
	    "git commit-tree -m %s "
	    "$(GIT_DIR=r.git git hash-object -t tree -w /dev/null)",
	    message);
	out = tmp_output(command);
	ck_assert_uint_ge(strlen(out), REFD_OID_HEX);
	memcpy(hex, out, REFD_OID_HEX);
	free(out);
}

static void setup(void)
{
	tmp_setup();
	snprintf(state_dir, sizeof(state_dir), "%s/state", tmp_root);
	snprintf(repo_dir, sizeof(repo_dir), "%s/r.git", tmp_root);
	tmp_run("git init -q --bare r.git");
	make_commit("x", commit);
	make_commit("y", second);
	faulty = sys_kernel;
	faulty.renameat = faulty_renameat;
	fails_at = NULL;
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

static int faulty_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	(void)sys;
	if (fails_at != NULL && strcmp(newpath, fails_at) == 0)
		return -EIO;
	return SYS(&sys_kernel, renameat, olddirfd, oldpath, newdirfd, newpath);
}

static const char *const names[] = { "refs/heads/a", "refs/heads/b" };

static void parse(const char *hex, struct refd_oid *oid)
{
	ck_assert_int_eq(refd_oid_parse(hex, oid), 0);
}

/* Both refs, to HEX, in one atomic transaction; or both deleted. */
static struct txn *make_txn(const char *hex)
{
	struct refd_update updates[2] = { { .name = names[0] },
		{ .name = names[1] } };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = repo_dir,
		.umask = 022,
		.atomic = true,
		.updates = updates,
		.nr_updates = 2 };
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { NULL, 0, 0, false };
	struct refd_request own;
	enum refd_status status;
	struct txn *txn = NULL;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	updates[0].action = updates[1].action =
	    hex != NULL ? REFD_UPDATE : REFD_DELETE;
	if (hex != NULL) {
		parse(hex, &updates[0].new_oid);
		parse(hex, &updates[1].new_oid);
	}
	refd_txid_make(&req.txid);
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

/* The status of the last one. */
static enum refd_status apply(const char *hex)
{
	struct txn *txn = make_txn(hex);
	struct window *w = calloc(1, sizeof(*w));
	enum refd_status status;
	size_t i;

	store_admit(store, txn);
	wait_done();
	ck_assert_int_eq(txn->refused, REFD_OK);
	w->parts = calloc(1, sizeof(*w->parts));
	w->nr_parts = 1;
	w->parts[0].txn = txn;
	w->parts[0].nr = 2;
	w->parts[0].updates = calloc(2, sizeof(*w->parts[0].updates));
	for (i = 0; i < 2; i++)
		w->parts[0].updates[i] = &txn->updates[i];
	store_apply(store, w);
	window_free(wait_done().applied);
	status = txn->updates[1].status;
	store_release(store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
	return status;
}

static char *read_ref(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command),
	    "git -C r.git for-each-ref '--format=%%(objectname)' %s", name);
	return tmp_output(command);
}

static void wait_checkpoints(uint64_t nr)
{
	struct store_stats stats;
	uint64_t upto;

	store_stats(store, &stats);
	upto = stats.checkpoints + nr;
	while (stats.checkpoints < upto) {
		poll(NULL, 0, 5);
		store_stats(store, &stats);
	}
}

/* Checkpoints come and go, and so does the daemon. */
START_TEST(what_could_not_be_renamed)
{
	char *value;

	ck_assert_int_eq(apply(commit), REFD_OK);
	fails_at = "refs/heads/b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	fails_at = NULL;
	wait_checkpoints(3);
	close_store();
	open_store();
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
END_TEST

START_TEST(what_could_not_be_deleted)
{
	char *value;

	ck_assert_int_eq(apply(commit), REFD_OK);
	tmp_run("git -C r.git pack-refs --all");
	fails_at = "packed-refs";
	ck_assert_int_eq(apply(NULL), REFD_UNKNOWN);
	fails_at = NULL;
	/* Nobody else waits for it. */
	ck_assert(access("r.git/packed-refs.lock", F_OK) != 0);
	wait_checkpoints(3);
	close_store();
	open_store();
	value = tmp_output("git -C r.git for-each-ref");
	ck_assert_str_eq(value, "");
	free(value);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store_kept");
	TCase *tc = tcase_create("store_kept");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_could_not_be_renamed);
	tcase_add_test(tc, what_could_not_be_deleted);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
