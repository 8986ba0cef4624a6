/*
 * Proves the work of librefd with a session and its end, which use one
 * connection. If the connection is lost before a commit may have arrived,
 * librefd reports the session as not done. Otherwise librefd asks for the
 * outcome, at a later end as well, because a commit must never be sent again.
 */
#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 30);

TALK(test_commit, "serve session=prepared commit=done",
    "connect session=prepared commit=ok");

/* A session ends once, and a later end gets the same results. */
TALK(test_commit_twice,
    "serve session=prepared commit=done query=done query=done",
    "connect session=prepared commit=ok commit=ok abort=ok");

TALK(test_abort, "serve session=prepared abort=ok",
    "connect session=prepared no-updates abort=ok");

/* The answer to the end of an unknown session looks like the answer to a
 * query. */
TALK(test_commit_of_none,
    "serve session=prepared commit=pending query=never-seen",
    "connect session=prepared commit=refused:aborted");

/* ---- the session is lost ---- */

TALK(test_session_lost, "serve session", "connect session=refused:aborted");

/* The daemon is gone before the commit is sent. A later end would have to ask,
 * because another program may have used the id meanwhile. */
TALK(test_prepared_lost, "serve session=prepared",
    "connect session=prepared stop commit=refused:aborted @300 abort=unknown");

/* A new connection to the same daemon does not help. */
TALK(test_not_on_another_connection,
    "serve session=prepared serve ping=pong query=never-seen",
    "connect session=prepared ping=pong commit=refused:aborted");

/* Another struct refd may have prepared and committed the session. */
TALK(test_lost_and_done_by_another,
    "serve session=prepared serve ping=pong query=done query=done",
    "connect session=prepared ping=pong abort=ok commit=ok");

/* The session is not prepared any more, so its end is not sent. */
TALK(test_done_by_another, "serve session=prepared session=ok query=done",
    "connect session=prepared session=ok abort=ok");

/* A session that was lost, and is prepared again, is not over. */
TALK(test_lost_and_prepared_again,
    "serve session=prepared serve ping=pong query=never-seen session=prepared "
    "commit=done",
    "connect session=prepared ping=pong session=prepared commit=ok");

/* ---- the commit is lost ---- */

TALK(test_commit_lost_and_done,
    "serve session=prepared commit serve query=pending query=done",
    "connect session=prepared commit=ok");

TALK(test_commit_never_seen,
    "serve session=prepared commit serve query=never-seen",
    "connect session=prepared commit=refused:aborted");

TALK(test_commit_expired, "serve session=prepared commit serve query=expired",
    "connect session=prepared commit=unknown");

TALK(test_commit_and_daemon_lost, "serve session=prepared commit hang-up gone",
    "connect session=prepared commit!unknown");

TALK(test_commit_without_updates, "serve session=prepared commit hang-up gone",
    "connect session=prepared no-updates commit!refused:unknown");

/* A commit with an unknown outcome makes no later end a failure. */
TALK(test_commit_unknown_twice, "serve session=prepared commit hang-up gone",
    "connect session=prepared commit!unknown commit!unknown abort!unknown");

/* A session sent again must not look like a session without effect. */
TALK(test_session_again_after_unknown,
    "serve session=prepared commit hang-up gone",
    "connect session=prepared commit!unknown @60 session=unknown");

/* After a commit that timed out, the caller aborts, and the abort tells whether
 * the commit was done. */
TALK(test_abort_after_timeout,
    "serve session=prepared commit end serve query=done",
    "connect session=prepared @30 commit=ETIMEDOUT @100000 abort=ok");

/* After a restart of the program, the library knows nothing of the session. */
TALK(test_commit_after_restart,
    "serve session=prepared commit serve query=done",
    "connect session=prepared submit:commit restart commit=ok");

/* ---- answers that don't fit ---- */

static void prepares_too_little(struct fake *f)
{
	struct refd_request less;

	fake_play(f, "serve session");
	less = f->first;
	less.nr_updates--;
	fake_answer_prepared(f, &less);
}

TEST(test_too_few_results)
{
	talk_through_script(prepares_too_little,
	    "connect session=refused:aborted");
}

static void prepares_others(struct fake *f)
{
	struct refd_update updates[TALK_NR] = { talk.updates[0],
		{ .name = "refs/heads/other" }, talk.updates[2] };
	struct refd_request others;

	fake_play(f, "serve session");
	others = f->first;
	others.updates = updates;
	fake_answer_prepared(f, &others);
}

TEST(test_locks_of_other_refs)
{
	talk_through_script(prepares_others, "connect session=refused:aborted");
}

TALK(test_commit_answered_by_pong,
    "serve session=prepared commit=pong serve query=done",
    "connect session=prepared commit=ok");
