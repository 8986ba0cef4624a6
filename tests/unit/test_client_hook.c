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
	const struct refd_request *got = &f->first;
	const struct refd_update *u;

	fake_play(f, "serve transaction");
	u = got->updates;
	fake_expect(f, got->push && !got->atomic, "not as a push");
	fake_expect(f, !strcmp(got->message, "push"), "message");
	fake_expect(f,
	    got->committer &&
		!strncmp(got->committer, "C O Mitter <committer@example.com> ",
		    35),
	    "committer");
	fake_expect(f, got->nr_updates == 3, "not all of it");
	fake_expect(f, u[0].action == REFD_DELETE && u[0].has_old,
	    "the deletion is not first");
	fake_expect(f, u[1].action == REFD_CREATE, "no create");
	fake_expect(f, u[2].action == REFD_UPDATE && u[2].has_old, "no update");
	fake_expect(f, got->deadline_ms > 0 && got->deadline_ms < 60000,
	    "deadline");
	fake_play(f, "later:transaction=done");
}

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

TEST(test_one_transaction)
{
	tmp_run("cd repo.git && echo " A " refs/heads/a >packed-refs");
	hook_serve_script(takes_all);
	hook_push(Z " " A " refs/heads/c", A " " Z " refs/heads/a",
	    A " " B " refs/heads/b", NULL);
	hook_expect("ok refs/heads/c\nok refs/heads/a\nok refs/heads/b\n");
}

/* A push, of which the server gets a transaction, or nothing at all. */
struct pushed {
	const char *steps;
	bool is_atomic;
	const char *commands[5];
	const char *report;
	const char *shell; /* NULL: nothing is changed before */
};

static void push(const struct pushed *p)
{
	const char *const *command;

	if (p->steps)
		hook_serve(p->steps);
	if (p->shell)
		tmp_run("cd repo.git && %s", p->shell);
	hook_begin(p->is_atomic);
	for (command = p->commands; *command; command++)
		hook_put(*command);
	hook_expect(p->report);
}

#define TO_A Z " " A " refs/heads/a"
#define TO_B Z " " A " refs/heads/b"
/* A repository without the directory was never served. */
#define SERVED "mkdir refd"

static const struct pushed served[] = {
	/* The ref with a bad name is not submitted, and keeps its place. */
	{ "serve transaction=[conflict,ok,nospace]", false,
	    { Z " " A " refs/heads/c", Z " " A " refs/heads/x..y", TO_A, TO_B },
	    "ng refs/heads/c refname conflict\n"
	    "ng refs/heads/x..y funny refname\n"
	    "ok refs/heads/a\n"
	    "ng refs/heads/b failed to update ref\n",
	    NULL },
	{ "serve transaction=[aborted,exists]", true, { TO_A, TO_B },
	    "ng refs/heads/a atomic transaction failed\n"
	    "ng refs/heads/b atomic transaction failed\n",
	    NULL },
	{ "serve transaction=[unsupported]", false, { TO_A }, FALLS, SERVED },
	{ "serve transaction=unsupported", false, { TO_A }, FALLS, SERVED },
	{ "serve transaction=denied", false, { TO_A },
	    "ng refs/heads/a failed to update ref: refd: denied: " FAKE_WHY
	    "\n",
	    SERVED },
	{ "serve transaction=denied", false, { TO_A }, FALLS, NULL },
	/* The daemon takes one update, so neither update is submitted. */
	{ "serve-one end", false, { TO_A, TO_B },
	    FALLS "ok refs/heads/b\noption fall-through\n", NULL },
	/* No report can carry the second name, and receive-pack calls the ref
	 * failed. */
	{ "serve transaction=[ok]", false,
	    { TO_A, Z " " A " refs/heads/b\nok refs/heads/c" },
	    "ok refs/heads/a\n", NULL },
};

TEST(test_served, .times = sizeof(served) / sizeof(served[0]))
{
	push(&served[_i]);
}

/* ---- after submission ---- */

/* The message names the socket of the daemon that got the transaction, because
 * the configuration where the pusher stands may name another daemon. */
TEST(test_unknown)
{
	char *got, *command;

	hook_serve("serve transaction=[ok,unknown]");
	hook_push(Z " " A " refs/heads/a", Z " " A " refs/heads/b", NULL);
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

TEST(test_lost)
{
	char *got;

	hook_serve("serve transaction serve query=expired");
	hook_push(Z " " A " refs/heads/a", NULL);
	got = hook_run();
	ck_assert_ptr_nonnull(strstr(got, "refd: outcome unknown"));
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}

/* Not even after "unsupported", if some updates were done. */
TEST(test_half_unsupported)
{
	char *got;

	hook_serve("serve transaction=[ok,unsupported]");
	hook_push(Z " " A " refs/heads/a", Z " " A " refs/heads/b", NULL);
	got = hook_run();
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}

static void supports_no_session(struct fake *f)
{
	fake_play(f, "serve session");
	fake_expect(f, f->first.nr_updates == 1, "not one");
	fake_expect(f, f->first.committer != NULL, "no committer");
	fake_play(f, "later:session=unsupported");
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
	hook_serve_script(supports_no_session);
	hook_push(A " " Z " refs/heads/b", Z " " A " refs/heads/a", NULL);
	hook_expect("ok refs/heads/b\noption fall-through\n" FALLS);
}

/* ---- never submitted ---- */

static const struct pushed not_submitted[] = {
	{ "serve end", false, { TO_A, TO_B, Z " " B " refs/heads/a" },
	    "ng refs/heads/a failed to update refs\n"
	    "ng refs/heads/b failed to update refs\n"
	    "ng refs/heads/a failed to update refs\n",
	    NULL },
	{ "serve end", false, { TO_A }, "ng refs/heads/a hook declined\n",
	    "printf 'exit 1' >hooks/update && chmod +x hooks/update" },
	{ "serve end", true, { TO_A, Z " " A " HEAD", TO_B },
	    "ng refs/heads/a atomic push failure\n"
	    "ng HEAD funny refname\n"
	    "ng refs/heads/b atomic push failure\n",
	    NULL },
	{ "serve end", true, { TO_A, Z " " A " refs/heads/b c" },
	    "ng refs/heads/a atomic push failure\n", NULL },
	/* The daemon is away. */
	{ NULL, false, { TO_A }, FALLS, NULL },
	{ NULL, false, { TO_A },
	    "ng refs/heads/a failed to update ref: refd: the daemon is away: "
	    "cannot connect to /nowhere/refd.sock: No such file or directory; "
	    "start the daemon: refd daemon --socket /nowhere/refd.sock "
	    "(refd.fallback=git would let git do it)\n",
	    "git config refd.fallback refuse" },
};

TEST(test_not_submitted,
    .times = sizeof(not_submitted) / sizeof(not_submitted[0]))
{
	push(&not_submitted[_i]);
}

static void takes_below(struct fake *f)
{
	const struct refd_update *u;

	fake_play(f, "serve transaction");
	u = f->first.updates;
	fake_expect(f, f->first.nr_updates == 2, "not two");
	fake_expect(f,
	    !strcmp(u[0].name, "refs/namespaces/t/refs/heads/b") &&
		u[0].action == REFD_DELETE,
	    "the deletion is not first");
	fake_expect(f, !strcmp(u[1].name, "refs/namespaces/t/refs/heads/a"),
	    "not in the namespace");
	fake_play(f, "later:transaction=done");
}

TEST(test_namespace)
{
	setenv("GIT_NAMESPACE", "t", 1);
	tmp_run("cd repo.git && git update-ref "
		"refs/namespaces/t/refs/heads/b $(git commit-tree -m c "
		"$(git mktree </dev/null)) && sed -i 's/.*/" A
		"/' refs/namespaces/t/refs/heads/b");
	hook_serve_script(takes_below);
	hook_push(Z " " A " refs/heads/a", A " " Z " refs/heads/b", NULL);
	hook_expect("ok refs/heads/a\nok refs/heads/b\n");
	unsetenv("GIT_NAMESPACE");
}

TEST(test_native)
{
	tmp_run("git -C repo.git config refd.fallback refuse");
	setenv("GIT_SHALLOW_FILE", "", 1);
	hook_push(Z " " A " refs/heads/a", NULL);
	hook_expect(FALLS);
}

/* Answers each question for the status. */
static void says(struct fake *f, const char *status)
{
	char c;

	while (recv(f->conn, &c, 1, MSG_PEEK) > 0)
		fake_play(f, status);
}

static void awaits_one(struct fake *f)
{
	fake_serve(f);
	says(f, "status=awaiting_repos:1");
}

static void awaits_none(struct fake *f)
{
	fake_serve(f);
	says(f, "status=awaiting_repos:0");
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
	says(f, "status=awaiting_repos:0");
}

/* Git may do what refd cannot if a daemon serves and no update waits there. The
 * daemon says so itself if the marker is missing. Before, git would compare
 * with values that are not redone yet. */
TEST(test_native_before_recovery, .times = 7)
{
	static const struct {
		const char *steps;
		void (*script)(struct fake *f);
		const char *marker, *report;
	} cases[] = {
		{ "away=io", NULL, "", "await recovery" },
		{ "away=io", NULL, "boot", "await recovery" },
		{ "serve", NULL, "boot\nawaits x\n", "await recovery" },
		{ NULL, recovers, "boot\nawaits x\n", FALLS },
		{ NULL, awaits_one, "", "'refd status' says why" },
		{ NULL, awaits_none, "", FALLS },
		{ "away=denied", NULL, "",
		    "only git can do this: the push is shallow; and refd "
		    "denies: " },
	};
	char *got;

	if (cases[_i].steps)
		hook_serve(cases[_i].steps);
	else
		hook_serve_script(cases[_i].script);
	tmp_run("mkdir repo.git/refd && echo x >repo.git/refd/id && "
		"printf '%s' >%s.replayed",
	    cases[_i].marker, getenv("REFD_SOCKET"));
	tmp_run("echo boot >%s.next", getenv("REFD_SOCKET"));
	setenv("GIT_SHALLOW_FILE", "", 1);
	hook_push(Z " " A " refs/heads/a", NULL);
	got = hook_run();
	ck_assert_msg(strstr(got, cases[_i].report) != NULL, "%s", got);
	free(got);
}
