/*
 * Proves what the proc-receive hook does with a push, from receive-pack's
 * packets to its own: one transaction for the whole push, a line for each
 * ref in input order, nothing applied of a push that can't be reported, git
 * in its place whenever a rule of git's stands in the way, and never once
 * something was submitted.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/command.h"
#include "client/push.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct pkt_buf in;
static struct fake fake;
static bool serving;

static void setup(void)
{
	tmp_setup();
	memset(&in, 0, sizeof(in));
	serving = false;
	unsetenv("GIT_COMMITTER_DATE");
	unsetenv("GIT_SHALLOW_FILE");
	setenv("REFD_SOCKET", "/nowhere/refd.sock", 1);
	tmp_run("git init -q -b main --bare repo.git && "
		"rm -f repo.git/hooks/*");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo.git"), 0);
	setenv("GIT_DIR", ".", 1);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	unsetenv("GIT_DIR");
	if (serving)
		fake_stop(&fake);
	tmp_teardown();
}

static void serve(void (*script)(struct fake *f))
{
	fake_start(&fake, script);
	serving = true;
	setenv("REFD_SOCKET", fake.path, 1);
}

static void begin(bool atomic)
{
	static const char with[] = "version=1\0atomic";

	pkt_put(&in, with, atomic ? sizeof(with) - 1 : 9);
	pkt_flush(&in);
}

static void put(const char *command)
{
	pkt_put(&in, command, strlen(command));
}

/* Runs the hook on what was put; its report's packets, a line each. */
static char *run(void)
{
	int ends[2], size = 1 << 20;
	struct text lines = { 0 }, out = { 0 };
	struct pkt pkt;
	size_t at = 17; /* the greeting */
	long taken;

	pkt_flush(&in);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	ck_assert_int_eq(write(ends[0], in.data, in.len), (ssize_t)in.len);
	ck_assert_int_eq(shutdown(ends[0], SHUT_WR), 0);
	ck_assert_int_ge(dup2(ends[1], 0), 0);
	ck_assert_int_ge(dup2(ends[1], 1), 0);
	close(ends[1]);
	ck_assert_int_eq(command_proc_receive(1, NULL), 0);
	close(0);
	close(1);
	ck_assert_int_eq(text_read(&out, ends[0]), 0);
	close(ends[0]);
	ck_assert_int_eq(strncmp(out.data, "000dversion=10000", 17), 0);
	while ((taken = pkt_parse(out.data + at, out.len - at, &pkt)) > 0) {
		at += (size_t)taken;
		if (pkt.kind == PKT_FLUSH)
			break;
		text_add(&lines, pkt.data, pkt.len);
		text_addc(&lines, '\n');
	}
	ck_assert_uint_eq(at, out.len);
	text_done(&out);
	pkt_buf_done(&in);
	text_adds(&lines, "");
	return lines.data;
}

static void expect(const char *wanted)
{
	char *got = run();

	ck_assert_str_eq(got, wanted);
	free(got);
}

#define FALLS "ok refs/heads/a\noption fall-through\n"

/* ---- served ---- */

static void takes_all(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.push && !got.atomic, "not as a push");
	fake_expect(f, !strcmp(got.message, "push"), "message");
	fake_expect(f,
	    got.committer &&
		!strncmp(got.committer, "C O Mitter <committer@example.com> ",
		    35),
	    "committer");
	fake_expect(f, got.nr_updates == 3, "not all of it");
	fake_expect(f, got.updates[0].action == REFD_CREATE, "no create");
	fake_expect(f,
	    got.updates[1].action == REFD_DELETE && got.updates[1].has_old,
	    "no delete");
	fake_expect(f,
	    got.updates[2].action == REFD_UPDATE && got.updates[2].has_old,
	    "no update");
	fake_expect(f, got.deadline_ms > 0 && got.deadline_ms < 60000,
	    "deadline");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_one_transaction)
{
	serve(takes_all);
	begin(false);
	put(Z " " A " refs/heads/c");
	put(A " " Z " refs/heads/a");
	put(A " " B " refs/heads/b");
	expect("ok refs/heads/c\nok refs/heads/a\nok refs/heads/b\n");
}
END_TEST

static void answer_each(struct fake *f, const enum refd_status *status,
    enum refd_outcome outcome)
{
	struct refd_request got;
	struct refd_result results[8] = { 0 };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.results = results,
		.outcome = outcome };
	size_t i;

	fake_serve(f);
	fake_read(f, &got);
	for (i = 0; i < got.nr_updates; i++) {
		results[i].name = got.updates[i].name;
		results[i].status = status[i];
	}
	ans.request_id = got.request_id;
	ans.txid = got.txid;
	ans.nr_results = ans.nr_updates = got.nr_updates;
	fake_answer(f, &ans);
	refd_request_done(&got);
}

static void takes_some(struct fake *f)
{
	static const enum refd_status each[] = { REFD_CONFLICT, REFD_OK,
		REFD_NOSPACE };

	answer_each(f, each, REFD_PARTIAL);
}

/* The one with a bad name is not asked about, and keeps its place. */
START_TEST(test_some_fail)
{
	serve(takes_some);
	begin(false);
	put(Z " " A " refs/heads/c");
	put(Z " " A " refs/heads/x..y");
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	expect("ng refs/heads/c refname conflict\n"
	       "ng refs/heads/x..y funny refname\n"
	       "ok refs/heads/a\n"
	       "ng refs/heads/b failed to update ref: no space left on the "
	       "device\n");
}
END_TEST

static void rejects_all(struct fake *f)
{
	static const enum refd_status each[] = { REFD_ABORTED, REFD_EXISTS };

	answer_each(f, each, REFD_REJECTED);
}

START_TEST(test_atomic)
{
	serve(rejects_all);
	begin(true);
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	expect("ng refs/heads/a atomic transaction failed\n"
	       "ng refs/heads/b reference already exists\n");
}
END_TEST

/* ---- after submission ---- */

static void knows_half(struct fake *f)
{
	static const enum refd_status each[] = { REFD_OK, REFD_UNKNOWN };

	answer_each(f, each, REFD_OUTCOME_UNKNOWN);
}

START_TEST(test_unknown)
{
	char *got;

	serve(knows_half);
	begin(false);
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	got = run();
	ck_assert_ptr_nonnull(strstr(got,
	    "ok refs/heads/a\n"
	    "ng refs/heads/b refd: outcome unknown (transaction "));
	ck_assert_ptr_nonnull(strstr(got, "ask with \"refd query "));
	free(got);
}
END_TEST

static void forgets(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	refd_request_done(&got);
	fake_serve(f);
	fake_read(f, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_EXPIRED);
	refd_request_done(&got);
}

START_TEST(test_lost)
{
	char *got;

	serve(forgets);
	begin(false);
	put(Z " " A " refs/heads/a");
	got = run();
	ck_assert_ptr_nonnull(strstr(got, "refd: outcome unknown"));
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}
END_TEST

/* Not even for "unsupported", when something was done all the same. */
static void does_half(struct fake *f)
{
	static const enum refd_status each[] = { REFD_OK, REFD_UNSUPPORTED };

	answer_each(f, each, REFD_PARTIAL);
}

START_TEST(test_half_unsupported)
{
	char *got;

	serve(does_half);
	begin(false);
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	got = run();
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}
END_TEST

static void supports_none(struct fake *f)
{
	static const enum refd_status each[] = { REFD_UNSUPPORTED };

	answer_each(f, each, REFD_REJECTED);
}

static void refuse_with(struct fake *f, enum refd_status status)
{
	struct refd_request got;
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = "because" };

	fake_serve(f);
	fake_read(f, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	fake_answer(f, &no);
	refd_request_done(&got);
}

static void supports_nothing(struct fake *f)
{
	refuse_with(f, REFD_UNSUPPORTED);
}

static void denies(struct fake *f)
{
	refuse_with(f, REFD_DENIED);
}

START_TEST(test_refused)
{
	static const struct {
		void (*script)(struct fake *f);
		const char *report;
	} cases[] = {
		{ supports_none, FALLS },
		{ supports_nothing, FALLS },
		{ denies,
		    "ng refs/heads/a failed to update ref: refd: "
		    "denied: because\n" },
	};

	serve(cases[_i].script);
	begin(false);
	put(Z " " A " refs/heads/a");
	expect(cases[_i].report);
}
END_TEST

/* It takes one update, so it must hear of neither. */
static void takes_little(struct fake *f)
{
	struct refd_hello hello = { .version = REFD_PROTOCOL_VERSION,
		.state = REFD_SERVING,
		.pid = 1,
		.software = "fake" };
	struct pkt_buf buf = { 0 };
	char c;

	hello.max_updates = 1;
	hello.max_bytes = REFD_TXN_BYTES_MAX;
	fake_accept(f);
	refd_hello_encode(&hello, &buf);
	fake_send(f, buf.data, buf.len);
	pkt_buf_done(&buf);
	fake_expect(f, recv(f->conn, &c, 1, 0) == 0, "something was sent");
}

START_TEST(test_too_large)
{
	serve(takes_little);
	begin(false);
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	expect(FALLS "ok refs/heads/b\noption fall-through\n");
}
END_TEST

/* ---- never submitted: the daemon of these tests is away ---- */

START_TEST(test_nothing_applied)
{
	static const char other[] =
	    "ng refs/heads/a another ref of the push has a name that can't "
	    "be reported\n";
	static const char twice[] =
	    "ng refs/heads/a multiple updates for ref 'refs/heads/a' not "
	    "allowed\n"
	    "ng refs/heads/b multiple updates for ref 'refs/heads/a' not "
	    "allowed\n"
	    "ng refs/heads/a multiple updates for ref 'refs/heads/a' not "
	    "allowed\n";

	begin(_i == 3);
	put(Z " " A " refs/heads/a");
	switch (_i) {
	case 0:
		put(Z " " A " refs/heads/b c");
		expect(other);
		break;
	case 1:
		put(Z " " A " refs/heads/b\nok refs/heads/c");
		expect(other);
		break;
	case 2:
		put(Z " " A " refs/heads/b");
		put(Z " " B " refs/heads/a");
		expect(twice);
		break;
	case 3:
		put(Z " " A " HEAD");
		expect("ng refs/heads/a atomic push failure\n"
		       "ng HEAD funny refname\n");
		break;
	}
}
END_TEST

START_TEST(test_away)
{
	begin(false);
	put(Z " " A " refs/heads/a");
	expect(FALLS);
}
END_TEST

START_TEST(test_native)
{
	tmp_run("git -C repo.git config receive.denyDeletes true && "
		"git -C repo.git config refd.fallback refuse");
	begin(false);
	put(Z " " A " refs/heads/a");
	expect(FALLS);
}
END_TEST

START_TEST(test_told_to_refuse)
{
	tmp_run("git -C repo.git config refd.fallback refuse");
	begin(false);
	put(Z " " A " refs/heads/a");
	expect("ng refs/heads/a failed to update ref: refd: the daemon is "
	       "away\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_hook");
	TCase *tc = tcase_create("hook");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_one_transaction);
	tcase_add_test(tc, test_some_fail);
	tcase_add_test(tc, test_atomic);
	tcase_add_test(tc, test_unknown);
	tcase_add_test(tc, test_lost);
	tcase_add_test(tc, test_half_unsupported);
	tcase_add_test(tc, test_too_large);
	tcase_add_loop_test(tc, test_refused, 0, 3);
	tcase_add_loop_test(tc, test_nothing_applied, 0, 4);
	tcase_add_test(tc, test_away);
	tcase_add_test(tc, test_native);
	tcase_add_test(tc, test_told_to_refuse);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
