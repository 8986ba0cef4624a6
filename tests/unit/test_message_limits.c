/*
 * Proves the limits of the request decoder. A request exactly at a limit
 * passes. A larger request is refused with its status, and the next request is
 * accepted.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/feed.h"
#include "tests/lib/suite.h"

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
	{ "identity A=", "", REFD_IDENT_MAX, "identities", false },
	{ "update ", "|" OID "|", REFD_REFNAME_MAX, "refname", true },
	{ "delete ", "|", REFD_REFNAME_MAX, "refname", true },
	{ "symref-create ", "|refs/a", REFD_REFNAME_MAX, "refname", true },
	{ "symref-create refs/a|", "", REFD_REFNAME_MAX, "refname", true },
	{ "symref-delete refs/a|", "", REFD_REFNAME_MAX, "refname", true },
	{ "symref-update refs/a|refs/b|ref|", "", REFD_REFNAME_MAX, "refname",
	    true },
};

CASE(.seconds = 60);

TEST(test_lengths)
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
			packets[6] = t->in_updates ? DELIM : s;
			packets[7] = t->in_updates ? s : DELIM;
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

TEST(test_git_dir_and_deadline)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[] = { "transaction 7", TXID, NULL, "common-dir 1 2",
		FORMAT, "deadline 3600000", "umask 0777", DELIM, NULL };
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
	packets[5] = "deadline 3600001";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	packets[5] = "deadline 1";
	free((char *)packets[2]);
	packets[2] = stretch("git-dir /", REFD_PATH_MAX - 1, "");
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	free((char *)packets[2]);
	refd_request_decoder_free(dec);
}

TEST(test_lock_timeouts)
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
	packets[7] = "packed-refs-timeout 3600001";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	refd_request_decoder_free(dec);
}

TEST(test_level)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[] = { HEAD, "level applied=64", "umask 0022", DELIM,
		NULL };
	struct refd_request req;
	enum refd_status status;
	const char *why;

	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_int_eq(req.level.kind, REFD_LEVEL_APPLIED);
	ck_assert_uint_eq(req.level.nodes, REFD_LEVEL_NODES_MAX);
	refd_request_done(&req);
	packets[5] = "level held=65";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	packets[5] = "level local";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_int_eq(req.level.kind, REFD_LEVEL_LOCAL);
	refd_request_done(&req);
	refd_request_decoder_free(dec);
}

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

/* Every header that may be repeated has a limit. */
TEST(test_too_many_headers)
{
	static const char *const names[] = { "identity A=a", "identity B=a",
		"identity C=a", "identity D=a", "identity E=a", "identity F=a",
		"identity G=a", "identity H=a", "identity I=a" };
	struct refd_request_decoder *dec = refd_request_decoder_new();
	const char *packets[REFD_PATTERNS_MAX + 3] = { "log 7" };
	const char *many[] = { HEAD, "umask 0022", names[0], names[1], names[2],
		names[3], names[4], names[5], names[6], names[7], DELIM, NULL };
	struct refd_request req;
	enum refd_status status;
	const char *why;
	size_t i;

	for (i = 0; i < REFD_PATTERNS_MAX; i++)
		packets[1 + i] = "ref refs/heads/";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.select.nr_patterns, REFD_PATTERNS_MAX);
	refd_request_done(&req);
	packets[1 + i] = "ref refs/heads/";
	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	ck_assert_int_eq(feed_all(dec, many, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.nr_identities, REFD_IDENTITIES_MAX);
	refd_request_done(&req);
	many[COUNT(many) - 2] = names[8];
	ck_assert_int_eq(feed_all(dec, many, &req, &status, &why),
	    REFD_DECODE_REFUSED);
	ck_assert_int_eq(status, REFD_LIMIT);
	refd_request_decoder_free(dec);
}

TEST(test_too_many_updates)
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

/* The sum of all payloads, to the byte. */
TEST(test_too_many_bytes)
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
	ck_assert_uint_eq(req.nr_updates, left / len);
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
	ck_assert_uint_eq(req.nr_updates, left / len + 1);
	refd_request_done(&req);
	check_in_step(dec);
	free(last);
	free(update);
	refd_request_decoder_free(dec);
}
