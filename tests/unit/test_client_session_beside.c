/*
 * Proves the work of librefd with several requests of one session. A request in
 * flight beside a commit asks for the outcome, unless the daemon answers. After
 * an end, only a refusal, which did nothing, lets librefd send another end.
 */
#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 30);

/* An abort beside a commit in flight ends with it. */
TALK(test_abort_beside_commit,
    "serve session=prepared commit query serve query=done query=done",
    "connect session=prepared submit:commit abort=ok wait:commit=ok");

/* An abort leaves nothing open, so the commit behind it is sent. */
TALK(test_commit_beside_abort,
    "serve session=prepared abort commit later:abort=undone "
    "later:commit=undone",
    "connect session=prepared submit:abort commit=aborted wait:abort=aborted");

/* The daemon may have refused the abort, so its loss proves nothing. */
TALK(test_abort_lost_beside_commit,
    "serve session=prepared abort commit serve query=done query=done",
    "connect session=prepared submit:abort commit=ok wait:abort=ok");

/* The same session, sent once more, is committed with the first. */
TALK(test_session_lost_beside_commit,
    "serve session=prepared session commit serve query=done query=done",
    "connect session=prepared submit:session commit=ok wait:session=ok");

/* A session is never sent again by itself. */
TALK(test_session_beside_commit_never_seen,
    "serve session=prepared session commit serve query=never-seen "
    "query=never-seen",
    "connect session=prepared @3000 submit:session commit=refused:aborted "
    "wait:session=refused:aborted");

/* The refusal is of the second request, and the commit of the first may be
 * done. */
TALK(test_session_again_refused,
    "serve session=prepared session=busy commit hang-up gone",
    "connect session=prepared session=because:busy commit!unknown @60 "
    "session=unknown");

TEST(test_session_again_put_off)
{
	talk_through("serve session=prepared session=busy/20000 commit hang-up "
		     "gone",
	    "connect session=prepared submit:session commit!unknown @60 "
	    "wait:session=unknown");
	ck_assert(talk.requests[REFD_VERB_SESSION].maybe_sent);
}

/* A second answer that the session is prepared does not take back the commit,
 * so the abort asks. */
TALK(test_prepared_beside_commit,
    "serve session=prepared session commit later:session=prepared query=done "
    "later:commit=done",
    "connect session=prepared submit:session submit:commit "
    "wait:session=prepared abort=ok wait:commit=ok");

/* A refused end did nothing, so the daemon holds the session, and answers every
 * question with pending. */
TALK(test_commit_after_refusal,
    "serve session=prepared commit=busy abort=busy commit=done",
    "connect session=prepared commit=because:busy abort=because:busy "
    "commit=ok");

/* The session is over then, because its only commit did nothing. */
TALK(test_lost_after_refusal, "serve session=prepared commit=busy",
    "connect session=prepared commit=because:busy stop @300 "
    "commit=refused:aborted");

/* An unknown outcome is no refusal, so a later end asks. */
TALK(test_commit_answered_by_unknown,
    "serve session=prepared commit=unknown query=done",
    "connect session=prepared commit=because:unknown abort=ok");
