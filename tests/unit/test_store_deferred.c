/*
 * Proves that no client can write a deferred ref, by its name or through a
 * symbolic ref, in the repository or in a linked worktree. Other refs are
 * written meanwhile. The ref is redone as soon as possible. If the disk stopped
 * recovery from looking, no ref of the repository is written.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

static struct sys faulty;
static bool is_broken; /* the stage directory can't be searched */
static char worktree_dir[4096], second[REFD_OID_MAX_HEX + 1];

/* The status after admission of an update of NAME to the second commit, or of
 * the whole transaction. */
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
	enum refd_status status;
	struct txn *txn;

	refd_txid_make(&req.txid);
	ck_assert_int_eq(
	    refd_oid_parse(second, REFD_FORMAT_SHA1, &update.new_oid), 0);
	txn = txn_help_own(&req);
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	status =
	    txn->refused != REFD_OK ? txn->refused : txn->updates[0].status;
	store_release(sr_store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
	return status;
}

static int faulty_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	char at[4096];

	(void)sys;
	if (is_broken && strcmp(path, ".") == 0 &&
	    SYS(&sys_kernel, fd_path, dirfd, at, sizeof(at)) == 0 &&
	    strstr(at, "/stage") != NULL)
		return -EIO;
	return SYS(&sys_kernel, dir_open, dirfd, path, dir);
}

static void setup(void)
{
	sr_setup_closed();
	faulty = sys_kernel;
	faulty.dir_open = faulty_dir_open;
	is_broken = false;
	sr_sys = &faulty;
	/* Only writers try again. */
	sr_interval_ns = INT64_C(3600) * 1000000000;
	snprintf(worktree_dir, sizeof(worktree_dir), "%s/r.git/worktrees/w",
	    tmp_root);
	sr_make_commit("y", second);
	tmp_run("git -C r.git update-ref refs/heads/main %s && "
		"git -C r.git worktree add -q --detach ../w main && "
		"git -C w symbolic-ref HEAD refs/heads/s && "
		"git -C r.git symbolic-ref refs/heads/s refs/heads/main",
	    sr_commit);
	sr_open();
	ck_assert_int_eq(admit(sr_repo, "refs/heads/main", false),
	    REFD_PENDING);
	sr_close();
}

static void assert_ref(const char *command, const char *want)
{
	char *out = tmp_output("%s", command);

	ck_assert_str_eq(strtok(out, "\n"), want);
	free(out);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(whoever_would_write_it_waits)
{
	sr_park(sr_repo, "", "refs/heads/main", second);
	tmp_run(": >r.git/refs/heads/main.lock");
	ck_assert_uint_eq(sr_open_deferred(), 1);
	ck_assert_int_eq(admit(sr_repo, "refs/heads/main", false), REFD_LOCKED);
	ck_assert_int_eq(admit(sr_repo, "HEAD", false), REFD_LOCKED);
	ck_assert_int_eq(admit(sr_repo, "refs/heads/s", false), REFD_LOCKED);
	ck_assert_int_eq(admit(worktree_dir, "HEAD", false), REFD_LOCKED);
	/* The symbolic ref itself may be written. */
	ck_assert_int_eq(admit(sr_repo, "HEAD", true), REFD_PENDING);
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", sr_commit);
	tmp_run("rm r.git/refs/heads/main.lock");
	ck_assert_int_eq(admit(sr_repo, "HEAD", false), REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", second);
}

TEST(a_worktrees_head_is_nobody_elses)
{
	sr_park(sr_repo, "w", "HEAD", second);
	tmp_run(": >r.git/worktrees/w/HEAD.lock");
	ck_assert_uint_eq(sr_open_deferred(), 1);
	ck_assert_int_eq(admit(worktree_dir, "HEAD", true), REFD_LOCKED);
	ck_assert_int_eq(admit(sr_repo, "worktrees/w/HEAD", true), REFD_LOCKED);
	ck_assert_int_eq(admit(worktree_dir, "main-worktree/HEAD", true),
	    REFD_PENDING);
	ck_assert_int_eq(admit(sr_repo, "HEAD", true), REFD_PENDING);
	ck_assert_int_eq(admit(sr_repo, "HEAD", false), REFD_PENDING);
	tmp_run("rm r.git/worktrees/w/HEAD.lock");
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_PENDING);
	assert_ref("cat r.git/worktrees/w/HEAD", second);
}

TEST(a_repository_with_a_failing_disk_is_not_written)
{
	sr_park(sr_repo, "", "refs/heads/main", second);
	is_broken = true;
	ck_assert_uint_eq(sr_open_deferred(), 1);
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_IO);
	assert_ref("git -C r.git rev-parse main", sr_commit);
	is_broken = false;
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_PENDING);
	assert_ref("git -C r.git rev-parse main", second);
}

/* Without a record, locks may still be there. */
TEST(a_repository_that_could_not_be_searched_is_not_written)
{
	is_broken = true;
	ck_assert_uint_eq(sr_open_deferred(), 0);
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_IO);
	is_broken = false;
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_PENDING);
	is_broken = true;
	ck_assert_int_eq(admit(sr_repo, "refs/heads/new", false), REFD_PENDING);
}
