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
	update_start_stdin(update_commits);
	update_put("start\n");
	update_expect("start: ok");
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put("commit\n");
	update_expect("commit: ok");
	update_end(0);
}

TEST(test_abort)
{
	update_start_stdin(update_aborts);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put("abort\n");
	update_expect("abort: ok");
	update_end(0);
}

/* The end of input releases the locks before the program ends, and so does an
 * error. */
TEST(test_end_when_prepared)
{
	update_start_stdin(update_aborts);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_end(0);
}

TEST(test_error_when_prepared)
{
	update_start_stdin(update_aborts);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put("create refs/heads/b " A "\n");
	update_expect("fatal: prepared transactions can only be closed");
	update_end(128);
}

TEST(test_nothing_asked_for)
{
	update_start_stdin(update_only_greets);
	update_put("start\nprepare\n");
	update_expect("start: ok");
	update_expect("prepare: ok");
	update_put("commit\nstart\ncreate refs/heads/a " A "\nabort\n");
	update_expect("commit: ok");
	update_expect("start: ok");
	update_expect("abort: ok");
	update_end(0);
}

FAKE_SCRIPT(prepares_and_goes, "serve session=prepared hang-up gone");

TEST(test_lost)
{
	update_start_stdin(prepares_and_goes);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_wait_for_server();
	update_put("commit\n");
	update_expect(
	    "error: refd: aborted: the session ended with its connection");
	update_end(75);
}

static enum refd_verb busy_end;

static void is_busy_for_the_end(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	update_take_session(f, false);
	update_take(f, busy_end, &req);
	fake_refuse(f, &req, REFD_BUSY, NULL);
	refd_request_done(&req);
	update_take_end(f, busy_end);
}

/* Otherwise the locks would stay until the program ends. */
TEST(test_busy_for_the_end, .times = 2)
{
	busy_end = _i == 0 ? REFD_VERB_COMMIT : REFD_VERB_ABORT;
	update_start_stdin(is_busy_for_the_end);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put(_i == 0 ? "commit\n" : "abort\n");
	update_expect(_i == 0 ? "commit: ok" : "abort: ok");
	update_end(0);
}

/* ---- an id of the caller ---- */

#define ID "0123456789abcdef0123456789abcdef"

static char txid[] = ID;

FAKE_SCRIPT(knows_the_id, "serve transaction=ok");

/* Only the daemon can compare the updates with those of the first call, so they
 * are sent. */
TEST(test_id_of_an_earlier_call)
{
	char *argv[] = { "update", "--porcelain", "--txid", txid,
		"refs/heads/a", A, NULL };

	update_start(knows_the_id, argv);
	update_expect("ok refs/heads/a");
	update_expect("txn " ID " committed");
	update_end(0);
}

/* What the daemon answers to the transaction, and what the program says then if
 * it believes the answer. */
struct refusal {
	enum refd_answer_kind kind;
	enum refd_status status;
	uint64_t lsn;
	const char *said;
	int rc;
};

/* A busy daemon does not look for the id. */
static const struct refusal early[] = {
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_DENIED,
	    .said = "fatal: refd: denied: ",
	    .rc = 128 },
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_BUSY,
	    .said = "error: refd: busy: ",
	    .rc = 75 },
	{ .kind = REFD_ANSWER_RESULTS,
	    .status = REFD_BUSY,
	    .said = "error: ",
	    .rc = 75 },
	{ .kind = REFD_ANSWER_RESULTS,
	    .status = REFD_DEADLINE,
	    .said = "error: ",
	    .rc = 75 },
};

#define NR_EARLY (int)(sizeof(early) / sizeof(early[0]))

/* The daemon gives these answers only after the look. */
static const struct refusal late[] = {
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_BADREQUEST,
	    .said = "fatal: refd: badrequest: ",
	    .rc = 128 },
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_UNKNOWN,
	    .said = "fatal: outcome unknown ",
	    .rc = 128 },
	{ .kind = REFD_ANSWER_RESULTS,
	    .status = REFD_STALE,
	    .said = "fatal: update_ref failed ",
	    .rc = 128 },
	{ .kind = REFD_ANSWER_RESULTS,
	    .status = REFD_DEADLINE,
	    .lsn = 9,
	    .said = "error: ",
	    .rc = 75 },
};

#define NR_LATE (int)(sizeof(late) / sizeof(late[0]))

static const struct refusal *refusal;
/* Answers the question about the id; NULL: there is none. */
static void (*tell)(struct fake *f);

/* The program does not send to a node that follows again. */
FAKE_SCRIPT(tell_that_it_follows, "status=role:follower");

static void refuses_the_id(struct fake *f)
{
	struct refd_result one = { .name = "refs/heads/a",
		.status = refusal->status };
	struct refd_answer no = { .kind = refusal->kind,
		.status = refusal->status,
		.results = &one,
		.nr_results = 1,
		.nr_updates = 1,
		.outcome = REFD_REJECTED,
		.lsn = refusal->lsn };
	struct refd_request req;

	fake_serve(f);
	update_take(f, REFD_VERB_TRANSACTION, &req);
	no.request_id = req.request_id;
	no.txid = req.txid;
	fake_answer(f, &no);
	refd_request_done(&req);
	if (refusal->status == REFD_BUSY)
		tell_that_it_follows(f);
	if (tell)
		tell(f);
}

static void tell_results(struct fake *f)
{
	update_take_query(f, REFD_ANSWER_RESULTS);
}

FAKE_SCRIPT(tell_pending, "query=pending");

FAKE_SCRIPT(tell_expired, "query=expired");

FAKE_SCRIPT(tell_never_seen, "query=never-seen");

FAKE_SCRIPT(tell_busy, "query=busy");

FAKE_SCRIPT(tell_error, "query=io");

/* After three answers that don't fit, librefd gives up. */
FAKE_SCRIPT(tell_nonsense, "query=pong serve query=pong serve query=pong");

static void (*const tells[])(struct fake *f) = { tell_results, tell_pending,
	tell_expired, tell_busy, tell_error, tell_nonsense };

#define NR_TELLS (int)(sizeof(tells) / sizeof(tells[0]))

static void check_refusal(const struct refusal *r, const char *said, int rc)
{
	char *argv[] = { "update", "--txid", txid, "refs/heads/a", A, NULL };

	refusal = r;
	update_start(refuses_the_id, argv);
	update_expect_start(said);
	update_end(rc);
}

#define OUTCOME_UNKNOWN "fatal: outcome unknown (transaction " ID "): ask with"

/* An earlier call may have done it, and no other answer to the question denies
 * this: a query has only the id, so its results may be of other updates. */
TEST(test_no_refusal_hides_an_outcome, .times = NR_TELLS)
{
	tell = tells[_i];
	check_refusal(&early[0], OUTCOME_UNKNOWN, 128);
}

TEST(test_no_refusal_of_any_kind, .times = NR_EARLY)
{
	tell = tell_results;
	check_refusal(&early[_i], OUTCOME_UNKNOWN, 128);
}

TEST(test_refusal_of_a_new_id, .times = NR_EARLY)
{
	tell = tell_never_seen;
	check_refusal(&early[_i], early[_i].said, early[_i].rc);
}

/* "outcome unknown" would make somebody ask, and the answer would be that of
 * the other updates. */
TEST(test_refusal_after_the_look, .times = NR_LATE)
{
	tell = NULL;
	check_refusal(&late[_i], late[_i].said, late[_i].rc);
}

static enum refd_status of_session;

/* The results of an earlier call, and no lock. */
static void knows_the_session(struct fake *f)
{
	struct refd_result one = { .name = "refs/heads/a",
		.status = of_session };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = 1,
		.outcome = of_session == REFD_OK ? REFD_COMMITTED :
						   REFD_OUTCOME_UNKNOWN };
	struct refd_request req;

	fake_serve(f);
	update_take(f, REFD_VERB_SESSION, &req);
	ans.request_id = req.request_id;
	ans.txid = req.txid;
	fake_answer(f, &ans);
	refd_request_done(&req);
}

static void prepare_again(enum refd_status status, bool batch)
{
	char *argv[] = { "update", "--txid", txid, "--stdin",
		batch ? "--batch-updates" : NULL, NULL };

	of_session = status;
	update_start(knows_the_session, argv);
	update_put("create refs/heads/a " A "\nprepare\n");
}

/* Nothing is prepared, because it is done. */
TEST(test_id_of_an_earlier_session, .times = 2)
{
	prepare_again(REFD_OK, _i);
	update_expect("prepare: ok");
	update_put("commit\n");
	update_expect("commit: ok");
	update_end(0);
}

#define CANNOT_ABORT                                                           \
	"fatal: another call with this id has done it, so it cannot be aborted"

TEST(test_abort_of_what_is_done, .times = 2)
{
	prepare_again(REFD_OK, _i);
	update_expect("prepare: ok");
	update_put("abort\n");
	update_expect(CANNOT_ABORT);
	update_end(128);
}

TEST(test_end_when_done, .times = 2)
{
	prepare_again(REFD_OK, _i);
	update_expect("prepare: ok");
	update_end_input();
	update_expect(CANNOT_ABORT);
	update_end(128);
}

TEST(test_session_of_an_unknown_outcome, .times = 2)
{
	prepare_again(REFD_UNKNOWN, _i);
	update_expect_start(OUTCOME_UNKNOWN);
	update_end(128);
}

static void is_committed_by_another(struct fake *f)
{
	fake_serve(f);
	update_take_session(f, false);
	update_take_late_abort(f);
}

/* Both calls had the locks, and the other one was faster. */
TEST(test_abort_beside_a_commit)
{
	char *argv[] = { "update", "--txid", txid, "--stdin", NULL };

	update_start(is_committed_by_another, argv);
	update_put("create refs/heads/a " A "\nprepare\n");
	update_expect("prepare: ok");
	update_put("abort\n");
	update_expect(CANNOT_ABORT);
	update_end(128);
}

/* ---- settings of the client's configuration ---- */

static void reads_settings(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	update_take(f, REFD_VERB_TRANSACTION, &req);
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
	update_start(reads_settings, argv);
	update_end(0);
}

/* ---- git in refd's place ---- */

static void knows_no_sessions(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	update_take(f, REFD_VERB_SESSION, &req);
	fake_refuse(f, &req, REFD_UNSUPPORTED, "no");
	refd_request_done(&req);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

TEST(test_left_to_git)
{
	update_start_stdin(knows_no_sessions);
	update_put("start\noption no-deref\nupdate refs/heads/a HEAD\n");
	update_expect("start: ok");
	ck_assert(!exists(".git/refs/heads/a.lock"));
	update_put("prepare\n");
	update_expect("prepare: ok");
	ck_assert(exists(".git/refs/heads/a.lock"));
	update_put("commit\n");
	update_expect("commit: ok");
	ck_assert(exists(".git/refs/heads/a"));
	update_put("start\ncreate refs/heads/b HEAD\n");
	update_expect("start: ok");
	update_end(0);
	ck_assert(!exists(".git/refs/heads/b"));
}

static void is_not_called(struct fake *f)
{
	(void)f;
}

TEST(test_symbolic_links_are_gits)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes");
	update_start_stdin(is_not_called);
	update_put("start\nupdate refs/heads/a HEAD\ncommit\n");
	update_expect("start: ok");
	update_expect("commit: ok");
	update_end(0);
	ck_assert(exists(".git/refs/heads/a"));
}

FAKE_SCRIPT(cannot_start, "away=io");

/* Git would compare with values that are not redone yet. */
TEST(test_nothing_is_gits_before_recovery)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes && "
		"mkdir repo/.git/refd && echo x >repo/.git/refd/id");
	update_start_stdin(cannot_start);
	update_expect_start("error: only git can do this, and not while refs "
			    "may await recovery: refd makes no symbolic links");
	update_end(75);
	ck_assert(!exists(".git/refs/heads/a"));
}

FAKE_SCRIPT(denies, "away=denied");

/* A caller that tries again after status 75 would do so for ever. */
TEST(test_denial_is_no_wait_for_recovery)
{
	tmp_run("git -C repo config core.preferSymlinkRefs yes && "
		"mkdir repo/.git/refd && echo x >repo/.git/refd/id");
	update_start_stdin(denies);
	update_expect_start(
	    "fatal: only git can do this: refd makes no symbolic links");
	update_end(128);
	ck_assert(!exists(".git/refs/heads/a"));
}

/* Git could not do it after recovery either. */
TEST(test_no_wait_for_what_git_cannot_do)
{
	char *argv[] = { "update", "--stdin", "--json", NULL };

	tmp_run("git -C repo config core.preferSymlinkRefs yes && "
		"mkdir repo/.git/refd && echo x >repo/.git/refd/id");
	update_start(is_not_called, argv);
	update_expect_start("fatal: refd makes no symbolic links");
	update_end(128);
}

FAKE_SCRIPT(can_not_link, "serve transaction=[aborted,unsupported]");

TEST(test_left_to_git_by_a_ref)
{
	update_start_stdin(can_not_link);
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
	update_start_stdin(update_only_greets);
	update_put("start\ncreate refs/heads/a HEAD\n");
	update_expect("start: ok");
	snprintf(line, sizeof(line), "create %s HEAD\nprepare\n", name);
	update_put(line);
	update_expect_start(
	    "refd: refname is too long for refd: 'refs/heads/xxx");
	update_expect("prepare: ok");
	ck_assert(exists(".git/refs/heads/a.lock"));
	update_put("commit\n");
	update_expect("commit: ok");
	ck_assert(exists(".git/refs/heads/a"));
	snprintf(path, sizeof(path), ".git/%s", name);
	ck_assert(exists(path));
	update_put("start\ncreate refs/heads/b HEAD\ncommit\n");
	update_expect("start: ok");
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
	update_start_stdin(update_only_greets);
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
	update_take(f, REFD_VERB_TRANSACTION, &req);
	fake_refuse(f, &req, REFD_DENIED, "not '/srv/\033[31m\302\2331m'");
	refd_request_done(&req);
}

TEST(test_refusal_steers_no_terminal)
{
	char *argv[] = { "update", "refs/heads/a", "HEAD", NULL };

	update_start(refuses_with_escapes, argv);
	update_expect("fatal: refd: denied: not '/srv/?[31m?1m'");
	update_end(128);
}

/* If git is refd itself, nobody does the work. */
TEST(test_left_to_nobody)
{
	setenv("REFD_GIT_DEPTH", "4", 1);
	update_start_stdin(knows_no_sessions);
	update_put("update refs/heads/a HEAD\nprepare\n");
	update_expect(
	    "fatal: git would do it, but \"git update-ref\" is refd here: "
	    "REFD_SHIM_REAL can name the real git");
	unsetenv("REFD_GIT_DEPTH");
	update_end(128);
}

TEST(test_git_has_no_porcelain)
{
	char *argv[] = { "update", "--stdin", "--porcelain", NULL };

	update_start(knows_no_sessions, argv);
	update_put("update refs/heads/a HEAD\nprepare\n");
	update_expect("fatal: no; git has no --porcelain, --json or --txid");
	update_end(128);
}
