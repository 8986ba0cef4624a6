/*
 * Proves that librefd handles a refusal of the whole connection. The client
 * reads the refusal even if the server hung up before the client writes. A
 * denial is reported at once, with its text. After "busy" the client comes
 * back. A transaction that cannot have been taken is not reported as unknown,
 * and a transaction that may have been taken is not sent twice.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

/* More than a socket takes at once. */
#define MANY 40000

/* ---- denied ---- */

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_denied)
{
	talk_begin("away=denied");
	talk_calls("connect=EPERM why");
	ck_assert_ptr_nonnull(strstr(refd_error(talk.refd), talk.fake.path));
	talk_end();
}

/* Without a limit, the client would try for ever. */
TALK(test_denied_without_a_limit, "away=denied",
    "@-1 transaction=because:denied");

TALK(test_denied_late, "late=denied", "connect @-1 transaction=because:denied");

TALK(test_ping_denied_late, "late=denied", "connect @-1 ping=EPERM why");

/* The server takes the transaction. After its restart, it denies us. */
TALK(test_denied_afterwards, "serve transaction away=denied",
    "@-1 transaction=unknown");

/* ---- busy ---- */

TALK(test_busy, "away=busy away=busy serve transaction=ok",
    "connect=EBUSY why transaction=ok");

TEST(test_cannot_start)
{
	talk_begin("away=io away=io serve transaction=ok");
	talk_calls("connect=EHOSTDOWN");
	ck_assert_ptr_nonnull(
	    strstr(refd_error(talk.refd), "cannot start: " FAKE_WHY));
	talk_calls("transaction=ok");
	talk_end();
}

static void is_full_for_ever(struct fake *f)
{
	while (poll(&(struct pollfd){ .fd = f->listener, .events = POLLIN }, 1,
		   3000) == 1)
		fake_play(f, "away=busy");
}

TEST(test_busy_to_the_end)
{
	talk_through_script(is_full_for_ever,
	    "@3000 transaction=because:busy ping=ECONNRESET why");
}

/* The last try ends with the time. The reason is still that of the try
 * before. */
TALK(test_busy_and_then_nothing, "away=busy accept end",
    "@2000 transaction=because:busy");

/* The whole transaction was sent, and then refused. The client cannot know
 * whether the server took it. */
TALK(test_busy_late, "late=busy serve query=never-seen transaction=ok",
    "connect transaction=ok");

/* The transaction does not fit into the socket. */
static void send_half(const char *steps, const char *calls)
{
	struct refd_request *req = &talk.requests[REFD_VERB_TRANSACTION];
	struct refd_update *many = calloc(MANY, sizeof(*many));
	int i;

	for (i = 0; i < MANY; i++)
		many[i].name = "refs/heads/some/rather/long/name/of/a/ref";
	talk_begin(steps);
	req->updates = many;
	req->nr_updates = MANY;
	talk_calls(calls);
	talk_end();
	free(many);
}

/* Half a transaction has no effect. */
TEST(test_half_sent)
{
	send_half("late=busy serve transaction=ok", "connect transaction=ok");
	send_half("late=busy gone", "connect transaction!refused:busy");
	/* Writing fails first, and the client still reads the reason. */
	send_half("late=denied", "connect transaction=because:denied");
}

/* The server still answers the request in flight. It did not read the next
 * request. */
static void answers_one_more(struct fake *f)
{
	const struct refd_answer busy = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY,
		.text = FAKE_WHY };
	struct refd_request got, other;

	fake_serve(f);
	fake_read(f, &got);
	fake_read(f, &other);
	fake_answer(f, &busy);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
	refd_request_done(&other);
	fake_play(f, "serve query=never-seen transaction=ok");
}

TEST(test_in_flight)
{
	struct refd_request other;
	struct refd_answer ans;

	talk_begin_script(answers_one_more);
	other = talk.requests[REFD_VERB_TRANSACTION];
	talk_calls("connect submit:transaction");
	ck_assert_int_eq(refd_submit(talk.refd, &other), 0);
	ck_assert_int_eq(refd_wait(talk.refd, &other, 100000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
	talk_calls("wait:transaction=ok");
	talk_end();
}

/* ---- the rest ---- */

TALK(test_deadline, "late=deadline serve ping=pong", "connect ping=pong");

TALK(test_badrequest, "away=badrequest", "connect=EPROTO why");

TALK(test_badrequest_late, "late=badrequest late=badrequest late=badrequest",
    "connect @-1 transaction=EPROTO why");

/* The server checks the pause. */
TALK(test_put_off, "serve transaction=busy/120 transaction=ok",
    "transaction=ok");

/* Longer than the client's time. */
TEST(test_put_off_too_long)
{
	talk_begin("serve transaction=busy/20000");
	talk.requests[REFD_VERB_TRANSACTION].deadline_ms = 20000;
	talk_calls("transaction=because:busy");
	ck_assert_uint_eq(talk.answer.retry_after_ms, 20000);
	talk_end();
}
