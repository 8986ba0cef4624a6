/*
 * Proves that every frame between the daemon and refd-group has fixed bytes,
 * and that decoding gives the same values again. Frames that are cut, longer
 * than their content, of the wrong side, or with a value out of range are
 * rejected. Nothing is read beyond the input.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/group_frame.h"
#include "tests/lib/suite.h"

static struct refd_arena *arena;

static void set_up(void)
{
	arena = refd_arena_new();
	ck_assert_ptr_nonnull(arena);
}

static void tear_down(void)
{
	refd_arena_free(arena);
}

static enum group_frame_side side_of(const struct group_frame *f)
{
	return f->type <= GROUP_STOP ? GROUP_FROM_DAEMON : GROUP_FROM_GROUP;
}

static uint8_t *encode(const struct group_frame *f, size_t *len)
{
	uint8_t *bytes;

	*len = group_frame_bytes(f);
	ck_assert_uint_gt(*len, 0);
	bytes = malloc(*len);
	ck_assert_ptr_nonnull(bytes);
	group_frame_encode(f, bytes);
	return bytes;
}

/* Decodes a copy of exactly LEN bytes, so that a sanitizer sees an overrun.
 * The caller frees COPY, from which FRAME borrows. */
static const char *decode(const uint8_t *bytes, size_t len,
    struct group_frame *frame, uint8_t **copy)
{
	*copy = malloc(len);
	ck_assert_ptr_nonnull(*copy);
	memcpy(*copy, bytes, len);
	return group_frame_decode(*copy, len, arena, frame);
}

/* Encodes, decodes and encodes again. */
static void expect_same(const struct group_frame *f)
{
	struct group_frame again;
	size_t len, again_len;
	uint8_t *bytes = encode(f, &len), *copy, *second;

	ck_assert_int_eq(group_frame_parse(bytes, len, side_of(f)), (long)len);
	ck_assert_ptr_null(decode(bytes, len, &again, &copy));
	ck_assert_int_eq(again.type, f->type);
	second = encode(&again, &again_len);
	ck_assert_uint_eq(again_len, len);
	ck_assert_mem_eq(second, bytes, len);
	free(second);
	free(copy);
	free(bytes);
}

/* Every shorter body, and one byte more, is rejected. */
static void expect_exact(const struct group_frame *f)
{
	struct group_frame again;
	size_t len, cut;
	uint8_t *bytes = encode(f, &len), *copy;

	for (cut = GROUP_FRAME_HEAD; cut < len; cut++) {
		ck_assert_int_eq(group_frame_parse(bytes, cut, side_of(f)), 0);
		ck_assert_ptr_nonnull(decode(bytes, cut, &again, &copy));
		free(copy);
	}
	bytes = realloc(bytes, len + 1);
	ck_assert_ptr_nonnull(bytes);
	bytes[len] = 0;
	ck_assert_ptr_nonnull(decode(bytes, len + 1, &again, &copy));
	free(copy);
	free(bytes);
}

static const uint8_t ids[2][GROUP_UUID_BYTES] = { { 1 }, { 2, 3 } };
static const uint64_t lsns[3] = { 7, 0, INT64_MAX };
static const struct group_row rows[2] = {
	{ .id = { 0xa1 },
	    .repo = { 0xa2 },
	    .txid = { { 0xa3 } },
	    .part = 4,
	    .uid = 0xfffffffe,
	    .time_ms = 1700000000000,
	    .record = { (const uint8_t *)"rec", 3 },
	    .objects = { (const uint8_t *)"\0\1", 2 } },
	{ .id = { 0xb1 } },
};

static const struct group_frame frames[] = {
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION,
		.group = { 9 },
		.node = "a-1.x_Y",
		.applied = 12,
		.open = ids,
		.nr_open = 2 } },
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION, .node = "b" } },
	{ .type = GROUP_BATCH,
	    .batch = { .number = UINT64_MAX, .rows = rows, .nr = 2 } },
	{ .type = GROUP_APPLIED, .applied = { .lsn = INT64_MAX } },
	{ .type = GROUP_STOP },
	{ .type = GROUP_SETTLED, .settled = { .lsns = lsns, .nr = 3 } },
	{ .type = GROUP_ROLE,
	    .role = { .is_leader = true,
		.epoch = 3,
		.lsn = 12,
		.group = { 9 },
		.leader = "a" } },
	{ .type = GROUP_ROLE, .role = { .epoch = 1, .leader = "b" } },
	{ .type = GROUP_COMMITTED, .committed = { .number = 1, .lsn = 13 } },
	{ .type = GROUP_REFUSED,
	    .refused = { .number = 0, .reason = "the epoch is lost" } },
	{ .type = GROUP_DOUBTFUL, .doubtful = { .number = 5 } },
	{ .type = GROUP_ROW,
	    .row = { .lsn = 1,
		.epoch = 1,
		.row = { .id = { 1 }, .record = { ids[1], 16 } } } },
};

#define NR_FRAMES (sizeof(frames) / sizeof(frames[0]))

START_TEST(test_same)
{
	expect_same(&frames[_i]);
	expect_exact(&frames[_i]);
}
END_TEST

/* The bytes of two frames, so that a change of the format is noticed. */
START_TEST(test_bytes)
{
	static const uint8_t committed[] = { 17, 0, 0, 0, GROUP_COMMITTED, 1, 0,
		0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t doubtful[] = { 15, 0, 0, 0, GROUP_DOUBTFUL, 2, 1,
		0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 'n', 'o' };
	struct group_frame f = { .type = GROUP_DOUBTFUL,
		.doubtful = { .number = 258, .reason = "no" } };
	size_t len;
	uint8_t *bytes = encode(&frames[8], &len);

	ck_assert_uint_eq(len, sizeof(committed));
	ck_assert_mem_eq(bytes, committed, len);
	free(bytes);
	bytes = encode(&f, &len);
	ck_assert_uint_eq(len, sizeof(doubtful));
	ck_assert_mem_eq(bytes, doubtful, len);
	free(bytes);
}
END_TEST

START_TEST(test_values)
{
	struct group_frame f;
	size_t len;
	uint8_t *bytes = encode(&frames[2], &len), *copy;

	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_uint_eq(f.batch.number, UINT64_MAX);
	ck_assert_uint_eq(f.batch.nr, 2);
	ck_assert_mem_eq(f.batch.rows[0].id, rows[0].id, GROUP_UUID_BYTES);
	ck_assert_uint_eq(f.batch.rows[0].uid, 0xfffffffe);
	ck_assert_uint_eq(f.batch.rows[0].time_ms, 1700000000000);
	ck_assert_mem_eq(f.batch.rows[0].record.data, "rec", 3);
	ck_assert_uint_eq(f.batch.rows[0].objects.len, 2);
	ck_assert_uint_eq(f.batch.rows[1].record.len, 0);
	free(copy);
	free(bytes);
	bytes = encode(&frames[0], &len);
	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_str_eq(f.hello.node, "a-1.x_Y");
	ck_assert_uint_eq(f.hello.nr_open, 2);
	ck_assert_mem_eq(f.hello.open, ids, sizeof(ids));
	free(copy);
	free(bytes);
}
END_TEST

static long parse(const char *head, size_t len, enum group_frame_side from)
{
	uint8_t copy[GROUP_FRAME_HEAD];

	memcpy(copy, head, len);
	return group_frame_parse(copy, len, from);
}

START_TEST(test_heads)
{
	ck_assert_int_eq(parse("\0\0\0", 3, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\0\0\0\0", 4, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0", 4, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\1\0\0\0\4", 5, GROUP_FROM_DAEMON), 5);
	ck_assert_int_eq(parse("\2\0\0\0\4", 5, GROUP_FROM_DAEMON), 0);
	/* The longest frame has 16 MiB. */
	ck_assert_int_eq(parse("\374\377\377\0", 4, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\375\377\377\0", 4, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\0\0\0\1", 4, GROUP_FROM_DAEMON), -1);
	/* An unknown type, and a type of the other side. */
	ck_assert_int_eq(parse("\1\0\0\0\0", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\5", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\101", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\4", 5, GROUP_FROM_GROUP), -1);
	ck_assert_int_eq(parse("\1\0\0\0\107", 5, GROUP_FROM_GROUP), -1);
	ck_assert_int_eq(parse("\2\0\0\0\106", 5, GROUP_FROM_GROUP), 0);
}
END_TEST

static const struct group_frame wrong[] = {
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION + 1, .node = "a" } },
	{ .type = GROUP_HELLO, .hello = { .version = GROUP_FRAME_VERSION } },
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION, .node = "a b" } },
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION,
		.node = "a",
		.applied = (uint64_t)INT64_MAX + 1 } },
	{ .type = GROUP_BATCH, .batch = { .rows = rows, .nr = 0 } },
	{ .type = GROUP_APPLIED, .applied = { .lsn = UINT64_MAX } },
	{ .type = GROUP_ROLE, .role = { .epoch = 0, .leader = "a" } },
	{ .type = GROUP_ROLE, .role = { .epoch = 1, .leader = "" } },
	{ .type = GROUP_COMMITTED, .committed = { .lsn = 0 } },
	{ .type = GROUP_REFUSED, .refused = { .reason = "a\nb" } },
	{ .type = GROUP_ROW, .row = { .epoch = 1 } },
	{ .type = (enum group_frame_type)12 },
};

START_TEST(test_wrong_values)
{
	ck_assert_uint_eq(group_frame_bytes(&wrong[_i]), 0);
}
END_TEST

/* Sets the byte AT of frame NR to VALUE, and expects that the frame is
 * rejected. */
static void expect_rejected(size_t nr, size_t at, uint8_t value)
{
	struct group_frame f;
	size_t len;
	uint8_t *bytes = encode(&frames[nr], &len), *copy;

	ck_assert_uint_lt(at, len);
	ck_assert_uint_ne(bytes[at], value);
	bytes[at] = value;
	ck_assert_msg(decode(bytes, len, &f, &copy) != NULL,
	    "frame %zu, byte %zu", nr, at);
	free(copy);
	free(bytes);
}

START_TEST(test_hostile_bytes)
{
	expect_rejected(0, 5, 2);       /* the version */
	expect_rejected(0, 25, 0xff);   /* the length of the node */
	expect_rejected(0, 28, 0xff);   /* the same, beyond the limit */
	expect_rejected(0, 30, 0);      /* a NUL in the node */
	expect_rejected(0, 30, '/');    /* a character of the node */
	expect_rejected(0, 43, 0x80);   /* a negative LSN */
	expect_rejected(0, 44, 0xff);   /* the number of ids */
	expect_rejected(0, 47, 0xff);   /* the same, times 16 overflows */
	expect_rejected(2, 13, 3);      /* the number of rows */
	expect_rejected(2, 16, 0xff);   /* the same, too large */
	expect_rejected(2, 13, 0);      /* no row */
	expect_rejected(2, 81, 0xff);   /* the length of a record */
	expect_rejected(2, 84, 0xff);   /* the same, too large */
	expect_rejected(5, 5, 4);       /* the number of LSNs */
	expect_rejected(5, 8, 0xff);    /* the same, times 8 overflows */
	expect_rejected(6, 5, 2);       /* the role */
	expect_rejected(9, 20, '\x1b'); /* a control character */
}
END_TEST

/* A row of a batch always fits into ROW. */
START_TEST(test_longest)
{
	uint8_t *big = calloc(1, GROUP_FRAME_MAX);
	struct group_row list[2] = { { .record = { big, GROUP_ROW_MAX } } };
	struct group_frame f = { .type = GROUP_BATCH,
		.batch = { .rows = list, .nr = 2 } };
	size_t least;

	ck_assert_ptr_nonnull(big);
	expect_same(&f);
	least = group_frame_bytes(&f);
	list[1].objects = (struct group_bytes){ big, GROUP_FRAME_MAX - least };
	ck_assert_uint_eq(group_frame_bytes(&f), GROUP_FRAME_MAX);
	expect_same(&f);
	list[1].objects.len++;
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	f = (struct group_frame){ .type = GROUP_ROW,
		.row = { .lsn = 1, .epoch = 1, .row = list[0] } };
	expect_same(&f);
	f.row.row.objects = (struct group_bytes){ big, 1 };
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	f.row.row.objects.len = SIZE_MAX;
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	free(big);
}
END_TEST

START_TEST(test_reason)
{
	char reason[GROUP_TEXT_MAX + 1], text[GROUP_TEXT_MAX + 3];

	group_frame_reason(reason, "ERROR:\tno\nDETAIL: \x7f\xc3\xa4");
	ck_assert_str_eq(reason, "ERROR: no DETAIL:  \xc3\xa4");
	group_frame_reason(reason, "");
	ck_assert_str_eq(reason, "");
	memset(text, 'x', sizeof(text));
	text[GROUP_TEXT_MAX + 2] = '\0';
	group_frame_reason(reason, text);
	ck_assert_uint_eq(strlen(reason), GROUP_TEXT_MAX);
	/* A character of two bytes on the border is left out. */
	memcpy(text + GROUP_TEXT_MAX - 1, "\xc3\xa4", 2);
	group_frame_reason(reason, text);
	ck_assert_uint_eq(strlen(reason), GROUP_TEXT_MAX - 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_frame");
	TCase *tc = tcase_create("group_frame");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, test_same, 0, (int)NR_FRAMES);
	tcase_add_test(tc, test_bytes);
	tcase_add_test(tc, test_values);
	tcase_add_test(tc, test_heads);
	tcase_add_loop_test(tc, test_wrong_values, 0,
	    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(tc, test_hostile_bytes);
	tcase_add_test(tc, test_longest);
	tcase_add_test(tc, test_reason);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
