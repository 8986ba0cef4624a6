/*
 * Proves that a deferred log line is written while the daemon runs, even if the
 * line is deferred during a retry for another ref. The status counts exactly
 * the refs that are still deferred.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define WAIT_S 20

static struct sys disk;
static atomic_bool is_full; /* where logs are */
static atomic_bool holds;   /* the next search for locks */
static sem_t is_held, let_go;
static char second[REFD_OID_MAX_HEX + 1];

static bool ends_with(const struct sys *sys, int fd, const char *end)
{
	char path[4096];
	size_t len, end_len = strlen(end);

	if (sys_kernel.fd_path(sys, fd, path, sizeof(path)) < 0)
		return false;
	len = strlen(path);
	return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

static int disk_write_all(const struct sys *sys, int fd, const void *buf,
    size_t len)
{
	if (is_full &&
	    (ends_with(sys, fd, "/logs/refs/heads/x") ||
		ends_with(sys, fd, "/logs/refs/heads/y")))
		return -ENOSPC;
	return sys_kernel.write_all(sys, fd, buf, len);
}

static int disk_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	if (strcmp(path, ".") == 0 && holds &&
	    ends_with(sys, dirfd, "/refd/stage") &&
	    atomic_exchange(&holds, false)) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.dir_open(sys, dirfd, path, dir);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.write_all = disk_write_all;
	disk.dir_open = disk_dir_open;
	is_full = holds = false;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sr_sys = &disk;
	sr_setup_closed();
	sr_make_commit("y", second);
	tmp_run("git -C r.git config core.logAllRefUpdates always");
	sr_open();
}

static void teardown(void)
{
	sr_teardown();
	sr_sys = &sys_kernel;
}

static struct txn *admit(const char *name, const char *hex)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_admit(&id, sr_repo, name, hex);
}

static void apply(struct txn *txn)
{
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

static int nr_lines(const char *name)
{
	char *out = tmp_output("wc -l <r.git/logs/%s", name);
	int nr = atoi(out);

	free(out);
	return nr;
}

static uint64_t nr_awaiting(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.awaiting_refs;
}

static void await_nothing_awaits(void)
{
	int tries;

	for (tries = 0; nr_awaiting() > 0; tries++) {
		ck_assert_int_lt(tries, WAIT_S * 200);
		poll(NULL, 0, 5);
	}
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(a_line_that_comes_during_a_try_is_written)
{
	struct txn *x, *y;

	apply(admit("refs/heads/x", sr_commit));
	apply(admit("refs/heads/y", sr_commit));
	x = admit("refs/heads/x", second);
	y = admit("refs/heads/y", second);
	is_full = holds = true;
	apply(x);
	sr_await(&is_held);
	/* The retry has read that x lacks a line, and nothing of y. */
	apply(y);
	ck_assert_uint_eq(nr_awaiting(), 2);
	is_full = false;
	sem_post(&let_go);
	await_nothing_awaits();
	ck_assert_int_eq(nr_lines("refs/heads/x"), 2);
	ck_assert_int_eq(nr_lines("refs/heads/y"), 2);
}

TEST(what_is_written_does_not_count)
{
	struct txn *x, *y;
	int tries;

	apply(admit("refs/heads/x", sr_commit));
	apply(admit("refs/heads/y", sr_commit));
	x = admit("refs/heads/x", second);
	y = admit("refs/heads/y", second);
	is_full = holds = true;
	apply(x);
	apply(y);
	sr_await(&is_held);
	tmp_run(": >r.git/refs/heads/x.lock");
	is_full = false;
	sem_post(&let_go);
	for (tries = 0; nr_lines("refs/heads/y") < 2 || nr_awaiting() != 1;
	    tries++) {
		ck_assert_int_lt(tries, WAIT_S * 200);
		poll(NULL, 0, 5);
	}
	tmp_run("rm r.git/refs/heads/x.lock");
	await_nothing_awaits();
	ck_assert_int_eq(nr_lines("refs/heads/x"), 2);
}
