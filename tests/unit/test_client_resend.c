/*
 * Proves the work of librefd when the connection breaks during a transaction.
 * It asks by id, sends again only after "never-seen", and waits while the
 * daemon recovers. Without an answer, it reports every ref as unknown and never
 * as failed, and asks if the caller sends the transaction again.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/refd.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NR 3

static struct fake fake;
static struct refd_update updates[NR] = { { .name = "refs/heads/a" },
	{ .name = "refs/heads/b" }, { .name = "refs/heads/c" } };
static struct refd_request req;
static struct refd_answer ans;
/* The id of the first request, as the script saw it. */
static struct refd_txid seen;

static struct refd *start_away(void (*script)(struct fake *f))
{
	fake_start(&fake, script);
	req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.deadline_ms = 60000,
		.updates = updates,
		.nr_updates = NR };
	return refd_new(fake.path);
}

static struct refd *start(void (*script)(struct fake *f))
{
	struct refd *r = start_away(script);

	ck_assert_int_eq(refd_connect(r, 60000), 0);
	return r;
}

static int stop(struct refd *r, int err)
{
	refd_free(r);
	fake_stop(&fake);
	return err;
}

static int run_for(void (*script)(struct fake *f), int timeout_ms)
{
	struct refd *r = start(script);

	return stop(r, refd_call(r, &req, timeout_ms, &ans));
}

static void check_all(enum refd_status status)
{
	size_t i;

	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(ans.nr_results, NR);
	for (i = 0; i < NR; i++) {
		ck_assert_str_eq(ans.results[i].name, updates[i].name);
		ck_assert_int_eq(ans.results[i].status, status);
	}
	ck_assert(refd_txid_eq(&ans.txid, &req.txid));
}

/* The first connection takes the transaction and breaks. */
static void take_and_break(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "no transaction");
	seen = got.txid;
	refd_request_done(&got);
	fake_hang_up(f);
}

/* The next request has to be the query. */
static void expect_query(struct fake *f, struct refd_request *got)
{
	fake_read(f, got);
	fake_expect(f, got->verb == REFD_VERB_QUERY, "sent without asking");
	fake_expect(f, refd_txid_eq(&got->txid, &seen), "asks for another");
}

/* Answers the query with the outcome. The query has no updates. */
static void answer_done(struct fake *f, struct refd_request *got)
{
	got->updates = updates;
	got->nr_updates = NR;
	fake_answer_ok(f, got);
	got->updates = NULL;
	got->nr_updates = 0;
}

/* ---- asked and told ---- */

static void knows(struct fake *f)
{
	struct refd_request got;

	take_and_break(f);
	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

START_TEST(test_done)
{
	ck_assert_int_eq(run_for(knows, 100000), 0);
	check_all(REFD_OK);
	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}
END_TEST

static void is_undecided_twice(struct fake *f)
{
	struct refd_request got;
	int i;

	take_and_break(f);
	fake_serve(f);
	for (i = 0; i < 3; i++) {
		expect_query(f, &got);
		if (i < 2)
			fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
		else
			answer_done(f, &got);
		refd_request_done(&got);
	}
}

START_TEST(test_pending)
{
	ck_assert_int_eq(run_for(is_undecided_twice, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void never_saw_it(struct fake *f)
{
	struct refd_request got;

	take_and_break(f);
	fake_serve(f);
	expect_query(f, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "not sent again");
	fake_expect(f, refd_txid_eq(&got.txid, &seen), "under another id");
	fake_expect(f, got.nr_updates == NR, "not all of it");
	fake_expect(f, got.deadline_ms > 0 && got.deadline_ms <= 60000,
	    "with more time than it had");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_never_seen)
{
	ck_assert_int_eq(run_for(never_saw_it, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void forgot_it(struct fake *f)
{
	struct refd_request got;

	take_and_break(f);
	fake_serve(f);
	expect_query(f, &got);
	fake_answer_kind(f, &got, REFD_ANSWER_EXPIRED);
	refd_request_done(&got);
}

START_TEST(test_expired)
{
	ck_assert_int_eq(run_for(forgot_it, 100000), 0);
	check_all(REFD_UNKNOWN);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

static void refuses(struct fake *f, const struct refd_request *got,
    enum refd_status status)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.request_id = got->request_id,
		.status = status };

	fake_answer(f, &no);
}

static void is_busy_then_denies(struct fake *f)
{
	struct refd_request got;

	take_and_break(f);
	fake_serve(f);
	expect_query(f, &got);
	refuses(f, &got, REFD_BUSY);
	refd_request_done(&got);
	expect_query(f, &got);
	refuses(f, &got, REFD_DENIED);
	refd_request_done(&got);
}

/* A refused query does not refuse the transaction. */
START_TEST(test_question_refused)
{
	ck_assert_int_eq(run_for(is_busy_then_denies, 100000), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

/* ---- gone ---- */

static void goes_for_good(struct fake *f)
{
	take_and_break(f);
	fake_stop_listening(f);
}

static int call_in_vain(struct refd *r)
{
	int err = refd_submit(r, &req);

	ck_assert_int_eq(err, 0);
	do
		err = refd_wait(r, &req, 60, &ans);
	while (err == -ETIMEDOUT); /* not gone yet */
	return err;
}

START_TEST(test_gone)
{
	struct refd *r = start(goes_for_good);

	ck_assert_int_eq(stop(r, call_in_vain(r)), 0);
	check_all(REFD_UNKNOWN);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

static void hangs(struct fake *f)
{
	struct refd_request got;
	char c;

	fake_serve(f);
	fake_read(f, &got);
	refd_request_done(&got);
	fake_expect(f, read(f->conn, &c, 1) == 0, "more was said");
}

START_TEST(test_hangs)
{
	ck_assert_int_eq(run_for(hangs, 30), -ETIMEDOUT);
	ck_assert_int_eq(refd_answer_unknown(&req, &ans), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

START_TEST(test_unknown_without_updates)
{
	struct refd_request none = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1 };

	ck_assert_int_eq(refd_answer_unknown(&none, &ans), 0);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

static void recovers_first(struct fake *f)
{
	struct refd_request got;

	take_and_break(f);
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

START_TEST(test_recovering)
{
	ck_assert_int_eq(run_for(recovers_first, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void recovers_for_ever(struct fake *f)
{
	take_and_break(f);
	fake_accept(f);
	fake_hello(f, REFD_RECOVERING);
	fake_stop_listening(f);
}

START_TEST(test_recovers_too_long)
{
	ck_assert_int_eq(run_for(recovers_for_ever, 2000), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
}
END_TEST

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

START_TEST(test_broken_before)
{
	ck_assert_int_eq(run_for(breaks_at_once, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

/* ---- the caller sends the same transaction again ---- */

/* The daemon may have done it at the first time. */
START_TEST(test_again_gone)
{
	struct refd *r = start(goes_for_good);

	ck_assert_int_eq(call_in_vain(r), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_call(r, &req, 60, &ans), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	stop(r, 0);
}
END_TEST

static void answers_the_second_time(struct fake *f)
{
	struct refd_request got;
	char c;

	fake_serve(f);
	fake_read(f, &got);
	seen = got.txid;
	refd_request_done(&got);
	fake_expect(f, read(f->conn, &c, 1) == 0, "more was said");
	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

/* A daemon may be too busy for a transaction, and still know its outcome. */
START_TEST(test_again_after_timeout)
{
	struct refd *r = start(answers_the_second_time);

	ck_assert_int_eq(refd_call(r, &req, 30, &ans), -ETIMEDOUT);
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

START_TEST(test_again_after_restart)
{
	struct refd *r = start(answers_the_second_time);

	ck_assert_int_eq(refd_submit(r, &req), 0);
	ck_assert_int_eq(refd_wait(r, &req, 30, &ans), -ETIMEDOUT);
	refd_free(r);
	r = refd_new(fake.path);
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void knows_it_of_before(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

/* A restarted program has only the id. */
START_TEST(test_old_id)
{
	struct refd *r = start(knows_it_of_before);

	ck_assert_int_eq(refd_txid_make(&seen), 0);
	req.txid = seen;
	req.maybe_sent = true;
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	ck_assert(!req.maybe_sent);
	refd_answer_done(&ans);
}
END_TEST

/* A request is encoded when it is sent, so this one can be submitted as long as
 * there is no connection. */
static struct refd_update malformed = { .action = REFD_SYMREF_DELETE,
	.name = "refs/heads/s",
	.has_old = true,
	.old_target = "" };

/* The error of one request must not hide the outcome of another. */
START_TEST(test_beside_a_malformed_one)
{
	struct refd_request bad = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.updates = &malformed,
		.nr_updates = 1 };
	struct refd *r = start_away(knows_it_of_before);

	ck_assert_int_eq(refd_submit(r, &bad), 0);
	ck_assert_int_eq(refd_txid_make(&seen), 0);
	req.txid = seen;
	req.maybe_sent = true;
	ck_assert_int_eq(refd_call(r, &req, 10000, &ans), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(r, &bad, 10000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(strstr(refd_error(r), "an old target is empty"));
	ck_assert(!bad.maybe_sent);
	stop(r, 0);
}
END_TEST

static void forgot_it_for_a_while(struct fake *f)
{
	struct refd_request got;

	forgot_it(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

START_TEST(test_again_after_unknown)
{
	struct refd *r = start(forgot_it_for_a_while);

	ck_assert_int_eq(refd_call(r, &req, 100000, &ans), 0);
	check_all(REFD_UNKNOWN);
	refd_answer_done(&ans);
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void takes_a_transaction(struct fake *f)
{
	struct refd_request got;

	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "asked in vain");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

static void is_busy_at_first(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	refuses(f, &got, REFD_BUSY);
	refd_request_done(&got);
	takes_a_transaction(f);
}

/* A busy daemon took nothing, so there is nothing to ask for. */
START_TEST(test_again_after_busy)
{
	struct refd *r = start(is_busy_at_first);

	ck_assert_int_eq(refd_call(r, &req, 100000, &ans), 0);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

static void forgot_it_and_takes_another(struct fake *f)
{
	forgot_it(f);
	takes_a_transaction(f);
}

START_TEST(test_new_id)
{
	struct refd *r = start(forgot_it_and_takes_another);

	ck_assert_int_eq(refd_call(r, &req, 100000, &ans), 0);
	refd_answer_done(&ans);
	memset(&req.txid, 0, sizeof(req.txid));
	ck_assert_int_eq(stop(r, refd_call(r, &req, 100000, &ans)), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

/* ---- answers of special cases ---- */

static void got_half_way(struct fake *f)
{
	struct refd_request got;
	struct refd_result one = { .name = "refs/heads/b" };
	struct refd_answer part = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = NR,
		.outcome = REFD_PARTIAL,
		.lsn = 9 };

	take_and_break(f);
	fake_serve(f);
	expect_query(f, &got);
	part.request_id = got.request_id;
	part.txid = got.txid;
	fake_answer(f, &part);
	refd_request_done(&got);
}

START_TEST(test_half_done)
{
	ck_assert_int_eq(run_for(got_half_way, 100000), 0);
	ck_assert_uint_eq(ans.nr_results, NR);
	ck_assert_int_eq(ans.results[0].status, REFD_ABORTED);
	ck_assert_ptr_nonnull(strstr(ans.results[0].text, "stopped"));
	ck_assert_int_eq(ans.results[1].status, REFD_OK);
	ck_assert_int_eq(ans.results[2].status, REFD_ABORTED);
	ck_assert_int_eq(ans.outcome, REFD_PARTIAL);
	ck_assert_uint_eq(ans.lsn, 9);
	refd_answer_done(&ans);
}
END_TEST

/* Results of other refs: a different transaction under this id. */
static void tells_of_another(struct fake *f)
{
	struct refd_request got;
	struct refd_result one = { .name = "refs/heads/x" };
	struct refd_answer other = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = 1,
		.outcome = REFD_COMMITTED };
	int i;

	fake_serve(f);
	fake_read(f, &got);
	seen = got.txid;
	for (i = 0; i < 3; i++) {
		other.request_id = got.request_id;
		other.txid = got.txid;
		fake_answer(f, &other);
		refd_request_done(&got);
		if (i == 2)
			break;
		fake_serve(f);
		expect_query(f, &got);
	}
}

START_TEST(test_of_another)
{
	ck_assert_int_eq(run_for(tells_of_another, 100000), -EPROTO);
}
END_TEST

/* Whole answers that are not those to the transaction. STATUS is of the first
 * result. */
static const struct misfit {
	enum refd_answer_kind kind;
	enum refd_status status;
	enum refd_outcome outcome;
	size_t nr_updates;
	bool of_another_id, of_no_id;
	bool to_query; /* the answer to the question, not to the transaction */
} misfits[] = {
	{ .kind = REFD_ANSWER_PENDING },
	{ .kind = REFD_ANSWER_NEVER_SEEN },
	{ .kind = REFD_ANSWER_EXPIRED },
	{ .kind = REFD_ANSWER_PREPARED },
	{ .kind = REFD_ANSWER_PONG },
	{ .kind = REFD_ANSWER_PAIRS },
	{ .kind = REFD_ANSWER_RECORDS },
	{ .nr_updates = NR, .of_another_id = true },
	{ .nr_updates = NR, .of_no_id = true },
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_DENIED,
	    .of_another_id = true },
	{ .nr_updates = NR + 1, .outcome = REFD_PARTIAL },
	{ .nr_updates = NR, .outcome = REFD_OUTCOME_UNKNOWN },
	{ .nr_updates = NR, .outcome = REFD_REJECTED },
	{ .nr_updates = NR, .outcome = REFD_PARTIAL },
	{ .nr_updates = NR, .outcome = REFD_COMMITTED, .status = REFD_STALE },
	{ .nr_updates = NR, .outcome = REFD_COMMITTED, .status = REFD_UNKNOWN },
	{ .nr_updates = NR,
	    .outcome = REFD_OUTCOME_UNKNOWN,
	    .status = REFD_STALE },
	{ .kind = REFD_ANSWER_PONG, .to_query = true },
	{ .kind = REFD_ANSWER_PREPARED, .to_query = true },
	{ .kind = REFD_ANSWER_NEVER_SEEN,
	    .of_another_id = true,
	    .to_query = true },
	{ .kind = REFD_ANSWER_EXPIRED,
	    .of_another_id = true,
	    .to_query = true },
	{ .nr_updates = NR, .of_another_id = true, .to_query = true },
	{ .kind = REFD_ANSWER_NEVER_SEEN, .of_no_id = true, .to_query = true },
	{ .nr_updates = NR, .of_no_id = true, .to_query = true },
};

#define NR_MISFITS (int)(sizeof(misfits) / sizeof(misfits[0]))

static const struct misfit *misfit;

static void answer_misfit(struct fake *f, const struct refd_request *got)
{
	struct refd_result results[NR] = { { .status = misfit->status } };
	struct refd_answer no = { .kind = misfit->kind,
		.request_id = got->request_id,
		.txid = got->txid,
		.results = results,
		.nr_results = NR,
		.nr_updates = misfit->nr_updates,
		.outcome = misfit->outcome,
		.status = misfit->status };
	int i;

	for (i = 0; i < NR; i++)
		results[i].name = updates[i].name;
	if (misfit->of_another_id)
		no.txid.bytes[15] ^= 1;
	if (misfit->of_no_id)
		memset(&no.txid, 0, sizeof(no.txid));
	fake_answer(f, &no);
}

static void answers_with_a_misfit(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	seen = got.txid;
	if (misfit->to_query) {
		refd_request_done(&got);
		fake_serve(f);
		expect_query(f, &got);
	}
	answer_misfit(f, &got);
	refd_request_done(&got);
	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

/* An answer that does not fit shows neither success nor failure: ask again. */
START_TEST(test_misfit)
{
	misfit = &misfits[_i];
	ck_assert_int_eq(run_for(answers_with_a_misfit, 100000), 0);
	check_all(REFD_OK);
	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}
END_TEST

static void rejects_what_it_cannot_tell(struct fake *f)
{
	struct refd_result results[NR] = { { .status = REFD_UNKNOWN } };
	struct refd_answer no = { .kind = REFD_ANSWER_RESULTS,
		.results = results,
		.nr_results = NR,
		.nr_updates = NR,
		.outcome = REFD_REJECTED };
	struct refd_request got;
	int i;

	fake_serve(f);
	fake_read(f, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	for (i = 0; i < NR; i++)
		results[i].name = updates[i].name;
	fake_answer(f, &no);
	refd_request_done(&got);
}

/* The results count, so a caller asks again. */
START_TEST(test_outcome_of_the_results)
{
	ck_assert_int_eq(run_for(rejects_what_it_cannot_tell, 10000), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert(req.maybe_sent);
	refd_answer_done(&ans);
}
END_TEST

static void babbles_once(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	seen = got.txid;
	refd_request_done(&got);
	fake_send(f, "000bgarbage", 11);
	fake_serve(f);
	expect_query(f, &got);
	answer_done(f, &got);
	refd_request_done(&got);
}

/* An unreadable answer means nothing: ask again on a new connection. */
START_TEST(test_garbage)
{
	ck_assert_int_eq(run_for(babbles_once, 100000), 0);
	check_all(REFD_OK);
	refd_answer_done(&ans);
}
END_TEST

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
		answer_done(f, &got);
		refd_request_done(&got);
	}
}

START_TEST(test_two_in_flight)
{
	struct refd_request two[2];
	struct refd *r;
	int i;

	fake_start(&fake, loses_two);
	r = refd_new(fake.path);
	ck_assert_int_eq(refd_connect(r, 60000), 0);
	memset(two, 0, sizeof(two));
	for (i = 0; i < 2; i++) {
		two[i].verb = REFD_VERB_TRANSACTION;
		two[i].git_dir = "/r";
		two[i].updates = updates;
		two[i].nr_updates = NR;
		ck_assert_int_eq(refd_submit(r, &two[i]), 0);
	}
	for (i = 1; i >= 0; i--) {
		ck_assert_int_eq(refd_wait(r, &two[i], 100000, &ans), 0);
		req.txid = two[i].txid;
		check_all(REFD_OK);
		refd_answer_done(&ans);
	}
	refd_free(r);
	fake_stop(&fake);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_resend");
	TCase *tc = tcase_create("resend");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_test(tc, test_done);
	tcase_add_test(tc, test_pending);
	tcase_add_test(tc, test_never_seen);
	tcase_add_test(tc, test_expired);
	tcase_add_test(tc, test_question_refused);
	tcase_add_test(tc, test_gone);
	tcase_add_test(tc, test_hangs);
	tcase_add_test(tc, test_unknown_without_updates);
	tcase_add_test(tc, test_recovering);
	tcase_add_test(tc, test_recovers_too_long);
	tcase_add_test(tc, test_broken_before);
	tcase_add_test(tc, test_again_gone);
	tcase_add_test(tc, test_again_after_timeout);
	tcase_add_test(tc, test_again_after_restart);
	tcase_add_test(tc, test_old_id);
	tcase_add_test(tc, test_beside_a_malformed_one);
	tcase_add_test(tc, test_again_after_unknown);
	tcase_add_test(tc, test_again_after_busy);
	tcase_add_test(tc, test_new_id);
	tcase_add_test(tc, test_half_done);
	tcase_add_test(tc, test_of_another);
	tcase_add_loop_test(tc, test_misfit, 0, NR_MISFITS);
	tcase_add_test(tc, test_outcome_of_the_results);
	tcase_add_test(tc, test_garbage);
	tcase_add_test(tc, test_two_in_flight);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
