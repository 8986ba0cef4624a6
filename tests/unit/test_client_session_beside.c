/*
 * Proves the work of librefd with several requests of one session. A request in
 * flight beside a commit asks for the outcome, unless the daemon answers. After
 * an end, only a refusal, which did nothing, lets librefd send another end.
 */
#include "tests/lib/session_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

FAKE_SCRIPT(loses_both_ends,
    "serve session=prepared commit query serve query=done query=done");

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 30);

/* An abort beside a commit in flight ends with it. */
TEST(test_abort_beside_commit)
{
	struct refd_request commit;

	ses_begin(loses_both_ends);
	ses_prepare();
	commit = *ses_end_by(REFD_VERB_COMMIT);
	ck_assert_int_eq(refd_submit(ses_refd, &commit), 0);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &commit, 100000, &ses_ans), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

static void is_told_to_abort_and_to_commit(struct fake *f)
{
	struct refd_request aborted, commit;

	ses_take_session(f);
	ses_take(f, REFD_VERB_ABORT, &aborted);
	ses_take(f, REFD_VERB_COMMIT, &commit);
	fake_answer_as(f, &aborted, "[aborted,aborted]");
	fake_answer_as(f, &commit, "[aborted,aborted]");
	refd_request_done(&aborted);
	refd_request_done(&commit);
}

/* An abort leaves nothing open, so the commit behind it is sent. */
TEST(test_commit_beside_abort)
{
	struct refd_request aborted;

	ses_begin(is_told_to_abort_and_to_commit);
	ses_prepare();
	aborted = *ses_end_by(REFD_VERB_ABORT);
	ck_assert_int_eq(refd_submit(ses_refd, &aborted), 0);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	ses_check_all(REFD_ABORTED);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &aborted, 10000, &ses_ans), 0);
	ses_check_all(REFD_ABORTED);
	ses_finish();
}

/* Takes VERB, and then a commit, and answers neither. */
FAKE_SCRIPT(loses_abort_and_commit,
    "serve session=prepared abort commit serve query=done query=done");

/* The daemon may have refused the abort, so its loss proves nothing. */
TEST(test_abort_lost_beside_commit)
{
	struct refd_request aborted;

	ses_begin(loses_abort_and_commit);
	ses_prepare();
	aborted = *ses_end_by(REFD_VERB_ABORT);
	ck_assert_int_eq(refd_submit(ses_refd, &aborted), 0);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &aborted, 10000, &ses_ans), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(loses_session_and_commit,
    "serve session=prepared session commit serve query=done query=done");

/* The same session, sent once more, is committed with the first. */
TEST(test_session_lost_beside_commit)
{
	ses_begin(loses_session_and_commit);
	ses_prepare();
	ck_assert_int_eq(refd_submit(ses_refd, &ses_req), 0);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &ses_req, 10000, &ses_ans), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(never_saw_both,
    "serve session=prepared session commit serve query=never-seen "
    "query=never-seen");

/* A session is never sent again by itself. */
TEST(test_session_beside_commit_never_seen)
{
	ses_begin(never_saw_both);
	ses_prepare();
	ck_assert_int_eq(refd_submit(ses_refd, &ses_req), 0);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 3000), 0);
	ses_check_over();
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &ses_req, 3000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}

/* Refuses the session sent once more, and goes with the commit. */
static void refuse_again(struct fake *f, uint32_t retry_after_ms)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY,
		.retry_after_ms = retry_after_ms };
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	fake_answer(f, &no);
	refd_request_done(&got);
	ses_take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_hang_up(f);
	fake_stop_listening(f);
}

static void is_busy_for_it_again(struct fake *f)
{
	refuse_again(f, 0);
}

/* The refusal is of the second request, and the commit of the first may be
 * done. */
TEST(test_session_again_refused)
{
	ses_begin(is_busy_for_it_again);
	ses_prepare();
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 10000, &ses_ans), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ses_ans.status, REFD_BUSY);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 60, &ses_ans), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}

static void puts_it_off_again(struct fake *f)
{
	refuse_again(f, 20000);
}

TEST(test_session_again_put_off)
{
	ses_begin(puts_it_off_again);
	ses_prepare();
	ck_assert_int_eq(refd_submit(ses_refd, &ses_req), 0);
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &ses_req, 60, &ses_ans), 0);
	ses_check_all(REFD_UNKNOWN);
	ck_assert(ses_req.maybe_sent);
	ses_finish();
}

static void prepares_beside_a_commit(struct fake *f)
{
	struct refd_request again, commit;

	ses_take_session(f);
	ses_take(f, REFD_VERB_SESSION, &again);
	ses_take(f, REFD_VERB_COMMIT, &commit);
	fake_answer_prepared(f, &again);
	fake_play(f, "query=done");
	fake_answer_as(f, &commit, "done");
	refd_request_done(&again);
	refd_request_done(&commit);
}

/* A second answer that the session is prepared does not take back the commit,
 * so the abort asks. */
TEST(test_prepared_beside_commit)
{
	struct refd_request commit;

	ses_begin(prepares_beside_a_commit);
	ses_prepare();
	ck_assert_int_eq(refd_submit(ses_refd, &ses_req), 0);
	commit = *ses_end_by(REFD_VERB_COMMIT);
	ck_assert_int_eq(refd_submit(ses_refd, &commit), 0);
	ck_assert_int_eq(refd_wait(ses_refd, &ses_req, 10000, &ses_ans), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_PREPARED);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 10000), 0);
	ses_check_all(REFD_OK);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_wait(ses_refd, &commit, 10000, &ses_ans), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

static void check_refused(enum refd_status status)
{
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ses_ans.status, status);
	refd_answer_done(&ses_ans);
}

FAKE_SCRIPT(refuses_at_first,
    "serve session=prepared commit=busy abort=busy commit=done");

/* A refused end did nothing, so the daemon holds the session, and answers every
 * question with pending. */
TEST(test_commit_after_refusal)
{
	ses_begin(refuses_at_first);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_BUSY);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 10000), 0);
	check_refused(REFD_BUSY);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}

FAKE_SCRIPT(refuses_and_goes, "serve session=prepared commit=busy");

/* The session is over then, because its only commit did nothing. */
TEST(test_lost_after_refusal)
{
	ses_begin(refuses_and_goes);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_BUSY);
	fake_stop(&ses_fake);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 300), 0);
	ses_check_over();
	refd_answer_done(&ses_ans);
	refd_free(ses_refd);
}

FAKE_SCRIPT(cannot_tell_at_first,
    "serve session=prepared commit=unknown query=done");

/* An unknown outcome is no refusal, so a later end asks. */
TEST(test_commit_answered_by_unknown)
{
	ses_begin(cannot_tell_at_first);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_UNKNOWN);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 10000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
