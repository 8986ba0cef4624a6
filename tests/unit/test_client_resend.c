/*
 * Proves the work of librefd when the connection breaks during a transaction.
 * It asks by id, sends again only after "never-seen", and waits while the
 * daemon recovers. Without an answer each ref is unknown, and never failed, and
 * librefd asks if the caller sends the transaction again.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

/* ---- asked and told ---- */

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TALK(test_done, "serve transaction serve query=done", "connect transaction=ok");

TALK(test_pending,
    "serve transaction serve query=pending query=pending query=done",
    "connect transaction=ok");

TALK(test_never_seen, "serve transaction serve query=never-seen transaction=ok",
    "connect transaction=ok");

TALK(test_expired, "serve transaction serve query=expired",
    "connect transaction=unknown");

/* A refused query does not refuse the transaction. */
TALK(test_question_refused, "serve transaction serve query=busy query=denied",
    "connect transaction=unknown");

/* ---- gone ---- */

TALK(test_gone, "serve transaction hang-up gone",
    "connect transaction!unknown");

TEST(test_hangs)
{
	const struct refd_request *req = &talk.requests[REFD_VERB_TRANSACTION];
	struct refd_answer ans;
	size_t i;

	talk_through("serve transaction end",
	    "connect @30 transaction=ETIMEDOUT");
	ck_assert_int_eq(refd_answer_unknown(req, &ans), 0);
	ck_assert_uint_eq(ans.nr_results, TALK_NR);
	for (i = 0; i < TALK_NR; i++)
		ck_assert_int_eq(ans.results[i].status, REFD_UNKNOWN);
	ck_assert(refd_txid_eq(&ans.txid, &req->txid));
	refd_answer_done(&ans);
}

TEST(test_unknown_without_updates)
{
	struct refd_request none = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1 };
	struct refd_answer ans;

	ck_assert_int_eq(refd_answer_unknown(&none, &ans), 0);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&ans);
}

TALK(test_recovering, "serve transaction recover recover serve query=done",
    "connect transaction=ok");

TALK(test_recovers_too_long, "serve transaction recover gone",
    "connect @2000 transaction=unknown");

/* The connection breaks before a byte was read. The client notices when it
 * writes, or when it waits. In the first case a query is not needed. The client
 * must tell both cases apart. */
static void breaks_at_once(struct fake *f)
{
	struct refd_request got;

	fake_play(f, "serve hang-up serve");
	fake_read(f, &got);
	if (got.verb == REFD_VERB_QUERY) {
		fake_answer_as(f, &got, "never-seen");
		refd_request_done(&got);
		fake_read(f, &got);
	}
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "not sent");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

TEST(test_broken_before)
{
	talk_through_script(breaks_at_once, "connect transaction=ok");
}

/* ---- the caller sends the same transaction again ---- */

/* The daemon may have done it at the first time. */
TALK(test_again_gone, "serve transaction hang-up gone",
    "connect transaction!unknown @60 transaction=unknown");

/* A daemon may be too busy for a transaction, and still know its outcome. */
TALK(test_again_after_timeout, "serve transaction end serve query=done",
    "connect @30 transaction=ETIMEDOUT @100000 transaction=ok");

TALK(test_again_after_restart, "serve transaction end serve query=done",
    "connect @30 submit:transaction wait:transaction=ETIMEDOUT restart @100000 "
    "transaction=ok");

/* A restarted program has only the id. */
TALK(test_old_id, "serve transaction end serve query=done",
    "connect @30 transaction=ETIMEDOUT @100000 restart connect remember "
    "transaction=ok");

/* A request is encoded when it is sent, so this one can be submitted as long as
 * there is no connection. */
static struct refd_update malformed = { .action = REFD_SYMREF_DELETE,
	.name = "refs/heads/s",
	.has_old = true,
	.old_target = "" };

/* The error of a request must not hide the outcome of another request. */
TEST(test_beside_a_malformed_one)
{
	struct refd_request bad = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.updates = &malformed,
		.nr_updates = 1 };
	struct refd_answer ans;

	talk_begin("serve transaction end serve query=done");
	talk_calls("connect @30 transaction=ETIMEDOUT restart remember");
	ck_assert_int_eq(refd_submit(talk.refd, &bad), 0);
	talk_calls("@10000 transaction=ok");
	ck_assert_int_eq(refd_wait(talk.refd, &bad, 10000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(talk.refd), "an old target is empty"));
	ck_assert(!bad.maybe_sent);
	talk_end();
}

TALK(test_again_after_unknown,
    "serve transaction serve query=expired query=done",
    "connect transaction=unknown transaction=ok");

/* A busy daemon took nothing, so there is nothing to ask for. */
TALK(test_again_after_busy, "serve transaction=busy transaction=ok",
    "connect transaction=because:busy transaction=ok");

TALK(test_new_id, "serve transaction serve query=expired anew transaction=ok",
    "connect transaction=unknown new-id transaction=ok");

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
		got.updates = talk.updates;
		got.nr_updates = TALK_NR;
		fake_answer_ok(f, &got);
		refd_request_done(&got);
	}
}

TEST(test_two_in_flight)
{
	struct refd_request two[2];
	struct refd_answer ans;
	int i;

	talk_begin_script(loses_two);
	talk_calls("connect");
	for (i = 0; i < 2; i++) {
		two[i] = talk.requests[REFD_VERB_TRANSACTION];
		ck_assert_int_eq(refd_submit(talk.refd, &two[i]), 0);
	}
	for (i = 1; i >= 0; i--) {
		ck_assert_int_eq(refd_wait(talk.refd, &two[i], 100000, &ans),
		    0);
		ck_assert(refd_txid_eq(&ans.txid, &two[i].txid));
		ck_assert_uint_eq(ans.nr_results, TALK_NR);
		ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
		refd_answer_done(&ans);
	}
	talk_end();
}
