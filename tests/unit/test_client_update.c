/*
 * Proves what "refd update" does with a session, against a server with a
 * script: what it sends and when it answers, which calls the
 * reference-transaction hook gets and with what input, that nothing is
 * committed when the hook or the daemon says no, and that what a daemon does
 * not do is done by git, with the commands that were read already.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli.h"
#include "client/command.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct fake fake;
static pid_t child;
static FILE *to, *from; /* of the child */

static void setup(void)
{
	tmp_setup();
	unsetenv("GIT_DIR");
	unsetenv("GIT_COMMITTER_DATE");
	tmp_run("git init -q -b main repo && rm -f repo/.git/hooks/* && "
		"cd repo && git -c user.name=n -c user.email=e "
		"commit -q --allow-empty -m x");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo"), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

/* The hook appends its phase and its input to ../log, and says no in phase
 * NO. */
static void make_hook(const char *no)
{
	char command[512];

	snprintf(command, sizeof(command),
	    "printf '#!/bin/sh\\necho \"[$1]\" >>../log; cat >>../log\\n"
	    "test \"$1\" != \"%s\"\\n' "
	    ">repo/.git/hooks/reference-transaction && "
	    "chmod +x repo/.git/hooks/reference-transaction",
	    no);
	tmp_run(command);
}

static void check_log(const char *wanted)
{
	struct text got = { 0 };

	ck_assert_int_eq(text_read_file(&got, "../log"), 0);
	ck_assert_str_eq(got.data, wanted);
	text_done(&got);
}

/* ---- the program ---- */

static void start(void (*script)(struct fake *f), char **argv)
{
	int in[2], out[2], argc = 0;

	fake_start(&fake, script);
	setenv("REFD_SOCKET", fake.path, 1);
	while (argv[argc])
		argc++;
	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		signal(SIGPIPE, SIG_IGN);
		exit(command_update(argc, argv));
	}
	close(in[0]);
	close(out[1]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
	ck_assert(to != NULL && from != NULL);
}

static void start_stdin(void (*script)(struct fake *f))
{
	static char *argv[] = { "update", "--stdin", NULL };

	start(script, argv);
}

static void put(const char *commands)
{
	fputs(commands, to);
	ck_assert_int_eq(fflush(to), 0);
}

/* The next line is LINE, and is there without anything more being put. */
static void expect(const char *line)
{
	char got[4096] = "";

	if (!fgets(got, sizeof(got), from))
		got[0] = '\0';
	got[strcspn(got, "\n")] = '\0';
	ck_assert_str_eq(got, line);
}

static void end(int wanted)
{
	char rest[4096] = "";
	int status;

	fclose(to);
	if (fgets(rest, sizeof(rest), from))
		ck_abort_msg("said, too: %s", rest);
	fclose(from);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), wanted);
	fake_stop(&fake);
}

/* ---- the server ---- */

static void take(struct fake *f, enum refd_verb verb, struct refd_request *req)
{
	fake_read(f, req);
	fake_expect(f, req->verb == verb, "another request than expected");
}

static struct refd_update held[4];
static size_t nr_held;

/* Takes a session and prepares it; HEAD leads to main. */
static void take_session(struct fake *f, bool rewrites_packed)
{
	struct refd_result results[4] = { 0 };
	struct refd_answer ans = { .kind = REFD_ANSWER_PREPARED,
		.results = results,
		.rewrites_packed = rewrites_packed };
	struct refd_request req;

	take(f, REFD_VERB_SESSION, &req);
	ans.request_id = req.request_id;
	ans.txid = req.txid;
	nr_held = ans.nr_results = req.nr_updates;
	for (size_t i = 0; i < req.nr_updates; i++) {
		held[i].name = strdup(req.updates[i].name);
		results[i].name = held[i].name;
		if (!strcmp(results[i].name, "HEAD"))
			results[i].text = "refs/heads/main";
	}
	fake_answer(f, &ans);
	refd_request_done(&req);
}

static void take_end(struct fake *f, enum refd_verb verb)
{
	struct refd_request req;

	take(f, verb, &req);
	if (verb == REFD_VERB_COMMIT) {
		req.updates = held;
		req.nr_updates = nr_held;
	}
	fake_answer_ok(f, &req);
	req.updates = NULL;
	req.nr_updates = 0;
	refd_request_done(&req);
	for (; nr_held; nr_held--)
		free((char *)held[nr_held - 1].name);
}

static void commits(struct fake *f)
{
	fake_serve(f);
	take_session(f, false);
	take_end(f, REFD_VERB_COMMIT);
}

static void aborts(struct fake *f)
{
	fake_serve(f);
	take_session(f, false);
	take_end(f, REFD_VERB_ABORT);
}

static void only_greets(struct fake *f)
{
	fake_serve(f);
}

/* ---- dialogues ---- */

START_TEST(test_prepare_and_commit)
{
	start_stdin(commits);
	put("start\n");
	expect("start: ok");
	put("create refs/heads/a " A "\nprepare\n");
	expect("prepare: ok");
	put("commit\n");
	expect("commit: ok");
	end(0);
}
END_TEST

START_TEST(test_abort)
{
	start_stdin(aborts);
	put("create refs/heads/a " A "\nprepare\n");
	expect("prepare: ok");
	put("abort\n");
	expect("abort: ok");
	end(0);
}
END_TEST

/* The end of input lets go of the locks before the program ends, and so does
 * an error. */
START_TEST(test_end_when_prepared)
{
	start_stdin(aborts);
	put("create refs/heads/a " A "\nprepare\n");
	expect("prepare: ok");
	end(0);
}
END_TEST

START_TEST(test_error_when_prepared)
{
	start_stdin(aborts);
	put("create refs/heads/a " A "\nprepare\n");
	expect("prepare: ok");
	put("create refs/heads/b " A "\n");
	expect("fatal: prepared transactions can only be closed");
	end(128);
}
END_TEST

START_TEST(test_nothing_asked_for)
{
	start_stdin(only_greets);
	put("start\nprepare\n");
	expect("start: ok");
	expect("prepare: ok");
	put("commit\nstart\ncreate refs/heads/a " A "\nabort\n");
	expect("commit: ok");
	expect("start: ok");
	expect("abort: ok");
	end(0);
}
END_TEST

static void prepares_and_goes(struct fake *f)
{
	fake_serve(f);
	take_session(f, false);
	free((char *)held[0].name);
	fake_hang_up(f);
	fake_stop_listening(f);
}

START_TEST(test_lost)
{
	start_stdin(prepares_and_goes);
	put("create refs/heads/a " A "\nprepare\n");
	expect("prepare: ok");
	pthread_join(fake.thread, NULL);
	put("commit\n");
	expect("error: refd: aborted: the session ended with its connection");
	fclose(to);
	fclose(from);
	ck_assert_int_eq(waitpid(child, &(int){ 0 }, 0), child);
}
END_TEST

/* ---- the hook ---- */

START_TEST(test_hook)
{
	char *argv[] = { "update", "HEAD", A, NULL };

	make_hook("none");
	start(commits, argv);
	end(0);
	check_log("[preparing]\n" Z " " A " HEAD\n"
		  "[prepared]\n" Z " " A " refs/heads/main\n"
		  "[committed]\n" Z " " A " refs/heads/main\n");
}
END_TEST

START_TEST(test_hook_order)
{
	make_hook("none");
	start_stdin(commits);
	put("update HEAD " A " " B "\ncreate refs/heads/a " A "\n"
	    "option no-deref\nsymref-update refs/heads/s refs/heads/t ref "
	    "refs/heads/u\n");
	end(0);
	check_log("[preparing]\n" B " " A " HEAD\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n"
		  "[prepared]\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n" B " " A
		  " refs/heads/main\n"
		  "[committed]\n" Z " " A " refs/heads/a\n"
		  "ref:refs/heads/u ref:refs/heads/t refs/heads/s\n" B " " A
		  " refs/heads/main\n");
}
END_TEST

static void rewrites_packed(struct fake *f)
{
	fake_serve(f);
	take_session(f, true);
	take_end(f, REFD_VERB_COMMIT);
}

START_TEST(test_hook_packed)
{
	char *argv[] = { "update", "-d", "refs/heads/a", B, NULL };

	make_hook("none");
	start(rewrites_packed, argv);
	end(0);
	check_log("[preparing]\n" B " " Z " refs/heads/a\n"
		  "[preparing]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" B " " Z " refs/heads/a\n"
		  "[committed]\n" Z " " Z " refs/heads/a\n"
		  "[committed]\n" B " " Z " refs/heads/a\n");
}
END_TEST

START_TEST(test_hook_not_packed)
{
	char *argv[] = { "update", "-d", "refs/heads/a", NULL };

	make_hook("none");
	start(commits, argv);
	end(0);
	check_log("[preparing]\n" Z " " Z " refs/heads/a\n"
		  "[aborted]\n" Z " " Z " refs/heads/a\n"
		  "[prepared]\n" Z " " Z " refs/heads/a\n"
		  "[committed]\n" Z " " Z " refs/heads/a\n");
}
END_TEST

START_TEST(test_hook_says_no_first)
{
	char *argv[] = { "update", "refs/heads/a", A, NULL };

	make_hook("preparing");
	start(only_greets, argv);
	expect("fatal: in 'preparing' phase, update aborted by the "
	       "reference-transaction hook");
	end(128);
	check_log("[preparing]\n" Z " " A " refs/heads/a\n"
		  "[aborted]\n" Z " " A " refs/heads/a\n");
}
END_TEST

START_TEST(test_hook_says_no)
{
	char *argv[] = { "update", "-d", "HEAD", NULL };

	make_hook("prepared");
	start(aborts, argv);
	expect("fatal: in 'prepared' phase, update aborted by the "
	       "reference-transaction hook");
	end(128);
	check_log("[preparing]\n" Z " " Z " HEAD\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n"
		  "[prepared]\n" Z " " Z " refs/heads/main\n"
		  "[aborted]\n" Z " " Z " refs/heads/main\n");
}
END_TEST

/* Called without a session, where there was nothing to hold. */
START_TEST(test_hook_without_daemon)
{
	make_hook("none");
	start_stdin(only_greets);
	put("start\ncreate refs/heads/a " A "\nabort\nstart\n");
	expect("start: ok");
	expect("abort: ok");
	expect("start: ok");
	end(0);
	check_log("[aborted]\n" Z " " A " refs/heads/a\n[aborted]\n");
}
END_TEST

START_TEST(test_hook_not_executable)
{
	char *argv[] = { "update", "--stdin", NULL };

	make_hook("prepared");
	tmp_run("chmod -x repo/.git/hooks/reference-transaction");
	start(only_greets, argv);
	fclose(to);
	to = fopen("/dev/null", "w");
	expect("hint: The '.git/hooks/reference-transaction' hook was ignored "
	       "because it's not set as executable.");
	expect("hint: You can disable this warning with `git config set "
	       "advice.ignoredHook false`.");
	end(0);
}
END_TEST

/* ---- git in refd's place ---- */

static void knows_no_sessions(struct fake *f)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_UNSUPPORTED,
		.text = "no" };
	struct refd_request req;

	fake_serve(f);
	take(f, REFD_VERB_SESSION, &req);
	ans.request_id = req.request_id;
	fake_answer(f, &ans);
	refd_request_done(&req);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

START_TEST(test_left_to_git)
{
	start_stdin(knows_no_sessions);
	put("start\noption no-deref\nupdate refs/heads/a HEAD\n");
	expect("start: ok");
	ck_assert(!exists(".git/refs/heads/a.lock"));
	put("prepare\n");
	expect("prepare: ok");
	ck_assert(exists(".git/refs/heads/a.lock"));
	put("commit\n");
	expect("commit: ok");
	ck_assert(exists(".git/refs/heads/a"));
	put("start\ncreate refs/heads/b HEAD\n");
	expect("start: ok");
	end(0);
	ck_assert(!exists(".git/refs/heads/b"));
}
END_TEST

static void is_not_called(struct fake *f)
{
	(void)f;
}

START_TEST(test_symbolic_links_are_gits)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes");
	start_stdin(is_not_called);
	put("start\nupdate refs/heads/a HEAD\ncommit\n");
	expect("start: ok");
	expect("commit: ok");
	end(0);
	ck_assert(exists(".git/refs/heads/a"));
}
END_TEST

/* Where git is refd itself nobody would do it. */
START_TEST(test_left_to_nobody)
{
	setenv("REFD_GIT_DEPTH", "4", 1);
	start_stdin(knows_no_sessions);
	put("update refs/heads/a HEAD\nprepare\n");
	expect("fatal: git would do it, but \"git update-ref\" is refd here: "
	       "REFD_SHIM_REAL can name the real git");
	unsetenv("REFD_GIT_DEPTH");
	end(128);
}
END_TEST

START_TEST(test_git_has_no_porcelain)
{
	char *argv[] = { "update", "--stdin", "--porcelain", NULL };

	start(knows_no_sessions, argv);
	put("update refs/heads/a HEAD\nprepare\n");
	expect("fatal: no; git has no --porcelain, --json or --txid");
	end(128);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client_update");
	TCase *tc = tcase_create("client_update");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_prepare_and_commit);
	tcase_add_test(tc, test_abort);
	tcase_add_test(tc, test_end_when_prepared);
	tcase_add_test(tc, test_error_when_prepared);
	tcase_add_test(tc, test_nothing_asked_for);
	tcase_add_test(tc, test_lost);
	tcase_add_test(tc, test_hook);
	tcase_add_test(tc, test_hook_order);
	tcase_add_test(tc, test_hook_packed);
	tcase_add_test(tc, test_hook_not_packed);
	tcase_add_test(tc, test_hook_says_no_first);
	tcase_add_test(tc, test_hook_says_no);
	tcase_add_test(tc, test_hook_without_daemon);
	tcase_add_test(tc, test_hook_not_executable);
	tcase_add_test(tc, test_left_to_git);
	tcase_add_test(tc, test_symbolic_links_are_gits);
	tcase_add_test(tc, test_left_to_nobody);
	tcase_add_test(tc, test_git_has_no_porcelain);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
