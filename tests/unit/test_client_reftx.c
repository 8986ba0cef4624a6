/*
 * Proves which calls the reference-transaction hook gets from "refd update", in
 * which order and with which input, against a server with a script. If the hook
 * says no, no update is committed. If another call with the id may have
 * committed, nobody hears of an abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/update_rig.h"

/* The hook appends its phase and its input to ../log, and says no in phase
 * NO. */
static void make_hook(const char *no)
{
	tmp_run("printf '#!/bin/sh\\necho \"[$1]\" >>../log; cat >>../log\\n"
		"test \"$1\" != \"%s\"\\n' "
		">repo/.git/hooks/reference-transaction && "
		"chmod +x repo/.git/hooks/reference-transaction",
	    no);
}

static void check_log(const char *wanted)
{
	struct text got = { 0 };

	ck_assert_int_eq(text_read_file(&got, "../log", 1 << 20), 0);
	ck_assert_str_eq(got.data, wanted);
	text_done(&got);
}

/* ---- the hook ---- */

CASE(.setup = update_setup, .teardown = update_teardown, .seconds = 30);

TEST(test_hook)
{
	char *argv[] = { "update", "HEAD", A, NULL };

	make_hook("none");
	update_start(update_commits, argv);
	update_end(0);
	check_log("[preparing]\n" Z " " A " HEAD\n"
		  "[prepared]\n" Z " " A " refs/heads/main\n"
		  "[committed]\n" Z " " A " refs/heads/main\n");
}

TEST(test_hook_order)
{
	make_hook("none");
	update_start_stdin(update_commits);
	update_put(
	    "update HEAD " A " " B "\ncreate refs/heads/a " A "\n"
	    "option no-deref\nsymref-update refs/heads/s refs/heads/t ref "
	    "refs/heads/u\n");
	update_end(0);
	check_log("[preparing]\n" B " " A " HEAD\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n"
		  "[prepared]\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n" B " " A
		  " refs/heads/main\n"
		  "[committed]\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n" B " " A
		  " refs/heads/main\n");
}

static void rewrites_packed(struct fake *f)
{
	fake_serve(f);
	update_take_session(f, true);
	update_take_end(f, REFD_VERB_COMMIT);
}

TEST(test_hook_packed)
{
	char *argv[] = { "update", "-d", "refs/heads/a", B, NULL };

	make_hook("none");
	update_start(rewrites_packed, argv);
	update_end(0);
	check_log("[preparing]\n" B " " Z " refs/heads/a\n"
		  "[preparing]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" B " " Z " refs/heads/a\n"
		  "[committed]\n" Z " " Z " refs/heads/a\n"
		  "[committed]\n" B " " Z " refs/heads/a\n");
}

TEST(test_hook_not_packed)
{
	char *argv[] = { "update", "-d", "refs/heads/a", NULL };

	make_hook("none");
	update_start(update_commits, argv);
	update_end(0);
	check_log("[preparing]\n" Z " " Z " refs/heads/a\n"
		  "[aborted]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" Z " " Z " refs/heads/a\n"
		  "[committed]\n" Z " " Z " refs/heads/a\n");
}

TEST(test_hook_says_no_first)
{
	char *argv[] = { "update", "refs/heads/a", A, NULL };

	make_hook("preparing");
	update_start(update_only_greets, argv);
	update_expect("fatal: in 'preparing' phase, update aborted by the "
		      "reference-transaction hook");
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[aborted]\n" Z " " A " refs/heads/a\n");
}

TEST(test_hook_says_no)
{
	char *argv[] = { "update", "-d", "HEAD", NULL };

	make_hook("prepared");
	update_start(update_aborts, argv);
	update_expect("fatal: in 'prepared' phase, update aborted by the "
		      "reference-transaction hook");
	update_end(128);
	check_log("[preparing]\n" Z " " Z " HEAD\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n"
		  "[prepared]\n" Z " " Z " refs/heads/main\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n");
}

/* The daemon ends after COMMIT, and the next daemon no longer knows the
 * transaction. */
FAKE_SCRIPT(forgets_the_commit,
    "serve session=prepared commit serve query=expired");

FAKE_SCRIPT(cannot_tell, "serve session=prepared commit=unknown query=expired");

/* Neither "committed" nor "aborted". The user hears which daemon to ask. */
TEST(test_hook_hears_no_unknown_outcome, .times = 2)
{
	static char id[] = "0123456789abcdef0123456789abcdef";
	char *argv[] = { "update", "--txid", id, "refs/heads/a", A, NULL };
	char *line;

	make_hook("none");
	update_start(_i == 0 ? forgets_the_commit : cannot_tell, argv);
	line = xasprintf("fatal: outcome unknown (transaction %s): ask with "
			 "\"refd query --socket %s/sock %s\"",
	    id, tmp_root, id);
	update_expect(line);
	free(line);
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[prepared]\n" Z " " A " refs/heads/a\n");
}

FAKE_SCRIPT(knows_the_id, "serve session=ok");

static char txid[] = "0123456789abcdef0123456789abcdef";

/* Nothing is prepared, because an earlier call with the id has done it. */
TEST(test_hook_and_an_id_of_before)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };

	make_hook("prepared");
	update_start(knows_the_id, argv);
	update_end(0);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n");
}

TEST(test_hook_hears_no_abort_of_what_is_done)
{
	char *argv[] = { "update", "--txid", txid, "--stdin", NULL };

	make_hook("none");
	update_start(knows_the_id, argv);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put("abort\n");
	update_expect_start("fatal: another call with this id has done it");
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n");
}

static enum refd_answer_kind of_id;

static void is_asked_about_the_id(struct fake *f)
{
	fake_serve(f);
	update_take_query(f, of_id);
}

static void decline(enum refd_answer_kind kind, const char *said)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };

	of_id = kind;
	make_hook("preparing");
	update_start(is_asked_about_the_id, argv);
	update_expect_start(said);
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[aborted]\n" Z " " A " refs/heads/a\n");
}

/* The hook declines this call, and an earlier one may have done it. */
TEST(test_hook_declines_what_may_be_done)
{
	decline(REFD_ANSWER_RESULTS, "fatal: outcome unknown (transaction ");
}

TEST(test_hook_declines_a_new_id)
{
	decline(REFD_ANSWER_NEVER_SEEN, "fatal: in 'preparing' phase, ");
}

static void is_lost(struct fake *f, const struct refd_request *req)
{
	(void)req;
	fake_serve(f);
}

static void fails(struct fake *f, const struct refd_request *req)
{
	fake_refuse(f, req, REFD_IO, NULL);
}

/* The session has timed out. Another call has sent it again, and it is not
 * prepared yet. */
static void is_early(struct fake *f, const struct refd_request *req)
{
	fake_refuse(f, req, REFD_BADREQUEST, NULL);
}

/* The session has timed out, so the id has no outcome. */
static void is_late(struct fake *f, const struct refd_request *req)
{
	struct refd_result one = { .name = "refs/heads/a",
		.status = REFD_DEADLINE };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.request_id = req->request_id,
		.txid = req->txid,
		.results = &one,
		.nr_results = 1,
		.nr_updates = 1,
		.outcome = REFD_REJECTED };

	fake_answer(f, &ans);
}

/* Another call may have the session, too, and commit it. */
static const struct {
	enum refd_verb verb;
	void (*answer)(struct fake *f, const struct refd_request *req);
	enum refd_answer_kind of_id;
} ends[] = {
	{ REFD_VERB_ABORT, fails, REFD_ANSWER_PENDING },
	{ REFD_VERB_ABORT, fails, REFD_ANSWER_RESULTS },
	{ REFD_VERB_ABORT, is_lost, REFD_ANSWER_PENDING },
	{ REFD_VERB_ABORT, is_late, REFD_ANSWER_PENDING },
	{ REFD_VERB_COMMIT, fails, REFD_ANSWER_RESULTS },
	{ REFD_VERB_COMMIT, is_early, REFD_ANSWER_PENDING },
	{ REFD_VERB_COMMIT, is_late, REFD_ANSWER_PENDING },
	{ REFD_VERB_ABORT, fails, REFD_ANSWER_NEVER_SEEN },
	{ REFD_VERB_ABORT, is_lost, REFD_ANSWER_NEVER_SEEN },
	{ REFD_VERB_COMMIT, is_late, REFD_ANSWER_NEVER_SEEN },
};

#define NR_UNKNOWN_ENDS 7
#define NR_ENDS         (int)(sizeof(ends) / sizeof(ends[0]))

static int end_nr;

static void ends_in_vain(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	update_take_session(f, false);
	update_take(f, ends[end_nr].verb, &req);
	ends[end_nr].answer(f, &req);
	refd_request_done(&req);
	update_take_query(f, ends[end_nr].of_id);
}

static void prepare(int i, const char *no)
{
	char *argv[] = { "update", "--txid", txid, "--stdin", NULL };

	end_nr = i;
	make_hook(no);
	update_start(ends_in_vain, argv);
	update_put("create refs/heads/a " A "\nprepare\n");
}

static void end_in_vain(int i)
{
	prepare(i, "none");
	update_expect("prepare: ok");
	update_put(ends[i].verb == REFD_VERB_ABORT ? "abort\n" : "commit\n");
}

#define HELD                                                                   \
	"[preparing]\n" Z " " A " refs/heads/a\n"                              \
	"[prepared]\n" Z " " A " refs/heads/a\n"

TEST(test_hook_hears_no_end_in_vain, .times = NR_UNKNOWN_ENDS)
{
	end_in_vain(_i);
	update_expect_start("fatal: outcome unknown (transaction ");
	update_end(128);
	check_log(HELD);
}

TEST(test_hook_hears_an_abort_of_an_unseen_id, .from = NR_UNKNOWN_ENDS,
    .times = NR_ENDS - NR_UNKNOWN_ENDS)
{
	bool is_abort = ends[_i].verb == REFD_VERB_ABORT;

	end_in_vain(_i);
	update_expect_start(is_abort ? "abort: ok" : "error: ");
	update_end(is_abort ? 0 : 75);
	check_log(HELD "[aborted]\n" Z " " A " refs/heads/a\n");
}

/* The user hears why there was an abort, too. */
TEST(test_unknown_abort_hides_no_reason, .times = 2)
{
	static const char *const why[] = { "fatal: in 'prepared' phase, ",
		"fatal: prepared transactions " };

	prepare(0, _i == 0 ? "prepared" : "none");
	if (_i == 1) {
		update_expect("prepare: ok");
		update_put("create refs/heads/b " A "\n");
	}
	update_expect_start("fatal: outcome unknown (transaction ");
	update_expect_start(why[_i]);
	update_end(128);
	check_log(HELD);
}

/* Called without a session, because no lock was needed. */
TEST(test_hook_without_daemon)
{
	make_hook("none");
	update_start_stdin(update_only_greets);
	update_put("start\ncreate refs/heads/a " A "\nabort\nstart\n");
	update_expect("start: ok");
	update_expect("abort: ok");
	update_expect("start: ok");
	update_end(0);
	check_log("[aborted]\n" Z " " A " refs/heads/a\n[aborted]\n");
}

FAKE_SCRIPT(takes_it_whole, "serve transaction=ok");

/* git's own hint, and no session. */
TEST(test_hook_not_executable)
{
	char *argv[] = { "update", "refs/heads/a", A, NULL };

	make_hook("prepared");
	tmp_run("chmod -x repo/.git/hooks/reference-transaction");
	update_start(takes_it_whole, argv);
	update_expect("hint: The '.git/hooks/reference-transaction' hook was "
		      "ignored because it's not set as executable.");
	update_expect("hint: You can disable this warning with `git config set "
		      "advice.ignoredHook false`.");
	update_end(0);
}
