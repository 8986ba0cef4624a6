/*
 * One connection over a socketpair. Proves: requests arrive whole however the
 * bytes are cut; answers go out whole, in any order; what is no request is
 * refused and hung up on; half-closed clients get their answers, vanished
 * ones are let go of.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/conn_rig.h"

/* ---- requests ---- */

START_TEST(hello_comes_first_and_unasked)
{
	conn_rig_greet();
	ck_assert_uint_eq(conn_rig.nr_asked, 0);
}
END_TEST

START_TEST(a_request_is_asked_and_answered)
{
	uint32_t id;

	conn_rig_greet();
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
END_TEST

START_TEST(bytes_may_be_cut_anywhere)
{
	size_t len = conn_rig_transaction_len, cut, step;

	conn_rig_greet();
	/* In two pieces, cut everywhere; then byte by byte. */
	for (cut = 1; cut <= len; cut++) {
		conn_rig_say(conn_rig_transaction, cut);
		ck_assert(conn_rig_turn());
		ck_assert_uint_eq(conn_rig.nr_asked, cut == len);
		if (cut < len)
			conn_rig_say(conn_rig_transaction + cut, len - cut);
		ck_assert(conn_rig_turn());
		ck_assert_uint_eq(conn_rig.nr_asked, 1);
		ck_assert_uint_eq(conn_rig.asked[0].nr_updates, 2);
		ck_assert_str_eq(conn_rig.asked[0].updates[1].name,
		    "refs/heads/old");
		refd_request_done(&conn_rig.asked[--conn_rig.nr_asked]);
		conn_rig_pong(1);
	}
	for (step = 0; step < len; step++) {
		conn_rig_say(conn_rig_transaction + step, 1);
		ck_assert(conn_rig_turn());
		ck_assert_uint_eq(conn_rig.nr_asked, step == len - 1);
	}
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, 0);
}
END_TEST

START_TEST(answers_come_whole_in_any_order)
{
	uint32_t ids[3], id;

	conn_rig_greet();
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
END_TEST

/* The host is asked for a session, and answers it. */
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

	conn_rig_greet();
	conn_rig_say(head, sizeof(head) - 1);
	conn_rig_say(conn_rig_transaction + skipped,
	    conn_rig_transaction_len - skipped);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	ck_assert_int_eq(conn_rig.asked[0].verb, REFD_VERB_SESSION);
	ans.txid = conn_rig.asked[0].txid;
	conn_answer(conn_rig.conn, &ans);
	ck_assert(conn_rig_turn());
}

START_TEST(a_session_is_prepared_and_ended_in_its_own_time)
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
	/* Whoever has one prepared is idle, and may be. */
	conn_rig_wait(10 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_say(commit, sizeof(commit) - 1);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, 2);
	ck_assert_int_eq(conn_rig.asked[1].verb, REFD_VERB_COMMIT);
	ck_assert(
	    refd_txid_eq(&conn_rig.asked[0].txid, &conn_rig.asked[1].txid));
}
END_TEST

/* It can't say commit any more, so it is over, and its session with it. */
START_TEST(a_half_closed_client_keeps_no_session)
{
	prepare_session();
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(!conn_rig_turn());
}
END_TEST

/* ---- what is no request ---- */

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

START_TEST(garbage_is_refused_and_hung_up_on)
{
	struct refd_answer ans = { 0 };

	conn_rig_greet();
	conn_rig_say(garbage[_i].bytes, garbage[_i].len);
	if (garbage[_i].len == 18 && garbage[_i].bytes[0] == '0') {
		/* What was asked before it is still answered. */
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
END_TEST

START_TEST(an_unknown_verb_is_refused_and_the_next_is_taken)
{
	static const char unknown[] = "0010frobnicate 50000";
	struct refd_answer ans = { 0 };

	conn_rig_greet();
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
END_TEST

START_TEST(an_answer_that_cannot_be_said_ends_the_connection)
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
	conn_rig_greet();
	conn_rig_ping(1);
	ck_assert(conn_rig_turn());
	conn_answer(conn_rig.conn, &ans);
	ck_assert(!conn_rig_turn());
	conn_rig_read();
	ck_assert(conn_rig.at_end);
	ck_assert_uint_eq(conn_rig.got_len, 0);
	free(name);
}
END_TEST

/* ---- leaving ---- */

START_TEST(a_half_closed_client_gets_its_answers)
{
	uint32_t ids[2];

	conn_rig_greet();
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
END_TEST

START_TEST(a_client_that_leaves_is_forgotten)
{
	conn_rig_greet();
	close(conn_rig.client);
	conn_rig.client = -1;
	ck_assert(!conn_rig_turn());
}
END_TEST

START_TEST(a_client_that_vanished_in_flight_is_forgotten_later)
{
	conn_rig_greet();
	conn_rig_ping(1);
	ck_assert(conn_rig_turn());
	close(conn_rig.client);
	conn_rig.client = -1;
	ck_assert(conn_rig_turn());
	conn_rig_pong(1);
	ck_assert(!conn_rig_turn());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn");
	TCase *cases = tcase_create("conn");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, conn_rig_setup, conn_rig_teardown);
	tcase_add_test(cases, hello_comes_first_and_unasked);
	tcase_add_test(cases, a_request_is_asked_and_answered);
	tcase_add_test(cases, bytes_may_be_cut_anywhere);
	tcase_add_test(cases, answers_come_whole_in_any_order);
	tcase_add_test(cases, a_session_is_prepared_and_ended_in_its_own_time);
	tcase_add_test(cases, a_half_closed_client_keeps_no_session);
	tcase_add_loop_test(cases, garbage_is_refused_and_hung_up_on, 0,
	    (int)(sizeof(garbage) / sizeof(garbage[0])));
	tcase_add_test(cases, an_unknown_verb_is_refused_and_the_next_is_taken);
	tcase_add_test(cases,
	    an_answer_that_cannot_be_said_ends_the_connection);
	tcase_add_test(cases, a_half_closed_client_gets_its_answers);
	tcase_add_test(cases, a_client_that_leaves_is_forgotten);
	tcase_add_test(cases,
	    a_client_that_vanished_in_flight_is_forgotten_later);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
