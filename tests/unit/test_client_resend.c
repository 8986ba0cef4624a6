/*
 * Proves the work of librefd when the connection breaks during a transaction.
 * It asks by id, sends again only after "never-seen", and waits while the
 * daemon recovers. Without an answer each ref is unknown, and never failed, and
 * librefd asks if the caller sends the transaction again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/resend_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* ---- asked and told ---- */

FAKE_SCRIPT(knows, "serve transaction serve query=done");

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_done)
{
	ck_assert_int_eq(rsd_run_for(knows, 100000), 0);
	rsd_check_all(REFD_OK);
	ck_assert_int_eq(rsd_ans.outcome, REFD_COMMITTED);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(is_undecided_twice,
    "serve transaction serve query=pending query=pending query=done");

TEST(test_pending)
{
	ck_assert_int_eq(rsd_run_for(is_undecided_twice, 100000), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

static void never_saw_it(struct fake *f)
{
	struct refd_request got;

	rsd_take_and_break(f);
	fake_serve(f);
	rsd_expect_query(f, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "not sent again");
	fake_expect(f, refd_txid_eq(&got.txid, &rsd_seen), "under another id");
	fake_expect(f, got.nr_updates == RSD_NR, "not all of it");
	fake_expect(f, got.deadline_ms > 0 && got.deadline_ms <= 60000,
	    "with more time than it had");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

TEST(test_never_seen)
{
	ck_assert_int_eq(rsd_run_for(never_saw_it, 100000), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(forgot_it, "serve transaction serve query=expired");

TEST(test_expired)
{
	ck_assert_int_eq(rsd_run_for(forgot_it, 100000), 0);
	rsd_check_all(REFD_UNKNOWN);
	ck_assert_int_eq(rsd_ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(is_busy_then_denies,
    "serve transaction serve query=busy query=denied");

/* A refused query does not refuse the transaction. */
TEST(test_question_refused)
{
	ck_assert_int_eq(rsd_run_for(is_busy_then_denies, 100000), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

/* ---- gone ---- */

FAKE_SCRIPT(goes_for_good, "serve transaction hang-up gone");

static int call_in_vain(struct refd *r)
{
	int err = refd_submit(r, &rsd_req);

	ck_assert_int_eq(err, 0);
	do
		err = refd_wait(r, &rsd_req, 60, &rsd_ans);
	while (err == -ETIMEDOUT); /* not gone yet */
	return err;
}

TEST(test_gone)
{
	struct refd *r = rsd_start(goes_for_good);

	ck_assert_int_eq(rsd_stop(r, call_in_vain(r)), 0);
	rsd_check_all(REFD_UNKNOWN);
	ck_assert_int_eq(rsd_ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(hangs, "serve transaction end");

TEST(test_hangs)
{
	ck_assert_int_eq(rsd_run_for(hangs, 30), -ETIMEDOUT);
	ck_assert_int_eq(refd_answer_unknown(&rsd_req, &rsd_ans), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

TEST(test_unknown_without_updates)
{
	struct refd_request none = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1 };

	ck_assert_int_eq(refd_answer_unknown(&none, &rsd_ans), 0);
	ck_assert_int_eq(rsd_ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(recovers_first,
    "serve transaction recover recover serve query=done");

TEST(test_recovering)
{
	ck_assert_int_eq(rsd_run_for(recovers_first, 100000), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

FAKE_SCRIPT(recovers_for_ever, "serve transaction recover gone");

TEST(test_recovers_too_long)
{
	ck_assert_int_eq(rsd_run_for(recovers_for_ever, 2000), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
}

/* The connection breaks before a byte was read. The client notices when it
 * writes, or when it waits. In the first case a query is not needed. The client
 * must tell both cases apart. */
static void breaks_at_once(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_hang_up(f);
	fake_serve(f);
	fake_read(f, &got);
	if (got.verb == REFD_VERB_QUERY) {
		fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
		refd_request_done(&got);
		fake_read(f, &got);
	}
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "not sent");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

TEST(test_broken_before)
{
	ck_assert_int_eq(rsd_run_for(breaks_at_once, 100000), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

/* ---- the caller sends the same transaction again ---- */

/* The daemon may have done it at the first time. */
TEST(test_again_gone)
{
	struct refd *r = rsd_start(goes_for_good);

	ck_assert_int_eq(call_in_vain(r), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
	ck_assert_int_eq(refd_call(r, &rsd_req, 60, &rsd_ans), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
	rsd_stop(r, 0);
}

FAKE_SCRIPT(answers_the_second_time, "serve transaction end serve query=done");

/* A daemon may be too busy for a transaction, and still know its outcome. */
TEST(test_again_after_timeout)
{
	struct refd *r = rsd_start(answers_the_second_time);

	ck_assert_int_eq(refd_call(r, &rsd_req, 30, &rsd_ans), -ETIMEDOUT);
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

TEST(test_again_after_restart)
{
	struct refd *r = rsd_start(answers_the_second_time);

	ck_assert_int_eq(refd_submit(r, &rsd_req), 0);
	ck_assert_int_eq(refd_wait(r, &rsd_req, 30, &rsd_ans), -ETIMEDOUT);
	refd_free(r);
	r = refd_new(rsd_fake.path);
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

static void knows_it_of_before(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	rsd_expect_query(f, &got);
	rsd_answer_done(f, &got);
	refd_request_done(&got);
}

/* A restarted program has only the id. */
TEST(test_old_id)
{
	struct refd *r = rsd_start(knows_it_of_before);

	ck_assert_int_eq(refd_txid_make(&rsd_seen), 0);
	rsd_req.txid = rsd_seen;
	rsd_req.maybe_sent = true;
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	ck_assert(!rsd_req.maybe_sent);
	refd_answer_done(&rsd_ans);
}

/* A request is encoded when it is sent, so this one can be submitted as long as
 * there is no connection. */
static struct refd_update malformed = { .action = REFD_SYMREF_DELETE,
	.name = "refs/heads/s",
	.has_old = true,
	.old_target = "" };

/* The error of one request must not hide the outcome of another. */
TEST(test_beside_a_malformed_one)
{
	struct refd_request bad = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.updates = &malformed,
		.nr_updates = 1 };
	struct refd *r = rsd_start_away(knows_it_of_before);

	ck_assert_int_eq(refd_submit(r, &bad), 0);
	ck_assert_int_eq(refd_txid_make(&rsd_seen), 0);
	rsd_req.txid = rsd_seen;
	rsd_req.maybe_sent = true;
	ck_assert_int_eq(refd_call(r, &rsd_req, 10000, &rsd_ans), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
	ck_assert_int_eq(refd_wait(r, &bad, 10000, &rsd_ans), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refd_error(r), "an old target is empty"));
	ck_assert(!bad.maybe_sent);
	rsd_stop(r, 0);
}

FAKE_SCRIPT(forgot_it_for_a_while,
    "serve transaction serve query=expired query=done");

TEST(test_again_after_unknown)
{
	struct refd *r = rsd_start(forgot_it_for_a_while);

	ck_assert_int_eq(refd_call(r, &rsd_req, 100000, &rsd_ans), 0);
	rsd_check_all(REFD_UNKNOWN);
	refd_answer_done(&rsd_ans);
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

static void takes_a_transaction(struct fake *f)
{
	struct refd_request got;

	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "asked in vain");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

FAKE_SCRIPT(is_busy_at_first, "serve transaction=busy transaction=ok");

/* A busy daemon took nothing, so there is nothing to ask for. */
TEST(test_again_after_busy)
{
	struct refd *r = rsd_start(is_busy_at_first);

	ck_assert_int_eq(refd_call(r, &rsd_req, 100000, &rsd_ans), 0);
	ck_assert_int_eq(rsd_ans.status, REFD_BUSY);
	refd_answer_done(&rsd_ans);
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

static void forgot_it_and_takes_another(struct fake *f)
{
	forgot_it(f);
	takes_a_transaction(f);
}

TEST(test_new_id)
{
	struct refd *r = rsd_start(forgot_it_and_takes_another);

	ck_assert_int_eq(refd_call(r, &rsd_req, 100000, &rsd_ans), 0);
	refd_answer_done(&rsd_ans);
	memset(&rsd_req.txid, 0, sizeof(rsd_req.txid));
	ck_assert_int_eq(rsd_stop(r, refd_call(r, &rsd_req, 100000, &rsd_ans)),
	    0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

/* ---- two in flight ---- */

static void loses_two(struct fake *f)
{
	struct refd_request got;
	int i;

	fake_serve(f);
	for (i = 0; i < 2; i++) {
		fake_read(f, &got);
		refd_request_done(&got);
	}
	fake_serve(f);
	for (i = 0; i < 2; i++) {
		fake_read(f, &got);
		fake_expect(f, got.verb == REFD_VERB_QUERY, "no question");
		rsd_answer_done(f, &got);
		refd_request_done(&got);
	}
}

TEST(test_two_in_flight)
{
	struct refd_request two[2];
	struct refd *r;
	int i;

	fake_start(&rsd_fake, loses_two);
	r = refd_new(rsd_fake.path);
	ck_assert_int_eq(refd_connect(r, 60000), 0);
	memset(two, 0, sizeof(two));
	for (i = 0; i < 2; i++) {
		two[i].verb = REFD_VERB_TRANSACTION;
		two[i].git_dir = "/r";
		two[i].updates = rsd_updates;
		two[i].nr_updates = RSD_NR;
		ck_assert_int_eq(refd_submit(r, &two[i]), 0);
	}
	for (i = 1; i >= 0; i--) {
		ck_assert_int_eq(refd_wait(r, &two[i], 100000, &rsd_ans), 0);
		rsd_req.txid = two[i].txid;
		rsd_check_all(REFD_OK);
		refd_answer_done(&rsd_ans);
	}
	refd_free(r);
	fake_stop(&rsd_fake);
}
