/*
 * Proves how the request decoder refuses malformed requests. Every malformed
 * request gets its status, and the next request on the connection is accepted.
 */
#include <string.h>

#include "tests/lib/feed.h"
#include "tests/lib/suite.h"

#define MOST 12

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
	{ 7, "level", { HEAD, "level " } },
	{ 7, "level", { HEAD, "level default" } },
	{ 7, "level", { HEAD, "level Local" } },
	{ 7, "level", { HEAD, "level local=1" } },
	{ 7, "level", { HEAD, "level local=" } },
	{ 7, "level", { HEAD, "level logged " } },
	{ 7, "level", { HEAD, "level held" } },
	{ 7, "level", { HEAD, "level held=" } },
	{ 7, "level", { HEAD, "level held=0" } },
	{ 7, "level", { HEAD, "level held=01" } },
	{ 7, "level", { HEAD, "level held=1=2" } },
	{ 7, "level", { HEAD, "level held=4294967297" } },
	{ 7, "level", { HEAD, "level applied=-1" } },
	{ 7, "level", { HEAD, "level appliedapplied=1" } },
	{ 7, "malformed header", { HEAD, "level" } },
	{ 7, "order", { HEAD, "level local", "durability fsync" } },
	{ 7, "order", { HEAD, "level local", "level local" } },
	{ 7, "does not take", { "query 7", TXID, "level local" } },
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
	    { "session 7", TXID, "common-dir 1 2", FORMAT, "umask 0022",
		DELIM } },
	{ 7, "common-dir",
	    { "session 7", TXID, "git-dir /r", FORMAT, "umask 0022", DELIM } },
	{ 7, "install the same release",
	    { "transaction 7", REPO, "umask 0022", DELIM } },
	{ 7, "older version", { "session 7", REPO, "umask 0022", DELIM } },
	{ 7, "order", { HEAD, FORMAT } },
	{ 7, "order", { "transaction 7", REPO, "atomic", FORMAT } },
	{ 7, "malformed header", { "transaction 7", REPO, "object-format" } },
	{ 7, "object-format", { "transaction 7", REPO, "object-format " } },
	{ 7, "object-format", { "transaction 7", REPO, "object-format SHA1" } },
	{ 7, "object-format",
	    { "transaction 7", REPO, "object-format sha256 " } },
	{ 7, "object-format",
	    { "transaction 7", REPO, "object-format sha256sha256sha256" } },
	{ 7, "does not take", { "query 7", TXID, FORMAT } },
	{ 7, "does not take", { "log 7", FORMAT } },
	{ 7, "malformed update", { OPEN, "create refs/a|" OID256 } },
	{ 7, "malformed update", { OPEN256, "create refs/a|" OID } },
	{ 7, "malformed update", { OPEN256, "create refs/a|" OID256 "0" } },
	{ 7, "malformed update", { OPEN256, "delete refs/a|" OID } },
	{ 7, "malformed update", { OPEN256, "update refs/a|" OID256 "|" OID } },
	{ 7, "malformed update",
	    { OPEN256, "symref-update refs/a|refs/b|oid|" OID } },
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
	{ 7, "identity", { HEAD, "umask 0022", "identity GL_USER" } },
	{ 7, "identity", { HEAD, "umask 0022", "identity GL_USER=" } },
	{ 7, "identity", { HEAD, "umask 0022", "identity =a" } },
	{ 7, "identity", { HEAD, "umask 0022", "identity gl_user=a" } },
	{ 7, "identity", { HEAD, "umask 0022", "identity 9=a" } },
	{ 7, "identities are out",
	    { HEAD, "umask 0022", "identity A=a", "identity A=b" } },
	{ 7, "identities are out",
	    { HEAD, "umask 0022", "identity B=a", "identity A=b" } },
	{ 7, "order", { HEAD, "identity A=a", "umask 0022" } },
	{ 7, "does not take", { HEAD, "ref refs/heads/" } },
	{ 7, "does not take", { "log 7", "deadline 1" } },
	{ 7, "does not take", { "log 7", "all" } },
	{ 7, "does not take", { "watch 7", TXID } },
	{ 7, "does not take", { "watch 7", "since 1" } },
	{ 7, "does not take", { "watch 7", "until 1" } },
	{ 7, "does not take", { "watch 7", "before 1" } },
	{ 7, "does not take", { "watch 7", "reverse" } },
	{ 7, "does not take", { "log 7", "identity A=a" } },
	{ 7, "malformed txid",
	    { "log 7", "txid 00000000000000000000000000000000" } },
	{ 7, "common-dir", { "log 7", "common-dir 1 2" } },
	{ 7, "common-dir", { "log 7", "git-dir /r", "common-dir 0 0" } },
	{ 7, "order", { "log 7", "ref a", "git-dir /r" } },
	{ 7, "order", { "log 7", "uid 1", "ref a" } },
	{ 7, "order", { "log 7", "after 1", "after 1" } },
	{ 7, "uid", { "log 7", "uid -1" } },
	{ 7, "uid", { "log 7", "uid root" } },
	{ 7, "time", { "log 7", "since 0" } },
	{ 7, "time", { "log 7", "until " } },
	{ 7, "journal", { "log 7", "journal 0192" } },
	{ 7, "position", { "log 7", "after 1 0" } },
	{ 7, "position", { "log 7", "after 1 " } },
	{ 7, "position", { "log 7", "after " } },
	{ 7, "position", { "log 7", "before 1 2 3" } },
	{ 7, "limit", { "log 7", "limit 0" } },
	{ 7, "malformed header", { "log 7", "reverse 1" } },
	{ 7, "unexpected delimiter", { "log 7", DELIM } },
};

CASE(.seconds = 60);

TEST(test_badrequest)
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

/* A refusal keeps the id of the transaction. */
TEST(test_refused_is_named)
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

/* Out of step: the same error again and again. */
TEST(test_fatal)
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
