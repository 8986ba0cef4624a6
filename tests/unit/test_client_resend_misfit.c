/*
 * Proves the work of librefd with odd answers to a transaction. An answer that
 * is unreadable, or does not fit, shows neither success nor failure, so librefd
 * asks again by id, and not without a pause. Results of a part say which refs
 * are done, and the outcome follows from the results.
 */
#include <errno.h>
#include <string.h>

#include "client/librefd/refd_internal.h"
#include "proto/lib/clock.h"
#include "tests/lib/resend_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void got_half_way(struct fake *f)
{
	struct refd_request got;
	struct refd_result one = { .name = "refs/heads/b" };
	struct refd_answer part = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = RSD_NR,
		.outcome = REFD_PARTIAL,
		.lsn = 9 };

	rsd_take_and_break(f);
	fake_serve(f);
	rsd_expect_query(f, &got);
	part.request_id = got.request_id;
	part.txid = got.txid;
	fake_answer(f, &part);
	refd_request_done(&got);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_half_done)
{
	ck_assert_int_eq(rsd_run_for(got_half_way, 100000), 0);
	ck_assert_uint_eq(rsd_ans.nr_results, RSD_NR);
	ck_assert_int_eq(rsd_ans.results[0].status, REFD_ABORTED);
	ck_assert_ptr_nonnull(strstr(rsd_ans.results[0].text, "stopped"));
	ck_assert_int_eq(rsd_ans.results[1].status, REFD_OK);
	ck_assert_int_eq(rsd_ans.results[2].status, REFD_ABORTED);
	ck_assert_int_eq(rsd_ans.outcome, REFD_PARTIAL);
	ck_assert_uint_eq(rsd_ans.lsn, 9);
	refd_answer_done(&rsd_ans);
}

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
	rsd_seen = got.txid;
	for (i = 0; i < 3; i++) {
		other.request_id = got.request_id;
		other.txid = got.txid;
		fake_answer(f, &other);
		refd_request_done(&got);
		if (i == 2)
			break;
		fake_serve(f);
		rsd_expect_query(f, &got);
	}
}

TEST(test_of_another)
{
	ck_assert_int_eq(rsd_run_for(tells_of_another, 100000), -EPROTO);
}

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
	{ .nr_updates = RSD_NR, .of_another_id = true },
	{ .nr_updates = RSD_NR, .of_no_id = true },
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_DENIED,
	    .of_another_id = true },
	{ .nr_updates = RSD_NR + 1, .outcome = REFD_PARTIAL },
	{ .nr_updates = RSD_NR, .outcome = REFD_OUTCOME_UNKNOWN },
	{ .nr_updates = RSD_NR, .outcome = REFD_REJECTED },
	{ .nr_updates = RSD_NR, .outcome = REFD_PARTIAL },
	{ .nr_updates = RSD_NR,
	    .outcome = REFD_COMMITTED,
	    .status = REFD_STALE },
	{ .nr_updates = RSD_NR,
	    .outcome = REFD_COMMITTED,
	    .status = REFD_UNKNOWN },
	{ .nr_updates = RSD_NR,
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
	{ .nr_updates = RSD_NR, .of_another_id = true, .to_query = true },
	{ .kind = REFD_ANSWER_NEVER_SEEN, .of_no_id = true, .to_query = true },
	{ .nr_updates = RSD_NR, .of_no_id = true, .to_query = true },
};

#define NR_MISFITS (int)(sizeof(misfits) / sizeof(misfits[0]))

static const struct misfit *misfit;

static void answer_misfit(struct fake *f, const struct refd_request *got)
{
	struct refd_result results[RSD_NR] = { { .status = misfit->status } };
	struct refd_answer no = { .kind = misfit->kind,
		.request_id = got->request_id,
		.txid = got->txid,
		.results = results,
		.nr_results = RSD_NR,
		.nr_updates = misfit->nr_updates,
		.outcome = misfit->outcome,
		.status = misfit->status };
	int i;

	for (i = 0; i < RSD_NR; i++)
		results[i].name = rsd_updates[i].name;
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
	rsd_seen = got.txid;
	if (misfit->to_query) {
		refd_request_done(&got);
		fake_serve(f);
		rsd_expect_query(f, &got);
	}
	answer_misfit(f, &got);
	refd_request_done(&got);
	fake_serve(f);
	rsd_expect_query(f, &got);
	rsd_answer_done(f, &got);
	refd_request_done(&got);
}

/* An answer that does not fit shows neither success nor failure: ask again. */
TEST(test_misfit, .times = NR_MISFITS)
{
	misfit = &misfits[_i];
	ck_assert_int_eq(rsd_run_for(answers_with_a_misfit, 100000), 0);
	rsd_check_all(REFD_OK);
	ck_assert_int_eq(rsd_ans.outcome, REFD_COMMITTED);
	refd_answer_done(&rsd_ans);
}

static void rejects_what_it_cannot_tell(struct fake *f)
{
	struct refd_result results[RSD_NR] = { { .status = REFD_UNKNOWN } };
	struct refd_answer no = { .kind = REFD_ANSWER_RESULTS,
		.results = results,
		.nr_results = RSD_NR,
		.nr_updates = RSD_NR,
		.outcome = REFD_REJECTED };
	struct refd_request got;
	int i;

	fake_serve(f);
	fake_read(f, &got);
	no.request_id = got.request_id;
	no.txid = got.txid;
	for (i = 0; i < RSD_NR; i++)
		results[i].name = rsd_updates[i].name;
	fake_answer(f, &no);
	refd_request_done(&got);
}

/* The results count, so a caller asks again. */
TEST(test_outcome_of_the_results)
{
	ck_assert_int_eq(rsd_run_for(rejects_what_it_cannot_tell, 10000), 0);
	ck_assert_int_eq(rsd_ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(rsd_ans.outcome, REFD_OUTCOME_UNKNOWN);
	ck_assert(rsd_req.maybe_sent);
	refd_answer_done(&rsd_ans);
}

static void babbles_once(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	rsd_seen = got.txid;
	refd_request_done(&got);
	fake_send(f, "000bgarbage", 11);
	fake_serve(f);
	rsd_expect_query(f, &got);
	rsd_answer_done(f, &got);
	refd_request_done(&got);
}

/* An unreadable answer means nothing: ask again on a new connection. */
TEST(test_garbage)
{
	ck_assert_int_eq(rsd_run_for(babbles_once, 100000), 0);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}

#define NR_ROUNDS 40

static void is_undecided_and_babbles(struct fake *f)
{
	struct refd_request got;
	int i;

	rsd_take_and_break(f);
	for (i = 0; i < NR_ROUNDS; i++) {
		fake_serve(f);
		rsd_expect_query(f, &got);
		fake_answer_kind(f, &got, REFD_ANSWER_PENDING);
		refd_request_done(&got);
		fake_send(f, "000bgarbage", 11);
	}
	fake_serve(f);
	rsd_expect_query(f, &got);
	rsd_answer_done(f, &got);
	refd_request_done(&got);
}

/* Each answer that fits ends the count of the others, so the rounds have no
 * end. They must not keep the client busy. */
TEST(test_pause_after_garbage)
{
	uint64_t began = clock_now_ms();

	ck_assert_int_eq(rsd_run_for(is_undecided_and_babbles, 100000), 0);
	ck_assert_uint_ge(clock_now_ms() - began, NR_ROUNDS * NAP_MIN_MS);
	rsd_check_all(REFD_OK);
	refd_answer_done(&rsd_ans);
}
