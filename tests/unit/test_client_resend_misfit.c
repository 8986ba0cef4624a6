/*
 * Proves the work of librefd with odd answers to a transaction. An answer that
 * is unreadable, or does not fit, shows neither success nor failure, so librefd
 * asks again by id, and not without a pause. Results of a part say which refs
 * are done, and the outcome follows from the results.
 */
#include <string.h>

#include "client/librefd/refd_internal.h"
#include "proto/lib/clock.h"
#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

static void got_half_way(struct fake *f)
{
	struct refd_result one = { .name = "refs/heads/b" };
	struct refd_answer part = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = TALK_NR,
		.outcome = REFD_PARTIAL,
		.lsn = 9 };

	fake_play(f, "serve transaction hang-up serve query");
	part.request_id = f->open[REFD_VERB_QUERY];
	part.txid = f->id;
	fake_answer(f, &part);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_half_done)
{
	talk_begin_script(got_half_way);
	talk_calls("connect transaction=[aborted,ok,aborted]");
	ck_assert_ptr_nonnull(strstr(talk.answer.results[0].text, "stopped"));
	ck_assert_uint_eq(talk.answer.lsn, 9);
	talk_end();
}

/* Results of other refs: a different transaction under this id. */
static void tells_of_another(struct fake *f)
{
	struct refd_result one = { .name = "refs/heads/x" };
	struct refd_answer other = { .kind = REFD_ANSWER_RESULTS,
		.results = &one,
		.nr_results = 1,
		.nr_updates = 1,
		.outcome = REFD_COMMITTED };
	int i;

	fake_play(f, "serve transaction");
	other.request_id = f->open[REFD_VERB_TRANSACTION];
	other.txid = f->id;
	fake_answer(f, &other);
	for (i = 0; i < 2; i++) {
		fake_play(f, "serve query");
		other.request_id = f->open[REFD_VERB_QUERY];
		fake_answer(f, &other);
	}
}

TEST(test_of_another)
{
	talk_through_script(tells_of_another, "connect transaction=EPROTO");
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
	{ .nr_updates = TALK_NR, .of_another_id = true },
	{ .nr_updates = TALK_NR, .of_no_id = true },
	{ .kind = REFD_ANSWER_REFUSED,
	    .status = REFD_DENIED,
	    .of_another_id = true },
	{ .nr_updates = TALK_NR + 1, .outcome = REFD_PARTIAL },
	{ .nr_updates = TALK_NR, .outcome = REFD_OUTCOME_UNKNOWN },
	{ .nr_updates = TALK_NR, .outcome = REFD_REJECTED },
	{ .nr_updates = TALK_NR, .outcome = REFD_PARTIAL },
	{ .nr_updates = TALK_NR,
	    .outcome = REFD_COMMITTED,
	    .status = REFD_STALE },
	{ .nr_updates = TALK_NR,
	    .outcome = REFD_COMMITTED,
	    .status = REFD_UNKNOWN },
	{ .nr_updates = TALK_NR,
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
	{ .nr_updates = TALK_NR, .of_another_id = true, .to_query = true },
	{ .kind = REFD_ANSWER_NEVER_SEEN, .of_no_id = true, .to_query = true },
	{ .nr_updates = TALK_NR, .of_no_id = true, .to_query = true },
};

#define NR_MISFITS (int)(sizeof(misfits) / sizeof(misfits[0]))

static const struct misfit *misfit;

/* To the request of VERB. */
static void answer_misfit(struct fake *f, enum refd_verb verb)
{
	struct refd_result results[TALK_NR] = { { .status = misfit->status } };
	struct refd_answer no = { .kind = misfit->kind,
		.request_id = f->open[verb],
		.txid = f->id,
		.results = results,
		.nr_results = TALK_NR,
		.nr_updates = misfit->nr_updates,
		.outcome = misfit->outcome,
		.status = misfit->status };
	int i;

	for (i = 0; i < TALK_NR; i++)
		results[i].name = talk.updates[i].name;
	if (misfit->of_another_id)
		no.txid.bytes[15] ^= 1;
	if (misfit->of_no_id)
		memset(&no.txid, 0, sizeof(no.txid));
	fake_answer(f, &no);
}

static void answers_with_a_misfit(struct fake *f)
{
	fake_play(f, "serve transaction");
	if (misfit->to_query) {
		fake_play(f, "serve query");
		answer_misfit(f, REFD_VERB_QUERY);
	} else {
		answer_misfit(f, REFD_VERB_TRANSACTION);
	}
	fake_play(f, "serve query=done");
}

/* An answer that does not fit shows neither success nor failure: ask again. */
TEST(test_misfit, .times = NR_MISFITS)
{
	misfit = &misfits[_i];
	talk_through_script(answers_with_a_misfit, "connect transaction=ok");
}

static const struct misfit cannot_tell = { .nr_updates = TALK_NR,
	.outcome = REFD_REJECTED,
	.status = REFD_UNKNOWN };

static void rejects_what_it_cannot_tell(struct fake *f)
{
	fake_play(f, "serve transaction");
	answer_misfit(f, REFD_VERB_TRANSACTION);
}

/* The results count, so a caller asks again. */
TEST(test_outcome_of_the_results)
{
	misfit = &cannot_tell;
	talk_through_script(rejects_what_it_cannot_tell,
	    "connect @10000 transaction=[unknown,ok,ok]");
	ck_assert(talk.requests[REFD_VERB_TRANSACTION].maybe_sent);
}

/* An unreadable answer means nothing: ask again on a new connection. */
TALK(test_garbage, "serve transaction garbage serve query=done",
    "connect transaction=ok");

#define NR_ROUNDS 40

static void is_undecided_and_babbles(struct fake *f)
{
	int i;

	fake_play(f, "serve transaction hang-up");
	for (i = 0; i < NR_ROUNDS; i++)
		fake_play(f, "serve query=pending garbage");
	fake_play(f, "serve query=done");
}

/* Each answer that fits ends the count of the others, so the rounds have no
 * end. They must not keep the client busy. */
TEST(test_pause_after_garbage)
{
	uint64_t began = clock_now_ms();

	talk_through_script(is_undecided_and_babbles, "connect transaction=ok");
	ck_assert_uint_ge(clock_now_ms() - began, NR_ROUNDS * NAP_MIN_MS);
}
