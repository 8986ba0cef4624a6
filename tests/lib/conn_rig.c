#include "tests/lib/conn_rig.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn_rig conn_rig;

const char conn_rig_transaction[] =
    "0011transaction 1"
    "0029txid 0192f0c1d2e30001020304050607abcd"
    "001agit-dir /srv/git/a.git"
    "001acommon-dir 2049 131074"
    "0016object-format sha1"
    "000eumask 0022"
    "0001"
    "0044create refs/heads/topic\0bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    "001adelete refs/heads/old\0"
    "0000";
const size_t conn_rig_transaction_len = sizeof(conn_rig_transaction) - 1;

static char flood_batch[1000 * CONN_RIG_FLOOD_BYTES + 1];
static size_t flood_ready;

static int64_t fake_now_mono(const struct sys *unused)
{
	(void)unused;
	return conn_rig.clock_ns;
}

void conn_rig_pong(uint32_t id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PONG, .request_id = id };

	conn_answer(conn_rig.conn, &ans);
}

static void host_said_all(void *arg, struct conn *c)
{
	(void)arg;
	(void)c;
	conn_rig.has_said_all = true;
}

static void host_request(void *arg, struct conn *c, struct refd_request *req)
{
	(void)arg;
	ck_assert_ptr_eq(c, conn_rig.conn);
	ck_assert_uint_lt(conn_rig.nr_asked, CONN_RIG_ASKED_MAX);
	conn_rig.asked[conn_rig.nr_asked++] = *req;
	conn_rig.clock_ns += conn_rig.request_ns;
	if (!conn_rig.answers_at_once)
		return;
	conn_rig_pong(req->request_id);
	refd_request_done(&conn_rig.asked[--conn_rig.nr_asked]);
}

static void host_touched(struct loop *loop)
{
	(void)loop;
}

void conn_rig_teardown(void)
{
	size_t i;

	for (i = 0; i < conn_rig.nr_asked; i++)
		refd_request_done(&conn_rig.asked[i]);
	conn_free(conn_rig.conn);
	conn_rig.conn = NULL;
	if (conn_rig.client >= 0)
		close(conn_rig.client);
	free(conn_rig.got);
	conn_host_done(&conn_rig.host);
	event_base_free(conn_rig.base);
}

bool conn_rig_turn(void)
{
	int quiet = 0;

	while (conn_rig.conn != NULL && quiet < 2) {
		event_base_loop(conn_rig.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		quiet = conn_rig.conn->is_touched ? 0 : quiet + 1;
		if (conn_rig.conn->is_touched && !conn_service(conn_rig.conn)) {
			conn_free(conn_rig.conn);
			conn_rig.conn = NULL;
		}
	}
	return conn_rig.conn != NULL;
}

void conn_rig_read(void)
{
	ssize_t n;

	while ((n = recv(conn_rig.client, conn_rig.got + conn_rig.got_len,
		    CONN_RIG_CLIENT_MAX - conn_rig.got_len, 0)) > 0)
		conn_rig.got_len += (size_t)n;
	conn_rig.at_end = n == 0 || errno == ECONNRESET;
}

void conn_rig_read_all(void)
{
	do {
		conn_rig_read();
		ck_assert(conn_rig_turn());
	} while (conn_unsent(conn_rig.conn) > 0 || conn_rig.conn->held);
	conn_rig_read();
}

void conn_rig_say(const char *data, size_t len)
{
	ck_assert_int_eq(send(conn_rig.client, data, len, MSG_NOSIGNAL),
	    (ssize_t)len);
}

void conn_rig_tell(const char *data, size_t len)
{
	conn_rig_say(data, len);
	ck_assert(conn_rig_turn());
}

static void expect_hello(void)
{
	struct refd_hello_decoder dec = { 0 };
	struct refd_hello hello;
	const char *why;
	struct pkt pkt;
	size_t used = 0;
	long n;

	for (;;) {
		n = pkt_parse(conn_rig.got + used, conn_rig.got_len - used,
		    &pkt);
		ck_assert_int_gt(n, 0);
		used += (size_t)n;
		if (refd_hello_decode(&dec, &pkt, &hello, &why) ==
		    REFD_DECODE_DONE)
			break;
	}
	ck_assert_str_eq(hello.software, "refd/test");
	memmove(conn_rig.got, conn_rig.got + used, conn_rig.got_len - used);
	conn_rig.got_len -= used;
}

void conn_rig_setup(void)
{
	struct refd_hello hello = { .version = REFD_PROTOCOL_VERSION,
		.state = REFD_SERVING,
		.max_updates = 1,
		.max_bytes = 1,
		.software = "refd/test" };
	struct txn_peer peer = { .uid = 7 };
	int fds[2];

	conn_rig.sys = sys_kernel;
	conn_rig.sys.now_mono = fake_now_mono;
	conn_rig.clock_ns = 1000 * CONN_RIG_SECOND_NS;
	conn_rig.base = event_base_new();
	conn_rig.host = (struct conn_host){ .base = conn_rig.base,
		.sys = &conn_rig.sys,
		.request = host_request,
		.said_all = host_said_all,
		.connections_max = 10000,
		.touched = host_touched };
	ck_assert_int_eq(conn_host_init(&conn_rig.host), 0);
	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	conn_rig.client = fds[1];
	conn_rig.conn = conn_new(&conn_rig.host, fds[0], &peer, &hello);
	ck_assert_ptr_nonnull(conn_rig.conn);
	conn_rig.got = malloc(CONN_RIG_CLIENT_MAX);
	conn_rig.got_len = 0;
	conn_rig.at_end = false;
	conn_rig.answers_at_once = false;
	conn_rig.request_ns = 0;
	conn_rig.nr_asked = conn_rig.flooded = flood_ready = 0;
	ck_assert(conn_rig_turn());
	conn_rig_read();
	expect_hello();
	ck_assert_uint_eq(conn_rig.got_len, 0);
}

size_t conn_rig_answers(uint32_t *ids, struct refd_answer *last)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	size_t used = 0, nr = 0;
	enum refd_decoded state = REFD_DECODE_DONE;
	long n;

	while (used < conn_rig.got_len) {
		n = pkt_parse(conn_rig.got + used, conn_rig.got_len - used,
		    &pkt);
		ck_assert_int_gt(n, 0);
		used += (size_t)n;
		state = refd_answer_decode(dec, &pkt, &ans, &why);
		ck_assert_int_ne(state, REFD_DECODE_FATAL);
		if (state != REFD_DECODE_DONE)
			continue;
		if (ids != NULL)
			ids[nr] = ans.request_id;
		if (last != NULL && used == conn_rig.got_len)
			*last = ans;
		else
			refd_answer_done(&ans);
		nr++;
	}
	ck_assert_int_eq(state, REFD_DECODE_DONE);
	refd_answer_decoder_free(dec);
	conn_rig.got_len = 0;
	return nr;
}

void conn_rig_ping(uint32_t id)
{
	char text[64];

	snprintf(text, sizeof(text), "ping %u", id);
	snprintf(text, sizeof(text), "%04zxping %u0000", strlen(text) + 4, id);
	conn_rig_say(text, strlen(text));
}

/* Makes the next batch of pings, numbered from CONN_RIG_FLOOD_FROM. */
static void make_batch(void)
{
	size_t i,
	    number =
		CONN_RIG_FLOOD_FROM + conn_rig.flooded / CONN_RIG_FLOOD_BYTES;

	for (i = 0; i < 1000; i++)
		snprintf(flood_batch + i * CONN_RIG_FLOOD_BYTES,
		    CONN_RIG_FLOOD_BYTES + 1, "000fping %zu0000",
		    (number + i) % 1000000);
	flood_ready = sizeof(flood_batch) - 1;
}

void conn_rig_flood(void)
{
	const char *at;
	ssize_t n;

	for (;;) {
		if (flood_ready == 0)
			make_batch();
		at = flood_batch + sizeof(flood_batch) - 1 - flood_ready;
		n = send(conn_rig.client, at, flood_ready, MSG_NOSIGNAL);
		if (n > 0) {
			flood_ready -= (size_t)n;
			conn_rig.flooded += (size_t)n;
		} else if (!conn_rig.conn->reads) {
			return;
		}
		ck_assert(conn_rig_turn());
		ck_assert_uint_lt(conn_unsent(conn_rig.conn),
		    2 * CONN_OUT_HIGH);
	}
}

void conn_rig_wait(int64_t ns)
{
	conn_rig.clock_ns += ns;
	conn_check(conn_rig.conn, conn_rig.clock_ns);
}
