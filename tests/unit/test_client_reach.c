/*
 * Proves where the client looks for the daemon and when it may leave the work
 * to git: never while refs may await replay, never while the daemon only
 * recovers, never where it was told to refuse; and that refusals for want of
 * room are tried again while there is time.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/librefd/conn.h"
#include "client/reach.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/tmp.h"

static struct gitdir gd;
static char sock[600];
static struct fake fake;

static void setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	tmp_mkdir("repo");
	memset(&gd, 0, sizeof(gd));
	gd.common = xasprintf("%s/repo", tmp_root);
	gd.path = xstrdup(gd.common);
	snprintf(sock, sizeof(sock), "%s/sock", tmp_root);
}

static void teardown(void)
{
	gitdir_done(&gd);
	tmp_teardown();
}

static void check_socket(const char *option, const char *list,
    const char *wanted)
{
	struct gitconfig config = { 0 };
	char *got;

	if (list)
		text_add(&config.list, list, strlen(list) + 1);
	got = reach_socket(option, &config);
	ck_assert_str_eq(got, wanted);
	free(got);
	gitconfig_done(&config);
}

START_TEST(test_socket)
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
END_TEST

/* ---- what git may do ---- */

static void mark_replayed(const char *fmt)
{
	tmp_run("id=$(cat /proc/sys/kernel/random/boot_id); printf \"%s\" "
		"\"$id\" >sock.replayed",
	    fmt);
}

START_TEST(test_bypass)
{
	/* Never served: there is nothing that could await replay. */
	ck_assert(reach_may_bypass(sock, &gd));
	tmp_put("repo/refd/enabled", "");
	ck_assert(reach_may_bypass(sock, &gd));
	tmp_put("repo/refd/id", "x");
	ck_assert(!reach_may_bypass(sock, &gd));

	mark_replayed("%s\\n");
	ck_assert(reach_may_bypass(sock, &gd));
	mark_replayed("%s");
	ck_assert(reach_may_bypass(sock, &gd));
	/* Another boot's, half of one, an empty one. */
	mark_replayed("0%s");
	ck_assert(!reach_may_bypass(sock, &gd));
	mark_replayed("%.20s");
	ck_assert(!reach_may_bypass(sock, &gd));
	mark_replayed("%sx");
	ck_assert(!reach_may_bypass(sock, &gd));
	tmp_put("sock.replayed", "");
	ck_assert(!reach_may_bypass(sock, &gd));
}
END_TEST

static enum reached reach(enum fallback fallback, int timeout_ms,
    const char *says)
{
	struct refd *r = refd_new(sock);
	struct text why = { 0 };
	enum reached reached;

	reached = reach_daemon(r, sock, fallback, &gd,
	    refd_deadline_ms(timeout_ms), &why);
	if (says)
		ck_assert_msg(strstr(why.data, says), "%s", why.data);
	text_done(&why);
	refd_free(r);
	return reached;
}

START_TEST(test_away)
{
	ck_assert_int_eq(reach(FALLBACK_REFUSE, 10000, "refd.fallback"),
	    REACHED_NOTHING);
	ck_assert_int_eq(reach(FALLBACK_GIT, 10000, sock), REACHED_NOBODY);
	/* With refs that may await replay it waits, and then refuses. */
	tmp_put("repo/refd/id", "x");
	ck_assert_int_eq(reach(FALLBACK_GIT, 60, "await recovery"),
	    REACHED_NOTHING);
	mark_replayed("%s");
	ck_assert_int_eq(reach(FALLBACK_GIT, 10000, sock), REACHED_NOBODY);
}
END_TEST

static void recovers(struct fake *f)
{
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_serve(f);
}

START_TEST(test_waits_for_recovery)
{
	fake_start(&fake, recovers);
	ck_assert_int_eq(reach(FALLBACK_GIT, 10000, NULL), REACHED);
	fake_stop(&fake);
}
END_TEST

static void recovers_and_dies(struct fake *f)
{
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_stop_listening(f);
}

START_TEST(test_recovery_never_ends)
{
	mark_replayed("0%s");
	tmp_put("repo/refd/id", "x");
	fake_start(&fake, recovers_and_dies);
	ck_assert_int_eq(reach(FALLBACK_GIT, 200, NULL), REACHED_NOTHING);
	fake_stop(&fake);
}
END_TEST

static void is_something_else(struct fake *f)
{
	fake_accept(f);
	fake_send(f, "220 smtp\r\n", 10);
}

START_TEST(test_something_else)
{
	fake_start(&fake, is_something_else);
	ck_assert_int_eq(reach(FALLBACK_GIT, 10000, sock), REACHED_NOTHING);
	fake_stop(&fake);
}
END_TEST

/* ---- a transaction ---- */

static struct refd_update update = { .name = "refs/heads/a" };

static struct refd_answer call(void (*script)(struct fake *f), int ms)
{
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.updates = &update,
		.nr_updates = 1 };
	struct refd_answer ans;
	struct refd *r;

	fake_start(&fake, script);
	r = refd_new(fake.path);
	ck_assert_int_eq(refd_connect(r, 5000), 0);
	reach_call(r, &req, refd_deadline_ms(ms), 20, &ans);
	refd_free(r);
	fake_stop(&fake);
	return ans;
}

static void is_busy_once(struct fake *f)
{
	struct refd_request got;
	struct refd_txid first;
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY };

	fake_serve(f);
	fake_read(f, &got);
	first = got.txid;
	no.request_id = got.request_id;
	fake_answer(f, &no);
	refd_request_done(&got);
	fake_read(f, &got);
	fake_expect(f, refd_txid_eq(&got.txid, &first), "another id");
	fake_expect(f, got.deadline_ms > 0 && got.deadline_ms <= 10000,
	    "more time than there is");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_busy)
{
	struct refd_answer ans = call(is_busy_once, 10000);

	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}
END_TEST

static void says_nothing(struct fake *f)
{
	struct refd_request got;
	char c;

	fake_serve(f);
	fake_read(f, &got);
	refd_request_done(&got);
	fake_expect(f, recv(f->conn, &c, 1, 0) == 0, "more was said");
}

START_TEST(test_no_answer)
{
	struct refd_answer ans = call(says_nothing, 20);

	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert_int_eq(ans.results[0].status, REFD_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_reach");
	TCase *tc = tcase_create("reach");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_socket);
	tcase_add_test(tc, test_bypass);
	tcase_add_test(tc, test_away);
	tcase_add_test(tc, test_waits_for_recovery);
	tcase_add_test(tc, test_recovery_never_ends);
	tcase_add_test(tc, test_something_else);
	tcase_add_test(tc, test_busy);
	tcase_add_test(tc, test_no_answer);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
