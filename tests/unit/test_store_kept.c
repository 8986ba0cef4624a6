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
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/tmp.h"

static struct sys faulty;
static const char *fails_at; /* renaming to it */
static char second[REFD_OID_HEX + 1];

static int faulty_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath);

static void setup(void)
{
	faulty = sys_kernel;
	faulty.renameat = faulty_renameat;
	fails_at = NULL;
	sr_sys = &faulty;
	sr_setup();
	sr_make_commit("y", second);
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
	refd_txid_make(&req.txid);
	return sr_own_txn(&req);
}

/* The status of the last one. */
static enum refd_status apply(const char *hex)
{
	struct txn *txn = make_txn(hex);
	struct window *w = calloc(1, sizeof(*w));
	enum refd_status status;
	size_t i;

	store_admit(sr_store, txn);
	sr_wait_done();
	ck_assert_int_eq(txn->refused, REFD_OK);
	w->parts = calloc(1, sizeof(*w->parts));
	w->nr_parts = 1;
	w->parts[0].txn = txn;
	w->parts[0].nr = 2;
	w->parts[0].updates = calloc(2, sizeof(*w->parts[0].updates));
	for (i = 0; i < 2; i++)
		w->parts[0].updates[i] = &txn->updates[i];
	store_apply(sr_store, w);
	window_free(sr_wait_done().applied);
	status = txn->updates[1].status;
	store_release(sr_store, txn->repo);
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

	store_stats(sr_store, &stats);
	upto = stats.checkpoints + nr;
	while (stats.checkpoints < upto) {
		poll(NULL, 0, 5);
		store_stats(sr_store, &stats);
	}
}

/* Checkpoints come and go, and so does the daemon. */
START_TEST(what_could_not_be_renamed)
{
	char *value;

	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	fails_at = "refs/heads/b";
	ck_assert_int_eq(apply(second), REFD_UNKNOWN);
	fails_at = NULL;
	wait_checkpoints(3);
	sr_close();
	sr_open();
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

	ck_assert_int_eq(apply(sr_commit), REFD_OK);
	tmp_run("git -C r.git pack-refs --all");
	fails_at = "packed-refs";
	ck_assert_int_eq(apply(NULL), REFD_UNKNOWN);
	fails_at = NULL;
	/* Nobody else waits for it. */
	ck_assert(access("r.git/packed-refs.lock", F_OK) != 0);
	wait_checkpoints(3);
	sr_close();
	sr_open();
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
	tcase_add_checked_fixture(tc, setup, sr_teardown);
	tcase_add_test(tc, what_could_not_be_renamed);
	tcase_add_test(tc, what_could_not_be_deleted);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
