#include "tests/lib/conn_rig.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn_rig rig;

const char rig_transaction[] =
    "0011transaction 1"
    "0029txid 0192f0c1d2e30001020304050607abcd"
    "001agit-dir /srv/git/a.git"
    "001acommon-dir 2049 131074"
    "000eumask 0022"
    "0001"
    "0044create refs/heads/topic\0bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    "001adelete refs/heads/old\0"
    "0000";
const size_t rig_transaction_len = sizeof(rig_transaction) - 1;

static char flood_batch[1000 * RIG_FLOOD_BYTES + 1];
static size_t flood_ready;

static int64_t fake_now_mono(const struct sys *unused)
{
	(void)unused;
	return rig.clock_ns;
}

void rig_pong(uint32_t id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PONG, .request_id = id };

	conn_answer(rig.conn, &ans);
}

static void host_request(void *arg, struct conn *c, struct refd_request *req)
{
	(void)arg;
	ck_assert_ptr_eq(c, rig.conn);
	ck_assert_uint_lt(rig.nr_asked, RIG_ASKED_MAX);
	rig.asked[rig.nr_asked++] = *req;
	if (!rig.answers_at_once)
		return;
	rig_pong(req->request_id);
	refd_request_done(&rig.asked[--rig.nr_asked]);
}

static void host_touched(void *arg)
{
	(void)arg;
}

void rig_setup(void)
{
	struct refd_hello hello = { .version = 1,
		.state = REFD_SERVING,
		.software = "refd/test" };
	struct txn_peer peer = { .uid = 7 };
	int fds[2];

	rig.sys = sys_kernel;
	rig.sys.now_mono = fake_now_mono;
	rig.clock_ns = 1000 * RIG_SECOND_NS;
	rig.base = event_base_new();
	rig.host = (struct conn_host){ .base = rig.base,
		.sys = &rig.sys,
		.request = host_request,
		.connections_max = 10000,
		.touched = host_touched };
	ck_assert_int_eq(conn_host_init(&rig.host), 0);
	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	rig.client = fds[1];
	rig.conn = conn_new(&rig.host, fds[0], &peer, &hello);
	ck_assert_ptr_nonnull(rig.conn);
	rig.got = malloc(RIG_CLIENT_MAX);
	rig.got_len = 0;
	rig.at_end = false;
	rig.answers_at_once = false;
	rig.nr_asked = rig.flooded = flood_ready = 0;
}

void rig_teardown(void)
{
	size_t i;

	for (i = 0; i < rig.nr_asked; i++)
		refd_request_done(&rig.asked[i]);
	conn_free(rig.conn);
	rig.conn = NULL;
	if (rig.client >= 0)
		close(rig.client);
	free(rig.got);
	conn_host_done(&rig.host);
	event_base_free(rig.base);
}

/* The loop, until nothing more happens. False: the connection is over, and
 * has been freed. */
bool rig_turn(void)
{
	int quiet = 0;

	while (rig.conn != NULL && quiet < 2) {
		event_base_loop(rig.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		quiet = rig.conn->is_touched ? 0 : quiet + 1;
		if (rig.conn->is_touched && !conn_service(rig.conn)) {
			conn_free(rig.conn);
			rig.conn = NULL;
		}
	}
	return rig.conn != NULL;
}

/* All that there is to read now. */
void rig_read(void)
{
	ssize_t n;

	while ((n = recv(rig.client, rig.got + rig.got_len,
		    RIG_CLIENT_MAX - rig.got_len, 0)) > 0)
		rig.got_len += (size_t)n;
	rig.at_end = n == 0 || errno == ECONNRESET;
}

void rig_read_all(void)
{
	do {
		rig_read();
		ck_assert(rig_turn());
	} while (conn_unsent(rig.conn) > 0 || rig.conn->held);
	rig_read();
}

void rig_say(const char *data, size_t len)
{
	ck_assert_int_eq(send(rig.client, data, len, MSG_NOSIGNAL),
	    (ssize_t)len);
}

/* Takes hello out of what was read. */
static void expect_hello(void)
{
	struct refd_hello_decoder dec = { 0 };
	struct refd_hello hello;
	const char *why;
	struct pkt pkt;
	size_t used = 0;
	long n;

	for (;;) {
		n = pkt_parse(rig.got + used, rig.got_len - used, &pkt);
		ck_assert_int_gt(n, 0);
		used += (size_t)n;
		if (refd_hello_decode(&dec, &pkt, &hello, &why) ==
		    REFD_DECODE_DONE)
			break;
	}
	ck_assert_str_eq(hello.software, "refd/test");
	memmove(rig.got, rig.got + used, rig.got_len - used);
	rig.got_len -= used;
}

/* Decodes what was read, which must be whole answers; returns how many. IDS,
 * if not NULL, gets their ids, and *LAST the last one. */
size_t rig_answers(uint32_t *ids, struct refd_answer *last)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	size_t used = 0, nr = 0;
	enum refd_decoded state = REFD_DECODE_DONE;
	long n;

	while (used < rig.got_len) {
		n = pkt_parse(rig.got + used, rig.got_len - used, &pkt);
		ck_assert_int_gt(n, 0);
		used += (size_t)n;
		state = refd_answer_decode(dec, &pkt, &ans, &why);
		ck_assert_int_ne(state, REFD_DECODE_FATAL);
		if (state != REFD_DECODE_DONE)
			continue;
		if (ids != NULL)
			ids[nr] = ans.request_id;
		if (last != NULL && used == rig.got_len)
			*last = ans;
		else
			refd_answer_done(&ans);
		nr++;
	}
	ck_assert_int_eq(state, REFD_DECODE_DONE);
	refd_answer_decoder_free(dec);
	rig.got_len = 0;
	return nr;
}

void rig_greet(void)
{
	ck_assert(rig_turn());
	rig_read();
	expect_hello();
	ck_assert_uint_eq(rig.got_len, 0);
}

void rig_ping(uint32_t id)
{
	char text[64];

	snprintf(text, sizeof(text), "ping %u", id);
	snprintf(text, sizeof(text), "%04zxping %u0000", strlen(text) + 4, id);
	rig_say(text, strlen(text));
}

/* Pings, numbered from RIG_FLOOD_FROM, until no more of them are taken; goes on
 * where it stopped. */
static void make_batch(void)
{
	size_t i, number = RIG_FLOOD_FROM + rig.flooded / RIG_FLOOD_BYTES;

	for (i = 0; i < 1000; i++)
		snprintf(flood_batch + i * RIG_FLOOD_BYTES, RIG_FLOOD_BYTES + 1,
		    "000fping %zu0000", number + i);
	flood_ready = sizeof(flood_batch) - 1;
}

void rig_flood(void)
{
	const char *at;
	ssize_t n;

	for (;;) {
		if (flood_ready == 0)
			make_batch();
		at = flood_batch + sizeof(flood_batch) - 1 - flood_ready;
		n = send(rig.client, at, flood_ready, MSG_NOSIGNAL);
		if (n > 0) {
			flood_ready -= (size_t)n;
			rig.flooded += (size_t)n;
		} else if (!rig.conn->reads) {
			return;
		}
		ck_assert(rig_turn());
		ck_assert_uint_lt(conn_unsent(rig.conn), 2 * CONN_OUT_HIGH);
	}
}

void rig_wait(int64_t ns)
{
	rig.clock_ns += ns;
	conn_check(rig.conn, rig.clock_ns);
}
