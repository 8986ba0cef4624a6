/*
 * Proves where the client looks for the daemon and when it may leave the work
 * to git. The client never leaves the work to git while refs may await replay,
 * while the daemon recovers, if the configuration says refuse, or if access to
 * the daemon is denied. The client does not wait for a daemon that cannot
 * start. It tries again after a refusal for lack of room, and after no other
 * refusal. It sends the end of a session again only while an answer can come
 * in time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/request/connect.h"
#include "proto/lib/clock.h"
#include "tests/lib/connect_rig.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct fake fake;

/* OWN: of the repository's own files; LIST: of all others. */
static bool choose(const char *option, const char *list, const char *own,
    const char *wanted)
{
	struct gitconfig config = { 0 };
	struct daemon_socket got;

	if (list)
		text_add(&config.list, list, strlen(list) + 1);
	config.own = config.list.len;
	if (own)
		text_add(&config.list, own, strlen(own) + 1);
	config.own_end = config.list.len;
	connect_choose(&got, option, &config, &connect_gd);
	ck_assert_str_eq(got.path, wanted);
	free(got.path);
	gitconfig_done(&config);
	return got.is_guarded;
}

static void check_socket(const char *option, const char *list,
    const char *wanted)
{
	ck_assert(!choose(option, list, NULL, wanted));
}

CASE(.setup = connect_setup, .teardown = connect_teardown, .seconds = 60);

TEST(test_socket)
{
	char run[700];

	check_socket(NULL, NULL, "/run/refd/refd.sock");
	setenv("XDG_RUNTIME_DIR", tmp_root, 1);
	check_socket(NULL, NULL, "/run/refd/refd.sock");
	tmp_put("refd.sock", "");
	snprintf(run, sizeof(run), "%s/refd.sock", tmp_root);
	check_socket(NULL, NULL, run);
	check_socket(NULL, "refd.socket\n/from/config", "/from/config");
	setenv("REFD_SOCKET", "/from/env", 1);
	check_socket(NULL, "refd.socket\n/from/config", "/from/env");
	check_socket("/from/option", "refd.socket\n/c", "/from/option");
}

/* su(1) leaves XDG_RUNTIME_DIR of the calling user in the environment. */
TEST(test_socket_of_another_user)
{
	char run[700];

	if (!suite_is_root("test_socket_of_another_user"))
		return;
	setenv("XDG_RUNTIME_DIR", tmp_root, 1);
	tmp_put("refd.sock", "");
	snprintf(run, sizeof(run), "%s/refd.sock", tmp_root);
	check_socket(NULL, NULL, run);
	ck_assert_int_eq(lchown(run, 64001, 64001), 0);
	check_socket(NULL, NULL, "/run/refd/refd.sock");
	ck_assert_int_eq(lchown(run, 0, 0), 0);
	ck_assert_int_eq(chown(tmp_root, 64001, 64001), 0);
	check_socket(NULL, NULL, "/run/refd/refd.sock");
}

TEST(test_socket_of_a_repository)
{
	const char *own = "refd.socket\n/own";

	ck_assert(choose(NULL, NULL, own, "/own"));
	ck_assert(choose(NULL, "refd.socket\n/other", own, "/own"));
	ck_assert(!choose(NULL, "refd.socket\n/own", own, "/own"));
	ck_assert(!choose("/option", NULL, own, "/option"));
	ck_assert(!choose(NULL, NULL, "refd.socket\n/run/refd/refd.sock",
	    "/run/refd/refd.sock"));
	ck_assert(!choose(NULL, NULL, "refd.socket\n", "/run/refd/refd.sock"));
	setenv("REFD_SOCKET", "/env", 1);
	ck_assert(!choose(NULL, NULL, own, "/env"));
}

/* ---- work that git may do ---- */

static enum connect_result try_connect(enum fallback fallback, int timeout_ms,
    const char *says)
{
	struct refd *r = refd_new(connect_sock);
	struct text why = { 0 };
	enum connect_result result;

	result = connect_daemon(r, connect_sock, fallback, &connect_gd,
	    clock_deadline_ms(timeout_ms), &why);
	if (says)
		ck_assert_msg(strstr(why.data, says), "%s", why.data);
	text_done(&why);
	refd_free(r);
	return result;
}

TEST(test_away)
{
	ck_assert_int_eq(try_connect(FALLBACK_REFUSE, 60000, "refd.fallback"),
	    CONNECT_FAILED);
	ck_assert_int_eq(try_connect(FALLBACK_GIT, 60000, connect_sock),
	    CONNECT_USE_GIT);
	/* While refs may await replay, the client waits and then refuses. */
	tmp_put("repo/refd/id", "x");
	ck_assert_int_eq(try_connect(FALLBACK_GIT, 60, "await recovery"),
	    CONNECT_FAILED);
	connect_mark_by("/proc/sys/kernel/random/boot_id");
	ck_assert_int_eq(try_connect(FALLBACK_GIT, 60000, connect_sock),
	    CONNECT_USE_GIT);
}

/* The same, with a server that takes STEPS. */
static enum connect_result try_with(const char *steps, enum fallback fallback,
    int timeout_ms, const char *says)
{
	enum connect_result result;

	fake_start(&fake, steps);
	result = try_connect(fallback, timeout_ms, says);
	fake_stop(&fake);
	return result;
}

TEST(test_waits_for_recovery)
{
	ck_assert_int_eq(try_with("recover recover serve", FALLBACK_GIT, 60000,
			     NULL),
	    CONNECT_SERVED);
}

TEST(test_recovery_never_ends)
{
	connect_mark_by("/proc/sys/kernel/random/uuid");
	tmp_put("repo/refd/id", "x");
	ck_assert_int_eq(try_with("recover gone", FALLBACK_GIT, 2000, NULL),
	    CONNECT_FAILED);
}

static void is_something_else(struct fake *f)
{
	fake_play(f, "accept");
	fake_send(f, "220 smtp\r\n", 10);
}

TEST(test_something_else)
{
	fake_start_script(&fake, is_something_else);
	ck_assert_int_eq(try_connect(FALLBACK_GIT, 60000, connect_sock),
	    CONNECT_FAILED);
	fake_stop(&fake);
}

/* A denied user gets the reason, and git does the work only in a repository
 * that no daemon ever served. The refusal follows the greeting in one piece,
 * before any request. */
TEST(test_denied)
{
	const char *denies = "away=denied";

	ck_assert_int_eq(try_with(denies, FALLBACK_GIT, 60000, "because"),
	    CONNECT_USE_GIT);
	tmp_put("repo/refd/id", "x");
	ck_assert_int_eq(try_with(denies, FALLBACK_GIT, 60000, "because"),
	    CONNECT_DENIED);
	ck_assert_int_eq(try_with(denies, FALLBACK_REFUSE, 60000, "because"),
	    CONNECT_DENIED);
}

TEST(test_no_entry)
{
	if (!suite_is_root(__func__))
		return;
	tmp_put("repo/refd/id", "x");
	fake_start(&fake, "");
	ck_assert_int_eq(chmod(connect_sock, 0600), 0);
	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(try_connect(FALLBACK_GIT, 60000, "Permission denied"),
	    CONNECT_DENIED);
	ck_assert_int_eq(seteuid(0), 0);
	fake_stop(&fake);
}

/* A busy daemon is not away: the client waits for it with any fallback, even if
 * the last try takes longer than the remaining time. */
TEST(test_full)
{
	const char *full_twice = "away=busy away=busy serve";

	ck_assert_int_eq(try_with(full_twice, FALLBACK_GIT, 60000, NULL),
	    CONNECT_SERVED);
	ck_assert_int_eq(try_with(full_twice, FALLBACK_REFUSE, 60000, NULL),
	    CONNECT_SERVED);
	ck_assert_int_eq(try_with("away=busy accept end", FALLBACK_GIT, 2000,
			     "because"),
	    CONNECT_FAILED);
}

/* Nobody answers a second connection, so every case ends at the first
 * refusal. */
TEST(test_cannot_start)
{
	const char *fails = "away=io";

	ck_assert_int_eq(try_with(fails, FALLBACK_REFUSE, 600000,
			     "cannot start: because"),
	    CONNECT_FAILED);
	ck_assert_int_eq(try_with(fails, FALLBACK_GIT, 600000, NULL),
	    CONNECT_USE_GIT);
	tmp_put("repo/refd/id", "x");
	ck_assert_int_eq(try_with(fails, FALLBACK_GIT, 600000,
			     "cannot start: because of you; refs await"),
	    CONNECT_FAILED);
	connect_mark_by("/proc/sys/kernel/random/boot_id");
	ck_assert_int_eq(try_with(fails, FALLBACK_GIT, 600000, NULL),
	    CONNECT_USE_GIT);
}

/* ---- a transaction ---- */

static struct refd_update updates[2] = { { .name = "refs/heads/a" },
	{ .name = "refs/heads/b" } };

static const struct refd_request both = { .git_dir = "/r",
	.updates = updates,
	.nr_updates = 2 };

/* Sends the updates to the server of the test. */
static struct refd_answer send_both(int ms)
{
	struct refd *r = refd_new(fake.path);
	struct refd_request req = both;
	struct refd_answer ans;

	ck_assert_int_eq(refd_connect(r, 60000), 0);
	connect_call(r, &req, clock_deadline_ms(ms), 20, &ans);
	refd_free(r);
	fake_stop(&fake);
	return ans;
}

static struct refd_answer call(const char *steps, int ms)
{
	fake_start(&fake, steps);
	return send_both(ms);
}

static struct refd_answer call_script(void (*script)(struct fake *f), int ms)
{
	fake_start_script(&fake, script);
	return send_both(ms);
}

/* After the first busy, the client asks whether this node follows. The server
 * checks the id and the deadline. */
TEST(test_busy)
{
	struct refd_answer ans =
	    call("serve transaction=busy status=role:leader transaction=ok",
		60000);

	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}

/* Its lease is over, and then another node leads. */
static void follows_later(struct fake *f)
{
	struct refd_request got;
	unsigned asked = 0, nr;

	fake_serve(f);
	for (nr = 0; asked < 2 && nr < 100; nr++) {
		fake_read(f, &got);
		asked += got.verb == REFD_VERB_STATUS;
		fake_answer_as(f, &got,
		    got.verb != REFD_VERB_STATUS ? "busy" :
			asked == 1               ? "role:waits" :
						   "role:follower");
		refd_request_done(&got);
	}
}

/* Its answer names the leader, and would be the same for a minute. */
TEST(test_follower)
{
	struct refd_answer ans =
	    call("serve transaction=busy status=role:follower", 60000);

	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
	ans = call_script(follows_later, 20000);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
}

TEST(test_drains)
{
	struct refd_answer ans =
	    call("serve transaction=[busy,busy] status=role:leader "
		 "transaction=[aborted,busy] transaction=ok",
		60000);

	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}

#define BUSY_MS 1550 /* 50, and twice as long each time */

/* Each attempt of a group costs work on all nodes. */
TEST(test_pace)
{
	uint64_t began = clock_now_ms();
	struct refd_answer ans =
	    call("serve transaction=[busy,busy] status=role:leader "
		 "transaction=[busy,busy] transaction=[busy,busy] "
		 "transaction=[busy,busy] transaction=[busy,busy] "
		 "transaction=ok",
		60000);

	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	ck_assert_uint_ge(clock_now_ms() - began, BUSY_MS);
	refd_answer_done(&ans);
}

static void is_busy_to_the_end(struct fake *f)
{
	struct refd_request got;
	char c;

	fake_play(f, "serve transaction=[busy,busy] status=role:leader");
	do {
		fake_read(f, &got);
		fake_expect(f, got.deadline_ms >= 20, "no time is left");
		fake_answer_as(f, &got, "[busy,busy]");
		refd_request_done(&got);
	} while (recv(f->conn, &c, 1, MSG_PEEK) == 1);
}

/* No attempt comes too late for an answer. */
TEST(test_last_attempt)
{
	struct refd_answer ans = call_script(is_busy_to_the_end, 1500);

	ck_assert_int_eq(ans.results[0].status, REFD_BUSY);
	refd_answer_done(&ans);
}

/* These are final answers, and no request may follow. */
TEST(test_not_put_off, .times = 3)
{
	static const char *const steps[] = { "serve transaction=[ok,busy]",
		"serve transaction=[stale,busy]",
		"serve transaction=[aborted,aborted]" };
	struct refd_answer ans = call(steps[_i], 60000);

	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, _i ? REFD_REJECTED : REFD_PARTIAL);
	refd_answer_done(&ans);
}

TEST(test_no_answer)
{
	struct refd_answer ans = call("serve transaction end", 20);

	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert_int_eq(ans.results[0].status, REFD_UNKNOWN);
	refd_answer_done(&ans);
}

/* The caller may ask for something else before it reports. */
TEST(test_reason_outlives_the_next_call)
{
	struct refd_request req = both;
	struct refd_answer ans;
	struct refd *r;

	req.verb = REFD_VERB_SESSION;
	fake_start(&fake, "serve session end");
	r = refd_new(fake.path);
	ck_assert_int_eq(refd_connect(r, 60000), 0);
	connect_call(r, &req, clock_deadline_ms(20), 20, &ans);
	fake_stop(&fake);
	ck_assert_int_lt(refd_connect(r, 20), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_DEADLINE);
	ck_assert_msg(strstr(ans.text, "no answer in time") != NULL, "%s",
	    ans.text);
	refd_answer_done(&ans);
	refd_free(r);
}

static void is_busy_when_time_is_over(struct fake *f)
{
	fake_play(f, "serve session=prepared commit");
	clock_nap(50, CLOCK_FOREVER);
	fake_play(f, "later:commit=busy end");
}

/* An answer may come late, so it is awaited. But the daemon does what it was
 * told even if nobody waits any more, so nothing is sent again then. */
TEST(test_end_in_time)
{
	struct refd_request req = both;
	struct refd_answer ans;
	struct refd *r;

	req.verb = REFD_VERB_SESSION;
	fake_start_script(&fake, is_busy_when_time_is_over);
	r = refd_new(fake.path);
	ck_assert_int_eq(refd_connect(r, 60000), 0);
	ck_assert_int_eq(refd_call(r, &req, 60000, &ans), 0);
	refd_answer_done(&ans);
	connect_end_session(r, &req, REFD_VERB_COMMIT, clock_deadline_ms(20),
	    60000, &ans);
	refd_free(r);
	fake_stop(&fake);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
}
