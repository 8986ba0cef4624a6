/*
 * Proves the work of librefd without lost transactions. Wrong greetings are
 * told apart. Several requests may be in flight and are answered in any order.
 * A ping is simply sent again. A call without an answer in time leaves no
 * request behind, and the next question gets its own answer. If a server writes
 * before it reads, the two sides do not wait for each other. An endless message
 * ends the connection before much memory is used.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/librefd/answer.h"
#include "client/refd.h"
#include "daemon/base/time.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct fake fake;
static struct refd *daemon_;

static void start(void (*script)(struct fake *f))
{
	fake_start(&fake, script);
	daemon_ = refd_new(fake.path);
	ck_assert_ptr_nonnull(daemon_);
}

static void stop(void)
{
	refd_free(daemon_);
	fake_stop(&fake);
}

static void fill(struct refd_request *req, struct refd_update *updates,
    size_t nr)
{
	memset(req, 0, sizeof(*req));
	req->verb = REFD_VERB_TRANSACTION;
	req->git_dir = "/r";
	req->updates = updates;
	req->nr_updates = nr;
}

/* ---- greetings ---- */

static void no_refd(struct fake *f)
{
	fake_accept(f);
	fake_send(f, "SSH-2.0-OpenSSH_9.2\r\n", 21);
}

static void silent(struct fake *f)
{
	char c;

	fake_accept(f);
	fake_expect(f, read(f->conn, &c, 1) == 0, "the client said something");
}

static void hangs_up(struct fake *f)
{
	fake_accept(f);
}

#define FIRST_LEN 18

static void of_version(struct fake *f, const char *line, size_t len)
{
	char greeting[1024], tail[512];
	struct pkt_buf buf = { 0 };
	ssize_t n;

	/* The rest of a valid greeting after another first line. All bytes at
	 * once, because the client may hang up in between. */
	struct refd_hello hello = { .version = REFD_PROTOCOL_VERSION,
		.state = REFD_SERVING,
		.pid = 1,
		.max_updates = 1,
		.max_bytes = 1,
		.software = "fake" };

	fake_accept(f);
	refd_hello_encode(&hello, &buf);
	memcpy(greeting, line, len);
	memcpy(greeting + len, buf.data + FIRST_LEN, buf.len - FIRST_LEN);
	fake_send(f, greeting, len + buf.len - FIRST_LEN);
	pkt_buf_done(&buf);
	n = read(f->conn, tail, sizeof(tail));
	fake_expect(f, n == 0, "the client stays");
}

static void version_one(struct fake *f)
{
	of_version(f, "0012refd version=1", FIRST_LEN);
}

static void version_two(struct fake *f)
{
	of_version(f, "0012refd version=2", FIRST_LEN);
}

static void version_three(struct fake *f)
{
	of_version(f, "0012refd version=3", FIRST_LEN);
}

/* With a word that is unknown in version 2. */
static void version_four(struct fake *f)
{
	of_version(f, "0012refd version=40010state asleep", 34);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_greetings, .times = 6)
{
	static const struct {
		void (*script)(struct fake *f);
		int err;
	} cases[] = {
		{ no_refd, -EPROTO },
		{ silent, -ETIMEDOUT },
		{ hangs_up, -ECONNRESET },
		{ version_one, -EPROTO },
		{ version_two, 0 },
		{ version_three, -EPROTO },
	};

	start(cases[_i].script);
	ck_assert_int_eq(refd_connect(daemon_, _i == 1 ? 30 : 60000),
	    cases[_i].err);
	ck_assert(cases[_i].err == 0 || *refd_error(daemon_));
	stop();
}

/* The message says which side is older, and what to do. */
TEST(test_other_version, .times = 3)
{
	static const struct {
		void (*script)(struct fake *f);
		const char *says;
	} cases[] = {
		{ version_one,
		    "speaks version 1 of refd's protocol, this "
		    "program version 2: " },
		{ version_three,
		    "speaks version 3 of refd's protocol, this "
		    "program version 2: " },
		{ version_four,
		    "speaks version 4 of refd's protocol, this "
		    "program version 2: " },
	};

	start(cases[_i].script);
	ck_assert_int_eq(refd_connect(daemon_, 60000), -EPROTO);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), cases[_i].says));
	stop();
}

TEST(test_nobody)
{
	struct refd *r;
	char path[600];

	snprintf(path, sizeof(path), "%s/sock", tmp_root);
	r = refd_new(path);
	ck_assert_int_eq(refd_connect(r, 60000), -ENOENT);
	ck_assert_ptr_nonnull(strstr(refd_error(r), path));
	ck_assert_ptr_null(refd_hello(r));
	refd_free(r);

	/* A socket of a dead daemon exists, and nobody listens. */
	fake_start(&fake, hangs_up);
	r = refd_new(fake.path);
	ck_assert_int_eq(refd_connect(r, 60000), -ECONNRESET);
	pthread_join(fake.thread, NULL);
	close(fake.listener);
	ck_assert_int_eq(refd_connect(r, 60000), -ECONNREFUSED);
	refd_free(r);
	free(fake.in);
}

FAKE_SCRIPT(recovers_then_serves, "recover serve");

TEST(test_connects_anew_until_served)
{
	start(recovers_then_serves);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_hello(daemon_)->state, REFD_RECOVERING);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_hello(daemon_)->state, REFD_SERVING);
	stop();
}

/* ---- in flight ---- */

static void answers_backwards(struct fake *f)
{
	struct refd_request reqs[3];
	int i;

	fake_serve(f);
	for (i = 0; i < 3; i++)
		fake_read(f, &reqs[i]);
	for (i = 2; i >= 0; i--) {
		fake_answer_ok(f, &reqs[i]);
		refd_request_done(&reqs[i]);
	}
}

TEST(test_any_order)
{
	struct refd_update u[3] = { { .name = "refs/heads/a" },
		{ .name = "refs/heads/b" }, { .name = "refs/heads/c" } };
	struct refd_request reqs[3];
	struct refd_answer ans;
	int i;

	start(answers_backwards);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	for (i = 0; i < 3; i++) {
		fill(&reqs[i], &u[i], 1);
		ck_assert_int_eq(refd_submit(daemon_, &reqs[i]), 0);
	}
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(refd_wait(daemon_, &reqs[i], 100000, &ans), 0);
		ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
		ck_assert_str_eq(ans.results[0].name, u[i].name);
		ck_assert(refd_txid_eq(&ans.txid, &reqs[i].txid));
		ck_assert_uint_eq(ans.lsn, 7);
		refd_answer_done(&ans);
	}
	ck_assert_int_eq(refd_wait(daemon_, &reqs[0], 0, &ans), -EINVAL);
	stop();
}

static void waits_for_the_end(struct fake *f)
{
	char c[4096];

	fake_serve(f);
	while (read(f->conn, c, sizeof(c)) > 0)
		;
}

TEST(test_too_many)
{
	static struct refd_request reqs[REFD_REQUESTS_MAX + 1];
	struct refd_answer ans;
	int i;

	start(waits_for_the_end);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	for (i = 0; i < REFD_REQUESTS_MAX; i++) {
		reqs[i].verb = REFD_VERB_PING;
		ck_assert_int_eq(refd_submit(daemon_, &reqs[i]), 0);
	}
	reqs[i].verb = REFD_VERB_PING;
	ck_assert_int_eq(refd_submit(daemon_, &reqs[i]), -EBUSY);
	/* A timeout is no failure: the caller may wait again. */
	ck_assert_int_eq(refd_wait(daemon_, &reqs[0], 1, &ans), -ETIMEDOUT);
	ck_assert_int_eq(refd_wait(daemon_, &reqs[0], 1, &ans), -ETIMEDOUT);
	stop();
}

TEST(test_what_does_not_fit)
{
	struct refd_request req;
	char *message = malloc(REFD_PACKET_MAX + 1);

	memset(message, 'm', REFD_PACKET_MAX);
	message[REFD_PACKET_MAX] = '\0';
	start(waits_for_the_end);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	fill(&req, NULL, 0);
	req.message = message;
	ck_assert_int_eq(refd_submit(daemon_, &req), -EINVAL);
	/* And no part of the request was sent. */
	req.message = NULL;
	ck_assert_int_eq(refd_submit(daemon_, &req), 0);
	stop();
	free(message);
}

/* On the wire, an empty old target means that there is no condition. */
TEST(test_empty_old_target, .times = 4)
{
	static const enum refd_action actions[] = { REFD_SYMREF_DELETE,
		REFD_SYMREF_VERIFY, REFD_SYMREF_UPDATE, REFD_DELETE };
	struct refd_update update = { .action = actions[_i],
		.name = "refs/heads/s",
		.target = "refs/heads/a",
		.has_old = true,
		.old_target = "" };
	struct refd_request req;
	struct refd_answer ans;

	start(waits_for_the_end);
	fill(&req, &update, 1);
	/* Not connected yet, so the request is made later. */
	ck_assert_int_eq(refd_submit(daemon_, &req), 0);
	ck_assert_int_eq(refd_wait(daemon_, &req, 3000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(daemon_), "an old target is empty"));
	stop();
	start(waits_for_the_end);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &req, 3000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(daemon_), "an old target is empty"));
	stop();
}

/* ---- lost, and harmless to repeat ---- */

FAKE_SCRIPT(loses_a_ping, "serve ping serve ping=pong");

TEST(test_ping_again)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };
	struct refd_answer ans;

	start(loses_a_ping);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &ping, 100000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PONG);
	refd_answer_done(&ans);
	stop();
}

FAKE_SCRIPT(answers_ping_by_pairs,
    "serve ping=pairs serve ping=pairs serve ping=pairs");

/* A caller may rely on the kind of an answer. */
TEST(test_answer_of_another_kind)
{
	struct refd_request ping = { .verb = REFD_VERB_PING };
	struct refd_answer ans;

	start(answers_ping_by_pairs);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_call(daemon_, &ping, 100000, &ans), -EPROTO);
	stop();
}

/* ---- history without an index yet ---- */

static void has_no_index_yet(struct fake *f)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.next = { .lsn = 7 },
		.more = true };
	struct refd_request req;
	int i;

	fake_serve(f);
	for (i = 0; i < 3; i++) {
		fake_read(f, &req);
		ans.request_id = req.request_id;
		refd_request_done(&req);
		fake_answer(f, &ans);
	}
}

/* Questions without a pause would take the whole time of the daemon. */
TEST(test_naps_for_the_index)
{
	struct refd_request req = { .select.reverse = true };
	struct refd_answer ans;
	int64_t began_ns;
	int i;

	start(has_no_index_yet);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	began_ns = time_now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(refd_log(daemon_, &req, 100000, &ans), 0);
		ck_assert(ans.more);
		refd_answer_done(&ans);
	}
	ck_assert_int_ge(time_now_ns(CLOCK_MONOTONIC) - began_ns, 40000000);
	stop();
}

/* ---- both sides full ---- */

#define MANY_PAIRS   100
#define MANY_UPDATES 60000

static void writes_before_it_reads(struct fake *f)
{
	static struct refd_pair pairs[MANY_PAIRS];
	static char value[60000];
	struct refd_request req;
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = pairs,
		.nr_pairs = MANY_PAIRS };
	size_t i;

	memset(value, 'v', sizeof(value) - 1);
	for (i = 0; i < MANY_PAIRS; i++)
		pairs[i] = (struct refd_pair){ "key", value };
	fake_serve(f);
	fake_read(f, &req);
	ans.request_id = req.request_id;
	refd_request_done(&req);
	fake_answer(f, &ans);
	fake_read(f, &req);
	fake_answer_ok(f, &req);
	refd_request_done(&req);
}

TEST(test_no_deadlock)
{
	static struct refd_update updates[MANY_UPDATES];
	struct refd_request status = { .verb = REFD_VERB_STATUS }, req;
	struct refd_answer ans;
	size_t i;

	for (i = 0; i < MANY_UPDATES; i++)
		updates[i].name = "refs/heads/some/rather/long/name/of/a/ref";
	fill(&req, updates, MANY_UPDATES);
	start(writes_before_it_reads);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_submit(daemon_, &status), 0);
	ck_assert_int_eq(refd_submit(daemon_, &req), 0);
	ck_assert_int_eq(refd_wait(daemon_, &req, -1, &ans), 0);
	ck_assert_uint_eq(ans.nr_results, MANY_UPDATES);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(daemon_, &status, -1, &ans), 0);
	ck_assert_uint_eq(ans.nr_pairs, MANY_PAIRS);
	refd_answer_done(&ans);
	stop();
}

/* ---- no answer in time ---- */

static bool is_at_end(struct fake *f)
{
	char c;

	return read(f->conn, &c, 1) == 0;
}

/* A WATCH from AFTER on. */
static void answer_watch(struct fake *f, uint64_t after)
{
	struct refd_request req;
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.next.lsn = after + 1 };

	fake_read(f, &req);
	fake_expect(f, req.verb == REFD_VERB_WATCH, "not a watch");
	fake_expect(f, req.select.after.lsn == after, "a question came twice");
	ans.request_id = req.request_id;
	refd_request_done(&req);
	fake_answer(f, &ans);
}

static void answers_the_second_watch(struct fake *f)
{
	struct refd_request req;

	fake_serve(f);
	fake_read(f, &req);
	fake_expect(f, req.verb == REFD_VERB_WATCH, "not a watch");
	refd_request_done(&req);
	fake_expect(f, is_at_end(f), "the first question still waits");
	fake_serve(f);
	answer_watch(f, 0);
	answer_watch(f, 1);
	answer_watch(f, 2);
	fake_expect(f, is_at_end(f), "more was asked");
}

/* Otherwise the answers come one question late, and changes twice. */
TEST(test_watches_again_after_a_timeout)
{
	struct refd_request req = { .git_dir = "/r" };
	struct refd_answer ans;
	uint64_t i;

	start(answers_the_second_watch);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_watch(daemon_, &req, 1, &ans), -ETIMEDOUT);
	for (i = 1; i <= 3; i++) {
		ck_assert_int_eq(refd_watch(daemon_, &req, 10000, &ans), 0);
		ck_assert_uint_eq(ans.next.lsn, i);
		refd_answer_done(&ans);
	}
	stop();
}

static void answers_only_the_status(struct fake *f)
{
	struct refd_request status, ping;

	fake_serve(f);
	fake_read(f, &status);
	fake_read(f, &ping);
	fake_expect(f, ping.verb == REFD_VERB_PING, "not a ping");
	refd_request_done(&ping);
	refd_request_done(&status);
	fake_expect(f, is_at_end(f), "the call goes on");
	fake_serve(f);
	fake_read(f, &status);
	fake_expect(f, status.verb == REFD_VERB_STATUS, "not the status");
	fake_answer_kind(f, &status, REFD_ANSWER_PAIRS);
	refd_request_done(&status);
	fake_expect(f, is_at_end(f), "more was asked");
}

/* The request may be a local variable, which is gone after the call. Other
 * requests get their answers. */
TEST(test_call_ends_its_request)
{
	struct refd_request status = { .verb = REFD_VERB_STATUS };
	struct refd_request ping = { .verb = REFD_VERB_PING };
	struct refd_answer ans;

	start(answers_only_the_status);
	ck_assert_int_eq(refd_connect(daemon_, 60000), 0);
	ck_assert_int_eq(refd_submit(daemon_, &status), 0);
	ck_assert_int_eq(refd_call(daemon_, &ping, 1, &ans), -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(refd_error(daemon_), "no answer in time"));
	memset(&ping, 0xff, sizeof(ping));
	ck_assert_int_eq(refd_wait(daemon_, &status, 10000, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PAIRS);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_wait(daemon_, &ping, 0, &ans), -EINVAL);
	stop();
}

/* ---- endless messages ---- */

/* The bytes that the clients took, of all connections. */
static size_t taken;

#define ENOUGH      (64 * 1024 * 1024)
#define FLOOD_TEXT  60000
#define FLOOD_TURNS 3 /* the client asks again on a new connection */

/* Sends packets until the client hangs up. */
static void flood(struct fake *f, const struct pkt_buf *begin,
    const struct pkt_buf *packet)
{
	size_t sent = 0;
	ssize_t n;

	fake_send(f, begin->data, begin->len);
	while (taken < ENOUGH) {
		n = send(f->conn, packet->data + sent, packet->len - sent,
		    MSG_NOSIGNAL);
		if (n < 0)
			break;
		taken += (size_t)n;
		sent = (sent + (size_t)n) % packet->len;
	}
}

static void flood_answers(struct fake *f, const char *kind, const char *before)
{
	struct pkt_buf begin, packet = { 0 };
	static char text[FLOOD_TEXT];
	struct refd_request req;
	char id[REFD_TXID_HEX + 1];
	int i;

	memset(text, 'x', sizeof(text) - 1);
	pkt_putf(&packet, "%s%s", before, text);
	/* NUL cannot be a part of a string. */
	for (i = 0; i < 20; i++)
		if (packet.data[PKT_DIGITS + i] == '^')
			packet.data[PKT_DIGITS + i] = '\0';
	for (i = 0; i < FLOOD_TURNS && taken < ENOUGH; i++) {
		fake_serve(f);
		fake_read(f, &req);
		begin = (struct pkt_buf){ 0 };
		pkt_putf(&begin, "answer %u %s", (unsigned)req.request_id,
		    kind);
		if (strcmp(kind, "pairs") != 0)
			pkt_putf(&begin, "txid %s",
			    refd_txid_hex(&req.txid, id));
		flood(f, &begin, &packet);
		pkt_buf_done(&begin);
		refd_request_done(&req);
	}
	pkt_buf_done(&packet);
}

static void endless_pairs(struct fake *f)
{
	flood_answers(f, "pairs", "pair key ");
}

static void endless_results(struct fake *f)
{
	flood_answers(f, "results", "ok^refs/heads/a^^");
}

static void endless_hello(struct fake *f)
{
	struct pkt_buf begin = { 0 }, packet = { 0 };

	pkt_putf(&begin, "refd version=%u", REFD_PROTOCOL_VERSION);
	pkt_putf(&packet, "capability everything");
	fake_accept(f);
	flood(f, &begin, &packet);
	pkt_buf_done(&begin);
	pkt_buf_done(&packet);
}

TEST(test_endless, .times = 3)
{
	static const struct {
		void (*script)(struct fake *f);
		enum refd_verb verb;
		size_t most; /* of one connection, without buffers */
	} cases[] = {
		{ endless_pairs, REFD_VERB_STATUS, REFD_ANSWER_BYTES },
		{ endless_results, REFD_VERB_TRANSACTION,
		    REFD_ANSWER_BYTES + REFD_RESULT_BYTES },
		{ endless_hello, REFD_VERB_PING, REFD_HELLO_BYTES_MAX },
	};
	static struct refd_update update = { .name = "refs/heads/a" };
	struct refd_request req;
	struct refd_answer ans;
	int err;

	taken = 0;
	fill(&req, &update, 1);
	req.verb = cases[_i].verb;
	start(cases[_i].script);
	err = refd_connect(daemon_, 60000);
	if (err == 0)
		err = refd_call(daemon_, &req, 60000, &ans);
	ck_assert_int_eq(err, -EPROTO);
	stop();
	ck_assert_uint_le(taken, FLOOD_TURNS * (cases[_i].most + (1 << 20)));
}

/* An answer that is filled up keeps its object format. */
TEST(test_completed)
{
	static struct refd_update updates[] = { { .name = "refs/heads/a" },
		{ .name = "refs/heads/b" } };
	struct refd_result told = { .name = "refs/heads/b",
		.status = REFD_STALE,
		.has_found = true,
		.found = { .bytes = { [REFD_OID_MAX_BYTES - 1] = 7 } } };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.results = &told,
		.nr_results = 1,
		.nr_updates = 2,
		.object_format = REFD_FORMAT_SHA256 };
	struct refd_request req;

	fill(&req, updates, 2);
	req.request_id = 1;
	ck_assert_int_eq(refd_answer_complete(&req, &ans), 0);
	ck_assert_int_eq(ans.results[0].status, REFD_ABORTED);
	ck_assert_int_eq(ans.object_format, REFD_FORMAT_SHA256);
	ck_assert_mem_eq(&ans.results[1].found, &told.found,
	    sizeof(told.found));
	refd_answer_done(&ans);
}
