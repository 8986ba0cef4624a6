/*
 * Proves that pkt-lines are read and written byte for byte as in
 * gitprotocol-common(5). The packets do not depend on the way in which the
 * bytes arrive. Impossible packets are refused at once. Nothing is read beyond
 * the input. A failure of the output buffer stays until the buffer is empty
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/pktline.h"
#include "tests/lib/suite.h"

/* Parses a copy of exactly LEN bytes, so that a sanitizer sees an overrun. */
static long parse_copy(const char *data, size_t len, struct pkt *pkt)
{
	char *copy = malloc(len != 0 ? len : 1);
	long taken;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, len);
	taken = pkt_parse(copy, len, pkt);
	free(copy);
	return taken;
}

TEST(test_kinds)
{
	struct pkt pkt;

	ck_assert_int_eq(pkt_parse("0000", 4, &pkt), 4);
	ck_assert_int_eq(pkt.kind, PKT_FLUSH);
	ck_assert_uint_eq(pkt.len, 0);
	ck_assert_int_eq(pkt_parse("0001rest", 8, &pkt), 4);
	ck_assert_int_eq(pkt.kind, PKT_DELIM);
	ck_assert_int_eq(pkt_parse("0005a0000", 9, &pkt), 5);
	ck_assert_int_eq(pkt.kind, PKT_DATA);
	ck_assert_mem_eq(pkt.data, "a", 1);
	ck_assert_uint_eq(pkt.len, 1);
	/* A line's end is payload like any other byte. */
	ck_assert_int_eq(pkt_parse("0008a\0b\n", 8, &pkt), 8);
	ck_assert_uint_eq(pkt.len, 4);
	ck_assert_mem_eq(pkt.data, "a\0b\n", 4);
	ck_assert_int_eq(pkt_parse("000Aabcdef", 10, &pkt), 10);
	ck_assert_uint_eq(pkt.len, 6);
}

TEST(test_refused_at_once)
{
	static const char *const bad[] = {
		"0002",
		"0003",
		"0004",
		"fff1",
		"ffff",
		"zzzz",
		"000g",
		"+005",
		" 005",
		"0x05",
		"z",
		"0z",
		"00z",
		"-001",
		"GET /",
	};
	struct pkt pkt;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(parse_copy(bad[i], strlen(bad[i]), &pkt) == -1,
		    "%s", bad[i]);
	/* The parser waits for a packet of the largest size. */
	ck_assert_int_eq(parse_copy("fff0", 4, &pkt), 0);
	ck_assert_int_eq(parse_copy("0\0005", 4, &pkt), -1);
}

TEST(test_incomplete)
{
	static const char whole[] = "000babcdefg";
	struct pkt pkt;
	size_t len;

	for (len = 0; len < 11; len++)
		ck_assert_int_eq(parse_copy(whole, len, &pkt), 0);
	ck_assert_int_eq(parse_copy(whole, 11, &pkt), 11);
}

TEST(test_written)
{
	struct pkt_buf buf = { 0 };

	pkt_put(&buf, "a\0b", 3);
	pkt_delim(&buf);
	pkt_putf(&buf, "%s %d%c%s", "n", 12, 0, "x");
	pkt_flush(&buf);
	ck_assert(!pkt_buf_failed(&buf));
	ck_assert_uint_eq(buf.len, 7 + 4 + 10 + 4);
	ck_assert_mem_eq(buf.data, "0007a\0b0001000an 12\0x0000", buf.len);
	pkt_buf_done(&buf);
	ck_assert_ptr_null(buf.data);
	ck_assert_uint_eq(buf.len, 0);
}

/* Every length once, through both writers, and back. */
TEST(test_all_lengths)
{
	static char text[REFD_PAYLOAD_MAX + 1];
	struct pkt_buf buf = { 0 };
	struct pkt pkt;
	size_t len;
	int step = 1;

	memset(text, 'x', sizeof(text) - 1);
	for (len = 1; len <= REFD_PAYLOAD_MAX; len += (size_t)step) {
		pkt_put(&buf, text, len);
		pkt_putf(&buf, "%.*s", (int)len, text);
		ck_assert_uint_eq(buf.len, 2 * (len + 4));
		ck_assert_mem_eq(buf.data, buf.data + len + 4, len + 4);
		ck_assert_int_eq(pkt_parse(buf.data, buf.len, &pkt),
		    (long)len + 4);
		ck_assert_uint_eq(pkt.len, len);
		ck_assert_mem_eq(pkt.data, text, len);
		if (len % 1024 == 0)
			pkt_buf_done(&buf);
		buf.len = 0;
		step = len < 2000 || len > REFD_PAYLOAD_MAX - 100 ? 1 : 97;
		if (len + (size_t)step > REFD_PAYLOAD_MAX)
			step = 1;
	}
	ck_assert(!pkt_buf_failed(&buf));
	pkt_buf_done(&buf);
}

static void check_failed(struct pkt_buf *buf)
{
	size_t len = buf->len;

	ck_assert(pkt_buf_failed(buf));
	pkt_put(buf, "more", 4);
	pkt_putf(buf, "more");
	pkt_flush(buf);
	pkt_delim(buf);
	ck_assert_uint_eq(buf->len, len);
	ck_assert(pkt_buf_failed(buf));
	pkt_buf_done(buf);
	ck_assert(!pkt_buf_failed(buf));
}

TEST(test_failure_is_sticky)
{
	static char text[REFD_PAYLOAD_MAX + 2];
	struct pkt_buf buf = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	pkt_put(&buf, "before", 6);
	pkt_put(&buf, text, REFD_PAYLOAD_MAX + 1);
	check_failed(&buf);
	pkt_putf(&buf, "%s", text);
	check_failed(&buf);
	/* The other side would hang up after 0004. */
	pkt_put(&buf, "", 0);
	check_failed(&buf);
	pkt_putf(&buf, "%s", "");
	check_failed(&buf);
}

/* However the bytes come in, the packets are the same. */
TEST(test_any_split)
{
	static const char stream[] = "0006ab00010005c00000008wxyz0000";
	const size_t total = sizeof(stream) - 1;
	size_t first, have, at, nr;
	struct pkt pkt;
	long taken;

	for (first = 0; first <= total; first++) {
		at = nr = 0;
		have = first;
		for (;;) {
			taken = parse_copy(stream + at, have - at, &pkt);
			ck_assert_int_ge(taken, 0);
			if (taken == 0 && have == total)
				break;
			if (taken == 0)
				have++;
			else
				nr++;
			at += (size_t)taken;
		}
		ck_assert_uint_eq(at, total);
		ck_assert_uint_eq(nr, 6);
	}
}
