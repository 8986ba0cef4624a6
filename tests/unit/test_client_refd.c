/*
 * Proves the work of librefd without lost transactions. Wrong greetings are
 * told apart. Several requests may be in flight and are answered in any order.
 * A ping is simply sent again, and a drain is not. A call without an answer in
 * time leaves no request behind, and the next question gets its own answer. If
 * a server writes before it reads, the two sides do not wait for each other. An
 * endless message ends the connection before much memory is used.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/librefd/answer.h"
#include "daemon/base/time.h"
#include "tests/lib/talk.h"
#include "tests/lib/tmp.h"

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

#define FIRST_LEN 18
#define OTHER(version)                                                         \
	"speaks version " version                                              \
	" of refd's protocol, this program version 2: "

/* First lines. The rest of each greeting is valid. */
static const struct {
	const char *line;
	int err;
	const char *says;
} greetings[] = {
	{ "0012refd version=1", -EPROTO, OTHER("1") },
	{ "0012refd version=2", 0, NULL },
	{ "0012refd version=3", -EPROTO, OTHER("3") },
	/* With a word that is unknown in version 2. */
	{ "0012refd version=40010state asleep", -EPROTO, OTHER("4") },
};

#define NR_GREETINGS (sizeof(greetings) / sizeof(greetings[0]))

static const char *first_line;

/* All bytes at once, because the client may hang up in between. */
static void greets_with_the_line(struct fake *f)
{
	char greeting[1024];
	size_t len = strlen(first_line);
	struct pkt_buf buf = { 0 };
	struct refd_hello hello = { .version = REFD_PROTOCOL_VERSION,
		.state = REFD_SERVING,
		.pid = 1,
		.max_updates = 1,
		.max_bytes = 1,
		.software = "fake" };

	fake_play(f, "accept");
	refd_hello_encode(&hello, &buf);
	memcpy(greeting, first_line, len);
	memcpy(greeting + len, buf.data + FIRST_LEN, buf.len - FIRST_LEN);
	fake_send(f, greeting, len + buf.len - FIRST_LEN);
	pkt_buf_done(&buf);
	fake_play(f, "end");
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

/* The message says which side is older, and what to do. */
TEST(test_versions, .times = NR_GREETINGS)
{
	const char *says = greetings[_i].says;

	first_line = greetings[_i].line;
	talk_begin_script(greets_with_the_line);
	ck_assert_int_eq(refd_connect(talk.refd, 60000), greetings[_i].err);
	if (says != NULL)
		ck_assert_ptr_nonnull(strstr(refd_error(talk.refd), says));
	talk_end();
}

static void no_refd(struct fake *f)
{
	fake_play(f, "accept");
	fake_send(f, "SSH-2.0-OpenSSH_9.2\r\n", 21);
}

static void expect_words(void)
{
	ck_assert_str_ne(refd_error(talk.refd), "");
	talk_end();
}

TEST(test_no_refd)
{
	talk_begin_script(no_refd);
	talk_calls("connect=EPROTO");
	expect_words();
}

TEST(test_silence)
{
	talk_begin("accept end");
	talk_calls("@30 connect=ETIMEDOUT");
	expect_words();
}

/* A socket of a dead daemon exists, and nobody listens. */
TEST(test_hangs_up_and_dies)
{
	talk_begin("accept");
	talk_calls("connect=ECONNRESET");
	ck_assert_str_ne(refd_error(talk.refd), "");
	ck_assert_int_eq(pthread_join(talk.fake.thread, NULL), 0);
	close(talk.fake.listener);
	talk_calls("connect=ECONNREFUSED");
	refd_free(talk.refd);
	free(talk.fake.in);
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
}

TEST(test_connects_anew_until_served)
{
	talk_begin("recover serve");
	talk_calls("connect");
	ck_assert_int_eq(refd_hello(talk.refd)->state, REFD_RECOVERING);
	talk_calls("connect");
	ck_assert_int_eq(refd_hello(talk.refd)->state, REFD_SERVING);
	talk_end();
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

	talk_begin_script(answers_backwards);
	talk_calls("connect");
	for (i = 0; i < 3; i++) {
		fill(&reqs[i], &u[i], 1);
		ck_assert_int_eq(refd_submit(talk.refd, &reqs[i]), 0);
	}
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(refd_wait(talk.refd, &reqs[i], 100000, &ans),
		    0);
		ck_assert_int_eq(ans.kind, REFD_ANSWER_RESULTS);
		ck_assert_str_eq(ans.results[0].name, u[i].name);
		ck_assert(refd_txid_eq(&ans.txid, &reqs[i].txid));
		ck_assert_uint_eq(ans.lsn, 7);
		refd_answer_done(&ans);
	}
	ck_assert_int_eq(refd_wait(talk.refd, &reqs[0], 0, &ans), -EINVAL);
	talk_end();
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

	talk_begin_script(waits_for_the_end);
	talk_calls("connect");
	for (i = 0; i < REFD_REQUESTS_MAX; i++) {
		reqs[i].verb = REFD_VERB_PING;
		ck_assert_int_eq(refd_submit(talk.refd, &reqs[i]), 0);
	}
	reqs[i].verb = REFD_VERB_PING;
	ck_assert_int_eq(refd_submit(talk.refd, &reqs[i]), -EBUSY);
	/* A timeout is no failure: the caller may wait again. */
	ck_assert_int_eq(refd_wait(talk.refd, &reqs[0], 1, &ans), -ETIMEDOUT);
	ck_assert_int_eq(refd_wait(talk.refd, &reqs[0], 1, &ans), -ETIMEDOUT);
	talk_end();
}

TEST(test_what_does_not_fit)
{
	struct refd_request req;
	char *message = malloc(REFD_PACKET_MAX + 1);

	memset(message, 'm', REFD_PACKET_MAX);
	message[REFD_PACKET_MAX] = '\0';
	talk_begin_script(waits_for_the_end);
	talk_calls("connect");
	fill(&req, NULL, 0);
	req.message = message;
	ck_assert_int_eq(refd_submit(talk.refd, &req), -EINVAL);
	/* And no part of the request was sent. */
	req.message = NULL;
	ck_assert_int_eq(refd_submit(talk.refd, &req), 0);
	talk_end();
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

	talk_begin_script(waits_for_the_end);
	fill(&req, &update, 1);
	/* Not connected yet, so the request is made later. */
	ck_assert_int_eq(refd_submit(talk.refd, &req), 0);
	ck_assert_int_eq(refd_wait(talk.refd, &req, 3000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(talk.refd), "an old target is empty"));
	talk_end();
	talk_begin_script(waits_for_the_end);
	talk_calls("connect");
	ck_assert_int_eq(refd_call(talk.refd, &req, 3000, &ans), -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(refd_error(talk.refd), "an old target is empty"));
	talk_end();
}

/* ---- lost, and harmless to repeat ---- */

TALK(test_ping_again, "serve ping serve ping=pong", "connect ping=pong");

/* The next daemon was started to serve. */
TALK(test_drain_not_again, "serve drain", "connect drain=refused:aborted");

/* A caller may rely on the kind of an answer. */
TALK(test_answer_of_another_kind,
    "serve ping=pairs serve ping=pairs serve ping=pairs",
    "connect ping=EPROTO");

/* ---- history without an index yet ---- */

static void has_no_index_yet(struct fake *f)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.next = { .lsn = 7 },
		.more = true };
	int i;

	fake_serve(f);
	for (i = 0; i < 3; i++) {
		fake_play(f, "log");
		ans.request_id = f->open[REFD_VERB_LOG];
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

	talk_begin_script(has_no_index_yet);
	talk_calls("connect");
	began_ns = time_now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(refd_log(talk.refd, &req, 100000, &ans), 0);
		ck_assert(ans.more);
		refd_answer_done(&ans);
	}
	ck_assert_int_ge(time_now_ns(CLOCK_MONOTONIC) - began_ns, 40000000);
	talk_end();
}

/* ---- both sides full ---- */

#define MANY_PAIRS   100
#define MANY_UPDATES 60000

static void writes_before_it_reads(struct fake *f)
{
	static struct refd_pair pairs[MANY_PAIRS];
	static char value[60000];
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = pairs,
		.nr_pairs = MANY_PAIRS };
	size_t i;

	memset(value, 'v', sizeof(value) - 1);
	for (i = 0; i < MANY_PAIRS; i++)
		pairs[i] = (struct refd_pair){ "key", value };
	fake_play(f, "serve status");
	ans.request_id = f->open[REFD_VERB_STATUS];
	fake_answer(f, &ans);
	fake_play(f, "transaction=ok");
}

TEST(test_no_deadlock)
{
	static struct refd_update updates[MANY_UPDATES];
	size_t i;

	for (i = 0; i < MANY_UPDATES; i++)
		updates[i].name = "refs/heads/some/rather/long/name/of/a/ref";
	talk_begin_script(writes_before_it_reads);
	fill(&talk.requests[REFD_VERB_TRANSACTION], updates, MANY_UPDATES);
	talk_calls("connect submit:status submit:transaction @-1 "
		   "wait:transaction=ok wait:status=pairs");
	ck_assert_uint_eq(talk.answer.nr_pairs, MANY_PAIRS);
	talk_end();
}

/* ---- no answer in time ---- */

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
	fake_play(f, "serve watch end serve");
	answer_watch(f, 0);
	answer_watch(f, 1);
	answer_watch(f, 2);
	fake_play(f, "end");
}

/* Otherwise the answers come one question late, and changes twice. */
TEST(test_watches_again_after_a_timeout)
{
	struct refd_request req = { .git_dir = "/r" };
	struct refd_answer ans;
	uint64_t i;

	talk_begin_script(answers_the_second_watch);
	talk_calls("connect");
	ck_assert_int_eq(refd_watch(talk.refd, &req, 1, &ans), -ETIMEDOUT);
	for (i = 1; i <= 3; i++) {
		ck_assert_int_eq(refd_watch(talk.refd, &req, 10000, &ans), 0);
		ck_assert_uint_eq(ans.next.lsn, i);
		refd_answer_done(&ans);
	}
	talk_end();
}

/* The request may be a local variable, which is gone after the call. Other
 * requests get their answers. */
TEST(test_call_ends_its_request)
{
	struct refd_request *ping = &talk.requests[REFD_VERB_PING];
	struct refd_answer ans;

	talk_begin("serve status ping end serve status=pairs end");
	talk_calls("connect submit:status @1 ping=ETIMEDOUT");
	ck_assert_ptr_nonnull(
	    strstr(refd_error(talk.refd), "no answer in time"));
	memset(ping, 0xff, sizeof(*ping));
	talk_calls("@10000 wait:status=pairs");
	ck_assert_int_eq(refd_wait(talk.refd, ping, 0, &ans), -EINVAL);
	talk_end();
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
	talk_begin_script(cases[_i].script);
	err = refd_connect(talk.refd, 60000);
	if (err == 0)
		err = refd_call(talk.refd, &req, 60000, &ans);
	ck_assert_int_eq(err, -EPROTO);
	talk_end();
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
