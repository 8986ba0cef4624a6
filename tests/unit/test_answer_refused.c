/*
 * Proves that a client rejects wrong answers of a server. Every answer that
 * violates PROTOCOL.md is fatal, at the first wrong packet, and the decoder
 * stays in error. A client that guessed might take a failure for an "ok".
 */
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "tests/lib/suite.h"

/* In the packets below "|" stands for NUL, DELIM for a delimiter, "" for a
 * flush. The last packet of every row must be refused. */
#define DELIM    "--"
#define OID      "0123456789abcdef0123456789abcdef01234567"
#define OID256   OID "89abcdef0123456789abcdef"
#define TXID     "txid 0192f0c1d2e3000102030405060708ff"
#define RESULTS  "answer 7 results", TXID
#define PREPARED "answer 7 prepared", TXID
#define REFUSED  "answer 7 refused"
#define RECORDS  "answer 7 records"
#define JOURNAL  "journal 0192f0c1d2e3000102030405060708ff"
#define ID       "0192f0c1d2e3000102030405060708ff"
#define RECORD   "record 1 1 2 3 " ID " /r"
#define CHANGE   "change 1 ok|refs/a||" OID "||"
#define MOST     8
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum refd_decoded feed(struct refd_answer_decoder *dec, const char *s,
    struct refd_answer *ans, const char **why)
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
	r = refd_answer_decode(dec, &pkt, ans, why);
	free(copy);
	return r;
}

static const char *const refused[][MOST] = {
	{ "" },
	{ DELIM },
	{ "answer" },
	{ "answer 7" },
	{ "answer 7 " },
	{ "answer 7 maybe" },
	{ "answer 7 pong " },
	{ "answer 7 pong\n" },
	{ "answer 07 pong" },
	{ "answer -7 pong" },
	{ "answer 4294967296 pong" },
	{ "Answer 7 pong" },
	{ "reply 7 pong" },
	/* Only a refusal may have request number 0. */
	{ "answer 0 pong" },
	{ "answer 0 results" },
	{ "answer 7 pong", TXID },
	{ "answer 7 pong", DELIM },
	{ "answer 7 pong", "pong" },
	{ "answer 7 pending", "" },
	{ "answer 7 pending", "status ok" },
	{ "answer 7 pending", TXID, TXID },
	{ "answer 7 never-seen", "txid" },
	{ "answer 7 never-seen", "txid " },
	{ "answer 7 never-seen", TXID "0" },
	{ "answer 7 never-seen", "txid 0192F0C1D2E3000102030405060708FF" },
	{ "answer 7 expired", TXID, "ok|refs/a||" },
	{ "answer 7 results", "ok|refs/a||" },
	{ "answer 7 results", "" },
	{ RESULTS, "" },
	{ RESULTS, DELIM },
	{ RESULTS, "ok" },
	{ RESULTS, "ok|refs/a" },
	{ RESULTS, "ok|refs/a|" },
	{ RESULTS, "ok |refs/a||" },
	{ RESULTS, "ok refs/a||" },
	{ RESULTS, "ok ok|refs/a||" },
	{ RESULTS, "OK|refs/a||" },
	{ RESULTS, "ok|refs/a||text|more" },
	{ RESULTS, "ok|refs/a|" OID "0|" },
	{ RESULTS, "ok|refs/a| |" },
	{ RESULTS, "ok|refs/a|" OID256 "0|" },
	{ RESULTS, "ok|refs/a|" OID "|", "ok|refs/b|" OID256 "|" },
	{ RESULTS, "ok|refs/a|" OID256 "|", "ok|refs/b|" OID "|" },
	{ PREPARED, "ok|refs/a|" OID256 "|", "ok|refs/b|" OID "|" },
	{ RESULTS, "ng stale|refs/a|||" },
	{ RESULTS, "ng stale|refs/a||||differs" },
	{ RESULTS, "ng stale|refs/a||text|differs" },
	{ RESULTS, "ng stale|refs/a||\1differs" },
	{ RESULTS, "ng stale|refs/a|||differs|refs/a\1b" },
	{ RESULTS, "ng|refs/a||" },
	{ RESULTS, "ng |refs/a||" },
	{ RESULTS, "ng ok|refs/a||" },
	{ RESULTS, "ng pending|refs/a||" },
	{ RESULTS, "ng out-of-cheese|refs/a||" },
	{ RESULTS, "ng stale |refs/a||" },
	{ RESULTS, "ng  stale|refs/a||" },
	{ RESULTS, "ng stale-stale-stale-stale-stale-stale|refs/a||" },
	{ RESULTS, "outcome committed" },
	{ RESULTS, "outcome committed " },
	{ RESULTS, "outcome committed 0 " },
	{ RESULTS, "outcome committed 0 1" },
	{ RESULTS, "outcome committed 0 " ID },
	{ RESULTS, "outcome committed 0 " ID ":" },
	{ RESULTS, "outcome committed 0 " ID ":0" },
	{ RESULTS, "outcome committed 0 " ID ":01" },
	{ RESULTS, "outcome committed 0 " ID ":1 " },
	{ RESULTS, "outcome committed 0 " ID ":1.1" },
	{ RESULTS, "outcome committed 0 " ID ":18446744073709551616" },
	{ RESULTS, "outcome committed 0 " ID "0:1" },
	{ RESULTS, "outcome committed 0 0192F0C1D2E3000102030405060708FF:1" },
	{ RESULTS, "outcome committed 0 :1" },
	{ RESULTS, "outcome committed  0" },
	{ RESULTS, "outcome committed 100001" },
	{ RESULTS, "outcome ok 0" },
	{ RESULTS, "outcome" },
	{ RESULTS, "ok|refs/a||", "outcome committed 0" },
	{ RESULTS, "outcome committed 0", "ok|refs/a||" },
	{ RESULTS, "outcome committed 0", "outcome committed 0" },
	{ PREPARED, "outcome committed 0" },
	{ "answer 7 prepared", "" },
	{ PREPARED, "rewrites-packed " },
	{ PREPARED, "rewrites-packed", "rewrites-packed" },
	{ PREPARED, "rewrites-packed", "ok|refs/a||" },
	{ RESULTS, "rewrites-packed" },
	{ REFUSED, "" },
	{ REFUSED, TXID, "" },
	{ REFUSED, TXID, TXID },
	{ REFUSED, "txid 00000000000000000000000000000000" },
	{ REFUSED, "text why" },
	{ REFUSED, "status" },
	{ REFUSED, "status ok" },
	{ REFUSED, "status pending" },
	{ REFUSED, "status busy\n" },
	{ REFUSED, "status busy", "status busy" },
	{ REFUSED, "status busy", TXID },
	{ REFUSED, "status busy", "text" },
	{ REFUSED, "status busy", "text a|b" },
	{ REFUSED, "status busy", "text a", "text a" },
	{ "answer 7 pairs", "pair" },
	{ "answer 7 pairs", "pair key" },
	{ "answer 7 pairs", "pair  value" },
	{ "answer 7 pairs", "pair k|y value" },
	{ "answer 7 pairs", "pair key val|ue" },
	{ "answer 7 pairs", "key value" },
	{ RECORDS, "next 1" },
	{ RECORDS, JOURNAL "0" },
	{ RECORDS, JOURNAL, "" },
	{ RECORDS, JOURNAL, JOURNAL },
	{ RECORDS, JOURNAL, "gap" },
	{ RECORDS, JOURNAL, "gap 1", "gap 1" },
	{ RECORDS, JOURNAL, "next" },
	{ RECORDS, JOURNAL, "next 1 0" },
	{ RECORDS, JOURNAL, "more" },
	{ RECORDS, JOURNAL, "next 1", "next 1" },
	{ RECORDS, JOURNAL, "next 1", "more", "more" },
	{ RECORDS, JOURNAL, "next 1", "gap 1" },
	{ RECORDS, JOURNAL, CHANGE },
	{ RECORDS, JOURNAL, "record 0 1 2 3 " ID " /r" },
	{ RECORDS, JOURNAL, "record 1 2 3 " ID " /r" },
	{ RECORDS, JOURNAL, "record 1 1 2 3 " ID },
	{ RECORDS, JOURNAL, "record 1 1 2 3 " ID " /r|" },
	{ RECORDS, JOURNAL, RECORD, "" },
	{ RECORDS, JOURNAL, RECORD, RECORD },
	{ RECORDS, JOURNAL, RECORD, "next 1" },
	{ RECORDS, JOURNAL, RECORD, "gap 1" },
	{ RECORDS, JOURNAL, RECORD, "voids 0" },
	{ RECORDS, JOURNAL, RECORD, "committer " },
	{ RECORDS, JOURNAL, RECORD, "message " },
	{ RECORDS, JOURNAL, RECORD, "message a", "committer b" },
	{ RECORDS, JOURNAL, RECORD, "message a", "message b" },
	{ RECORDS, JOURNAL, RECORD, "identity A=a", "message b" },
	{ RECORDS, JOURNAL, RECORD, "identity A=a", "identity A=a" },
	{ RECORDS, JOURNAL, RECORD, CHANGE, "message b" },
	{ RECORDS, JOURNAL, RECORD, CHANGE, "gap 1" },
	{ RECORDS, JOURNAL, RECORD, "change 0 ok|refs/a||||" },
	{ RECORDS, JOURNAL, RECORD, "change 1|refs/a||||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 pending|refs/a||||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 ok|refs/a|||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 ok|refs/a|||||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 ok|refs/a|0|||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 stale|refs/a|||||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 stale|refs/a||||\1w" },
	{ RECORDS, JOURNAL, RECORD, "change 1 stale|refs/a||||text|w" },
	{ RECORDS, JOURNAL, RECORD, "change 1 ok|refs/a||" OID "0||" },
	{ RECORDS, JOURNAL, RECORD, "change 1 ok|refs/a|" OID "|" OID256 "||" },
	{ RECORDS, JOURNAL, RECORD, CHANGE,
	    "change 2 ok|refs/b||" OID256 "||" },
};

TEST(test_fatal)
{
	struct refd_answer_decoder *dec;
	struct refd_answer ans;
	const char *const *s;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(refused); i++) {
		dec = refd_answer_decoder_new();
		for (s = refused[i]; s[1] != NULL; s++)
			ck_assert_msg(feed(dec, *s, &ans, &why) ==
				REFD_DECODE_MORE,
			    "row %zu: %s", i, *s);
		why = NULL;
		ck_assert_msg(feed(dec, *s, &ans, &why) == REFD_DECODE_FATAL,
		    "row %zu: %s was taken", i, *s);
		ck_assert_ptr_nonnull(why);
		ck_assert_int_eq(feed(dec, "answer 1 pong", &ans, &why),
		    REFD_DECODE_FATAL);
		ck_assert_int_eq(feed(dec, "", &ans, &why), REFD_DECODE_FATAL);
		refd_answer_decoder_free(dec);
	}
}

/* Similar rows that are correct. */
TEST(test_taken)
{
	static const char *const taken[][MOST] = {
		{ "answer 4294967295 pong" },
		{ "answer 0 refused", "status busy" },
		{ REFUSED, TXID, "status limit", "text " },
		{ RESULTS, "ok|||", "ng stale|a\nb c||why", "ok|x|" OID "|t",
		    "outcome partial 100000" },
		{ RESULTS, "outcome committed 0 " ID ":18446744073709551615" },
		{ PREPARED, "ng exists|a||", "ok|b||c", "rewrites-packed" },
		{ PREPARED, "rewrites-packed" },
		{ PREPARED },
		{ "answer 7 pairs" },
		{ "answer 7 pairs", "pair k ", "pair k a b\n" },
	};
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct refd_answer ans;
	const char *const *s;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(taken); i++) {
		for (s = taken[i]; *s != NULL; s++)
			ck_assert_msg(feed(dec, *s, &ans, &why) ==
				REFD_DECODE_MORE,
			    "row %zu: %s", i, *s);
		ck_assert_int_eq(feed(dec, "", &ans, &why), REFD_DECODE_DONE);
		refd_answer_done(&ans);
	}
	refd_answer_decoder_free(dec);
}

/* A server can't make a client keep more results than updates. */
TEST(test_too_many_results)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct refd_answer ans;
	const char *why;
	size_t i;

	feed(dec, "answer 7 results", &ans, &why);
	feed(dec, TXID, &ans, &why);
	for (i = 0; i < REFD_UPDATES_MAX; i++)
		ck_assert_int_eq(feed(dec, "ok|refs/a||", &ans, &why),
		    REFD_DECODE_MORE);
	ck_assert_int_eq(feed(dec, "ok|refs/a||", &ans, &why),
	    REFD_DECODE_FATAL);
	refd_answer_decoder_free(dec);
}
