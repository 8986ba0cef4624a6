/*
 * Proves the work of librefd with a session and its end, which use one
 * connection. If the connection is lost before a commit may have arrived,
 * librefd reports the session as not done. Otherwise librefd asks for the
 * outcome, at a later end as well, because a commit must never be sent again.
 */
#include <check.h>
#include <errno.h>
#include <unistd.h>

#include "tests/lib/session_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void serves(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_COMMIT, &got);
	fake_expect(f, got.nr_updates == 0, "updates in a commit");
	ses_answer_end(f, &got);
	refd_request_done(&got);
}

START_TEST(test_commit)
{
	ses_begin(serves);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
END_TEST

static void serves_and_tells(struct fake *f)
{
	serves(f);
	ses_tell_outcome(f);
	ses_tell_outcome(f);
}

/* A session ends once, and a later end gets the same results. */
START_TEST(test_commit_twice)
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
END_TEST

static void aborts(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_ABORT, &got);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_abort)
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
END_TEST

static void knows_none(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_COMMIT, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
	refd_request_done(&got);
	ses_take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
}

/* The answer to the end of an unknown session looks like the answer to a
 * query. */
START_TEST(test_commit_of_none)
{
	ses_begin(knows_none);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

/* ---- the session is lost ---- */

static void breaks_at_once(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	refd_request_done(&got);
}

START_TEST(test_session_lost)
{
	ses_begin(breaks_at_once);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

/* The daemon is gone before the commit is sent. A later end would have to ask,
 * because another program may have used the id meanwhile. */
START_TEST(test_prepared_lost)
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
END_TEST

/* The library notices the loss when it pings. */
static void returns_for_a_ping(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_PING, "no ping");
	fake_answer_kind(f, &got, REFD_ANSWER_PONG);
	refd_request_done(&got);
}

static void notice_the_loss(void)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	ses_prepare();
	ck_assert_int_eq(refd_call(ses_refd, &ping, 100000, &ses_ans), 0);
	refd_answer_done(&ses_ans);
}

static void never_saw_it_since(struct fake *f)
{
	returns_for_a_ping(f);
	ses_tell_never_seen(f);
}

/* A new connection to the same daemon does not help. */
START_TEST(test_not_on_another_connection)
{
	ses_begin(never_saw_it_since);
	notice_the_loss();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

static void did_it_since(struct fake *f)
{
	returns_for_a_ping(f);
	ses_tell_outcome(f);
	ses_tell_outcome(f);
}

/* Another struct refd may have prepared and committed the session. */
START_TEST(test_lost_and_done_by_another)
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
END_TEST

static void is_done_by_another(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
	ses_tell_outcome(f);
}

/* The session is not prepared any more, so its end is not sent. */
START_TEST(test_done_by_another)
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
END_TEST

static void prepares_it_again(struct fake *f)
{
	struct refd_request got;

	never_saw_it_since(f);
	ses_take(f, REFD_VERB_SESSION, &got);
	fake_answer_prepared(f, &got);
	refd_request_done(&got);
	ses_take(f, REFD_VERB_COMMIT, &got);
	ses_answer_end(f, &got);
	refd_request_done(&got);
}

/* A session that was lost, and is prepared again, is not over. */
START_TEST(test_lost_and_prepared_again)
{
	ses_begin(prepares_it_again);
	notice_the_loss();
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
END_TEST

/* ---- the commit is lost ---- */

static void loses_commit(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_hang_up(f);
}

static void knows(struct fake *f)
{
	struct refd_request got;

	loses_commit(f);
	fake_serve(f);
	ses_take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
	refd_request_done(&got);
	ses_take(f, REFD_VERB_QUERY, &got);
	ses_answer_end(f, &got);
	refd_request_done(&got);
}

START_TEST(test_commit_lost_and_done)
{
	ses_begin(knows);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
END_TEST

static void answers_query(struct fake *f, enum refd_answer_kind kind)
{
	struct refd_request got;

	loses_commit(f);
	fake_serve(f);
	ses_take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, kind);
	refd_request_done(&got);
}

static void never_saw_it(struct fake *f)
{
	answers_query(f, REFD_ANSWER_NEVER_SEEN);
}

START_TEST(test_commit_never_seen)
{
	ses_begin(never_saw_it);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

static void forgot_it(struct fake *f)
{
	answers_query(f, REFD_ANSWER_EXPIRED);
}

START_TEST(test_commit_expired)
{
	ses_begin(forgot_it);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}
END_TEST

static void goes_for_good(struct fake *f)
{
	loses_commit(f);
	fake_stop_listening(f);
}

START_TEST(test_commit_and_daemon_lost)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}
END_TEST

START_TEST(test_commit_without_updates)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ses_req.nr_updates = 0;
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ses_ans.status, REFD_UNKNOWN);
	ses_finish();
}
END_TEST

/* A commit with an unknown outcome makes no later end a failure. */
START_TEST(test_commit_unknown_twice)
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
END_TEST

/* The same session sent again must not look like one that did nothing. */
START_TEST(test_session_again_after_unknown)
{
	ses_begin(goes_for_good);
	ses_prepare();
	ck_assert_int_eq(ses_finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ses_ans);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 60, &ses_ans), 0);
	ses_check_all(REFD_UNKNOWN);
	ses_finish();
}
END_TEST

static void answers_too_late(struct fake *f)
{
	struct refd_request got;
	char c;

	ses_take_session(f);
	ses_take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_expect(f, read(f->conn, &c, 1) == 0, "more was said");
	fake_serve(f);
	ses_tell_outcome(f);
}

/* The caller gave up the commit, and learns by its abort what became of it. */
START_TEST(test_abort_after_timeout)
{
	ses_begin(answers_too_late);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 30), -ETIMEDOUT);
	ck_assert_int_eq(ses_finish_by(REFD_VERB_ABORT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
END_TEST

static void is_asked_by_another(struct fake *f)
{
	loses_commit(f);
	fake_serve(f);
	ses_tell_outcome(f);
}

/* After a restart of the program, the library knows nothing of the session. */
START_TEST(test_commit_after_restart)
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
END_TEST

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

START_TEST(test_too_few_results)
{
	ses_begin(prepares_too_little);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

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

START_TEST(test_locks_of_other_refs)
{
	ses_begin(prepares_others);
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ses_check_over();
	ses_finish();
}
END_TEST

static void says_pong(struct fake *f)
{
	struct refd_request got;

	ses_take_session(f);
	ses_take(f, REFD_VERB_COMMIT, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PONG);
	refd_request_done(&got);
	fake_serve(f);
	ses_tell_outcome(f);
}

START_TEST(test_commit_answered_by_pong)
{
	ses_begin(says_pong);
	ses_prepare();
	ck_assert_int_eq(ses_finish_by(REFD_VERB_COMMIT, 100000), 0);
	ses_check_all(REFD_OK);
	ses_finish();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("client_session");
	TCase *tc = tcase_create("client_session");

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_test(tc, test_commit);
	tcase_add_test(tc, test_commit_twice);
	tcase_add_test(tc, test_abort);
	tcase_add_test(tc, test_commit_of_none);
	tcase_add_test(tc, test_session_lost);
	tcase_add_test(tc, test_prepared_lost);
	tcase_add_test(tc, test_not_on_another_connection);
	tcase_add_test(tc, test_lost_and_done_by_another);
	tcase_add_test(tc, test_done_by_another);
	tcase_add_test(tc, test_lost_and_prepared_again);
	tcase_add_test(tc, test_commit_lost_and_done);
	tcase_add_test(tc, test_commit_never_seen);
	tcase_add_test(tc, test_commit_expired);
	tcase_add_test(tc, test_commit_and_daemon_lost);
	tcase_add_test(tc, test_commit_without_updates);
	tcase_add_test(tc, test_commit_unknown_twice);
	tcase_add_test(tc, test_session_again_after_unknown);
	tcase_add_test(tc, test_abort_after_timeout);
	tcase_add_test(tc, test_commit_after_restart);
	tcase_add_test(tc, test_too_few_results);
	tcase_add_test(tc, test_locks_of_other_refs);
	tcase_add_test(tc, test_commit_answered_by_pong);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
