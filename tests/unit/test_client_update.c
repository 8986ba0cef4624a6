/*
 * Proves how "refd update" deals with a server that follows a script. In a
 * session of --stdin, the client sends each command in time, answers in time,
 * and releases the locks whatever ends the session. With an id of the caller,
 * no refusal hides the outcome of an earlier call, no outcome of other updates
 * is reported, and what is done is not called aborted. Git does what the daemon
 * does not support, with the commands that the client has already read, and all
 * of a transaction with a name that is too long for refd. The text of a refusal
 * cannot control the terminal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "proto/limits.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/update_rig.h"

/* ---- dialogues ---- */

CASE(.setup = update_setup, .teardown = update_teardown, .seconds = 30);

TEST(test_prepare_and_commit)
{
	update_start_stdin(UPDATE_COMMITS);
	update_ask("start\n", "start: ok");
	update_ask("create refs/heads/a " A "\nprepare\n", "prepare: ok");
	update_ask("commit\n", "commit: ok");
	update_end(0);
}

TEST(test_abort)
{
	update_prepare(UPDATE_ABORTS);
	update_ask("abort\n", "abort: ok");
	update_end(0);
}

/* The end of input releases the locks before the program ends, and so does an
 * error. */
TEST(test_end_when_prepared)
{
	update_prepare(UPDATE_ABORTS);
	update_end(0);
}

TEST(test_error_when_prepared)
{
	update_prepare(UPDATE_ABORTS);
	update_ask("create refs/heads/b " A "\n",
	    "fatal: prepared transactions can only be closed");
	update_end(128);
}

TEST(test_nothing_asked_for)
{
	update_start_stdin("serve");
	update_ask("start\nprepare\n", "start: ok");
	update_expect("prepare: ok");
	update_ask("commit\nstart\ncreate refs/heads/a " A "\nabort\n",
	    "commit: ok");
	update_expect("start: ok");
	update_expect("abort: ok");
	update_end(0);
}

TEST(test_lost)
{
	update_prepare("serve session=prepared hang-up gone");
	update_wait_for_server();
	update_ask("commit\n",
	    "error: refd: aborted: the session ended with its connection");
	update_end(75);
}

/* Otherwise the locks would stay until the program ends. */
TEST(test_busy_for_the_end, .times = 2)
{
	update_prepare(_i == 0 ?
		"serve session=prepared commit=busy commit=done" :
		"serve session=prepared abort=busy abort=undone");
	update_ask(_i == 0 ? "commit\n" : "abort\n",
	    _i == 0 ? "commit: ok" : "abort: ok");
	update_end(0);
}

/* ---- an id of the caller ---- */

#define ID "0123456789abcdef0123456789abcdef"

static char txid[] = ID;

/* Only the daemon can compare the updates with those of the first call, so they
 * are sent. */
TEST(test_id_of_an_earlier_call)
{
	char *argv[] = { "update", "--porcelain", "--txid", txid,
		"refs/heads/a", A, NULL };

	update_start("serve transaction=ok", argv);
	update_expect("ok refs/heads/a");
	update_expect("txn " ID " committed");
	update_end(0);
}

/* The answer of the daemon, and what a program says that believes it. */
struct refusal {
	const char *answer, *said;
	int rc;
};

/* A busy daemon does not look for the id. */
static const struct refusal early[] = {
	{ "denied", "fatal: refd: denied: ", 128 },
	{ "busy", "error: refd: busy: ", 75 },
	{ "[busy]", "error: ", 75 },
	{ "[deadline]", "error: ", 75 },
};

#define NR_EARLY (int)(sizeof(early) / sizeof(early[0]))

/* The daemon gives these answers only after the look. */
static const struct refusal late[] = {
	{ "badrequest", "fatal: refd: badrequest: ", 128 },
	{ "unknown", "fatal: outcome unknown ", 128 },
	{ "[stale]", "fatal: update_ref failed ", 128 },
	{ "[deadline]9", "error: ", 75 },
};

#define NR_LATE (int)(sizeof(late) / sizeof(late[0]))

/* The answers to the question about the id. After three answers that don't fit,
 * librefd gives up. */
static const char *const tells[] = { "query=done", "query=pending",
	"query=expired", "query=busy", "query=io",
	"query=pong serve query=pong serve query=pong" };

#define NR_TELLS (int)(sizeof(tells) / sizeof(tells[0]))

/* The program does not send to a node that follows again. */
static void check_refusal(const struct refusal *r, const char *tell,
    const char *said, int rc)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };
	bool is_busy = strstr(r->answer, "busy") != NULL;
	char *steps = xasprintf("serve transaction=%s %s %s", r->answer,
	    is_busy ? "status=role:follower" : "", tell);

	update_start(steps, argv);
	update_expect_start(said);
	update_end(rc);
	free(steps);
}

#define OUTCOME_UNKNOWN "fatal: outcome unknown (transaction " ID "): ask with"

/* An earlier call may have done it, and no other answer to the question denies
 * this: a query has only the id, so its results may be of other updates. */
TEST(test_no_refusal_hides_an_outcome, .times = NR_TELLS)
{
	check_refusal(&early[0], tells[_i], OUTCOME_UNKNOWN, 128);
}

TEST(test_no_refusal_of_any_kind, .times = NR_EARLY)
{
	check_refusal(&early[_i], "query=done", OUTCOME_UNKNOWN, 128);
}

TEST(test_refusal_of_a_new_id, .times = NR_EARLY)
{
	check_refusal(&early[_i], "query=never-seen", early[_i].said,
	    early[_i].rc);
}

/* "outcome unknown" would make somebody ask, and the answer would be that of
 * the other updates. */
TEST(test_refusal_after_the_look, .times = NR_LATE)
{
	check_refusal(&late[_i], "", late[_i].said, late[_i].rc);
}

/* A server has the results of an earlier call, and no lock. */
static void prepare_again(const char *steps, bool batch)
{
	char *argv[] = { "update", "--txid", txid, "--stdin",
		batch ? "--batch-updates" : NULL, NULL };

	update_start(steps, argv);
	update_put("create refs/heads/a " A "\nprepare\n");
}

/* Nothing is prepared, because it is done. */
TEST(test_id_of_an_earlier_session, .times = 2)
{
	prepare_again("serve session=ok", _i);
	update_expect("prepare: ok");
	update_ask("commit\n", "commit: ok");
	update_end(0);
}

#define CANNOT_ABORT                                                           \
	"fatal: another call with this id has done it, so it cannot be aborted"

TEST(test_abort_of_what_is_done, .times = 2)
{
	prepare_again("serve session=ok", _i);
	update_expect("prepare: ok");
	update_ask("abort\n", CANNOT_ABORT);
	update_end(128);
}

TEST(test_end_when_done, .times = 2)
{
	prepare_again("serve session=ok", _i);
	update_expect("prepare: ok");
	update_end_input();
	update_expect(CANNOT_ABORT);
	update_end(128);
}

TEST(test_session_of_an_unknown_outcome, .times = 2)
{
	prepare_again("serve session=[unknown]", _i);
	update_expect_start(OUTCOME_UNKNOWN);
	update_end(128);
}

/* Both calls had the locks, and the other one was faster. */
TEST(test_abort_beside_a_commit)
{
	prepare_again("serve session=prepared abort=done", false);
	update_expect("prepare: ok");
	update_ask("abort\n", CANNOT_ABORT);
	update_end(128);
}

/* ---- settings of the client's configuration ---- */

static void reads_settings(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	fake_read(f, &req);
	fake_expect(f, req.verb == REFD_VERB_TRANSACTION, "no transaction");
	fake_expect(f,
	    req.log_all_ref_updates &&
		!strcmp(req.log_all_ref_updates, "always"),
	    "core.logAllRefUpdates");
	fake_expect(f,
	    req.shared_repository && !strcmp(req.shared_repository, "0640"),
	    "core.sharedRepository");
	fake_expect(f,
	    req.has_ref_lock_timeout && req.ref_lock_timeout_ms == 2048,
	    "core.filesRefLockTimeout");
	fake_expect(f,
	    req.has_packed_refs_timeout &&
		req.packed_refs_timeout_ms == REFD_DEADLINE_MAX_MS,
	    "core.packedRefsTimeout");
	fake_expect(f, req.committer && !strncmp(req.committer, "Me <m@e> ", 9),
	    "committer.name, user.email");
	fake_answer_ok(f, &req);
	refd_request_done(&req);
}

TEST(test_settings)
{
	static const char *const keys[] = { "core.logAllRefUpdates",
		"core.sharedRepository", "core.filesRefLockTimeout",
		"core.packedRefsTimeout", "committer.name", "user.email" };
	static const char *const values[] = { "always", "0640", "2k", "-1",
		"Me", "m@e" };
	char *argv[] = { "update", "refs/heads/a", A, NULL };
	char name[32];
	int i;

	unsetenv("GIT_COMMITTER_NAME");
	unsetenv("GIT_COMMITTER_EMAIL");
	unsetenv("EMAIL");
	setenv("GIT_CONFIG_COUNT", "6", 1);
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%d", i);
		setenv(name, keys[i], 1);
		snprintf(name, sizeof(name), "GIT_CONFIG_VALUE_%d", i);
		setenv(name, values[i], 1);
	}
	update_start_script(reads_settings, argv);
	update_end(0);
}

/* ---- git in refd's place ---- */

#define NO_SESSIONS "serve session=unsupported"

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

TEST(test_left_to_git)
{
	update_start_stdin(NO_SESSIONS);
	update_ask("start\noption no-deref\nupdate refs/heads/a HEAD\n",
	    "start: ok");
	ck_assert(!exists(".git/refs/heads/a.lock"));
	update_ask("prepare\n", "prepare: ok");
	ck_assert(exists(".git/refs/heads/a.lock"));
	update_ask("commit\n", "commit: ok");
	ck_assert(exists(".git/refs/heads/a"));
	update_ask("start\ncreate refs/heads/b HEAD\n", "start: ok");
	update_end(0);
	ck_assert(!exists(".git/refs/heads/b"));
}

TEST(test_symbolic_links_are_gits)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes");
	update_start_stdin("");
	update_ask("start\nupdate refs/heads/a HEAD\ncommit\n", "start: ok");
	update_expect("commit: ok");
	update_end(0);
	ck_assert(exists(".git/refs/heads/a"));
}

/* refd makes no symbolic links, and some daemon has served the repository. */
static void want_links_when_served(void)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes && "
		"mkdir repo/.git/refd && echo x >repo/.git/refd/id");
}

/* Git would compare with values that are not redone yet. */
TEST(test_nothing_is_gits_before_recovery)
{
	want_links_when_served();
	update_start_stdin("away=io");
	update_expect_start("error: only git can do this, and not while refs "
			    "may await recovery: refd makes no symbolic links");
	update_end(75);
	ck_assert(!exists(".git/refs/heads/a"));
}

/* A caller that tries again after status 75 would do so for ever. */
TEST(test_denial_is_no_wait_for_recovery)
{
	want_links_when_served();
	update_start_stdin("away=denied");
	update_expect_start(
	    "fatal: only git can do this: refd makes no symbolic links");
	update_end(128);
	ck_assert(!exists(".git/refs/heads/a"));
}

/* Git could not do it after recovery either. */
TEST(test_no_wait_for_what_git_cannot_do)
{
	char *argv[] = { "update", "--stdin", "--json", NULL };

	want_links_when_served();
	update_start("", argv);
	update_expect_start("fatal: refd makes no symbolic links");
	update_end(128);
}

TEST(test_left_to_git_by_a_ref)
{
	update_start_stdin("serve transaction=[aborted,unsupported]");
	update_put("create refs/heads/a HEAD\ncreate refs/heads/b HEAD\n");
	update_end(0);
	ck_assert(exists(".git/refs/heads/a"));
	ck_assert(exists(".git/refs/heads/b"));
}

/* A transaction of git and refd together would not be atomic. git gets the
 * whole transaction and all later ones, and the user is told. */
TEST(test_long_names_are_gits)
{
	char name[1200 + 1], line[2048], path[2048];
	size_t i;

	strcpy(name, "refs/heads");
	for (i = strlen(name); i + 1 < sizeof(name); i++)
		name[i] = i % 100 == 10 ? '/' : 'x';
	name[i] = '\0';
	update_start_stdin("serve");
	update_ask("start\ncreate refs/heads/a HEAD\n", "start: ok");
	snprintf(line, sizeof(line), "create %s HEAD\nprepare\n", name);
	update_put(line);
	update_expect_start(
	    "refd: refname is too long for refd: 'refs/heads/xxx");
	update_expect("prepare: ok");
	ck_assert(exists(".git/refs/heads/a.lock"));
	update_ask("commit\n", "commit: ok");
	ck_assert(exists(".git/refs/heads/a"));
	snprintf(path, sizeof(path), ".git/%s", name);
	ck_assert(exists(path));
	update_ask("start\ncreate refs/heads/b HEAD\ncommit\n", "start: ok");
	update_expect("commit: ok");
	update_end(0);
	ck_assert(exists(".git/refs/heads/b"));
}

TEST(test_long_target_is_gits)
{
	char target[300], line[512];

	snprintf(target, sizeof(target), "refs/heads/%0*d",
	    REFD_COMPONENT_MAX + 1, 0);
	setenv("REFD_GIT_DEPTH", "4", 1);
	update_start_stdin("serve");
	snprintf(line, sizeof(line), "symref-create refs/heads/s %s\nprepare\n",
	    target);
	update_put(line);
	update_expect_start("refd: refname is too long for refd: 'refs/h");
	update_expect_start("fatal: git would do it");
	unsetenv("REFD_GIT_DEPTH");
	update_end(128);
}

/* ---- a refusal ---- */

/* As for a repository with an escape sequence in its name. */
static void refuses_with_escapes(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	fake_read(f, &req);
	fake_refuse(f, &req, REFD_DENIED, "not '/srv/\033[31m\302\2331m'");
	refd_request_done(&req);
}

TEST(test_refusal_steers_no_terminal)
{
	char *argv[] = { "update", "refs/heads/a", "HEAD", NULL };

	update_start_script(refuses_with_escapes, argv);
	update_expect("fatal: refd: denied: not '/srv/?[31m?1m'");
	update_end(128);
}

/* If git is refd itself, nobody does the work. */
TEST(test_left_to_nobody)
{
	setenv("REFD_GIT_DEPTH", "4", 1);
	update_start_stdin(NO_SESSIONS);
	update_ask("update refs/heads/a HEAD\nprepare\n",
	    "fatal: git would do it, but \"git update-ref\" is refd here: "
	    "REFD_SHIM_REAL can name the real git");
	unsetenv("REFD_GIT_DEPTH");
	update_end(128);
}

TEST(test_git_has_no_porcelain)
{
	char *argv[] = { "update", "--stdin", "--porcelain", NULL };

	update_start(NO_SESSIONS, argv);
	update_put("update refs/heads/a HEAD\nprepare\n");
	update_expect(
	    "fatal: " FAKE_WHY "; git has no --porcelain, --json or --txid");
	update_end(128);
}
