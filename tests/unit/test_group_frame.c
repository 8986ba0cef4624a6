/*
 * Proves that every frame between the daemon and refd-group has fixed bytes,
 * and that decoding gives the same values again. Frames that are cut, longer
 * than their content, of the wrong side, or with a value out of range are
 * rejected. Nothing is read beyond the input.
 */
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
	return f->type <= GROUP_FOLLOWS ? GROUP_FROM_DAEMON : GROUP_FROM_GROUP;
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

#define BYTES(text) { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct group_row rows[2] = {
	{ .id = { 0xa1 },
	    .repo = { 0xa2 },
	    .txid = { { 0xa3 } },
	    .uid = 0xfffffffe,
	    .time_ms = 1700000000000,
	    .is_final = true,
	    .path = BYTES("a/b.git"),
	    .record = BYTES("rec\0"),
	    .objects = BYTES("\0ob") },
	{ .id = { 0xb1 }, .path = BYTES("x") },
};
static const struct refd_oid oids[2] = { { { 1 } }, { { 2, [19] = 3 } } };
static const struct refd_oid null_oid, long_oid = { { 4, [31] = 5 } };

enum {
	HELLO,
	HELLO_NEW,
	BATCH,
	HOLD,
	HOLD_SHA256,
	APPLIED,
	STOP,
	FOLLOWS,
	ROLE,
	ROLE_FOLLOWER,
	COMMITTED,
	REFUSED,
	DOUBTFUL,
	ROW,
	HELD,
	NOT_HELD,
	CURRENT,
	NR_FRAMES
};

static const struct group_frame frames[NR_FRAMES] = {
	[HELLO] = { .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION,
		.group = { 9 },
		.node = "a-1.x_Y",
		.last = 12 } },
	[HELLO_NEW] = { .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION, .node = "b" } },
	[BATCH] = { .type = GROUP_BATCH,
	    .batch = { .number = UINT64_MAX,
		.epoch = 7,
		.rows = rows,
		.nr = 2 } },
	[HOLD] = { .type = GROUP_HOLD,
	    .hold = { .number = 6,
		.repo = { 7 },
		.path = BYTES("r.git"),
		.is_new = true,
		.oids = oids,
		.nr_oids = 2,
		.bases = oids,
		.nr_bases = 1 } },
	[HOLD_SHA256] = { .type = GROUP_HOLD,
	    .hold = { .path = BYTES("..."),
		.object_format = REFD_FORMAT_SHA256,
		.oids = &long_oid,
		.nr_oids = 1 } },
	[APPLIED] = { .type = GROUP_APPLIED, .applied = { .last = INT64_MAX } },
	[STOP] = { .type = GROUP_STOP },
	[FOLLOWS] = { .type = GROUP_FOLLOWS, .follows = { .epoch = 1 } },
	[ROLE] = { .type = GROUP_ROLE,
	    .role = { .is_leader = true,
		.epoch = 3,
		.lsn = 12,
		.group = { 9 },
		.leader = "a" } },
	[ROLE_FOLLOWER] = { .type = GROUP_ROLE,
	    .role = { .epoch = 1, .leader = "b" } },
	[COMMITTED] = { .type = GROUP_COMMITTED,
	    .committed = { .number = 1, .lsn = 13 } },
	[REFUSED] = { .type = GROUP_REFUSED,
	    .refused = { .number = 0, .reason = "the epoch is lost" } },
	[DOUBTFUL] = { .type = GROUP_DOUBTFUL, .doubtful = { .number = 5 } },
	[ROW] = { .type = GROUP_ROW,
	    .row = { .lsn = 1,
		.epoch = 1,
		.row = { .id = { 1 },
		    .path = BYTES("r"),
		    .record = BYTES("record"),
		    .objects = BYTES("objects") } } },
	[HELD] = { .type = GROUP_HELD, .held = { .number = UINT64_MAX } },
	[NOT_HELD] = { .type = GROUP_NOT_HELD,
	    .not_held = { .number = 8, .reason = "no follower" } },
	[CURRENT] = { .type = GROUP_CURRENT,
	    .current = { .ms = INT64_MAX / 1000000 } },
};

CASE(.setup = set_up, .teardown = tear_down);

TEST(test_same, .times = NR_FRAMES)
{
	expect_same(&frames[_i]);
	expect_exact(&frames[_i]);
}

/* The bytes of two frames, so that a change of the format is noticed. */
TEST(test_bytes)
{
	static const uint8_t committed[] = { 17, 0, 0, 0, GROUP_COMMITTED, 1, 0,
		0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t doubtful[] = { 15, 0, 0, 0, GROUP_DOUBTFUL, 2, 1,
		0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 'n', 'o' };
	struct group_frame f = { .type = GROUP_DOUBTFUL,
		.doubtful = { .number = 258, .reason = "no" } };
	size_t len;
	uint8_t *bytes = encode(&frames[COMMITTED], &len);

	ck_assert_uint_eq(len, sizeof(committed));
	ck_assert_mem_eq(bytes, committed, len);
	free(bytes);
	bytes = encode(&f, &len);
	ck_assert_uint_eq(len, sizeof(doubtful));
	ck_assert_mem_eq(bytes, doubtful, len);
	free(bytes);
}

TEST(test_values)
{
	struct group_frame f;
	size_t len;
	uint8_t *bytes = encode(&frames[BATCH], &len), *copy;

	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_uint_eq(f.batch.number, UINT64_MAX);
	ck_assert_uint_eq(f.batch.epoch, 7);
	ck_assert_uint_eq(f.batch.nr, 2);
	ck_assert_mem_eq(f.batch.rows[0].id, rows[0].id, GROUP_UUID_BYTES);
	ck_assert_uint_eq(f.batch.rows[0].uid, 0xfffffffe);
	ck_assert_uint_eq(f.batch.rows[0].time_ms, 1700000000000);
	ck_assert(f.batch.rows[0].is_final);
	ck_assert_uint_eq(f.batch.rows[0].path.len, 7);
	ck_assert_mem_eq(f.batch.rows[0].path.data, "a/b.git", 7);
	ck_assert_uint_eq(f.batch.rows[0].record.len, 4);
	ck_assert_mem_eq(f.batch.rows[0].record.data, "rec", 4);
	ck_assert_uint_eq(f.batch.rows[0].objects.len, 3);
	ck_assert_mem_eq(f.batch.rows[0].objects.data, "\0ob", 3);
	ck_assert(!f.batch.rows[1].is_final);
	ck_assert_uint_eq(f.batch.rows[1].record.len, 0);
	free(copy);
	free(bytes);
	bytes = encode(&frames[HELLO], &len);
	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_str_eq(f.hello.node, "a-1.x_Y");
	ck_assert_uint_eq(f.hello.last, 12);
	free(copy);
	free(bytes);
}

/* Both arrays of ids exist at once, and ids of SHA-1 end in zeros. */
TEST(test_hold)
{
	struct group_frame f;
	size_t len;
	uint8_t *bytes = encode(&frames[HOLD], &len), *copy;

	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_uint_eq(f.hold.number, 6);
	ck_assert_mem_eq(f.hold.path.data, "r.git", f.hold.path.len);
	ck_assert(f.hold.is_new && !f.hold.is_fetch && f.hold.repo[0] == 7);
	ck_assert_int_eq(f.hold.object_format, REFD_FORMAT_SHA1);
	ck_assert_uint_eq(f.hold.nr_oids, 2);
	ck_assert_mem_eq(f.hold.oids, oids, sizeof(oids));
	ck_assert_uint_eq(f.hold.nr_bases, 1);
	ck_assert_mem_eq(f.hold.bases, oids, sizeof(oids[0]));
	free(copy);
	free(bytes);
	bytes = encode(&frames[HOLD_SHA256], &len);
	ck_assert_ptr_null(decode(bytes, len, &f, &copy));
	ck_assert_int_eq(f.hold.object_format, REFD_FORMAT_SHA256);
	ck_assert_mem_eq(f.hold.oids, &long_oid, sizeof(long_oid));
	ck_assert_uint_eq(f.hold.nr_bases, 0);
	free(copy);
	free(bytes);
}

static bool is_path(const char *path, size_t len)
{
	/* The exact size, so that a sanitizer sees an overrun. */
	uint8_t *copy = malloc(len + (len == 0));
	bool result;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, path, len);
	result = group_frame_is_path((struct group_bytes){ copy, len });
	free(copy);
	return result;
}

TEST(test_paths)
{
	static const char *const right[] = { "a", "a/b/c.git", ".a", "...",
		"..a/b..", "a/...", "a b\n\xff" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".",
		"..", "./a", "../a", "a/.", "a/..", "a/./b", "a/../b" };
	char longest[GROUP_PATH_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		ck_assert_msg(is_path(right[i], strlen(right[i])), "%s",
		    right[i]);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!is_path(bad[i], strlen(bad[i])), "%s", bad[i]);
	ck_assert(!is_path("a\0b", 3));
	memset(longest, 'x', sizeof(longest));
	ck_assert(is_path(longest, GROUP_PATH_MAX));
	ck_assert(!is_path(longest, GROUP_PATH_MAX + 1));
}

static long parse(const char *head, size_t len, enum group_frame_side from)
{
	uint8_t copy[GROUP_FRAME_HEAD];

	memcpy(copy, head, len);
	return group_frame_parse(copy, len, from);
}

TEST(test_heads)
{
	ck_assert_int_eq(parse("\0\0\0", 3, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\0\0\0\0", 4, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0", 4, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\1\0\0\0\5", 5, GROUP_FROM_DAEMON), 5);
	/* The longest frame has 16 MiB. */
	ck_assert_int_eq(parse("\374\377\377\0", 4, GROUP_FROM_DAEMON), 0);
	ck_assert_int_eq(parse("\375\377\377\0", 4, GROUP_FROM_DAEMON), -1);
	/* An unknown type, and a type of the other side. */
	ck_assert_int_eq(parse("\1\0\0\0\0", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\7", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\101", 5, GROUP_FROM_DAEMON), -1);
	ck_assert_int_eq(parse("\1\0\0\0\5", 5, GROUP_FROM_GROUP), -1);
	ck_assert_int_eq(parse("\1\0\0\0\112", 5, GROUP_FROM_GROUP), -1);
	ck_assert_int_eq(parse("\2\0\0\0\110", 5, GROUP_FROM_GROUP), 0);
}

static const struct group_frame wrong[] = {
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION + 1, .node = "a" } },
	{ .type = GROUP_HELLO, .hello = { .version = GROUP_FRAME_VERSION } },
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION, .node = "a b" } },
	{ .type = GROUP_HELLO,
	    .hello = { .version = GROUP_FRAME_VERSION,
		.node = "a",
		.last = (uint64_t)INT64_MAX + 1 } },
	{ .type = GROUP_BATCH, .batch = { .epoch = 1, .rows = rows, .nr = 0 } },
	{ .type = GROUP_BATCH, .batch = { .rows = rows, .nr = 1 } },
	{ .type = GROUP_HOLD,
	    .hold = { .path = BYTES("a/../r"), .oids = oids, .nr_oids = 1 } },
	{ .type = GROUP_HOLD,
	    .hold = { .path = BYTES("r"), .oids = &null_oid, .nr_oids = 1 } },
	{ .type = GROUP_HOLD,
	    .hold = { .path = BYTES("r"),
		.object_format = (enum refd_object_format)2,
		.oids = oids,
		.nr_oids = 1 } },
	{ .type = GROUP_APPLIED, .applied = { .lsn = 5, .last = 4 } },
	{ .type = GROUP_FOLLOWS },
	{ .type = GROUP_ROLE, .role = { .epoch = 0, .leader = "a" } },
	{ .type = GROUP_ROLE, .role = { .epoch = 1, .leader = "" } },
	{ .type = GROUP_COMMITTED, .committed = { .lsn = 0 } },
	{ .type = GROUP_REFUSED, .refused = { .reason = "a\nb" } },
	{ .type = GROUP_ROW,
	    .row = { .epoch = 1, .row = { .path = BYTES("r") } } },
	{ .type = GROUP_ROW, .row = { .lsn = 1, .epoch = 1 } },
	{ .type = GROUP_ROW,
	    .row = { .lsn = 1, .epoch = 1, .row = { .path = BYTES("/r") } } },
	{ .type = (enum group_frame_type)12 },
};

TEST(test_wrong_values, .times = sizeof(wrong) / sizeof(wrong[0]))
{
	ck_assert_uint_eq(group_frame_bytes(&wrong[_i]), 0);
}

/* Expects that frame NR is rejected with VALUE as its byte AT. */
static void expect_rejected(size_t nr, size_t at, uint8_t value)
{
	struct group_frame f;
	size_t len;
	uint8_t *bytes = encode(&frames[nr], &len), *copy;

	ck_assert(at < len && bytes[at] != value);
	bytes[at] = value;
	ck_assert_msg(decode(bytes, len, &f, &copy) != NULL,
	    "frame %zu, byte %zu", nr, at);
	free(copy);
	free(bytes);
}

TEST(test_hostile_bytes)
{
	expect_rejected(HELLO, 5, 2);      /* the version */
	expect_rejected(HELLO, 25, 0xff);  /* the length of the node */
	expect_rejected(HELLO, 28, 0xff);  /* the same, beyond the limit */
	expect_rejected(HELLO, 30, 0);     /* a NUL in the node */
	expect_rejected(HELLO, 30, '/');   /* a character of the node */
	expect_rejected(HELLO, 43, 0x80);  /* a negative LSN */
	expect_rejected(BATCH, 13, 0);     /* no epoch */
	expect_rejected(BATCH, 20, 0x80);  /* a negative epoch */
	expect_rejected(BATCH, 21, 3);     /* the number of rows */
	expect_rejected(BATCH, 24, 0xff);  /* the same, too large */
	expect_rejected(BATCH, 21, 0);     /* no row */
	expect_rejected(BATCH, 84, 0x80);  /* a negative time */
	expect_rejected(BATCH, 85, 2);     /* neither final nor not */
	expect_rejected(BATCH, 86, 0);     /* no path */
	expect_rejected(BATCH, 89, 0xff);  /* the length of a path, too large */
	expect_rejected(BATCH, 90, '/');   /* a path from the root on */
	expect_rejected(BATCH, 92, '/');   /* an empty component of a path */
	expect_rejected(BATCH, 92, 0);     /* a NUL in a path */
	expect_rejected(BATCH, 97, 0xff);  /* the length of a record */
	expect_rejected(BATCH, 100, 0xff); /* the same, too large */
	expect_rejected(BATCH, 105, 0xff); /* the length of objects */
	expect_rejected(HOLD, 38, 2);      /* neither new nor not */
	expect_rejected(HOLD, 39, 2);      /* neither for this node nor not */
	expect_rejected(HOLD, 40, 0);      /* the object format */
	expect_rejected(HOLD, 40, 2);      /* the other format: too long */
	expect_rejected(HOLD, 41, 0);      /* no id */
	expect_rejected(HOLD, 41, 4);      /* the number of ids */
	expect_rejected(HOLD, 44, 0xff);   /* the same, too large */
	expect_rejected(HOLD, 45, 0);      /* a null id */
	expect_rejected(HOLD, 85, 2);      /* the number of bases */
	expect_rejected(HOLD, 89, 0);      /* a null base */
	expect_rejected(ROLE, 5, 2);       /* neither leader nor follower */
	expect_rejected(REFUSED, 20, '\x1b'); /* a control character */
}

/* A row of a batch always fits into ROW. */
TEST(test_longest)
{
	uint8_t *big = calloc(1, GROUP_FRAME_MAX);
	struct group_row list[2] = { { .path = BYTES("a"),
					 .record = { big, GROUP_ROW_MAX - 2 },
					 .objects = { big, 1 } },
		{ .path = BYTES("b") } };
	struct group_frame f = { .type = GROUP_BATCH,
		.batch = { .epoch = 1, .rows = list, .nr = 2 } };

	ck_assert_ptr_nonnull(big);
	expect_same(&f);
	list[1].record = (struct group_bytes){ big,
		GROUP_FRAME_MAX - group_frame_bytes(&f) };
	ck_assert_uint_eq(group_frame_bytes(&f), GROUP_FRAME_MAX);
	expect_same(&f);
	list[1].record.len++;
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	f = (struct group_frame){ .type = GROUP_ROW,
		.row = { .lsn = 1, .epoch = 1, .row = list[0] } };
	expect_same(&f);
	f.row.row.objects.len++;
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	f.row.row.record.len = SIZE_MAX;
	ck_assert_uint_eq(group_frame_bytes(&f), 0);
	free(big);
}

TEST(test_reason)
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
