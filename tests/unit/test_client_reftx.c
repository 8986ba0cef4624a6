/*
 * Proves which calls the reference-transaction hook gets from "refd update", in
 * which order and with which input, against a server with a script. If the hook
 * says no, no update is committed. If another call with the id may have
 * committed, nobody hears of an abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	update_start(UPDATE_COMMITS, argv);
	update_end(0);
	check_log("[preparing]\n" Z " " A " HEAD\n"
		  "[prepared]\n" Z " " A " refs/heads/main\n"
		  "[committed]\n" Z " " A " refs/heads/main\n");
}

TEST(test_hook_order)
{
	make_hook("none");
	update_start_stdin(UPDATE_COMMITS);
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

TEST(test_hook_packed)
{
	char *argv[] = { "update", "-d", "refs/heads/a", B, NULL };

	make_hook("none");
	update_start("serve session=prepared-packed commit=done", argv);
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
	update_start(UPDATE_COMMITS, argv);
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
	update_start("serve", argv);
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
	update_start(UPDATE_ABORTS, argv);
	update_expect("fatal: in 'prepared' phase, update aborted by the "
		      "reference-transaction hook");
	update_end(128);
	check_log("[preparing]\n" Z " " Z " HEAD\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n"
		  "[prepared]\n" Z " " Z " refs/heads/main\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n");
}

/* Neither "committed" nor "aborted". The user hears which daemon to ask. */
TEST(test_hook_hears_no_unknown_outcome, .times = 2)
{
	static const char *const steps[] = {
		/* The daemon ends after COMMIT, and the next daemon no longer
		 * knows the transaction. */
		"serve session=prepared commit serve query=expired",
		"serve session=prepared commit=unknown query=expired",
	};
	static char id[] = "0123456789abcdef0123456789abcdef";
	char *argv[] = { "update", "--txid", id, "refs/heads/a", A, NULL };
	char *line;

	make_hook("none");
	update_start(steps[_i], argv);
	line = xasprintf("fatal: outcome unknown (transaction %s): ask with "
			 "\"refd query --socket %s/sock %s\"",
	    id, tmp_root, id);
	update_expect(line);
	free(line);
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[prepared]\n" Z " " A " refs/heads/a\n");
}

static char txid[] = "0123456789abcdef0123456789abcdef";

/* Nothing is prepared, because an earlier call with the id has done it. */
TEST(test_hook_and_an_id_of_before)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };

	make_hook("prepared");
	update_start("serve session=ok", argv);
	update_end(0);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n");
}

TEST(test_hook_hears_no_abort_of_what_is_done)
{
	char *argv[] = { "update", "--txid", txid, "--stdin", NULL };

	make_hook("none");
	update_start("serve session=ok", argv);
	update_ask("create refs/heads/a " A "\nprepare\n", "prepare: ok");
	update_put("abort\n");
	update_expect_start("fatal: another call with this id has done it");
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n");
}

/* The server has STEPS, and the program says SAID. */
static void decline(const char *steps, const char *said)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };

	make_hook("preparing");
	update_start(steps, argv);
	update_expect_start(said);
	update_end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[aborted]\n" Z " " A " refs/heads/a\n");
}

/* The hook declines this call, but an earlier call may have succeeded. */
TEST(test_hook_declines_what_may_be_done)
{
	decline("serve query=done", "fatal: outcome unknown (transaction ");
}

TEST(test_hook_declines_a_new_id)
{
	decline("serve query=never-seen", "fatal: in 'preparing' phase, ");
}

/* Another call may have the session, too, and commit it. After "badrequest" the
 * session has timed out, and another call has sent it again, and it is not
 * prepared yet. After "deadline" it has timed out, so the id has no outcome. */
static const char *const ends[] = {
	"serve session=prepared abort=io query=pending",
	"serve session=prepared abort=io query=done",
	"serve session=prepared abort serve query=pending",
	"serve session=prepared abort=[deadline] query=pending",
	"serve session=prepared commit=io query=done",
	"serve session=prepared commit=badrequest query=pending",
	"serve session=prepared commit=[deadline] query=pending",
	"serve session=prepared abort=io query=never-seen",
	"serve session=prepared abort serve query=never-seen",
	"serve session=prepared commit=[deadline] query=never-seen",
};

#define NR_UNKNOWN_ENDS 7
#define NR_ENDS         (int)(sizeof(ends) / sizeof(ends[0]))

static bool is_abort(int i)
{
	return strstr(ends[i], "abort") != NULL;
}

static void prepare(int i, const char *no)
{
	char *argv[] = { "update", "--txid", txid, "--stdin", NULL };

	make_hook(no);
	update_start(ends[i], argv);
	update_put("create refs/heads/a " A "\nprepare\n");
}

static void end_in_vain(int i)
{
	prepare(i, "none");
	update_expect("prepare: ok");
	update_put(is_abort(i) ? "abort\n" : "commit\n");
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
	end_in_vain(_i);
	update_expect_start(is_abort(_i) ? "abort: ok" : "error: ");
	update_end(is_abort(_i) ? 0 : 75);
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
	update_start_stdin("serve");
	update_ask("start\ncreate refs/heads/a " A "\nabort\nstart\n",
	    "start: ok");
	update_expect("abort: ok");
	update_expect("start: ok");
	update_end(0);
	check_log("[aborted]\n" Z " " A " refs/heads/a\n[aborted]\n");
}

/* git's own hint, and no session. */
TEST(test_hook_not_executable)
{
	char *argv[] = { "update", "refs/heads/a", A, NULL };

	make_hook("prepared");
	tmp_run("chmod -x repo/.git/hooks/reference-transaction");
	update_start("serve transaction=ok", argv);
	update_expect("hint: The '.git/hooks/reference-transaction' hook was "
		      "ignored because it's not set as executable.");
	update_expect("hint: You can disable this warning with `git config set "
		      "advice.ignoredHook false`.");
	update_end(0);
}
