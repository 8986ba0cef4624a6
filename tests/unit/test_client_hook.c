/*
 * Proves the work of the proc-receive hook on a push, from receive-pack's
 * packets to the answers. The whole push is one transaction, with a line for
 * every ref in input order. The hook submits no ref that a rule refuses. It
 * leaves work to git that refd cannot do, but never after a submit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

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
	fake_expect(f,
	    got.updates[0].action == REFD_DELETE && got.updates[0].has_old,
	    "the deletion is not first");
	fake_expect(f, got.updates[1].action == REFD_CREATE, "no create");
	fake_expect(f,
	    got.updates[2].action == REFD_UPDATE && got.updates[2].has_old,
	    "no update");
	fake_expect(f, got.deadline_ms > 0 && got.deadline_ms < 60000,
	    "deadline");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

TEST(test_one_transaction)
{
	tmp_run("cd repo.git && echo " A " refs/heads/a >packed-refs");
	hook_serve(takes_all);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/c");
	hook_put(A " " Z " refs/heads/a");
	hook_put(A " " B " refs/heads/b");
	hook_expect("ok refs/heads/c\nok refs/heads/a\nok refs/heads/b\n");
}

FAKE_SCRIPT(takes_some, "serve transaction=[conflict,ok,nospace]");

/* The ref with a bad name is not submitted, and keeps its place. */
TEST(test_some_fail)
{
	hook_serve(takes_some);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/c");
	hook_put(Z " " A " refs/heads/x..y");
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b");
	hook_expect("ng refs/heads/c refname conflict\n"
		    "ng refs/heads/x..y funny refname\n"
		    "ok refs/heads/a\n"
		    "ng refs/heads/b failed to update ref\n");
}

FAKE_SCRIPT(rejects_all, "serve transaction=[aborted,exists]");

TEST(test_atomic)
{
	hook_serve(rejects_all);
	hook_begin(true);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b");
	hook_expect("ng refs/heads/a atomic transaction failed\n"
		    "ng refs/heads/b atomic transaction failed\n");
}

/* ---- after submission ---- */

FAKE_SCRIPT(knows_half, "serve transaction=[ok,unknown]");

/* The message names the socket of the daemon that got the transaction, because
 * the configuration where the pusher stands may name another daemon. */
TEST(test_unknown)
{
	char *got, *command;

	hook_serve(knows_half);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b");
	got = hook_run();
	ck_assert_ptr_nonnull(strstr(got,
	    "ok refs/heads/a\n"
	    "ng refs/heads/b refd: outcome unknown (transaction "));
	command = xasprintf("ask with \"refd query --socket %s ",
	    getenv("REFD_SOCKET"));
	ck_assert_ptr_nonnull(strstr(got, command));
	free(command);
	free(got);
}

FAKE_SCRIPT(forgets, "serve transaction serve query=expired");

TEST(test_lost)
{
	char *got;

	hook_serve(forgets);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	got = hook_run();
	ck_assert_ptr_nonnull(strstr(got, "refd: outcome unknown"));
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}

/* Not even after "unsupported", if some updates were done. */
FAKE_SCRIPT(does_half, "serve transaction=[ok,unsupported]");

TEST(test_half_unsupported)
{
	char *got;

	hook_serve(does_half);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b");
	got = hook_run();
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}

FAKE_SCRIPT(supports_none, "serve transaction=[unsupported]");

static void refuse_with(struct fake *f, enum refd_status status)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_refuse(f, &got, status, "because");
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

TEST(test_refused, .times = 4)
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
		{ denies, FALLS },
	};

	hook_serve(cases[_i].script);
	/* A repository without the directory was never served. */
	if (_i < 3)
		ck_assert_int_eq(mkdir("refd", 0777), 0);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_expect(cases[_i].report);
}

static void supports_no_session(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.nr_updates == 1, "not one");
	fake_expect(f, got.committer != NULL, "no committer");
	fake_refuse(f, &got, REFD_UNSUPPORTED, "because");
	refd_request_done(&got);
}

/* With a hook, deletions are a batch of their own. If the rules refuse all of
 * it, nothing was sent yet: the next batch is still the first for the daemon,
 * and git may still take the push. */
TEST(test_first_batch_refused)
{
	tmp_run("cd repo.git && git config receive.denyDeletes true && "
		"echo " A " refs/heads/b >packed-refs && "
		"printf '#!/bin/sh\n' >hooks/reference-transaction && "
		"chmod +x hooks/reference-transaction");
	hook_serve(supports_no_session);
	hook_begin(false);
	hook_put(A " " Z " refs/heads/b");
	hook_put(Z " " A " refs/heads/a");
	hook_expect("ok refs/heads/b\noption fall-through\n" FALLS);
}

/* The daemon takes one update, so neither update is submitted. */
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

TEST(test_too_large)
{
	hook_serve(takes_little);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b");
	hook_expect(FALLS "ok refs/heads/b\noption fall-through\n");
}

/* ---- never submitted ---- */

FAKE_SCRIPT(never_asked, "serve end");

TEST(test_nothing_applied, .times = 4)
{
	static const char twice[] = "ng refs/heads/a failed to update refs\n"
				    "ng refs/heads/b failed to update refs\n"
				    "ng refs/heads/a failed to update refs\n";

	hook_serve(never_asked);
	hook_begin(_i > 1);
	hook_put(Z " " A " refs/heads/a");
	switch (_i) {
	case 0:
		hook_put(Z " " A " refs/heads/b");
		hook_put(Z " " B " refs/heads/a");
		hook_expect(twice);
		break;
	case 1:
		tmp_run("cd repo.git && printf 'exit 1' >hooks/update && "
			"chmod +x hooks/update");
		hook_expect("ng refs/heads/a hook declined\n");
		break;
	case 2:
		hook_put(Z " " A " HEAD");
		hook_put(Z " " A " refs/heads/b");
		hook_expect("ng refs/heads/a atomic push failure\n"
			    "ng HEAD funny refname\n"
			    "ng refs/heads/b atomic push failure\n");
		break;
	case 3:
		hook_put(Z " " A " refs/heads/b c");
		hook_expect("ng refs/heads/a atomic push failure\n");
		break;
	}
}

static void takes_the_one(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.nr_updates == 1, "not one");
	fake_expect(f, !strcmp(got.updates[0].name, "refs/heads/a"),
	    "another one");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

/* No report can carry such a name, and receive-pack calls the ref failed. */
TEST(test_unreportable)
{
	hook_serve(takes_the_one);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/b\nok refs/heads/c");
	hook_expect("ok refs/heads/a\n");
}

static void takes_below(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.nr_updates == 2, "not two");
	fake_expect(f,
	    !strcmp(got.updates[0].name, "refs/namespaces/t/refs/heads/b") &&
		got.updates[0].action == REFD_DELETE,
	    "the deletion is not first");
	fake_expect(f,
	    !strcmp(got.updates[1].name, "refs/namespaces/t/refs/heads/a"),
	    "not in the namespace");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

TEST(test_namespace)
{
	setenv("GIT_NAMESPACE", "t", 1);
	tmp_run("cd repo.git && git update-ref "
		"refs/namespaces/t/refs/heads/b $(git commit-tree -m c "
		"$(git mktree </dev/null)) && sed -i 's/.*/" A
		"/' refs/namespaces/t/refs/heads/b");
	hook_serve(takes_below);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(A " " Z " refs/heads/b");
	hook_expect("ok refs/heads/a\nok refs/heads/b\n");
	unsetenv("GIT_NAMESPACE");
}

TEST(test_away)
{
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_expect(FALLS);
}

TEST(test_native)
{
	tmp_run("git -C repo.git config refd.fallback refuse");
	setenv("GIT_SHALLOW_FILE", "", 1);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_expect(FALLS);
}

FAKE_SCRIPT(cannot_start, "away=io");

FAKE_SCRIPT(denied, "away=denied");

FAKE_SCRIPT(only_greets, "serve");

/* Answers each question for the status. */
static void says_awaiting(struct fake *f, char *nr)
{
	struct refd_pair pair = { .key = "awaiting_repos", .value = nr };
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = &pair,
		.nr_pairs = 1 };
	struct refd_request req;
	char c;

	while (recv(f->conn, &c, 1, MSG_PEEK) > 0) {
		fake_read(f, &req);
		fake_expect(f, req.verb == REFD_VERB_STATUS, "not status");
		ans.request_id = req.request_id;
		refd_request_done(&req);
		fake_answer(f, &ans);
	}
}

static void awaits_one(struct fake *f)
{
	fake_serve(f);
	says_awaiting(f, "1");
}

static void awaits_none(struct fake *f)
{
	fake_serve(f);
	says_awaiting(f, "0");
}

/* Only time tells whether the client goes on looking. */
static void recovers(struct fake *f)
{
	char marker[600], next[600];

	fake_serve(f);
	usleep(300000);
	snprintf(marker, sizeof(marker), "%s.replayed", f->path);
	snprintf(next, sizeof(next), "%s.next", f->path);
	fake_expect(f, rename(next, marker) == 0, "rename");
	says_awaiting(f, "0");
}

/* Git may do what refd cannot if a daemon serves and no update waits there. The
 * daemon says so itself if the marker is missing. Before, git would compare
 * with values that are not redone yet. */
TEST(test_native_before_recovery, .times = 7)
{
	static const struct {
		void (*script)(struct fake *f);
		const char *marker, *report;
	} cases[] = {
		{ cannot_start, "", "await recovery" },
		{ cannot_start, "boot", "await recovery" },
		{ only_greets, "boot\nawaits x\n", "await recovery" },
		{ recovers, "boot\nawaits x\n", FALLS },
		{ awaits_one, "", "'refd status' says why" },
		{ awaits_none, "", FALLS },
		{ denied, "",
		    "only git can do this: the push is shallow; and refd "
		    "denies: " },
	};
	char *got;

	hook_serve(cases[_i].script);
	tmp_run("mkdir repo.git/refd && echo x >repo.git/refd/id && "
		"printf '%s' >%s.replayed",
	    cases[_i].marker, getenv("REFD_SOCKET"));
	tmp_run("echo boot >%s.next", getenv("REFD_SOCKET"));
	setenv("GIT_SHALLOW_FILE", "", 1);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	got = hook_run();
	ck_assert_msg(strstr(got, cases[_i].report) != NULL, "%s", got);
	free(got);
}

TEST(test_told_to_refuse)
{
	tmp_run("git -C repo.git config refd.fallback refuse");
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_expect(
	    "ng refs/heads/a failed to update ref: refd: the daemon is "
	    "away: cannot connect to /nowhere/refd.sock: No such file or "
	    "directory; start the daemon: refd daemon --socket "
	    "/nowhere/refd.sock (refd.fallback=git would let git do it)\n");
}
