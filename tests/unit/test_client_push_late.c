/*
 * Proves that the hook keeps its time limit when a daemon hangs after it has
 * prepared a session. The commands after the commit are refused at once,
 * because nothing of them was sent, and the earlier verdicts stay. The clock of
 * this program is moved forward, so no test waits.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/limits.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static atomic_int later_ms;
static atomic_bool is_silent; /* the server will never send anything */

/* In place of the function of libc. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = (int)syscall(SYS_clock_gettime, id, ts);

	if (r == 0 && id == CLOCK_MONOTONIC)
		ts->tv_sec += later_ms / 1000;
	return r;
}

/* The same, but the clock moves in place of a wait. */
int poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	const struct timespec ts = { .tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L };

	if (!is_silent || timeout_ms < 0)
		return (int)syscall(SYS_ppoll, fds, nr,
		    timeout_ms < 0 ? NULL : &ts, NULL, 0);
	later_ms += timeout_ms + 1000;
	return 0;
}

/* Returns with the COMMIT of refs/heads/a. The hook agrees after HOOK_MS. */
static void prepare_a(struct fake *f, int hook_ms)
{
	fake_play(f, "serve session=prepared");
	fake_expect(f, f->first.nr_updates == 1, "not a session for one ref");
	later_ms = hook_ms;
	fake_play(f, "commit");
}

/* The client may have left a byte unread, which resets the connection. */
static void expect_end(struct fake *f)
{
	char c;

	fake_expect(f, read(f->conn, &c, 1) <= 0,
	    "something was sent after the time limit");
}

/* The first byte of an answer ends a wait that has begun already. */
static void hangs_in_the_commit(struct fake *f)
{
	prepare_a(f, 0);
	is_silent = true;
	fake_send(f, "0", 1);
	expect_end(f);
}

/* The rest of the time is too short for an answer. */
static void commits_late(struct fake *f)
{
	prepare_a(f, 0);
	later_ms = REFD_HOOK_DEADLINE_MS - 4000;
	fake_play(f, "later:commit=done");
	expect_end(f);
}

/* The hook had all the time. The daemon does not need it, too. */
static void commits_after_the_hook(struct fake *f)
{
	const struct timespec nap = { .tv_nsec = 100000000 };

	prepare_a(f, REFD_HOOK_DEADLINE_MS + 1000);
	nanosleep(&nap, NULL);
	fake_play(f, "later:commit=done");
	expect_end(f);
}

/* Deletions have a batch of their own in every version of git. */
static char *push_three(void (*script)(struct fake *f))
{
	tmp_run("cd repo.git && echo " A " >refs/heads/a && cd hooks && "
		"printf '#!/bin/sh\nsleep 0.1' >reference-transaction && "
		"chmod +x reference-transaction");
	later_ms = 0;
	is_silent = false;
	hook_serve_script(script);
	hook_push(A " " Z " refs/heads/a", Z " " A " refs/heads/b",
	    Z " " B " refs/heads/c", NULL);
	return hook_run();
}

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

TEST(test_hangs_in_the_commit)
{
	char *got = push_three(hangs_in_the_commit);

	ck_assert_ptr_eq(strstr(got, "ng refs/heads/a refd: outcome unknown"),
	    got);
	ck_assert_ptr_nonnull(strstr(got,
	    "\nng refs/heads/b failed to update ref: refd: deadline\n"
	    "ng refs/heads/c failed to update ref: refd: deadline\n"));
	free(got);
}

TEST(test_commits_late, .times = 2)
{
	char *got = push_three(_i == 0 ? commits_late : commits_after_the_hook);

	ck_assert_str_eq(got,
	    "ok refs/heads/a\n"
	    "ng refs/heads/b failed to update ref: refd: deadline\n"
	    "ng refs/heads/c failed to update ref: refd: deadline\n");
	free(got);
}
