/*
 * Proves the work of one connection, over a socketpair. Requests arrive whole
 * however the bytes are cut. Answers go out whole, in any order. Anything but a
 * request is refused, and the connection is closed. Clients that close one
 * direction still get their answers, and vanished clients are forgotten.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/conn_rig.h"
#include "tests/lib/suite.h"

/* ---- requests ---- */

CASE(.setup = conn_rig_setup, .teardown = conn_rig_teardown);

TEST(hello_comes_first_and_unasked)
{
	ck_assert_uint_eq(conn_rig.nr_asked, 0);
}

TEST(a_request_is_asked_and_answered)
{
	uint32_t id;

	conn_rig_ping(42);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	ck_assert_int_eq(conn_rig.asked[0].verb, REFD_VERB_PING);
	ck_assert_uint_eq(conn_rig.conn->in_flight, 1);
	conn_rig_pong(42);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.conn->in_flight, 0);
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(&id, NULL), 1);
	ck_assert_uint_eq(id, 42);
}

TEST(bytes_may_be_cut_anywhere)
{
	size_t len = conn_rig_transaction_len, cut, step;

	/* In two pieces, cut everywhere; then byte by byte. */
	for (cut = 1; cut <= len; cut++) {
		conn_rig_tell(conn_rig_transaction, cut);
		ck_assert_uint_eq(conn_rig.nr_asked, cut == len);
		if (cut < len)
			conn_rig_tell(conn_rig_transaction + cut, len - cut);
		ck_assert_uint_eq(conn_rig.nr_asked, 1);
		ck_assert_uint_eq(conn_rig.asked[0].nr_updates, 2);
		ck_assert_str_eq(conn_rig.asked[0].updates[1].name,
		    "refs/heads/old");
		refd_request_done(&conn_rig.asked[--conn_rig.nr_asked]);
		conn_rig_pong(1);
	}
	for (step = 0; step < len; step++) {
		conn_rig_tell(conn_rig_transaction + step, 1);
		ck_assert_uint_eq(conn_rig.nr_asked, step == len - 1);
	}
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, 0);
}

TEST(answers_come_whole_in_any_order)
{
	uint32_t ids[3], id;

	for (id = 1; id <= 3; id++)
		conn_rig_ping(id);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 3);
	conn_rig_pong(3);
	conn_rig_pong(1);
	ck_assert(conn_rig_turn());
	conn_rig_pong(2);
	ck_assert(conn_rig_turn());
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(ids, NULL), 3);
	ck_assert_uint_eq(ids[0], 3);
	ck_assert_uint_eq(ids[1], 1);
	ck_assert_uint_eq(ids[2], 2);
}

/* A second answer that comes in the middle of an answer in parts goes out after
 * it. */
TEST(an_answer_in_parts_stays_whole)
{
	struct refd_result res = { .name = "refs/heads/topic" };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.request_id = 1,
		.results = &res,
		.nr_results = 1,
		.nr_updates = 3,
		.outcome = REFD_COMMITTED,
		.goes_on = true };
	struct refd_answer got;
	uint32_t ids[3];

	conn_rig_say(conn_rig_transaction, conn_rig_transaction_len);
	conn_rig_ping(2);
	conn_rig_ping(3);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 3);
	ans.txid = conn_rig.asked[0].txid;
	conn_answer(conn_rig.conn, &ans);
	conn_rig_pong(2);
	ck_assert(conn_rig_turn());
	ans.is_continued = true;
	conn_answer(conn_rig.conn, &ans);
	conn_rig_pong(3);
	ck_assert_uint_eq(conn_rig.conn->in_flight, 1);
	ans.goes_on = false;
	conn_answer(conn_rig.conn, &ans);
	ck_assert_uint_eq(conn_rig.conn->in_flight, 0);
	ck_assert(conn_rig_turn());
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(ids, &got), 3);
	ck_assert_uint_eq(ids[0], 1);
	ck_assert_uint_eq(ids[1], 2);
	ck_assert_uint_eq(ids[2], 3);
	refd_answer_done(&got);
}

/* Two answers in parts are mixed: all parts of request 2 come between the parts
 * of request 1. Each part goes to the right answer. */
TEST(parts_of_two_answers_do_not_mix)
{
	struct refd_result first = { .name = "refs/heads/first" };
	struct refd_result second = { .name = "refs/heads/second",
		.status = REFD_STALE };
	struct refd_answer one = { .kind = REFD_ANSWER_RESULTS,
		.request_id = 1,
		.results = &first,
		.nr_results = 1,
		.nr_updates = 2,
		.outcome = REFD_COMMITTED,
		.goes_on = true };
	struct refd_answer two = one, got;
	uint32_t ids[2];

	conn_rig_say(conn_rig_transaction, conn_rig_transaction_len);
	conn_rig_ping(2);
	ck_assert(conn_rig_turn());
	one.txid = two.txid = conn_rig.asked[0].txid;
	conn_answer(conn_rig.conn, &one);
	two.request_id = 2;
	two.results = &second;
	two.outcome = REFD_REJECTED;
	conn_answer(conn_rig.conn, &two);
	two.is_continued = true;
	two.goes_on = false;
	conn_answer(conn_rig.conn, &two);
	one.is_continued = true;
	one.goes_on = false;
	conn_answer(conn_rig.conn, &one);
	ck_assert(conn_rig_turn());
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(ids, &got), 2);
	ck_assert_uint_eq(ids[0], 1);
	ck_assert_uint_eq(ids[1], 2);
	ck_assert_uint_eq(got.nr_results, 2);
	ck_assert_int_eq(got.outcome, REFD_REJECTED);
	ck_assert_int_eq(got.results[1].status, REFD_STALE);
	refd_answer_done(&got);
}

/* Answers that wait behind an unfinished answer count as much as answers that
 * wait to be sent. No more requests are read. */
TEST(what_waits_behind_an_answer_counts)
{
	struct refd_result res = { .name = "refs/heads/topic" };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.request_id = 1,
		.results = &res,
		.nr_results = 1,
		.nr_updates = 2,
		.goes_on = true };
	static struct refd_result many[60000];
	struct refd_answer large = ans;
	size_t i;

	for (i = 0; i < 60000; i++)
		many[i] = res;
	conn_rig_say(conn_rig_transaction, conn_rig_transaction_len);
	conn_rig_ping(2);
	ck_assert(conn_rig_turn());
	ans.txid = large.txid = conn_rig.asked[0].txid;
	conn_answer(conn_rig.conn, &ans);
	large.request_id = 2;
	large.results = many;
	large.nr_results = large.nr_updates = 60000;
	large.goes_on = false;
	conn_answer(conn_rig.conn, &large);
	conn_rig_ping(3);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 2);
	ans.is_continued = true;
	ans.goes_on = false;
	conn_answer(conn_rig.conn, &ans);
	conn_rig_read_all();
	ck_assert_uint_eq(conn_rig.nr_asked, 3);
}

/* The host gets a request for a session and answers. */
static void prepare_session(void)
{
	static const char head[] = "000dsession 1";
	const size_t skipped = strlen("0011transaction 1");
	struct refd_result ok[2] = { { .name = "refs/heads/topic" },
		{ .name = "refs/heads/old", .text = "refs/heads/new" } };
	struct refd_answer ans = { .kind = REFD_ANSWER_PREPARED,
		.request_id = 1,
		.results = ok,
		.nr_results = 2,
		.rewrites_packed = true };

	conn_rig_say(head, sizeof(head) - 1);
	conn_rig_tell(conn_rig_transaction + skipped,
	    conn_rig_transaction_len - skipped);
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	ck_assert_int_eq(conn_rig.asked[0].verb, REFD_VERB_SESSION);
	ans.txid = conn_rig.asked[0].txid;
	conn_answer(conn_rig.conn, &ans);
	ck_assert(conn_rig_turn());
}

TEST(a_session_is_prepared_and_ended_in_its_own_time)
{
	static const char commit[] = "000ccommit 2"
				     "0029txid 0192f0c1d2e30001020304050607abcd"
				     "0000";
	struct refd_answer ans = { 0 };

	prepare_session();
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(NULL, &ans), 1);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PREPARED);
	ck_assert_uint_eq(ans.nr_results, 2);
	ck_assert_str_eq(ans.results[1].text, "refs/heads/new");
	ck_assert(ans.rewrites_packed);
	refd_answer_done(&ans);
	/* A client with a prepared session may be idle. */
	conn_rig_wait(10 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_tell(commit, sizeof(commit) - 1);
	ck_assert_uint_eq(conn_rig.nr_asked, 2);
	ck_assert_int_eq(conn_rig.asked[1].verb, REFD_VERB_COMMIT);
	ck_assert(
	    refd_txid_eq(&conn_rig.asked[0].txid, &conn_rig.asked[1].txid));
}

/* The client can no longer send a commit, so the connection ends, and the
 * session with it. */
TEST(a_half_closed_client_keeps_no_session)
{
	prepare_session();
	ck_assert(!conn_rig.has_said_all);
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(!conn_rig_turn());
	ck_assert(conn_rig.has_said_all);
}

/* A request is open that may never be answered. */
TEST(a_half_closed_client_that_waits_has_said_all)
{
	conn_rig_tell("000bwatch 70000", 15);
	ck_assert(!conn_rig.has_said_all);
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.conn->in_flight, 1);
	ck_assert(conn_rig.has_said_all);
	conn_rig_pong(7);
	ck_assert(!conn_rig_turn());
}

/* ---- bytes that are no request ---- */

static const struct {
	const char *bytes;
	size_t len;
} garbage[] = {
	{ "GET / HTTP/1.1\r\n\r\n", 18 },
	{ "ffff", 4 },
	{ "fff1", 4 },
	{ "0003", 4 },
	{ "0004", 4 },
	{ "0002", 4 },
	{ "-001", 4 },
	{ "\0\0\0\0", 4 },
	{ "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
	{ "0000", 4 },
	{ "0001", 4 },
	{ "000aping 7"
	  "0000"
	  "0000",
	    18 },
};

TEST(garbage_is_refused_and_hung_up_on,
    .times = sizeof(garbage) / sizeof(garbage[0]))
{
	struct refd_answer ans = { 0 };

	conn_rig_say(garbage[_i].bytes, garbage[_i].len);
	if (garbage[_i].len == 18 && garbage[_i].bytes[0] == '0') {
		/* Earlier requests are still answered. */
		ck_assert(conn_rig_turn());
		conn_rig_pong(7);
	}
	ck_assert(!conn_rig_turn());
	conn_rig_read();
	ck_assert(conn_rig.at_end);
	ck_assert_uint_ge(conn_rig_answers(NULL, &ans), 1);
	if (conn_rig.nr_asked == 0) {
		ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
		ck_assert_int_eq(ans.status, REFD_BADREQUEST);
		ck_assert_uint_eq(ans.request_id, 0);
		ck_assert_ptr_nonnull(ans.text);
	}
	refd_answer_done(&ans);
}

TEST(an_unknown_verb_is_refused_and_the_next_is_taken)
{
	static const char unknown[] = "0010frobnicate 50000";
	struct refd_answer ans = { 0 };

	conn_rig_say(unknown, sizeof(unknown) - 1);
	conn_rig_ping(6);
	ck_assert(conn_rig_turn());
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(NULL, &ans), 1);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ans.status, REFD_BADREQUEST);
	refd_answer_done(&ans);
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	ck_assert_uint_eq(conn_rig.asked[0].request_id, 6);
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, 0);
}

TEST(an_answer_that_cannot_be_said_ends_the_connection)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.request_id = 1,
		.status = REFD_IO };
	char *name = calloc(1, REFD_PACKET_MAX + 1);
	struct refd_pair pair = { "key", name };

	memset(name, 'x', REFD_PACKET_MAX);
	ans.kind = REFD_ANSWER_PAIRS;
	ans.pairs = &pair;
	ans.nr_pairs = 1;
	conn_rig_ping(1);
	ck_assert(conn_rig_turn());
	conn_answer(conn_rig.conn, &ans);
	ck_assert(!conn_rig_turn());
	conn_rig_read();
	ck_assert(conn_rig.at_end);
	ck_assert_uint_eq(conn_rig.got_len, 0);
	free(name);
}

/* ---- leaving ---- */

TEST(a_half_closed_client_gets_its_answers)
{
	uint32_t ids[2];

	conn_rig_ping(1);
	conn_rig_ping(2);
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(conn_rig_turn());
	ck_assert_int_eq(conn_rig.conn->state, CONN_FINISHING);
	conn_rig_pong(1);
	ck_assert(conn_rig_turn());
	conn_rig_pong(2);
	ck_assert(!conn_rig_turn());
	conn_rig_read();
	ck_assert(conn_rig.at_end);
	ck_assert_uint_eq(conn_rig_answers(ids, NULL), 2);
}

TEST(a_client_that_leaves_is_forgotten)
{
	close(conn_rig.client);
	conn_rig.client = -1;
	ck_assert(!conn_rig_turn());
}

/* A watch may wait for an hour. Meanwhile its connection would be lost to other
 * clients. */
TEST(a_client_that_vanished_in_flight_is_forgotten)
{
	conn_rig_tell("000bwatch 10000", 15);
	ck_assert_uint_eq(conn_rig.conn->in_flight, 1);
	close(conn_rig.client);
	conn_rig.client = -1;
	ck_assert(!conn_rig_turn());
}

TEST(a_half_closed_client_may_vanish_later)
{
	conn_rig_say("000bwatch 10000", 15);
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(conn_rig_turn());
	conn_rig_wait(CONN_RIG_SECOND_NS);
	ck_assert(conn_rig_turn());
	ck_assert_int_eq(conn_rig.conn->state, CONN_FINISHING);
	close(conn_rig.client);
	conn_rig.client = -1;
	conn_rig_wait(CONN_RIG_SECOND_NS);
	ck_assert(!conn_rig_turn());
}
