/*
 * Proves that the bytes of the protocol are the ones promised: those of the
 * example in proto/PROTOCOL.md, which is read here and compared with what the
 * code says.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "proto/message.h"
#include "tests/lib/suite.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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
		.identities = { { "GL_USER", "alice" },
		    { "SSH_CONNECTION", "192.0.2.1 50000 192.0.2.9 22" } },
		.nr_identities = 2,
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

static void say_watch(struct pkt_buf *out)
{
	struct refd_request req = {
		.verb = REFD_VERB_WATCH,
		.request_id = 8,
		.git_dir = "/srv/git/a.git",
		.common_dev = 2049,
		.common_ino = 131074,
		.deadline_ms = 20000,
		.select = { .patterns = { "refs/heads/", "refs/tags/v*" },
		    .nr_patterns = 2,
		    .has_after = true,
		    .after = { .lsn = 4710 },
		    .limit = 2 },
	};

	refd_request_encode(&req, out);
}

static void say_log(struct pkt_buf *out)
{
	struct refd_request req = {
		.verb = REFD_VERB_LOG,
		.request_id = 9,
		.select = { .user = "alice",
		    .since_ms = 1785542400000,
		    .has_before = true,
		    .before = { .lsn = 4711, .nr = 2 },
		    .reverse = true },
	};

	refd_request_encode(&req, out);
}

static void say_records(struct pkt_buf *out)
{
	struct refd_record rec = {
		.lsn = 4711,
		.time_ms = 1785542400123,
		.uid = 1000,
		.pid = 4243,
		.txid = txid_of(TXID),
		.repo = "/srv/git/a.git",
		.committer = "A U Thor <author@example.com> 1785542400 +0200",
		.message = "push",
		.identities = { { "GL_USER", "alice" },
		    { "SSH_CONNECTION", "192.0.2.1 50000 192.0.2.9 22" } },
		.nr_identities = 2,
	};
	struct refd_change changes[] = {
		{ .record = &rec,
		    .nr = 2,
		    .name = "refs/heads/topic",
		    .has_old = true,
		    .has_new = true,
		    .new_oid = oid_of('b') },
		{ .record = &rec,
		    .nr = 1,
		    .name = "refs/heads/main",
		    .status = REFD_STALE,
		    .has_old = true,
		    .old_oid = oid_of('d'),
		    .text = "incorrect old value provided" },
	};
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.request_id = 8,
		.changes = changes,
		.nr_changes = 1,
		.next = { .lsn = 4712 } };

	memcpy(ans.journal, txid_of(TXID).bytes, sizeof(ans.journal));
	refd_answer_encode(&ans, out);
	ans.request_id = 9;
	ans.changes = &changes[1];
	ans.next = (struct refd_position){ .lsn = 4711, .nr = 1 };
	ans.more = true;
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
	say_watch(client);
	say_log(client);
	say_records(server);
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
	Suite *suite = suite_create("message_example");
	TCase *tc = tcase_create("message_example");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_example);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
