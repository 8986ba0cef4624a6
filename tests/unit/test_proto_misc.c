/*
 * Proves the small parts of proto/. The codes and names of statuses and
 * outcomes never change, because journals contain them. Ids are read from their
 * text and from no other text. hello accepts new lines and no other changes. An
 * arena keeps its contents.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/arena.h"
#include "proto/detail.h"
#include "proto/message.h"
#include "tests/lib/suite.h"

/* A second copy, by hand: finds a changed code. */
static const struct {
	unsigned code;
	const char *name;
	bool may_retry;
} statuses[] = {
	{ 0, "ok", false },
	{ 1, "stale", false },
	{ 2, "exists", false },
	{ 3, "missing", false },
	{ 4, "locked", true },
	{ 5, "conflict", false },
	{ 6, "badname", false },
	{ 7, "noobject", false },
	{ 8, "notcommit", false },
	{ 9, "denied", false },
	{ 10, "hook-declined", false },
	{ 11, "nospace", true },
	{ 12, "io", true },
	{ 13, "busy", true },
	{ 14, "deadline", true },
	{ 15, "aborted", false },
	{ 16, "unsupported", false },
	{ 17, "unknown", false },
	{ 18, "broken", false },
	{ 19, "duplicate", false },
	{ 20, "norepo", false },
	{ 21, "badrequest", false },
	{ 22, "limit", false },
	{ 23, "notsymref", false },
};

#define NR_STATUSES (sizeof(statuses) / sizeof(statuses[0]))

TEST(test_statuses)
{
	enum refd_status status, again;
	size_t i;

	ck_assert_uint_eq(REFD_STATUSES, NR_STATUSES);
	for (i = 0; i < NR_STATUSES; i++) {
		ck_assert_int_eq(
		    refd_status_from_code(statuses[i].code, &status), 0);
		ck_assert_uint_eq((unsigned)status, statuses[i].code);
		ck_assert_str_eq(refd_status_name(status), statuses[i].name);
		ck_assert_int_eq(
		    refd_status_from_name(statuses[i].name, &again), 0);
		ck_assert_int_eq(again, status);
		ck_assert_uint_gt(strlen(refd_status_text(status)), 0);
		ck_assert(
		    refd_status_may_retry(status) == statuses[i].may_retry);
	}
}

TEST(test_no_such_status)
{
	enum refd_status status = REFD_IO;

	ck_assert_int_eq(refd_status_from_code(NR_STATUSES, &status), -1);
	ck_assert_int_eq(refd_status_from_code(REFD_PENDING, &status), -1);
	ck_assert_int_eq(refd_status_from_name("", &status), -1);
	ck_assert_int_eq(refd_status_from_name("OK", &status), -1);
	ck_assert_int_eq(refd_status_from_name("okay", &status), -1);
	/* An undecided update has no status for clients. */
	ck_assert_int_eq(refd_status_from_name("pending", &status), -1);
	ck_assert_int_eq(status, REFD_IO);
	ck_assert_str_eq(refd_status_name(REFD_PENDING), "pending");
	ck_assert(!refd_status_may_retry(REFD_PENDING));
}

TEST(test_outcomes)
{
	static const char *const names[] = { "committed", "partial", "rejected",
		"unknown" };
	enum refd_outcome outcome;
	int i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(refd_outcome_from_name(names[i], &outcome), 0);
		ck_assert_int_eq(outcome, i);
		ck_assert_str_eq(refd_outcome_name(outcome), names[i]);
	}
	ck_assert_int_eq(refd_outcome_from_name("ok", &outcome), -1);
	ck_assert_int_eq(refd_outcome_of(0, 0, 0), REFD_COMMITTED);
	ck_assert_int_eq(refd_outcome_of(3, 3, 0), REFD_COMMITTED);
	ck_assert_int_eq(refd_outcome_of(3, 2, 0), REFD_PARTIAL);
	ck_assert_int_eq(refd_outcome_of(3, 0, 0), REFD_REJECTED);
	ck_assert_int_eq(refd_outcome_of(3, 2, 1), REFD_OUTCOME_UNKNOWN);
	ck_assert_int_eq(refd_outcome_of(3, 0, 3), REFD_OUTCOME_UNKNOWN);
}

TEST(test_durabilities)
{
	static const char *const names[] = { "default", "none", "periodic",
		"journal", "batch", "fsync" };
	enum refd_durability d = REFD_DURABILITY_BATCH;
	int i;

	ck_assert_int_eq(refd_durability_from_name("paranoid", &d), -1);
	ck_assert_int_eq(d, REFD_DURABILITY_BATCH);
	for (i = 0; i < 6; i++) {
		ck_assert_int_eq(refd_durability_from_name(names[i], &d), 0);
		ck_assert_int_eq(d, i);
		ck_assert_str_eq(refd_durability_name(d), names[i]);
	}
}

#define DIGITS "0123456789abcdef"

TEST(test_oid)
{
	static const char text[] = DIGITS DIGITS "fedcba98";
	struct refd_oid oid, other = { { 1 } };
	char hex[REFD_OID_MAX_HEX + 1], broken[sizeof(text)];
	size_t i;

	ck_assert_int_eq(refd_oid_parse(text, REFD_FORMAT_SHA1, &oid), 0);
	ck_assert_uint_eq(oid.bytes[1], 0x23);
	ck_assert_uint_eq(oid.bytes[19], 0x98);
	ck_assert_str_eq(refd_oid_hex(&oid, REFD_FORMAT_SHA1, hex), text);
	ck_assert(!refd_oid_is_null(&oid));
	/* Upper or lower case, and with more characters after. */
	ck_assert_int_eq(refd_oid_parse("0123456789ABCDEF" DIGITS "FEDCBA98\n",
			     REFD_FORMAT_SHA1, &other),
	    0);
	ck_assert(refd_oid_eq(&oid, &other));
	for (i = 0; i < REFD_SHA1_HEX; i++) {
		strcpy(broken, text);
		broken[i] = "g \n/:@`G"[i % 8];
		ck_assert_int_eq(
		    refd_oid_parse(broken, REFD_FORMAT_SHA1, &other), -1);
		broken[i] = '\0';
		ck_assert_int_eq(
		    refd_oid_parse(broken, REFD_FORMAT_SHA1, &other), -1);
	}
	ck_assert(refd_oid_eq(&oid, &other));
	memset(&oid, 0, sizeof(oid));
	ck_assert(refd_oid_is_null(&oid));
	oid.bytes[19] = 1;
	ck_assert(!refd_oid_is_null(&oid));
}

TEST(test_oid_of_sha256)
{
	static const char text[] = DIGITS DIGITS DIGITS "0123456789abcde8";
	char hex[REFD_OID_MAX_HEX + 1], broken[sizeof(text)];
	enum refd_object_format format;
	struct refd_oid oid, other;

	ck_assert_int_eq(refd_object_format_from_name("sha256", &format), 0);
	ck_assert_int_eq(refd_oid_parse(text, format, &oid), 0);
	ck_assert_uint_eq(oid.bytes[31], 0xe8);
	ck_assert_str_eq(refd_oid_hex(&oid, format, hex), text);
	strcpy(broken, text);
	broken[63] = '\0';
	ck_assert_int_eq(refd_oid_parse(broken, format, &other), -1);
	/* The bytes after an id of SHA-1 are zero. */
	memset(&other, 0xff, sizeof(other));
	ck_assert_int_eq(refd_oid_parse(text, REFD_FORMAT_SHA1, &other), 0);
	ck_assert_uint_eq(other.bytes[19], 0x67);
	ck_assert_uint_eq(other.bytes[20], 0);
	ck_assert_uint_eq(other.bytes[31], 0);
	ck_assert_int_eq(refd_object_format_from_name("sha1", &format), 0);
	ck_assert_str_eq(refd_object_format_name(format), "sha1");
	ck_assert_int_eq(refd_object_format_from_name("md5", &format), -1);
	ck_assert_int_eq(refd_object_format_from_name("", &format), -1);
}

static void expect_arg(const struct refd_detail *detail, size_t nr,
    const char *wanted)
{
	ck_assert_uint_eq(detail->args[nr].len, strlen(wanted));
	ck_assert_mem_eq(detail->args[nr].data, wanted, strlen(wanted));
}

TEST(test_detail)
{
	static const char *const args[] = { "refs/a", "b\1c", NULL },
				 *const none[REFD_DETAIL_ARGS] = { NULL };
	char *text = refd_detail_make(REFD_DETAIL_DIFFERS, args);
	struct refd_detail detail;

	ck_assert_str_eq(text, "\1differs\1refs/a\1b?c");
	ck_assert(refd_detail_read(text, &detail));
	ck_assert_int_eq(detail.kind, REFD_DETAIL_DIFFERS);
	expect_arg(&detail, 0, "refs/a");
	expect_arg(&detail, 1, "b?c");
	expect_arg(&detail, 2, "");
	free(text);
	text = refd_detail_make(REFD_DETAIL_FUNNY_NAME, none);
	ck_assert_str_eq(text, "\1funny-name");
	ck_assert(refd_detail_read(text, &detail));
	ck_assert_int_eq(detail.kind, REFD_DETAIL_FUNNY_NAME);
	expect_arg(&detail, 0, "");
	free(text);
	/* A longer word, a shorter word, too many arguments. */
	ck_assert(refd_detail_read("\1exists-not\1x", &detail));
	ck_assert_int_eq(detail.kind, REFD_DETAIL_UNKNOWN);
	expect_arg(&detail, 0, "x");
	ck_assert(refd_detail_read("\1exist", &detail));
	ck_assert_int_eq(detail.kind, REFD_DETAIL_UNKNOWN);
	ck_assert(refd_detail_read("\1exists\1\1y\1z\1more", &detail));
	ck_assert_int_eq(detail.kind, REFD_DETAIL_EXISTS);
	expect_arg(&detail, 0, "");
	expect_arg(&detail, 1, "y");
	expect_arg(&detail, 2, "z");
	ck_assert(!refd_detail_read(NULL, &detail));
	ck_assert(!refd_detail_read("", &detail));
	ck_assert(!refd_detail_read("exists", &detail));
}

TEST(test_txid_text)
{
	static const char text[] = "0192f0c1d2e3" DIGITS "abcd";
	struct refd_txid id, other;
	char hex[REFD_TXID_HEX + 1];

	ck_assert_int_eq(refd_txid_parse(text, &id), 0);
	ck_assert_str_eq(refd_txid_hex(&id, hex), text);
	ck_assert_uint_eq(refd_txid_birth_ms(&id), 0x0192f0c1d2e3);
	other = id;
	ck_assert_int_eq(refd_txid_parse(text + 1, &other), -1);
	ck_assert_int_eq(refd_txid_parse("", &other), -1);
	ck_assert_int_eq(refd_txid_parse(DIGITS DIGITS "0", &other), -1);
	ck_assert_int_eq(refd_txid_parse(DIGITS "0123456789abcdeg", &other),
	    -1);
	ck_assert(refd_txid_eq(&id, &other));
	other.bytes[15] ^= 1;
	ck_assert(!refd_txid_eq(&id, &other));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

TEST(test_txid_made)
{
	struct refd_txid a, b;
	uint64_t before = now_ms();

	ck_assert_int_eq(refd_txid_make(&a), 0);
	ck_assert_int_eq(refd_txid_make(&b), 0);
	ck_assert(!refd_txid_eq(&a, &b));
	ck_assert(memcmp(a.bytes + 6, b.bytes + 6, 10) != 0);
	ck_assert_uint_ge(refd_txid_birth_ms(&a), before);
	ck_assert_uint_le(refd_txid_birth_ms(&b), now_ms());
}

/* The strings have many sizes, within a chunk and beyond. No string may
 * overwrite another string. */
TEST(test_arena)
{
	static char text[70000];
	struct refd_arena *arena = refd_arena_new();
	char *kept[500];
	size_t i, len, *array;

	ck_assert_ptr_nonnull(arena);
	memset(text, 'y', sizeof(text));
	for (i = 0; i < 500; i++) {
		len = i * i * i % 997;
		if (i % 100 == 99)
			len = sizeof(text) - i;
		text[0] = (char)i;
		kept[i] = refd_arena_string(arena, text, len);
		ck_assert_ptr_nonnull(kept[i]);
		array = refd_arena_array(arena, i + 1, sizeof(*array));
		ck_assert_ptr_nonnull(array);
		array[i] = len;
	}
	array = refd_arena_array(arena, 1, sizeof(*array));
	for (i = 0; i < 500; i++) {
		text[0] = (char)i;
		ck_assert_mem_eq(kept[i], text, array[i]);
		ck_assert_int_eq(kept[i][array[i]], '\0');
	}
	refd_arena_free(arena);
	refd_arena_free(NULL);
}

static enum refd_decoded hello_line(struct refd_hello_decoder *dec,
    struct refd_hello *hello, const char *line)
{
	struct pkt pkt = { PKT_DATA, line, strlen(line) };
	const char *why = NULL;
	enum refd_decoded r;

	if (line[0] == '\0')
		pkt.kind = PKT_FLUSH;
	r = refd_hello_decode(dec, &pkt, hello, &why);
	ck_assert((r == REFD_DECODE_FATAL) == (why != NULL));
	return r;
}

/* Returns the answer to the last of LINES, which end with NULL. All earlier
 * lines must be accepted. "" is a flush. */
static enum refd_decoded hello_lines(struct refd_hello *hello,
    const char *const *lines)
{
	struct refd_hello_decoder dec = { 0 };

	for (; lines[1] != NULL; lines++)
		ck_assert_int_eq(hello_line(&dec, hello, *lines),
		    REFD_DECODE_MORE);
	return hello_line(&dec, hello, *lines);
}

#define BEGIN "refd version=1"
#define LINES                                                                  \
	"state serving", "software refd/0.1", "limit updates=5 bytes=6",       \
	    "horizon 7", "pid 8"

TEST(test_hello_open)
{
	static const char *const lines[] = { BEGIN, "fresh news", LINES,
		"capability", "capability teleport", "\n", " ", "statehood x",
		"", NULL };
	static const char *const newer[] = { "refd version=4294967295", LINES,
		"", NULL };
	struct refd_hello hello;

	memset(&hello, 0xaa, sizeof(hello));
	ck_assert_int_eq(hello_lines(&hello, lines), REFD_DECODE_DONE);
	ck_assert_uint_eq(hello.version, 1);
	ck_assert_int_eq(hello.state, REFD_SERVING);
	ck_assert_str_eq(hello.software, "refd/0.1");
	ck_assert_uint_eq(hello.max_updates, 5);
	ck_assert_uint_eq(hello.max_bytes, 6);
	ck_assert_uint_eq(hello.horizon_ms, 7);
	ck_assert_uint_eq(hello.pid, 8);
	ck_assert_int_eq(hello_lines(&hello, newer), REFD_DECODE_DONE);
	ck_assert_uint_eq(hello.version, UINT32_MAX);
}

#define SIXTEEN "xxxxxxxxxxxxxxxx"

TEST(test_hello_refused)
{
	static const char *const begins[] = { "ssh-2.0", "refd", "refd ",
		"refd version=0", "refd version=01", "refd version=4294967296",
		"refd version=1 ", "refd version=1\n", "refd  version=1",
		"version=1", "state serving" };
	static const char *const lines[] = { "state", "state ", "state asleep",
		"state serving ", "horizon -1", "horizon", "pid 1x", "pid ",
		"limit updates=5", "limit updates=5 bytes=6 ",
		"limit bytes=6 updates=5",
		"limit updates=5 bytes=", "limit updates=5 bytes=4294967296",
		"limit updates=0 bytes=6", "limit updates=5 bytes=0",
		"software " SIXTEEN SIXTEEN SIXTEEN SIXTEEN };
	const char *hello_bad[] = { NULL, NULL };
	const char *line_bad[] = { BEGIN, NULL, NULL };
	struct refd_hello hello;
	size_t i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		hello_bad[0] = begins[i];
		ck_assert_msg(hello_lines(&hello, hello_bad) ==
			REFD_DECODE_FATAL,
		    "%s", begins[i]);
	}
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		line_bad[1] = lines[i];
		ck_assert_msg(hello_lines(&hello, line_bad) ==
			REFD_DECODE_FATAL,
		    "%s", lines[i]);
	}
}

/* Every line must come exactly once. */
TEST(test_hello_complete)
{
	static const char *const all[] = { LINES };
	const char *lines[9] = { BEGIN };
	struct refd_hello_decoder dec = { 0 };
	struct pkt delim = { PKT_DELIM, "", 0 };
	struct refd_hello hello;
	const char *why;
	size_t i, j, n;

	for (i = 0; i < 5; i++) {
		n = 1;
		for (j = 0; j < 5; j++) {
			if (j != i)
				lines[n++] = all[j];
		}
		lines[n] = "";
		lines[n + 1] = NULL;
		ck_assert_int_eq(hello_lines(&hello, lines), REFD_DECODE_FATAL);
		lines[n] = all[i];
		lines[n + 1] = all[i];
		lines[n + 2] = NULL;
		ck_assert_int_eq(hello_lines(&hello, lines), REFD_DECODE_FATAL);
	}
	ck_assert_int_eq(hello_line(&dec, &hello, BEGIN), REFD_DECODE_MORE);
	ck_assert_int_eq(refd_hello_decode(&dec, &delim, &hello, &why),
	    REFD_DECODE_FATAL);
}

TEST(test_hello_round)
{
	struct refd_hello hello = { .version = 1,
		.pid = UINT64_MAX,
		.horizon_ms = 1234567890123,
		.max_updates = UINT32_MAX,
		.max_bytes = 1,
		.software = SIXTEEN SIXTEEN SIXTEEN "123456789012345" };
	struct refd_hello_decoder dec = { 0 };
	struct pkt_buf buf = { 0 };
	struct refd_hello back;
	const char *why;
	struct pkt pkt;
	size_t at;
	long n;
	int state;

	for (state = REFD_RECOVERING; state <= REFD_DRAINING; state++) {
		hello.state = (enum refd_server_state)state;
		buf.len = 0;
		refd_hello_encode(&hello, &buf);
		ck_assert(!pkt_buf_failed(&buf));
		for (at = 0; at < buf.len; at += (size_t)n) {
			n = pkt_parse(buf.data + at, buf.len - at, &pkt);
			ck_assert_int_gt(n, 0);
			ck_assert_int_eq(refd_hello_decode(&dec, &pkt, &back,
					     &why),
			    pkt.kind == PKT_FLUSH ? REFD_DECODE_DONE :
						    REFD_DECODE_MORE);
		}
		ck_assert_mem_eq(&hello, &back, sizeof(hello));
	}
	ck_assert_str_eq(refd_server_state_name(REFD_RECOVERING), "recovering");
	pkt_buf_done(&buf);
}
