/*
 * Proves the work of librefd with a session and its end, which use one
 * connection. If the connection is lost before a commit may have arrived,
 * librefd reports the session as not done. Otherwise librefd asks for the
 * outcome, at a later end as well, because a commit must never be sent again.
 */
#include <errno.h>
#include <unistd.h>

#include "tests/lib/session_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

FAKE_SCRIPT(serves, "serve session=prepared commit=done");

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 30);

TEST(test_commit)
{
	ses_begin(serves);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(serves_and_tells,
    "serve session=prepared commit=done query=done query=done");

/* A session ends once, and a later end gets the same results. */
TEST(test_commit_twice)
{
	ses_begin(serves_and_tells);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(aborts, "serve session=prepared abort=ok");

TEST(test_abort)
{
	ses_begin(aborts);
	ses_prepare();
	ses_end = ses_req;
	ses_end.verb = REFD_VERB_ABORT;
	ses_end.nr_updates = 0;
	ck_assert_int_eq(refd_call(ses_refd, &ses_end, 100000, &ses_ans), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_RESULTS);
	ses_finish();
}

FAKE_SCRIPT(knows_none,
    "serve session=prepared commit=pending query=never-seen");

/* The answer to the end of an unknown session looks like the answer to a
 * query. */
TEST(test_commit_of_none)
{
	ses_begin(knows_none);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}

/* ---- the session is lost ---- */

FAKE_SCRIPT(breaks_at_once, "serve session");

TEST(test_session_lost)
{
	ses_begin(breaks_at_once);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}

/* The daemon is gone before the commit is sent. A later end would have to ask,
 * because another program may have used the id meanwhile. */
TEST(test_prepared_lost)
{
	ses_begin(ses_take_session);
	ses_prepare();
	fake_stop(&ses_fake);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 300), 0);
	ses_check_all(REFD_UNKNOWN);
	refd_answer_done(&ses_ans);
	refd_free(ses_refd);
}

static void notice_the_loss(void)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	ses_prepare();
	ck_assert_int_eq(refd_call(ses_refd, &ping, 100000, &ses_ans), 0);
	refd_answer_done(&ses_ans);
}

FAKE_SCRIPT(never_saw_it_since,
    "serve session=prepared serve ping=pong query=never-seen");

/* A new connection to the same daemon does not help. */
TEST(test_not_on_another_connection)
{
	ses_begin(never_saw_it_since);
	notice_the_loss();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}

FAKE_SCRIPT(did_it_since,
    "serve session=prepared serve ping=pong query=done query=done");

/* Another struct refd may have prepared and committed the session. */
TEST(test_lost_and_done_by_another)
{
	ses_begin(did_it_since);
	notice_the_loss();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(is_done_by_another, "serve session=prepared session=ok query=done");

/* The session is not prepared any more, so its end is not sent. */
TEST(test_done_by_another)
{
	ses_begin(is_done_by_another);
	ses_prepare();
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(prepares_it_again,
    "serve session=prepared serve ping=pong query=never-seen session=prepared "
    "commit=done");

/* A session that was lost, and is prepared again, is not over. */
TEST(test_lost_and_prepared_again)
{
	ses_begin(prepares_it_again);
	notice_the_loss();
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

/* ---- the commit is lost ---- */

FAKE_SCRIPT(knows,
    "serve session=prepared commit serve query=pending query=done");

TEST(test_commit_lost_and_done)
{
	ses_begin(knows);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(never_saw_it,
    "serve session=prepared commit serve query=never-seen");

TEST(test_commit_never_seen)
{
	ses_begin(never_saw_it);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}

FAKE_SCRIPT(forgot_it, "serve session=prepared commit serve query=expired");

TEST(test_commit_expired)
{
	ses_begin(forgot_it);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}

FAKE_SCRIPT(goes_for_good, "serve session=prepared commit hang-up gone");

TEST(test_commit_and_daemon_lost)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}

TEST(test_commit_without_updates)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ses_req.nr_updates = 0;
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ses_ans.status, REFD_UNKNOWN);
	ses_finish();
}

/* A commit with an unknown outcome makes no later end a failure. */
TEST(test_commit_unknown_twice)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ses_check_all(REFD_UNKNOWN);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ses_check_all(REFD_UNKNOWN);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_ABORT), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}

/* The same session sent again must not look like one that did nothing. */
TEST(test_session_again_after_unknown)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 60, &ses_ans), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}

FAKE_SCRIPT(answers_too_late,
    "serve session=prepared commit end serve query=done");

/* The caller gave up the commit, and learns by its abort what became of it. */
TEST(test_abort_after_timeout)
{
	ses_begin(answers_too_late);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 30), -ETIMEDOUT);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(is_asked_by_another,
    "serve session=prepared commit serve query=done");

/* After a restart of the program, the library knows nothing of the session. */
TEST(test_commit_after_restart)
{
	ses_begin(is_asked_by_another);
	ses_prepare();
	ck_assert_int_eq(refd_submit(ses_refd, ses_end_by(REFD_VERB_COMMIT)),
	    0);
	refd_free(ses_refd);
	ses_refd = refd_new(ses_fake.path);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

/* ---- answers that don't fit ---- */

static void prepares_too_little(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	got.nr_updates--;
	fake_answer_prepared(f, &got);
	got.nr_updates++;
	refd_request_done(&got);
}

TEST(test_too_few_results)
{
	ses_begin(prepares_too_little);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}

static void prepares_others(struct fake *f)
{
	struct refd_update others[SES_NR] = { ses_updates[0],
		{ .name = "refs/heads/other" } };
	struct refd_update *mine;
	struct refd_request got;

	fake_serve(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	mine = got.updates;
	got.updates = others;
	fake_answer_prepared(f, &got);
	got.updates = mine;
	refd_request_done(&got);
}

TEST(test_locks_of_other_refs)
{
	ses_begin(prepares_others);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}

FAKE_SCRIPT(says_pong, "serve session=prepared commit=pong serve query=done");

TEST(test_commit_answered_by_pong)
{
	ses_begin(says_pong);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
