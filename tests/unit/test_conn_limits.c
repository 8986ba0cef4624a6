/*
 * Proves the limits of a client's connection, over a socketpair. refd stops
 * reading from a client that does not read, or that asks for too much at once.
 * Once the client reads again, nothing is lost. The connections of a user share
 * the time of a turn. A client that stalls is disconnected; an idle client
 * never is. An idle connection holds no buffers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/conn_rig.h"
#include "tests/lib/suite.h"

/* ---- too much ---- */

CASE(.setup = conn_rig_setup, .teardown = conn_rig_teardown);

TEST(a_client_that_does_not_read_is_not_read_from)
{
	uint32_t *ids = malloc(CONN_RIG_CLIENT_MAX);
	size_t nr, i;

	conn_rig.answers_at_once = true;
	conn_rig_flood();
	/* The socket is full, and so is the connection's share of our
	 * memory. */
	ck_assert_uint_ge(conn_unsent(conn_rig.conn), CONN_OUT_HIGH);
	ck_assert_uint_le(conn_unsent(conn_rig.conn), CONN_OUT_HIGH + 100);
	ck_assert_uint_lt(conn_rig.conn->out.size, 4 * CONN_OUT_HIGH);
	/* Once the client reads, all answers continue where they stopped. */
	conn_rig_read_all();
	nr = conn_rig_answers(ids, NULL);
	ck_assert_uint_eq(nr, conn_rig.flooded / CONN_RIG_FLOOD_BYTES);
	for (i = 0; i < nr; i++)
		ck_assert_uint_eq(ids[i], CONN_RIG_FLOOD_FROM + i);
	free(ids);
}

/* Reading goes on before the last answer is sent. */
TEST(reading_goes_on_when_few_answers_wait)
{
	size_t before;

	conn_rig.answers_at_once = true;
	conn_rig_flood();
	do {
		before = conn_unsent(conn_rig.conn);
		ck_assert_int_gt(recv(conn_rig.client, conn_rig.got, 1000, 0),
		    0);
		ck_assert(conn_rig_turn());
	} while (conn_unsent(conn_rig.conn) <= before);
	ck_assert_uint_gt(before, CONN_OUT_LOW);
}

/* The client never reads everything, so the buffer is never empty. */
TEST(a_slow_reader_makes_no_buffer_grow)
{
	int i;

	conn_rig.answers_at_once = true;
	for (i = 0; i < 25; i++) {
		conn_rig_flood();
		ck_assert_uint_lt(conn_rig.conn->out.size, 4 * CONN_OUT_HIGH);
		ck_assert_int_gt(recv(conn_rig.client, conn_rig.got, 150000, 0),
		    0);
		ck_assert(conn_rig_turn());
		ck_assert_uint_gt(conn_unsent(conn_rig.conn), 0);
	}
}

#define PINGS_MAX 600

/* Numbered from 101 on. */
static void say_pings(size_t nr)
{
	static char text[PINGS_MAX * 16 + 1];
	size_t len = 0, i;

	for (i = 0; i < nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "000cping %zu0000", 101 + i);
	conn_rig_say(text, len);
}

static void take_turn(void)
{
	event_base_loop(conn_rig.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

TEST(too_many_in_flight_wait)
{
	uint32_t id;

	say_pings(600);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, REFD_REQUESTS_MAX);
	ck_assert(!conn_rig.conn->reads);
	conn_rig_pong(101);
	ck_assert(conn_rig_turn());
	ck_assert_uint_eq(conn_rig.nr_asked, REFD_REQUESTS_MAX + 1);
	for (id = 102; conn_rig.conn->in_flight > 0; id++) {
		conn_rig_pong(id);
		ck_assert(conn_rig_turn());
	}
	ck_assert_uint_eq(conn_rig.nr_asked, 600);
	ck_assert(conn_rig.conn->reads);
	conn_rig_read_all();
	ck_assert_uint_eq(conn_rig_answers(NULL, NULL), 600);
}

/* However many requests arrive at once, other connections get a turn after some
 * of them. */
TEST(many_requests_take_turns)
{
	size_t turns = 0, before;

	conn_rig.answers_at_once = true;
	say_pings(400);
	take_turn();
	ck_assert_uint_eq(conn_rig.conn->nr_requests, CONN_TURN_REQUESTS);
	for (; conn_rig.conn->is_touched; turns++) {
		before = conn_rig.conn->nr_requests;
		ck_assert(conn_service(conn_rig.conn));
		ck_assert_uint_le(conn_rig.conn->nr_requests,
		    before + CONN_TURN_REQUESTS);
	}
	ck_assert_uint_ge(turns, 400 / CONN_TURN_REQUESTS);
	ck_assert(conn_rig.conn->reads);
	conn_rig_read_all();
	ck_assert_uint_eq(conn_rig_answers(NULL, NULL), 400);
}

/* Otherwise a user with many connections and requests that take long keeps the
 * loop from others. Root has no limit. */
TEST(a_user_has_a_share_of_a_turn, .times = 2)
{
	struct conn_user user = { 0 };
	const size_t share = _i == 0 ? 3 : 16;
	size_t nr;

	conn_rig.answers_at_once = true;
	conn_rig.request_ns = CONN_USER_NS / 3 + 1;
	if (_i == 0)
		conn_rig.conn->user = &user;
	conn_rig.host.turns++;
	say_pings(share);
	take_turn();
	ck_assert_uint_eq(conn_rig.conn->nr_requests, share);
	ck_assert(conn_service(conn_rig.conn));
	/* The connection asks for a turn, since nothing else would. */
	say_pings(16);
	take_turn();
	ck_assert(conn_rig.conn->is_touched);
	for (nr = share; nr < share + 16; nr += share) {
		ck_assert(conn_service(conn_rig.conn));
		if (_i == 0)
			ck_assert_uint_eq(conn_rig.conn->nr_requests, nr);
		conn_rig.host.turns++;
		take_turn();
		ck_assert(conn_service(conn_rig.conn));
	}
	ck_assert_uint_eq(conn_rig.conn->nr_requests, share + 16);
	conn_rig_read_all();
	ck_assert_uint_eq(conn_rig_answers(NULL, NULL), share + 16);
}

/* Half-sent requests of other clients fill the room. A small request still gets
 * through, a large request is refused. */
TEST(large_requests_share_a_limit)
{
	struct refd_answer ans = { 0 };
	char *big = malloc(REFD_PACKET_MAX);

	conn_rig.host.decoding_bytes = DECODING_MAX;
	conn_rig_tell(conn_rig_transaction, conn_rig_transaction_len);
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	conn_rig_pong(1);
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, DECODING_MAX);
	conn_rig_say(conn_rig_transaction, conn_rig_transaction_len - 4);
	memset(big, 'x', REFD_PACKET_MAX);
	memcpy(big, "8000", 4);
	conn_rig_say(big, 0x8000 - 1);
	ck_assert(!conn_rig_turn());
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, DECODING_MAX);
	conn_rig_read();
	ck_assert_uint_eq(conn_rig_answers(NULL, &ans), 2);
	ck_assert_int_eq(ans.status, REFD_BUSY);
	refd_answer_done(&ans);
	free(big);
}

/* A request of one line has an answer of megabytes, and hundreds of requests
 * are in flight before the first answer. */
TEST(answers_that_nobody_takes_are_bounded, .times = 2)
{
	static struct refd_result many[60000];
	struct conn_user user = { .out_bytes = CONN_OUT_MAX / 2 + 1 };
	struct refd_answer large = { .kind = REFD_ANSWER_RESULTS,
		.request_id = 2,
		.results = many,
		.nr_results = 60000,
		.nr_updates = 60000 };
	size_t i, before;

	for (i = 0; i < 60000; i++)
		many[i].name = "refs/heads/topic";
	ck_assert_uint_eq(conn_rig.host.out_bytes, 0);
	for (i = 1; i <= 3; i++)
		conn_rig_ping((uint32_t)i);
	ck_assert(conn_rig_turn());
	before = CONN_OUT_MAX - CONN_OUT_MAX / 8 + 1;
	if (_i == 0) {
		/* For a user who holds half of the memory. */
		conn_rig.conn->user = &user;
	} else {
		/* For a client that took nothing of the previous answer. */
		before = CONN_OUT_MAX + 1;
		conn_rig.host.out_bytes = before;
		conn_answer(conn_rig.conn, &large);
		ck_assert_int_eq(conn_rig.conn->state, CONN_OPEN);
		ck_assert_uint_gt(conn_rig.host.out_bytes,
		    before + CONN_OUT_HIGH);
	}
	if (_i == 0)
		conn_rig.host.out_bytes = before;
	conn_rig_pong(1);
	ck_assert_int_eq(conn_rig.conn->state, CONN_GONE);
	ck_assert(!conn_rig_turn());
	ck_assert_uint_eq(conn_rig.host.out_bytes, before);
	ck_assert_uint_eq(user.out_bytes, CONN_OUT_MAX / 2 + 1);
}

/* Half-sent large requests of one user may not fill the whole room, so other
 * users can still send large requests. Small requests do not count. */
TEST(large_requests_of_one_user_leave_room, .times = 2)
{
	struct conn_user user = { .decoding_bytes = DECODING_MAX / 2 };
	struct refd_answer ans = { 0 };
	char *big = malloc(REFD_PACKET_MAX);

	memset(big, 'x', REFD_PACKET_MAX);
	memcpy(big, "8000", 4);
	conn_rig.conn->user = &user;
	conn_rig.host.decoding_bytes = DECODING_MAX - DECODING_MAX / 8;
	conn_rig_tell(conn_rig_transaction, conn_rig_transaction_len);
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	conn_rig_pong(1);
	conn_rig_tell(conn_rig_transaction, conn_rig_transaction_len - 4);
	ck_assert_uint_eq(user.decoding_bytes, DECODING_MAX / 2);
	conn_rig_say(big, 0x8000 - 1);
	if (_i == 0) {
		/* As another user: there is room. */
		user.decoding_bytes = 0;
		ck_assert(conn_rig_turn());
		ck_assert_uint_gt(user.decoding_bytes, 0);
		ck_assert_uint_gt(conn_rig.host.decoding_bytes,
		    DECODING_MAX - DECODING_MAX / 8);
		shutdown(conn_rig.client, SHUT_WR);
		ck_assert(!conn_rig_turn());
		ck_assert_uint_eq(user.decoding_bytes, 0);
	} else {
		ck_assert(!conn_rig_turn());
		conn_rig_read();
		ck_assert_uint_eq(conn_rig_answers(NULL, &ans), 2);
		ck_assert_int_eq(ans.status, REFD_BUSY);
		refd_answer_done(&ans);
		ck_assert_uint_eq(user.decoding_bytes, DECODING_MAX / 2);
	}
	ck_assert_uint_eq(conn_rig.host.decoding_bytes,
	    DECODING_MAX - DECODING_MAX / 8);
	free(big);
}

/* ---- stalling ---- */

/* Other clients have taken all room. This request needs no more room. */
TEST(who_needs_no_more_is_not_refused)
{
	conn_rig.host.decoding_bytes = DECODING_MAX + 1;
	conn_rig_tell(conn_rig_transaction, conn_rig_transaction_len - 4);
	conn_rig_tell(conn_rig_transaction + conn_rig_transaction_len - 4, 4);
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	conn_rig_pong(1);
}

/* The connection survives CONN_STALL_NS from now on, and no second more. */
static void expect_stall(void)
{
	conn_rig_wait(CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_wait(CONN_RIG_SECOND_NS);
	ck_assert(!conn_rig_turn());
}

/* The connection is older than the silence. */
TEST(silence_counts_from_the_last_byte)
{
	conn_rig_wait(10 * CONN_RIG_SECOND_NS);
	conn_rig_tell(conn_rig_transaction, 30);
	expect_stall();
}

TEST(half_a_request_and_silence_is_refused,
    .times = (int)(conn_rig_transaction_len - 1) / 13)
{
	struct refd_answer ans = { 0 };

	conn_rig_tell(conn_rig_transaction, 1 + (size_t)_i * 13);
	expect_stall();
	conn_rig_read();
	ck_assert(conn_rig.at_end);
	ck_assert_uint_eq(conn_rig_answers(NULL, &ans), 1);
	ck_assert_int_eq(ans.status, REFD_DEADLINE);
	refd_answer_done(&ans);
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, 0);
}

TEST(progress_is_no_stall)
{
	size_t i;

	for (i = 0; i < conn_rig_transaction_len; i++) {
		conn_rig_tell(conn_rig_transaction + i, 1);
		conn_rig_wait(CONN_STALL_NS - CONN_RIG_SECOND_NS);
		ck_assert(conn_rig_turn());
	}
	ck_assert_uint_eq(conn_rig.nr_asked, 1);
	/* Half of the next request, while the first request is in flight. */
	conn_rig_tell(conn_rig_transaction, 30);
	conn_rig_wait(10 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_pong(1);
	ck_assert(conn_rig_turn());
	conn_rig_wait(CONN_STALL_NS - CONN_RIG_SECOND_NS);
	ck_assert(conn_rig_turn());
}

TEST(idling_is_allowed_for_ever)
{
	conn_rig_wait(1000 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_ping(1);
	ck_assert(conn_rig_turn());
	conn_rig_wait(1000 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	conn_rig_pong(1);
	ck_assert(conn_rig_turn());
	conn_rig_wait(1000 * CONN_STALL_NS);
	ck_assert(conn_rig_turn());
}

TEST(who_takes_no_answers_is_hung_up_on)
{
	conn_rig.answers_at_once = true;
	conn_rig_flood();
	ck_assert(conn_rig_turn());
	conn_rig_wait(CONN_STALL_NS);
	ck_assert(conn_rig_turn());
	/* Taking a part of the answer is enough. */
	ck_assert_int_gt(recv(conn_rig.client, conn_rig.got, 200000, 0), 0);
	ck_assert(conn_rig_turn());
	expect_stall();
}

/* ---- memory ---- */

TEST(an_idle_connection_holds_no_buffers)
{
	conn_rig_tell(conn_rig_transaction, conn_rig_transaction_len);
	conn_rig_pong(1);
	ck_assert(conn_rig_turn());
	ck_assert_ptr_null(conn_rig.conn->in);
	ck_assert_ptr_null(conn_rig.conn->out.data);
	ck_assert_ptr_null(conn_rig.conn->decoder);
	ck_assert_uint_lt(sizeof(*conn_rig.conn), 1024);
}
