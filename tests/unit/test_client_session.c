/*
 * Proves the work of librefd with sessions. A session and its end use one
 * connection. If the connection is lost before a commit may have arrived,
 * librefd reports the session as not done. Otherwise it asks for the outcome,
 * and never sends the commit again. What was in flight beside the commit asks,
 * too, and so does an end after a commit or after the loss. Only after a
 * refusal, which did nothing, another end is sent.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/refd.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NR 2

static struct fake fake;
static struct refd_update updates[NR] = { { .name = "refs/heads/a" },
	{ .name = "refs/heads/b" } };
static struct refd_request session, end;
static struct refd_answer ans;
static struct refd *r;

static void begin(void (*script)(struct fake *f))
{
	fake_start(&fake, script);
	r = refd_new(fake.path);
	memset(&session, 0, sizeof(session));
	session.verb = REFD_VERB_SESSION;
	session.git_dir = "/r";
	session.atomic = true;
	session.updates = updates;
	session.nr_updates = NR;
	ck_assert_int_eq(refd_connect(r, 60000), 0);
}

static void finish(void)
{
	refd_answer_done(&ans);
	refd_free(r);
	fake_stop(&fake);
}

static void prepare(void)
{
	ck_assert_int_eq(refd_call(r, &session, 100000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PREPARED);
	ck_assert_uint_eq(ans.nr_results, NR);
	refd_answer_done(&ans);
}

static struct refd_request *end_by(enum refd_verb verb)
{
	end = session;
	end.verb = verb;
	return &end;
}

static int finish_by(enum refd_verb verb, int timeout_ms)
{
	return refd_call(r, end_by(verb), timeout_ms, &ans);
}

/* While the daemon lives, there is no answer in time. */
static int finish_in_vain(enum refd_verb verb)
{
	int err = refd_submit(r, end_by(verb));

	ck_assert_int_eq(err, 0);
	do
		err = refd_wait(r, &end, 300, &ans);
	while (err == -ETIMEDOUT);
	return err;
}

static void check_over(void)
{
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_ABORTED);
	ck_assert(refd_txid_eq(&ans.txid, &session.txid));
}

static void check_all(enum refd_status status)
{
	size_t i;

	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(ans.nr_results, NR);
	for (i = 0; i < NR; i++)
		ck_assert_int_eq(ans.results[i].status, status);
}

/* ---- servers of the tests ---- */

/* Reads a request, which must be of VERB and of the session. */
static void take(struct fake *f, enum refd_verb verb, struct refd_request *got)
{
	static struct refd_txid id;

	fake_read(f, got);
	fake_expect(f, got->verb == verb, "another request than expected");
	if (verb == REFD_VERB_SESSION)
		id = got->txid;
	fake_expect(f, refd_txid_eq(&got->txid, &id), "another transaction");
}

static void take_session(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	take(f, REFD_VERB_SESSION, &got);
	fake_answer_prepared(f, &got);
	refd_request_done(&got);
}

/* All updates ok, which an end does not name. */
static void answer_end(struct fake *f, struct refd_request *got)
{
	got->updates = updates;
	got->nr_updates = NR;
	fake_answer_ok(f, got);
	got->updates = NULL;
	got->nr_updates = 0;
}

static void serves(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	fake_expect(f, got.nr_updates == 0, "updates in a commit");
	answer_end(f, &got);
	refd_request_done(&got);
}

START_TEST(test_commit)
{
	begin(serves);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

/* The answer to a query is the outcome of the session. */
static void tell_outcome(struct fake *f)
{
	struct refd_request got;

	take(f, REFD_VERB_QUERY, &got);
	answer_end(f, &got);
	refd_request_done(&got);
}

static void serves_and_tells(struct fake *f)
{
	serves(f);
	tell_outcome(f);
	tell_outcome(f);
}

/* A session ends once, and a later end gets the same results. */
START_TEST(test_commit_twice)
{
	begin(serves_and_tells);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void aborts(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_ABORT, &got);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_abort)
{
	begin(aborts);
	prepare();
	end = session;
	end.verb = REFD_VERB_ABORT;
	end.nr_updates = 0;
	ck_assert_int_eq(refd_call(r, &end, 100000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	finish();
}
END_TEST

static void knows_none(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
	refd_request_done(&got);
	take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
}

/* The answer to the end of an unknown session looks like the answer to a
 * query. */
START_TEST(test_commit_of_none)
{
	begin(knows_none);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_over();
	finish();
}
END_TEST

/* ---- the session is lost ---- */

static void breaks_at_once(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	take(f, REFD_VERB_SESSION, &got);
	refd_request_done(&got);
}

START_TEST(test_session_lost)
{
	begin(breaks_at_once);
	ck_assert_int_eq(refd_call(r, &session, 100000, &ans), 0);
	check_over();
	finish();
}
END_TEST

/* The daemon is gone before the commit is sent. A later end would have to ask,
 * because another program may have used the id meanwhile. */
START_TEST(test_prepared_lost)
{
	begin(take_session);
	prepare();
	fake_stop(&fake);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_over();
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 300), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	refd_free(r);
}
END_TEST

/* The library notices the loss when it pings. */
static void returns_for_a_ping(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_PING, "no ping");
	fake_answer_kind(f, &got, REFD_ANSWER_PONG);
	refd_request_done(&got);
}

static void notice_the_loss(void)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	prepare();
	ck_assert_int_eq(refd_call(r, &ping, 100000, &ans), 0);
	refd_answer_done(&ans);
}

static void tell_never_seen(struct fake *f)
{
	struct refd_request got;

	take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
}

static void never_saw_it_since(struct fake *f)
{
	returns_for_a_ping(f);
	tell_never_seen(f);
}

/* A new connection to the same daemon does not help. */
START_TEST(test_not_on_another_connection)
{
	begin(never_saw_it_since);
	notice_the_loss();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_over();
	finish();
}
END_TEST

static void did_it_since(struct fake *f)
{
	returns_for_a_ping(f);
	tell_outcome(f);
	tell_outcome(f);
}

/* Another struct refd may have prepared and committed the session. */
START_TEST(test_lost_and_done_by_another)
{
	begin(did_it_since);
	notice_the_loss();
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void is_done_by_another(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_SESSION, &got);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
	tell_outcome(f);
}

/* The session is not prepared any more, so its end is not sent. */
START_TEST(test_done_by_another)
{
	begin(is_done_by_another);
	prepare();
	ck_assert_int_eq(refd_call(r, &session, 100000, &ans), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void prepares_it_again(struct fake *f)
{
	struct refd_request got;

	never_saw_it_since(f);
	take(f, REFD_VERB_SESSION, &got);
	fake_answer_prepared(f, &got);
	refd_request_done(&got);
	take(f, REFD_VERB_COMMIT, &got);
	answer_end(f, &got);
	refd_request_done(&got);
}

/* A session that was lost, and is prepared again, is not over. */
START_TEST(test_lost_and_prepared_again)
{
	begin(prepares_it_again);
	notice_the_loss();
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

/* ---- the commit is lost ---- */

static void loses_commit(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_hang_up(f);
}

static void knows(struct fake *f)
{
	struct refd_request got;

	loses_commit(f);
	fake_serve(f);
	take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
	refd_request_done(&got);
	take(f, REFD_VERB_QUERY, &got);
	answer_end(f, &got);
	refd_request_done(&got);
}

START_TEST(test_commit_lost_and_done)
{
	begin(knows);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void answers_query(struct fake *f, enum refd_answer_kind kind)
{
	struct refd_request got;

	loses_commit(f);
	fake_serve(f);
	take(f, REFD_VERB_QUERY, &got);
	fake_answer_kind(f, &got, kind);
	refd_request_done(&got);
}

static void never_saw_it(struct fake *f)
{
	answers_query(f, REFD_ANSWER_NEVER_SEEN);
}

START_TEST(test_commit_never_seen)
{
	begin(never_saw_it);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_over();
	finish();
}
END_TEST

static void forgot_it(struct fake *f)
{
	answers_query(f, REFD_ANSWER_EXPIRED);
}

START_TEST(test_commit_expired)
{
	begin(forgot_it);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_UNKNOWN);
	finish();
}
END_TEST

static void goes_for_good(struct fake *f)
{
	loses_commit(f);
	fake_stop_listening(f);
}

START_TEST(test_commit_and_daemon_lost)
{
	begin(goes_for_good);
	prepare();
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	check_all(REFD_UNKNOWN);
	finish();
}
END_TEST

START_TEST(test_commit_without_updates)
{
	begin(goes_for_good);
	prepare();
	session.nr_updates = 0;
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_UNKNOWN);
	finish();
}
END_TEST

/* A commit with an unknown outcome makes no later end a failure. */
START_TEST(test_commit_unknown_twice)
{
	begin(goes_for_good);
	prepare();
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_in_vain(REFD_VERB_ABORT), 0);
	check_all(REFD_UNKNOWN);
	finish();
}
END_TEST

/* The same session sent again must not look like one that did nothing. */
START_TEST(test_session_again_after_unknown)
{
	begin(goes_for_good);
	prepare();
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_call(r, &session, 60, &ans), 0);
	check_all(REFD_UNKNOWN);
	finish();
}
END_TEST

static void answers_too_late(struct fake *f)
{
	struct refd_request got;
	char c;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_expect(f, read(f->conn, &c, 1) == 0, "more was said");
	fake_serve(f);
	tell_outcome(f);
}

/* The caller gave up the commit, and learns by its abort what became of it. */
START_TEST(test_abort_after_timeout)
{
	begin(answers_too_late);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 30), -ETIMEDOUT);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void loses_both_ends(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	take(f, REFD_VERB_QUERY, &got);
	refd_request_done(&got);
	fake_serve(f);
	tell_outcome(f);
	tell_outcome(f);
}

/* An abort beside a commit in flight ends with it. */
START_TEST(test_abort_beside_commit)
{
	struct refd_request commit;

	begin(loses_both_ends);
	prepare();
	commit = *end_by(REFD_VERB_COMMIT);
	ck_assert_int_eq(refd_submit(r, &commit), 0);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &commit, 100000, &ans), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void answer_aborted(struct fake *f, const struct refd_request *got)
{
	struct refd_result results[NR] = {
		{ .name = "refs/heads/a", .status = REFD_ABORTED },
		{ .name = "refs/heads/b", .status = REFD_ABORTED },
	};
	const struct refd_answer no = { .kind = REFD_ANSWER_RESULTS,
		.request_id = got->request_id,
		.txid = got->txid,
		.results = results,
		.nr_results = NR,
		.nr_updates = NR,
		.outcome = REFD_REJECTED };

	fake_answer(f, &no);
}

static void is_told_to_abort_and_to_commit(struct fake *f)
{
	struct refd_request aborted, commit;

	take_session(f);
	take(f, REFD_VERB_ABORT, &aborted);
	take(f, REFD_VERB_COMMIT, &commit);
	answer_aborted(f, &aborted);
	answer_aborted(f, &commit);
	refd_request_done(&aborted);
	refd_request_done(&commit);
}

/* An abort leaves nothing open, so the commit behind it is sent. */
START_TEST(test_commit_beside_abort)
{
	struct refd_request aborted;

	begin(is_told_to_abort_and_to_commit);
	prepare();
	aborted = *end_by(REFD_VERB_ABORT);
	ck_assert_int_eq(refd_submit(r, &aborted), 0);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_all(REFD_ABORTED);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &aborted, 10000, &ans), 0);
	check_all(REFD_ABORTED);
	finish();
}
END_TEST

/* Takes VERB, and then a commit, and answers neither. */
static void lose_both(struct fake *f, enum refd_verb verb)
{
	struct refd_request got;

	take_session(f);
	take(f, verb, &got);
	refd_request_done(&got);
	take(f, REFD_VERB_COMMIT, &got);
	refd_request_done(&got);
	fake_hang_up(f);
}

static void loses_abort_and_commit(struct fake *f)
{
	lose_both(f, REFD_VERB_ABORT);
	fake_serve(f);
	tell_outcome(f);
	tell_outcome(f);
}

/* The daemon may have refused the abort, so its loss proves nothing. */
START_TEST(test_abort_lost_beside_commit)
{
	struct refd_request aborted;

	begin(loses_abort_and_commit);
	prepare();
	aborted = *end_by(REFD_VERB_ABORT);
	ck_assert_int_eq(refd_submit(r, &aborted), 0);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &aborted, 10000, &ans), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void loses_session_and_commit(struct fake *f)
{
	lose_both(f, REFD_VERB_SESSION);
	fake_serve(f);
	tell_outcome(f);
	tell_outcome(f);
}

/* The same session, sent once more, is committed with the first. */
START_TEST(test_session_lost_beside_commit)
{
	begin(loses_session_and_commit);
	prepare();
	ck_assert_int_eq(refd_submit(r, &session), 0);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &session, 10000, &ans), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void never_saw_both(struct fake *f)
{
	lose_both(f, REFD_VERB_SESSION);
	fake_serve(f);
	tell_never_seen(f);
	tell_never_seen(f);
}

/* A session is never sent again by itself. */
START_TEST(test_session_beside_commit_never_seen)
{
	begin(never_saw_both);
	prepare();
	ck_assert_int_eq(refd_submit(r, &session), 0);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 3000), 0);
	check_over();
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &session, 3000, &ans), 0);
	check_over();
	finish();
}
END_TEST

/* Refuses the session sent once more, and goes with the commit. */
static void refuse_again(struct fake *f, uint32_t retry_after_ms)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY,
		.retry_after_ms = retry_after_ms };
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_SESSION, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	fake_answer(f, &no);
	refd_request_done(&got);
	take(f, REFD_VERB_COMMIT, &got);
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
START_TEST(test_session_again_refused)
{
	begin(is_busy_for_it_again);
	prepare();
	ck_assert_int_eq(refd_call(r, &session, 10000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_call(r, &session, 60, &ans), 0);
	check_all(REFD_UNKNOWN);
	finish();
}
END_TEST

static void puts_it_off_again(struct fake *f)
{
	refuse_again(f, 20000);
}

START_TEST(test_session_again_put_off)
{
	begin(puts_it_off_again);
	prepare();
	ck_assert_int_eq(refd_submit(r, &session), 0);
	ck_assert_int_eq(finish_in_vain(REFD_VERB_COMMIT), 0);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &session, 60, &ans), 0);
	check_all(REFD_UNKNOWN);
	ck_assert(session.maybe_sent);
	finish();
}
END_TEST

static void prepares_beside_a_commit(struct fake *f)
{
	struct refd_request again, commit;

	take_session(f);
	take(f, REFD_VERB_SESSION, &again);
	take(f, REFD_VERB_COMMIT, &commit);
	fake_answer_prepared(f, &again);
	tell_outcome(f);
	answer_end(f, &commit);
	refd_request_done(&again);
	refd_request_done(&commit);
}

/* A second answer that the session is prepared does not take back the commit,
 * so the abort asks. */
START_TEST(test_prepared_beside_commit)
{
	struct refd_request commit;

	begin(prepares_beside_a_commit);
	prepare();
	ck_assert_int_eq(refd_submit(r, &session), 0);
	commit = *end_by(REFD_VERB_COMMIT);
	ck_assert_int_eq(refd_submit(r, &commit), 0);
	ck_assert_int_eq(refd_wait(r, &session, 10000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PREPARED);
	refd_answer_done(&ans);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 10000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &commit, 10000, &ans), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void refuse_end(struct fake *f, enum refd_verb verb,
    enum refd_status status)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status };
	struct refd_request got;

	take(f, verb, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	fake_answer(f, &no);
	refd_request_done(&got);
}

static void check_refused(enum refd_status status)
{
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, status);
	refd_answer_done(&ans);
}

static void refuses_at_first(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	refuse_end(f, REFD_VERB_COMMIT, REFD_BUSY);
	refuse_end(f, REFD_VERB_ABORT, REFD_BUSY);
	take(f, REFD_VERB_COMMIT, &got);
	answer_end(f, &got);
	refd_request_done(&got);
}

/* A refused end did nothing, so the daemon holds the session, and answers every
 * question with pending. */
START_TEST(test_commit_after_refusal)
{
	begin(refuses_at_first);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_BUSY);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 10000), 0);
	check_refused(REFD_BUSY);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void refuses_and_goes(struct fake *f)
{
	take_session(f);
	refuse_end(f, REFD_VERB_COMMIT, REFD_BUSY);
}

/* The session is over then, because its only commit did nothing. */
START_TEST(test_lost_after_refusal)
{
	begin(refuses_and_goes);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_BUSY);
	fake_stop(&fake);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 300), 0);
	check_over();
	refd_answer_done(&ans);
	refd_free(r);
}
END_TEST

static void cannot_tell_at_first(struct fake *f)
{
	take_session(f);
	refuse_end(f, REFD_VERB_COMMIT, REFD_UNKNOWN);
	tell_outcome(f);
}

/* An unknown outcome is no refusal, so a later end asks. */
START_TEST(test_commit_answered_by_unknown)
{
	begin(cannot_tell_at_first);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 10000), 0);
	check_refused(REFD_UNKNOWN);
	ck_assert_int_eq(finish_by(REFD_VERB_ABORT, 10000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

static void is_asked_by_another(struct fake *f)
{
	loses_commit(f);
	fake_serve(f);
	tell_outcome(f);
}

/* After a restart of the program, the library knows nothing of the session. */
START_TEST(test_commit_after_restart)
{
	begin(is_asked_by_another);
	prepare();
	ck_assert_int_eq(refd_submit(r, end_by(REFD_VERB_COMMIT)), 0);
	refd_free(r);
	r = refd_new(fake.path);
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
}
END_TEST

/* ---- answers that don't fit ---- */

static void prepares_too_little(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	take(f, REFD_VERB_SESSION, &got);
	got.nr_updates--;
	fake_answer_prepared(f, &got);
	got.nr_updates++;
	refd_request_done(&got);
}

START_TEST(test_too_few_results)
{
	begin(prepares_too_little);
	ck_assert_int_eq(refd_call(r, &session, 100000, &ans), 0);
	check_over();
	finish();
}
END_TEST

static void prepares_others(struct fake *f)
{
	struct refd_update others[NR] = { updates[0],
		{ .name = "refs/heads/other" } };
	struct refd_update *mine;
	struct refd_request got;

	fake_serve(f);
	take(f, REFD_VERB_SESSION, &got);
	mine = got.updates;
	got.updates = others;
	fake_answer_prepared(f, &got);
	got.updates = mine;
	refd_request_done(&got);
}

START_TEST(test_locks_of_other_refs)
{
	begin(prepares_others);
	ck_assert_int_eq(refd_call(r, &session, 100000, &ans), 0);
	check_over();
	finish();
}
END_TEST

static void says_pong(struct fake *f)
{
	struct refd_request got;

	take_session(f);
	take(f, REFD_VERB_COMMIT, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_PONG);
	refd_request_done(&got);
	fake_serve(f);
	tell_outcome(f);
}

START_TEST(test_commit_answered_by_pong)
{
	begin(says_pong);
	prepare();
	ck_assert_int_eq(finish_by(REFD_VERB_COMMIT, 100000), 0);
	check_all(REFD_OK);
	finish();
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
	tcase_add_test(tc, test_abort_beside_commit);
	tcase_add_test(tc, test_commit_beside_abort);
	tcase_add_test(tc, test_abort_lost_beside_commit);
	tcase_add_test(tc, test_session_lost_beside_commit);
	tcase_add_test(tc, test_session_beside_commit_never_seen);
	tcase_add_test(tc, test_session_again_refused);
	tcase_add_test(tc, test_session_again_put_off);
	tcase_add_test(tc, test_prepared_beside_commit);
	tcase_add_test(tc, test_commit_after_refusal);
	tcase_add_test(tc, test_lost_after_refusal);
	tcase_add_test(tc, test_commit_answered_by_unknown);
	tcase_add_test(tc, test_commit_after_restart);
	tcase_add_test(tc, test_too_few_results);
	tcase_add_test(tc, test_locks_of_other_refs);
	tcase_add_test(tc, test_commit_answered_by_pong);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
