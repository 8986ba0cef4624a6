/*
 * Proves that librefd handles a refusal of the whole connection. The client
 * reads the refusal even if the server hung up before the client writes. A
 * denial is reported at once, with its text. After "busy" the client comes
 * back. A transaction that cannot have been taken is not reported as unknown,
 * and a transaction that may have been taken is not sent twice.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/refd.h"
#include "proto/lib/clock.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* More than a socket takes at once. */
#define MANY 40000

static struct fake fake;
static struct refd *daemon_;
static struct refd_update update = { .name = "refs/heads/a" };
static struct refd_request req;
static struct refd_answer ans;

static void start(void (*script)(struct fake *f))
{
	fake_start(&fake, script);
	daemon_ = refd_new(fake.path);
	req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.updates = &update,
		.nr_updates = 1 };
}

static void stop(void)
{
	refd_free(daemon_);
	fake_stop(&fake);
}

static void check_refused(enum refd_status status)
{
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, status);
	ck_assert_msg(strstr(ans.text, FAKE_WHY), "%s", ans.text);
	ck_assert(refd_txid_eq(&ans.txid, &req.txid));
	refd_answer_done(&ans);
}

static void check_committed(void)
{
	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_COMMITTED);
	refd_answer_done(&ans);
}

/* ---- servers of the tests ---- */

static void refuse(struct fake *f, enum refd_status status)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = FAKE_WHY };

	fake_answer(f, &no);
}

/* In one piece, as the daemon sends the refusal. */
/* The refusal comes after the greeting, when the client has sent some bytes.
 * The bytes are lost with the connection: the client sees a reset. */
static void expect_transaction(struct fake *f)
{
	struct refd_request got;

	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "no transaction");
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

/* Refuses a transaction as busy, and takes it the next time. */
static uint64_t pause_ms;

static void puts_off(struct fake *f)
{
	struct refd_answer busy = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY,
		.text = FAKE_WHY,
		.retry_after_ms = 120 };
	struct refd_request first, again;
	uint64_t then;

	fake_serve(f);
	fake_read(f, &first);
	busy.request_id = first.request_id;
	busy.txid = first.txid;
	then = clock_now_ms();
	fake_answer(f, &busy);
	fake_read(f, &again);
	pause_ms = clock_now_ms() - then;
	fake_expect(f, refd_txid_eq(&first.txid, &again.txid), "another id");
	fake_expect(f, again.deadline_ms < first.deadline_ms, "more time");
	fake_answer_ok(f, &again);
	refd_request_done(&first);
	refd_request_done(&again);
}

/* Longer than the client's time. */
static void puts_off_too_long(struct fake *f)
{
	struct refd_answer busy = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_BUSY,
		.text = FAKE_WHY,
		.retry_after_ms = 20000 };
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	busy.request_id = got.request_id;
	busy.txid = got.txid;
	fake_answer(f, &busy);
	refd_request_done(&got);
}

/* ---- denied ---- */

FAKE_SCRIPT(denies, "away=denied");

FAKE_SCRIPT(denies_late, "late=denied");

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_denied)
{
	start(denies);
	ck_assert_int_eq(refd_connect(daemon_, 60000), -EPERM);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), fake.path));
	stop();

	/* Without a limit, the client would try for ever. */
	start(denies);
	ck_assert_int_eq(refd_call(daemon_, &req, -1, &ans), 0);
	check_refused(REFD_DENIED);
	stop();
}

TEST(test_denied_late)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	start(denies_late);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, -1, &ans), 0);
	check_refused(REFD_DENIED);
	stop();

	start(denies_late);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &ping, -1, &ans), -EPERM);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	stop();
}

/* The server takes the transaction. After its restart, it denies us. */
FAKE_SCRIPT(takes_and_denies, "serve transaction away=denied");

TEST(test_denied_afterwards)
{
	start(takes_and_denies);
	ck_assert_int_eq(refd_call(daemon_, &req, -1, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ans.outcome, REFD_OUTCOME_UNKNOWN);
	refd_answer_done(&ans);
	stop();
}

/* ---- busy ---- */

FAKE_SCRIPT(is_full_twice, "away=busy away=busy serve transaction=ok");

TEST(test_busy)
{
	start(is_full_twice);
	ck_assert_int_eq(refd_connect(daemon_, 60000), -EBUSY);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();
}

FAKE_SCRIPT(starts_later, "away=io away=io serve transaction=ok");

TEST(test_cannot_start)
{
	start(starts_later);
	ck_assert_int_eq(refd_connect(daemon_, 60000), -EHOSTDOWN);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(daemon_), "cannot start: " FAKE_WHY));
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();
}

static void is_full_for_ever(struct fake *f)
{
	while (poll(&(struct pollfd){ .fd = f->listener, .events = POLLIN }, 1,
		   3000) == 1)
		fake_turn_away(f, REFD_BUSY);
}

TEST(test_busy_to_the_end)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	start(is_full_for_ever);
	ck_assert_int_eq(refd_call(daemon_, &req, 3000, &ans), 0);
	check_refused(REFD_BUSY);
	ck_assert_int_eq(refd_call(daemon_, &ping, 3000, &ans), -ECONNRESET);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	stop();
}

/* The last try ends with the time. The reason is still that of the try
 * before. */
TEST(test_busy_and_then_nothing)
{
	start(fake_is_full_and_hangs);
	ck_assert_int_eq(refd_call(daemon_, &req, 2000, &ans), 0);
	check_refused(REFD_BUSY);
	stop();
}

/* The whole transaction was sent, and then refused. The client cannot know
 * whether the server took it. */
FAKE_SCRIPT(is_full_late, "late=busy serve query=never-seen transaction=ok");

TEST(test_busy_late)
{
	start(is_full_late);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();
}

/* Only half was sent. Half a transaction has no effect. */
FAKE_SCRIPT(is_full_half_way, "late=busy serve transaction=ok");

FAKE_SCRIPT(is_full_half_way_and_goes, "late=busy gone");

TEST(test_half_sent)
{
	struct refd_update *many = calloc(MANY, sizeof(*many));
	int i, err;

	for (i = 0; i < MANY; i++)
		many[i].name = "refs/heads/some/rather/long/name/of/a/ref";
	start(is_full_half_way);
	req.updates = many;
	req.nr_updates = MANY;
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();

	start(is_full_half_way_and_goes);
	req.updates = many;
	req.nr_updates = MANY;
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_submit(daemon_, &req), 0);
	do
		err = refd_wait(daemon_, &req, 2000, &ans);
	while (err == -ETIMEDOUT); /* the refusal has not come yet */
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
	stop();

	/* Writing fails first, and the client still reads the reason. */
	start(denies_late);
	req.updates = many;
	req.nr_updates = MANY;
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_refused(REFD_DENIED);
	stop();
	free(many);
}

/* The server still answers the request in flight. It did not read the next
 * request. */
static void answers_one_more(struct fake *f)
{
	struct refd_request got, other;

	fake_serve(f);
	fake_read(f, &got);
	fake_read(f, &other);
	refuse(f, REFD_BUSY);
	fake_answer_ok(f, &got);
	refd_request_done(&got);
	refd_request_done(&other);
	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_QUERY, "sent without asking");
	fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
	refd_request_done(&got);
	expect_transaction(f);
}

TEST(test_in_flight)
{
	struct refd_request other;

	start(answers_one_more);
	other = req;
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_submit(daemon_, &req), 0);
	ck_assert_int_eq(refd_submit(daemon_, &other), 0);
	ck_assert_int_eq(refd_wait(daemon_, &other, 100000, &ans), 0);
	check_committed();
	ck_assert_int_eq(refd_wait(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();
}

/* ---- the rest ---- */

FAKE_SCRIPT(falls_silent, "late=deadline serve ping=pong");

TEST(test_deadline)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };

	start(falls_silent);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &ping, 100000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PONG);
	refd_answer_done(&ans);
	stop();
}

FAKE_SCRIPT(is_out_of_step, "away=badrequest");

FAKE_SCRIPT(stays_out_of_step,
    "late=badrequest late=badrequest late=badrequest");

TEST(test_badrequest)
{
	start(is_out_of_step);
	ck_assert_int_eq(refd_connect(daemon_, 60000), -EPROTO);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	stop();

	start(stays_out_of_step);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, -1, &ans), -EPROTO);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), FAKE_WHY));
	stop();
}

TEST(test_put_off)
{
	start(puts_off);
	req.deadline_ms = 20000;
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	check_committed();
	stop();
	ck_assert_uint_ge(pause_ms, 119);

	start(puts_off_too_long);
	req.deadline_ms = 20000;
	ck_assert_int_eq(refd_call(daemon_, &req, 100000, &ans), 0);
	ck_assert_uint_eq(ans.retry_after_ms, 20000);
	check_refused(REFD_BUSY);
	stop();
}
