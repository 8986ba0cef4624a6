/*
 * Proves that while a ref is parked nobody writes it, by its own name or
 * through a symbolic ref, of the repository or of a linked worktree, while
 * everything else is written; that it is redone as soon as it can be; and that
 * nothing at all is written where the disk did not let recovery look.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/store/journal.h"
#include "daemon/store/record.h"
#include "daemon/store/store.h"
#include "tests/lib/tmp.h"

static struct sys faulty;
static bool is_broken; /* the stage can't be looked through */
static struct store *store;
static char state_dir[4096], repo_dir[4096], worktree_dir[4096];
static char first[REFD_OID_HEX + 1], second[REFD_OID_HEX + 1];
static int wake_fd;

static void wake(void *arg)
{
	(void)arg;
	eventfd_write(wake_fd, 1);
}

static void found(void *arg, const struct store_found *found)
{
	(void)arg;
	(void)found;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

static uint64_t open_store(void)
{
	const char *roots[] = { tmp_root };
	struct store_config cfg = {
		.sys = &faulty,
		.state_dir = state_dir,
		.roots = roots,
		.nr_roots = 1,
		.durability = REFD_DURABILITY_JOURNAL,
		/* Only those who want to write try again. */
		.checkpoint_interval_ns = INT64_C(3600) * 1000000000,
		.prepare_max_ns = 10 * 1000000,
		.max_open_repos = 4,
		.wake = wake,
	};
	struct store_report report = { found, progress, NULL };
	uint64_t parked;
	char *why;

	ck_assert_msg(store_open(&cfg, &store, &why) == 0, "%s", why);
	ck_assert_int_eq(store_recover(store, &report, &parked), 0);
	ck_assert_int_eq(store_start(store), 0);
	return parked;
}

static void close_store(void)
{
	ck_assert_int_eq(store_stop(store), 0);
	store_free(store);
	store = NULL;
}

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

/* What admission makes of an update of NAME to the second commit, or of the
 * whole. */
static enum refd_status admit(const char *git_dir, const char *name,
    bool no_deref)
{
	struct refd_update update = { .action = REFD_UPDATE,
		.name = name,
		.no_deref = no_deref };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
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

	refd_txid_make(&req.txid);
	ck_assert_int_eq(refd_oid_parse(second, &update.new_oid), 0);
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
	store_admit(store, txn);
	ck_assert_ptr_eq(wait_done().admitted, txn);
	status =
	    txn->refused != REFD_OK ? txn->refused : txn->updates[0].status;
	store_release(store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
	return status;
}

static int first_repo(void *arg, const struct journal_repo *repo)
{
	*(uint64_t *)arg = repo->id;
	return 0;
}

/* As a cut would leave it: NAME, to the second commit. */
static void park(const char *worktree, const char *name)
{
	struct record_member member = { .answers = true,
		.name = name,
		.worktree = worktree,
		.action = RECORD_WRITE };
	struct record rec = { .committer = "a <a> 1 +0000",
		.message = "",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = 1,
		.members = &member,
		.nr_members = 1 };
	struct journal_row row = { .kind = JOURNAL_PARKED,
		.locked_at_ns = INT64_MAX,
		.final = true };
	struct journal_config cfg = { .sys = &sys_kernel,
		.dir = state_dir,
		.boot_id = "another" };
	struct journal *journal;
	char *why;

	ck_assert_int_eq(refd_oid_parse(second, &member.new_oid), 0);
	ck_assert_int_eq(journal_open(&cfg, &journal, &why), 0);
	ck_assert_int_eq(journal_each_repo(journal, first_repo, &row.repo), 0);
	ck_assert_uint_ne(row.repo, 0);
	row.body = record_encode(&rec, &row.len);
	ck_assert_ptr_nonnull(row.body);
	ck_assert_int_eq(journal_commit(journal, &row, 1, true), 0);
	free((void *)(uintptr_t)row.body);
	ck_assert_int_eq(journal_close(journal), 0);
}

static int faulty_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	(void)sys;
	if (is_broken && strcmp(path, ".") == 0)
		return -EIO;
	return SYS(&sys_kernel, dir_open, dirfd, path, dir);
}

static void setup(void)
{
	char command[512];

	tmp_setup();
	faulty = sys_kernel;
	faulty.dir_open = faulty_dir_open;
	is_broken = false;
	snprintf(state_dir, sizeof(state_dir), "%s/state", tmp_root);
	snprintf(repo_dir, sizeof(repo_dir), "%s/r.git", tmp_root);
	snprintf(worktree_dir, sizeof(worktree_dir), "%s/r.git/worktrees/w",
	    tmp_root);
	tmp_run("git init -q --bare -b main r.git");
	make_commit("x", first);
	make_commit("y", second);
	snprintf(command, sizeof(command),
	    "git -C r.git update-ref refs/heads/main %s && "
	    "git -C r.git worktree add -q --detach ../w main && "
	    "git -C w symbolic-ref HEAD refs/heads/s && "
	    "git -C r.git symbolic-ref refs/heads/s refs/heads/main",
	    first);
	tmp_run(command);
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ck_assert_uint_eq(open_store(), 0);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/main", false),
	    REFD_PENDING);
	close_store();
}

static void teardown(void)
{
	if (store != NULL)
		close_store();
	close(wake_fd);
	tmp_teardown();
}

static void assert_ref(const char *command, const char *want)
{
	char *out = tmp_output(command);

	ck_assert_str_eq(strtok(out, "\n"), want);
	free(out);
}

START_TEST(whoever_would_write_it_waits)
{
	park("", "refs/heads/main");
	tmp_run(": >r.git/refs/heads/main.lock");
	ck_assert_uint_eq(open_store(), 1);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/main", false),
	    REFD_LOCKED);
	ck_assert_int_eq(admit(repo_dir, "HEAD", false), REFD_LOCKED);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/s", false), REFD_LOCKED);
	ck_assert_int_eq(admit(worktree_dir, "HEAD", false), REFD_LOCKED);
	/* The symbolic ref itself is another matter. */
	ck_assert_int_eq(admit(repo_dir, "HEAD", true), REFD_PENDING);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false),
	    REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", first);
	tmp_run("rm r.git/refs/heads/main.lock");
	ck_assert_int_eq(admit(repo_dir, "HEAD", false), REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", second);
}
END_TEST

START_TEST(a_worktrees_head_is_nobody_elses)
{
	park("w", "HEAD");
	tmp_run(": >r.git/worktrees/w/HEAD.lock");
	ck_assert_uint_eq(open_store(), 1);
	ck_assert_int_eq(admit(worktree_dir, "HEAD", true), REFD_LOCKED);
	ck_assert_int_eq(admit(repo_dir, "worktrees/w/HEAD", true),
	    REFD_LOCKED);
	ck_assert_int_eq(admit(worktree_dir, "main-worktree/HEAD", true),
	    REFD_PENDING);
	ck_assert_int_eq(admit(repo_dir, "HEAD", true), REFD_PENDING);
	ck_assert_int_eq(admit(repo_dir, "HEAD", false), REFD_PENDING);
	tmp_run("rm r.git/worktrees/w/HEAD.lock");
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false),
	    REFD_PENDING);
	assert_ref("cat r.git/worktrees/w/HEAD", second);
}
END_TEST

START_TEST(a_repository_with_a_failing_disk_is_not_written)
{
	park("", "refs/heads/main");
	is_broken = true;
	ck_assert_uint_eq(open_store(), 1);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false), REFD_IO);
	assert_ref("git -C r.git rev-parse main", first);
	is_broken = false;
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false),
	    REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", second);
}
END_TEST

/* Without a record there may be locks all the same. */
START_TEST(a_repository_that_could_not_be_searched_is_not_written)
{
	is_broken = true;
	ck_assert_uint_eq(open_store(), 0);
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false), REFD_IO);
	is_broken = false;
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false),
	    REFD_PENDING);
	is_broken = true;
	ck_assert_int_eq(admit(repo_dir, "refs/heads/new", false),
	    REFD_PENDING);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store_parked");
	TCase *tc = tcase_create("store_parked");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, whoever_would_write_it_waits);
	tcase_add_test(tc, a_worktrees_head_is_nobody_elses);
	tcase_add_test(tc, a_repository_with_a_failing_disk_is_not_written);
	tcase_add_test(tc,
	    a_repository_that_could_not_be_searched_is_not_written);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
