/*
 * Proves that what is encoded is decoded to the same and encoded to the same
 * bytes again, for thousands of random requests and answers, and that the
 * bytes are the ones promised: those of the example in proto/PROTOCOL.md,
 * which is read here and compared with what the code says.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "tests/lib/gen_message.h"

#define ROUNDS   5000
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The one request in BUF, which must be whole. */
static enum refd_decoded decode_request(struct refd_request_decoder *dec,
    const struct pkt_buf *buf, struct refd_request *req, const char **why)
{
	enum refd_decoded r = REFD_DECODE_MORE;
	enum refd_status status;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		ck_assert_int_eq(r, REFD_DECODE_MORE);
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		ck_assert_int_gt(n, 0);
		r = refd_request_decode(dec, &pkt, req, &status, why);
	}
	return r;
}

static enum refd_decoded decode_answer(struct refd_answer_decoder *dec,
    const struct pkt_buf *buf, struct refd_answer *ans, const char **why)
{
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		ck_assert_int_eq(r, REFD_DECODE_MORE);
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		ck_assert_int_gt(n, 0);
		r = refd_answer_decode(dec, &pkt, ans, why);
	}
	return r;
}

static void check_same_bytes(const struct pkt_buf *a, const struct pkt_buf *b)
{
	ck_assert(!pkt_buf_failed(a));
	ck_assert(!pkt_buf_failed(b));
	ck_assert_uint_eq(a->len, b->len);
	ck_assert_mem_eq(a->data, b->data, a->len);
}

START_TEST(test_requests)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { 0 }, again = { 0 };
	struct refd_request req, back;
	struct gen g = { 1 };
	const char *why;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		gen_request(&g, &req);
		buf.len = again.len = 0;
		refd_request_encode(&req, &buf);
		ck_assert_msg(decode_request(dec, &buf, &back, &why) ==
			REFD_DECODE_DONE,
		    "round %d: %s", i, why);
		ck_assert(request_eq(&req, &back));
		refd_request_encode(&back, &again);
		check_same_bytes(&buf, &again);
		refd_request_done(&req);
		refd_request_done(&back);
	}
	pkt_buf_done(&buf);
	pkt_buf_done(&again);
	refd_request_decoder_free(dec);
}
END_TEST

START_TEST(test_answers)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct pkt_buf buf = { 0 }, again = { 0 };
	struct refd_answer ans, back;
	struct gen g = { 2 };
	const char *why;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		gen_answer(&g, &ans);
		buf.len = again.len = 0;
		refd_answer_encode(&ans, &buf);
		ck_assert_msg(decode_answer(dec, &buf, &back, &why) ==
			REFD_DECODE_DONE,
		    "round %d: %s", i, why);
		ck_assert(answer_eq(&ans, &back));
		refd_answer_encode(&back, &again);
		check_same_bytes(&buf, &again);
		refd_answer_done(&ans);
		refd_answer_done(&back);
	}
	pkt_buf_done(&buf);
	pkt_buf_done(&again);
	refd_answer_decoder_free(dec);
	refd_answer_decoder_free(NULL);
}
END_TEST

/* However much there is to say of a ref, it is said that the ref failed. */
START_TEST(test_long_text)
{
	static char name[REFD_REFNAME_MAX + 1], text[100000];
	struct refd_result res = { .name = name, .has_found = true };
	struct refd_answer ans = { .request_id = 1, .nr_updates = 1 }, back;
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct pkt_buf buf = { 0 };
	const char *why;
	int status;

	memset(name, '/', sizeof(name) - 1);
	memset(text, 'e', sizeof(text) - 1);
	res.text = ans.text = text;
	ans.results = &res;
	ans.nr_results = 1;
	for (status = REFD_OK; status <= REFD_NOTSYMREF; status++) {
		res.status = (enum refd_status)status;
		buf.len = 0;
		refd_answer_encode(&ans, &buf);
		ck_assert(!pkt_buf_failed(&buf));
		ck_assert_int_eq(decode_answer(dec, &buf, &back, &why),
		    REFD_DECODE_DONE);
		ck_assert_int_eq(back.results[0].status, status);
		ck_assert_str_eq(back.results[0].name, name);
		ck_assert_uint_eq(strlen(back.results[0].text),
		    REFD_MESSAGE_MAX);
		refd_answer_done(&back);
	}
	ans.kind = REFD_ANSWER_REFUSED;
	ans.status = REFD_BUSY;
	buf.len = 0;
	refd_answer_encode(&ans, &buf);
	ck_assert_int_eq(decode_answer(dec, &buf, &back, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(strlen(back.text), REFD_MESSAGE_MAX);
	refd_answer_done(&back);
	pkt_buf_done(&buf);
	refd_answer_decoder_free(dec);
}
END_TEST

/* ---- the example of PROTOCOL.md ---- */

static struct refd_txid txid_of(const char *hex)
{
	struct refd_txid id;

	ck_assert_int_eq(refd_txid_parse(hex, &id), 0);
	return id;
}

static struct refd_oid oid_of(char digit)
{
	char hex[REFD_OID_HEX + 1];
	struct refd_oid oid;

	memset(hex, digit, REFD_OID_HEX);
	hex[REFD_OID_HEX] = '\0';
	ck_assert_int_eq(refd_oid_parse(hex, &oid), 0);
	return oid;
}

#define TXID    "0192f0c1d2e30001020304050607abcd"
#define SESSION "0192f0c1d2e5000000000000000000aa"

static void say_transaction(struct pkt_buf *out)
{
	struct refd_update updates[] = {
		{ .action = REFD_UPDATE,
		    .name = "refs/heads/main",
		    .new_oid = oid_of('b'),
		    .has_old = true,
		    .old_oid = oid_of('a') },
		{ .action = REFD_CREATE,
		    .name = "refs/heads/topic",
		    .new_oid = oid_of('b') },
		{ .action = REFD_DELETE, .name = "refs/heads/old" },
		{ .action = REFD_UPDATE,
		    .no_deref = true,
		    .name = "HEAD",
		    .new_oid = oid_of('c') },
		{ .action = REFD_VERIFY,
		    .name = "refs/heads/stable",
		    .has_old = true,
		    .old_oid = oid_of('d') },
		{ .action = REFD_SYMREF_UPDATE,
		    .no_deref = true,
		    .name = "refs/remotes/o/HEAD",
		    .target = "refs/remotes/o/main",
		    .has_old = true,
		    .old_target = "refs/remotes/o/master" },
	};
	struct refd_request req = {
		.verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.txid = txid_of(TXID),
		.git_dir = "/srv/git/a.git",
		.common_dev = 2049,
		.common_ino = 131074,
		.create_reflog = true,
		.durability = REFD_DURABILITY_FSYNC,
		.deadline_ms = 30000,
		.umask = 022,
		.message = "push",
		.committer = "A U Thor <author@example.com> 1785542400 +0200",
		.log_all_ref_updates = "always",
		.trace2_sid = "20260801T000000.000000Z-H0000-P1",
		.updates = updates,
		.nr_updates = COUNT(updates),
	};

	refd_request_encode(&req, out);
}

static void say_results(struct pkt_buf *out)
{
	struct refd_result results[] = {
		{ .name = "refs/heads/main",
		    .status = REFD_STALE,
		    .has_found = true,
		    .found = oid_of('d'),
		    .text = "incorrect old value provided" },
		{ .name = "refs/heads/topic" },
		{ .name = "refs/heads/old",
		    .status = REFD_MISSING,
		    .has_found = true },
		{ .name = "HEAD" },
		{ .name = "refs/heads/stable" },
		{ .name = "refs/remotes/o/HEAD", .status = REFD_LOCKED },
	};
	struct refd_answer ans = {
		.kind = REFD_ANSWER_RESULTS,
		.request_id = 1,
		.txid = txid_of(TXID),
		.results = results,
		.nr_results = COUNT(results),
		.nr_updates = COUNT(results),
		.outcome = REFD_PARTIAL,
		.lsn = 4711,
	};

	refd_answer_encode(&ans, out);
}

static void say_session(struct pkt_buf *out)
{
	struct refd_update updates[] = {
		{ .action = REFD_UPDATE,
		    .name = "HEAD",
		    .new_oid = oid_of('b') },
		{ .action = REFD_DELETE, .name = "refs/heads/old" },
	};
	struct refd_request req = {
		.verb = REFD_VERB_SESSION,
		.request_id = 6,
		.txid = txid_of(SESSION),
		.git_dir = "/srv/git/a.git",
		.common_dev = 2049,
		.common_ino = 131074,
		.atomic = true,
		.umask = 022,
		.shared_repository = "group",
		.has_ref_lock_timeout = true,
		.ref_lock_timeout_ms = 250,
		.has_packed_refs_timeout = true,
		.packed_refs_timeout_ms = 0,
		.updates = updates,
		.nr_updates = COUNT(updates),
	};

	refd_request_encode(&req, out);
}

static void say_prepared(struct pkt_buf *out)
{
	struct refd_result results[] = {
		{ .name = "HEAD", .text = "refs/heads/main" },
		{ .name = "refs/heads/old" },
	};
	struct refd_answer ans = {
		.kind = REFD_ANSWER_PREPARED,
		.request_id = 6,
		.txid = txid_of(SESSION),
		.results = results,
		.nr_results = COUNT(results),
		.rewrites_packed = true,
	};

	refd_answer_encode(&ans, out);
	results[0].text = NULL;
	ans.kind = REFD_ANSWER_RESULTS;
	ans.request_id = 7;
	ans.nr_updates = COUNT(results);
	ans.outcome = REFD_COMMITTED;
	ans.lsn = 4712;
	refd_answer_encode(&ans, out);
}

/* Any other request and answer of the example. */
static void say(struct pkt_buf *out, enum refd_verb verb, uint32_t id,
    const char *txid)
{
	struct refd_request req = { .verb = verb, .request_id = id };

	if (txid != NULL)
		req.txid = txid_of(txid);
	refd_request_encode(&req, out);
}

static void reply(struct pkt_buf *out, enum refd_answer_kind kind, uint32_t id,
    const char *txid)
{
	static struct refd_pair pairs[] = { { "state", "serving" },
		{ "journal", "/var/lib/refd/journal" } };
	struct refd_answer ans = { .kind = kind,
		.request_id = id,
		.status = REFD_BADREQUEST,
		.text = "unknown verb",
		.pairs = pairs,
		.nr_pairs = COUNT(pairs) };

	if (txid != NULL)
		ans.txid = txid_of(txid);
	refd_answer_encode(&ans, out);
}

/* Everything that server and client say, one turn after the other. */
static void converse(struct pkt_buf *server, struct pkt_buf *client)
{
	static const char other[] = "0192f0c1d2e4000000000000000000ff";
	struct refd_hello hello = { .version = 1,
		.state = REFD_SERVING,
		.software = "refd/0.1",
		.horizon_ms = 1784937600000,
		.pid = 4242,
		.max_updates = REFD_UPDATES_MAX,
		.max_bytes = REFD_TXN_BYTES_MAX };

	refd_hello_encode(&hello, server);
	say_transaction(client);
	say(client, REFD_VERB_PING, 2, NULL);
	reply(server, REFD_ANSWER_PONG, 2, NULL);
	say_results(server);
	say(client, REFD_VERB_QUERY, 3, other);
	reply(server, REFD_ANSWER_NEVER_SEEN, 3, other);
	say(client, REFD_VERB_STATUS, 4, NULL);
	reply(server, REFD_ANSWER_PAIRS, 4, NULL);
	pkt_putf(client, "frobnicate 5");
	pkt_flush(client);
	reply(server, REFD_ANSWER_REFUSED, 5, NULL);
	say_session(client);
	say(client, REFD_VERB_COMMIT, 7, SESSION);
	say_prepared(server);
}

struct bytes {
	char data[8192];
	size_t len;
};

/* A line of the example: the bytes themselves, but NUL is spelled <NUL>. */
static void append_line(struct bytes *b, const char *line)
{
	for (; *line != '\0' && *line != '\n'; line++) {
		ck_assert_uint_lt(b->len, sizeof(b->data));
		b->data[b->len] = *line;
		if (strncmp(line, "<NUL>", 5) == 0) {
			b->data[b->len] = '\0';
			line += 4;
		}
		b->len++;
	}
}

static void read_example(struct bytes *server, struct bytes *client)
{
	FILE *f = fopen("proto/PROTOCOL.md", "r");
	bool inside = false;
	char line[1200];

	ck_assert_msg(f != NULL, "run from the root of the source tree");
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "```", 3) == 0)
			inside = strcmp(line, "```conversation\n") == 0;
		else if (inside && strncmp(line, "S: ", 3) == 0)
			append_line(server, line + 3);
		else if (inside && strncmp(line, "C: ", 3) == 0)
			append_line(client, line + 3);
	}
	fclose(f);
}

START_TEST(test_example)
{
	static struct bytes server, client;
	struct pkt_buf from_server = { 0 }, from_client = { 0 };

	converse(&from_server, &from_client);
	read_example(&server, &client);
	ck_assert_uint_eq(from_server.len, server.len);
	ck_assert_mem_eq(from_server.data, server.data, server.len);
	ck_assert_uint_eq(from_client.len, client.len);
	ck_assert_mem_eq(from_client.data, client.data, client.len);
	pkt_buf_done(&from_server);
	pkt_buf_done(&from_client);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("message");
	TCase *tc = tcase_create("message");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_requests);
	tcase_add_test(tc, test_answers);
	tcase_add_test(tc, test_long_text);
	tcase_add_test(tc, test_example);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
