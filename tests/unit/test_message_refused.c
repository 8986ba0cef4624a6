/*
 * Proves what the request decoder refuses, and how: each malformed or too
 * large request gets its status, costs nothing but itself (the next one on
 * the connection is taken), and what stands exactly at a limit passes.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"

/* In the packets below "|" stands for NUL, DELIM for a delimiter; the flush
 * is added. */
#define DELIM    "--"
#define OID      "0123456789abcdef0123456789abcdef01234567"
#define TXID     "txid 0192f0c1d2e3000102030405060708ff"
#define HEAD     "transaction 7", TXID, "git-dir /r.git", "common-dir 1 2"
#define OPEN     HEAD, "umask 0022", DELIM
#define MOST     12
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum refd_decoded feed(struct refd_request_decoder *dec, const char *s,
    struct refd_request *req, enum refd_status *status, const char **why)
{
	struct pkt pkt = { PKT_DATA, NULL, strlen(s) };
	enum refd_decoded r;
	char *copy = malloc(pkt.len + 1);
	size_t i;

	ck_assert_ptr_nonnull(copy);
	for (i = 0; i < pkt.len; i++)
		copy[i] = s[i] == '|' ? '\0' : s[i];
	pkt.data = copy;
	if (strcmp(s, DELIM) == 0)
		pkt.kind = PKT_DELIM;
	else if (s[0] == '\0')
		pkt.kind = PKT_FLUSH;
	r = refd_request_decode(dec, &pkt, req, status, why);
	free(copy);
	return r;
}

/* The decoder's word on the whole request of PACKETS. */
static enum refd_decoded feed_all(struct refd_request_decoder *dec,
    const char *const *packets, struct refd_request *req,
    enum refd_status *status, const char **why)
{
	for (; *packets != NULL; packets++)
		ck_assert_int_eq(feed(dec, *packets, req, status, why),
		    REFD_DECODE_MORE);
	return feed(dec, "", req, status, why);
}

/* A request goes through, whatever came before it. */
static void check_in_step(struct refd_request_decoder *dec)
{
	static const char *const packets[] = { OPEN, "update refs/a|" OID "|",
		NULL };
	enum refd_status status;
	struct refd_request req;
	const char *why;

	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.request_id, 7);
	ck_assert_uint_eq(req.nr_updates, 1);
	ck_assert_str_eq(req.updates[0].name, "refs/a");
	refd_request_done(&req);
}

static const struct refused {
	uint32_t id;
	const char *why;
	const char *packets[MOST];
} refused[] = {
	{ 0, "request id", { "transaction" } },
	{ 0, "request id", { "transaction " } },
	{ 0, "request id", { "transaction 0" } },
	{ 0, "request id", { "transaction 01" } },
	{ 0, "request id", { "transaction +1" } },
	{ 0, "request id", { "transaction 1 " } },
	{ 0, "request id", { "transaction 1\n" } },
	{ 0, "request id", { "transaction 4294967296" } },
	{ 0, "request id", { "transaction 99999999999999999999999" } },
	{ 0, "request id", { "transaction|5" } },
	{ 7, "verb", { "frobnicate 7" } },
	{ 7, "verb", { "Ping 7" } },
	{ 7, "verb", { " 7" } },
	{ 7, "does not take", { "ping 7", TXID } },
	{ 7, "does not take", { "stats 7", "atomic" } },
	{ 7, "does not take", { "query 7", TXID, "atomic" } },
	{ 7, "no txid", { "query 7" } },
	{ 7, "no txid", { "transaction 7", DELIM } },
	{ 7, "malformed txid", { "query 7", TXID "0" } },
	{ 7, "malformed txid", { "query 7", "txid 0192F0" } },
	{ 7, "malformed txid",
	    { "query 7", "txid 0192F0C1D2E3000102030405060708FF" } },
	{ 7, "order", { "query 7", TXID, TXID } },
	{ 7, "order", { "transaction 7", TXID, "atomic", "git-dir /r" } },
	{ 7, "order", { HEAD, "atomic", "atomic" } },
	{ 7, "unknown header", { HEAD, "colour red" } },
	{ 7, "unknown header", { HEAD, "atomi" } },
	{ 7, "unknown header", { HEAD, "atomic\n" } },
	{ 7, "NUL", { HEAD, "message a|b" } },
	{ 7, "NUL", { HEAD, "atomic|" } },
	{ 7, "malformed header", { HEAD, "atomic 1" } },
	{ 7, "malformed header", { HEAD, "atomic " } },
	{ 7, "malformed header", { HEAD, "message" } },
	{ 7, "absolute", { "session 7", TXID, "git-dir r.git" } },
	{ 7, "absolute", { "session 7", TXID, "git-dir " } },
	{ 7, "common-dir", { "session 7", TXID, "common-dir 1" } },
	{ 7, "common-dir", { "session 7", TXID, "common-dir 1 " } },
	{ 7, "common-dir", { "session 7", TXID, "common-dir 1 2 3" } },
	{ 7, "common-dir",
	    { "session 7", TXID, "common-dir 18446744073709551616 1" } },
	{ 7, "durability", { HEAD, "durability default" } },
	{ 7, "durability", { HEAD, "durability fsyncfsyncfsyncfsync" } },
	{ 7, "deadline", { HEAD, "deadline 0" } },
	{ 7, "deadline", { HEAD, "deadline -1" } },
	{ 7, "lock timeout", { HEAD, "ref-lock-timeout -1" } },
	{ 7, "lock timeout", { HEAD, "ref-lock-timeout " } },
	{ 7, "lock timeout", { HEAD, "packed-refs-timeout 1s" } },
	{ 7, "order", { HEAD, "ref-lock-timeout 1", "shared-repository 1" } },
	{ 7, "order",
	    { HEAD, "shared-repository 1", "log-all-ref-updates 1" } },
	{ 7, "umask", { HEAD, "umask 022" } },
	{ 7, "umask", { HEAD, "umask 0028" } },
	{ 7, "umask", { HEAD, "umask 1000" } },
	{ 7, "umask", { HEAD, "umask 00022" } },
	{ 7, "or umask", { HEAD, DELIM } },
	{ 7, "no git-dir",
	    { "session 7", TXID, "common-dir 1 2", "umask 0022", DELIM } },
	{ 7, "common-dir",
	    { "session 7", TXID, "git-dir /r", "umask 0022", DELIM } },
	{ 7, "no delimiter", { HEAD, "umask 0022" } },
	{ 7, "unexpected delimiter", { "ping 7", DELIM } },
	{ 7, "unexpected delimiter", { "query 7", TXID, DELIM } },
	{ 7, "unexpected delimiter", { OPEN, DELIM } },
	{ 7, "unknown update", { OPEN, "upsert refs/a|" OID "|" } },
	{ 7, "unknown update", { OPEN, "atomic" } },
	{ 7, "unknown update", { OPEN, "option deref" } },
	{ 7, "unknown update", { OPEN, "option no-deref|" } },
	{ 7, "malformed update", { OPEN, "update" } },
	{ 7, "malformed update", { OPEN, "update refs/a" } },
	{ 7, "malformed update", { OPEN, "update refs/a|" OID } },
	{ 7, "malformed update", { OPEN, "update refs/a|" OID "||" } },
	{ 7, "malformed update", { OPEN, "update refs/a||" OID } },
	{ 7, "malformed update", { OPEN, "update refs/a|" OID "0|" } },
	{ 7, "malformed update", { OPEN, "update refs/a|" OID " |" } },
	{ 7, "malformed update",
	    { OPEN, "update refs/a|" OID "|0123456789ABCDEF" } },
	{ 7, "malformed update",
	    { OPEN,
		"create refs/a|ABCDEF6789abcdef0123456789abcdef01234567" } },
	{ 7, "malformed update", { OPEN, "create refs/a|" OID "|" } },
	{ 7, "malformed update", { OPEN, "create refs/a" } },
	{ 7, "malformed update", { OPEN, "delete refs/a" } },
	{ 7, "malformed update", { OPEN, "verify refs/a|abc" } },
	{ 7, "malformed update", { OPEN, "symref-update refs/a" } },
	{ 7, "malformed update", { OPEN, "symref-update refs/a|refs/b|ref" } },
	{ 7, "malformed update", { OPEN, "symref-update refs/a|refs/b|ref|" } },
	{ 7, "malformed update", { OPEN, "symref-update refs/a|refs/b|oid|" } },
	{ 7, "malformed update", { OPEN, "symref-update refs/a|refs/b||x" } },
	{ 7, "malformed update",
	    { OPEN, "symref-update refs/a|refs/b|oid|" OID "|" } },
	{ 7, "malformed update", { OPEN, "symref-delete refs/a" } },
	{ 7, "malformed update", { OPEN, "symref-verify refs/a|refs/b|" } },
	{ 7, "repeated", { OPEN, "option no-deref", "option no-deref" } },
	{ 7, "without an update", { OPEN, "option no-deref" } },
};

START_TEST(test_badrequest)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const struct refused *t;
	struct refd_request req;
	enum refd_status status;
	const char *why;

	for (t = refused; t < refused + COUNT(refused); t++) {
		memset(&req, 0xaa, sizeof(req));
		why = "";
		ck_assert_msg(feed_all(dec, t->packets, &req, &status, &why) ==
			REFD_DECODE_REFUSED,
		    "taken: %s ...", t->packets[0]);
		ck_assert_int_eq(status, REFD_BADREQUEST);
		ck_assert_msg(strstr(why, t->why) != NULL, "%s: %s", t->why,
		    why);
		ck_assert_uint_eq(req.request_id, t->id);
		ck_assert_ptr_null(req.arena);
		ck_assert_ptr_null(req.git_dir);
		ck_assert_uint_eq(req.nr_updates, 0);
		check_in_step(dec);
	}
	refd_request_decoder_free(dec);
	refd_request_decoder_free(NULL);
}
END_TEST

/* The id that a refusal can name is kept with it. */
START_TEST(test_refused_is_named)
{
	static const char *const packets[] = { OPEN, "nonsense", DELIM, "more",
		"update refs/b|" OID "|", NULL };
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct refd_request req;
	enum refd_status status;
	const char *why;

	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_uint_eq(req.txid.bytes[15], 0xff);
	ck_assert_uint_eq(refd_txid_birth_ms(&req.txid), 0x0192f0c1d2e3);
	refd_request_decoder_free(dec);
}
END_TEST

/* Out of step: said again and again, and nothing else. */
START_TEST(test_fatal)
{
	static const char *const first[] = { "", DELIM };
	struct refd_request_decoder *dec;
	struct refd_request req;
	enum refd_status status;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(first); i++) {
		dec = refd_request_decoder_new();
		check_in_step(dec);
		why = NULL;
		ck_assert_int_eq(feed(dec, first[i], &req, &status, &why),
		    REFD_DECODE_FATAL);
		ck_assert_ptr_nonnull(why);
		ck_assert_int_eq(feed(dec, "ping 1", &req, &status, &why),
		    REFD_DECODE_FATAL);
		ck_assert_int_eq(feed(dec, "", &req, &status, &why),
		    REFD_DECODE_FATAL);
		refd_request_decoder_free(dec);
	}
}
END_TEST

/* BEFORE, LEN times "x", AFTER. */
static char *stretch(const char *before, size_t len, const char *after)
{
	size_t start = strlen(before);
	char *s = malloc(start + len + strlen(after) + 1);

	ck_assert_ptr_nonnull(s);
	memcpy(s, before, start);
	memset(s + start, 'x', len);
	strcpy(s + start + len, after);
	return s;
}

static const struct limit {
	const char *before, *after;
	size_t max;
	const char *why;
	bool in_updates;
} limits[] = {
	{ "message ", "", REFD_MESSAGE_MAX, "header", false },
	{ "committer ", "", REFD_IDENT_MAX, "header", false },
	{ "log-all-ref-updates ", "", REFD_IDENT_MAX, "header", false },
	{ "shared-repository ", "", REFD_IDENT_MAX, "header", false },
	{ "trace2-sid ", "", REFD_IDENT_MAX, "header", false },
	{ "update ", "|" OID "|", REFD_REFNAME_MAX, "refname", true },
	{ "delete ", "|", REFD_REFNAME_MAX, "refname", true },
	{ "symref-create ", "|refs/a", REFD_REFNAME_MAX, "refname", true },
	{ "symref-create refs/a|", "", REFD_REFNAME_MAX, "refname", true },
	{ "symref-delete refs/a|", "", REFD_REFNAME_MAX, "refname", true },
	{ "symref-update refs/a|refs/b|ref|", "", REFD_REFNAME_MAX, "refname",
	    true },
};

START_TEST(test_lengths)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[] = { HEAD, "umask 0022", NULL, NULL, NULL };
	const struct limit *t;
	struct refd_request req;
	enum refd_status status;
	const char *why;
	size_t over;
	char *s;

	for (t = limits; t < limits + COUNT(limits); t++) {
		for (over = 0; over < 2; over++) {
			s = stretch(t->before, t->max + over, t->after);
			packets[5] = t->in_updates ? DELIM : s;
			packets[6] = t->in_updates ? s : DELIM;
			ck_assert_msg(feed_all(dec, packets, &req, &status,
					  &why) ==
				(over != 0 ? REFD_DECODE_REFUSED :
					     REFD_DECODE_DONE),
			    "%s at %zu", t->before, t->max + over);
			if (over != 0) {
				ck_assert_int_eq(status, REFD_LIMIT);
				ck_assert_ptr_nonnull(strstr(why, t->why));
			}
			refd_request_done(&req);
			free(s);
		}
		check_in_step(dec);
	}
	refd_request_decoder_free(dec);
}
END_TEST

START_TEST(test_git_dir_and_deadline)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[] = { "transaction 7", TXID, NULL, "common-dir 1 2",
		"deadline 3600000", "umask 0777", DELIM, NULL };
	struct refd_request req;
	enum refd_status status;
	const char *why;

	packets[2] = stretch("git-dir /", REFD_PATH_MAX - 2, "");
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(strlen(req.git_dir), REFD_PATH_MAX - 1);
	ck_assert_uint_eq(req.deadline_ms, REFD_DEADLINE_MAX_MS);
	ck_assert_uint_eq(req.umask, 0777);
	refd_request_done(&req);
	packets[4] = "deadline 3600001";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	packets[4] = "deadline 1";
	free((char *)packets[2]);
	packets[2] = stretch("git-dir /", REFD_PATH_MAX - 1, "");
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	free((char *)packets[2]);
	refd_request_decoder_free(dec);
}
END_TEST

START_TEST(test_lock_timeouts)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[] = { HEAD, "umask 0022", "ref-lock-timeout 0",
		"packed-refs-timeout 3600000", DELIM, NULL };
	struct refd_request req;
	enum refd_status status;
	const char *why;

	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert(req.has_ref_lock_timeout);
	ck_assert_uint_eq(req.ref_lock_timeout_ms, 0);
	ck_assert(req.has_packed_refs_timeout);
	ck_assert_uint_eq(req.packed_refs_timeout_ms, REFD_DEADLINE_MAX_MS);
	refd_request_done(&req);
	packets[6] = "packed-refs-timeout 3600001";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	refd_request_decoder_free(dec);
}
END_TEST

/* Feeds a transaction of NR times the same update. */
static enum refd_decoded feed_many(struct refd_request_decoder *dec, size_t nr,
    const char *update, struct refd_request *req, enum refd_status *status)
{
	static const char *const open[] = { OPEN };
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(open); i++)
		feed(dec, open[i], req, status, &why);
	for (i = 0; i < nr; i++)
		ck_assert_int_eq(feed(dec, update, req, status, &why),
		    REFD_DECODE_MORE);
	return feed(dec, "", req, status, &why);
}

START_TEST(test_too_many_updates)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct refd_request req;
	enum refd_status status;

	ck_assert_int_eq(feed_many(dec, REFD_UPDATES_MAX, "create refs/x|" OID,
			     &req, &status),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.nr_updates, REFD_UPDATES_MAX);
	ck_assert_str_eq(req.updates[REFD_UPDATES_MAX - 1].name, "refs/x");
	refd_request_done(&req);
	ck_assert_int_eq(feed_many(dec, REFD_UPDATES_MAX + 1, "delete refs/x|",
			     &req, &status),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	check_in_step(dec);
	refd_request_decoder_free(dec);
}
END_TEST

/* The sum of all payloads, to the byte. */
START_TEST(test_too_many_bytes)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	char *update = stretch("symref-create refs/b|", REFD_REFNAME_MAX, "");
	static const char *const open[] = { OPEN };
	size_t len = strlen(update), left = REFD_TXN_BYTES_MAX, i;
	struct refd_request req;
	enum refd_status status;
	const char *why;
	char *last;

	for (i = 0; i < COUNT(open); i++) {
		if (strcmp(open[i], DELIM) != 0)
			left -= strlen(open[i]);
	}
	ck_assert_int_eq(feed_many(dec, left / len, update, &req, &status),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.bytes, REFD_TXN_BYTES_MAX - left % len);
	refd_request_done(&req);
	ck_assert_int_eq(feed_many(dec, left / len + 1, update, &req, &status),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	for (i = 0; i < COUNT(open); i++)
		feed(dec, open[i], &req, &status, &why);
	for (i = 0; i < left / len; i++)
		feed(dec, update, &req, &status, &why);
	ck_assert_uint_gt(left % len, strlen("delete |"));
	last = stretch("delete ", left % len - strlen("delete |"), "|");
	feed(dec, last, &req, &status, &why);
	ck_assert_int_eq(feed(dec, "", &req, &status, &why), REFD_DECODE_DONE);
	ck_assert_uint_eq(req.bytes, REFD_TXN_BYTES_MAX);
	refd_request_done(&req);
	check_in_step(dec);
	free(last);
	free(update);
	refd_request_decoder_free(dec);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("message_refused");
	TCase *tc = tcase_create("message_refused");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_badrequest);
	tcase_add_test(tc, test_refused_is_named);
	tcase_add_test(tc, test_fatal);
	tcase_add_test(tc, test_lengths);
	tcase_add_test(tc, test_git_dir_and_deadline);
	tcase_add_test(tc, test_lock_timeouts);
	tcase_add_test(tc, test_too_many_updates);
	tcase_add_test(tc, test_too_many_bytes);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
