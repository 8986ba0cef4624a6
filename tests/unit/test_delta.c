/*
 * Proves that a delta is applied as in gitformat-pack(5): copies with all
 * operands and with missing operands, insertions, sizes. A delta that does not
 * fit its base or its sizes is refused.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/delta.h"
#include "tests/lib/suite.h"

#define BASE 0x20000
#define MAX  (2 * BASE)

/* BASE and 0x10000, as sizes. */
#define BASE_SIZE 0x80, 0x80, 0x08
#define SIZE_64K  0x80, 0x80, 0x04

static uint8_t base[BASE];

static void setup(void)
{
	size_t i;

	for (i = 0; i < BASE; i++)
		base[i] = (uint8_t)(i % 251);
}

static int apply(const uint8_t *delta, size_t len, uint8_t **out,
    size_t *out_len)
{
	return delta_apply(base, BASE, delta, len, MAX, out, out_len);
}

static void expect(const uint8_t *delta, size_t len, const void *want,
    size_t want_len)
{
	uint8_t *out;
	size_t out_len;

	ck_assert_int_eq(apply(delta, len, &out, &out_len), 0);
	ck_assert_uint_eq(out_len, want_len);
	ck_assert_int_eq(memcmp(out, want, want_len), 0);
	free(out);
}
#define EXPECT(want, len, ...)                                                 \
	expect((const uint8_t[]){ BASE_SIZE, __VA_ARGS__ },                    \
	    sizeof((const uint8_t[]){ BASE_SIZE, __VA_ARGS__ }), want, len)

static int refuse(const uint8_t *delta, size_t len)
{
	uint8_t *out;
	size_t out_len;

	return apply(delta, len, &out, &out_len);
}
#define REFUSE(...)                                                            \
	refuse((const uint8_t[]){ __VA_ARGS__ },                               \
	    sizeof((const uint8_t[]){ __VA_ARGS__ }))

CASE(.setup = setup);

TEST(copies_and_insertions)
{
	EXPECT("abc", 3, 3, 3, 'a', 'b', 'c');
	EXPECT(base, 5, 5, 0x90, 5);
	EXPECT(base + 0x102, 0x103, 0x83, 0x02, 0xb3, 2, 1, 3, 1);
	EXPECT(base + 0x10000, 1, 1, 0x94, 1, 1);
	EXPECT("xy", 2, 2, 1, 'x', 1, 'y');
	EXPECT("", 0, 0);
}

/* A copy without a size, or of size 0, is of 64 KiB. */
TEST(a_copy_without_a_size)
{
	EXPECT(base, 0x10000, SIZE_64K, 0x80);
	EXPECT(base + 1, 0x10000, SIZE_64K, 0x91, 1, 0);
	EXPECT(base + 0x10000, 0x10000, SIZE_64K, 0x84, 1);
}

TEST(what_does_not_fit_is_refused)
{
	/* A wrong base; no result; sizes without an end. */
	ck_assert_int_eq(REFUSE(3, 1, 1, 'a'), -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE), -EBADMSG);
	ck_assert_int_eq(REFUSE(0x80), -EBADMSG);
	/* Too little, too much, a truncated instruction, no instruction. */
	ck_assert_int_eq(REFUSE(BASE_SIZE, 2, 1, 'a'), -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 1, 2, 'a', 'b'), -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 2, 2, 'a'), -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 1, 0x91, 0), -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 1, 0, 'a'), -EBADMSG);
	/* The last byte of the base, and the byte after. */
	EXPECT(base + BASE - 1, 1, 1, 0x97, 0xff, 0xff, 1, 1);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 2, 0x97, 0xff, 0xff, 1, 2),
	    -EBADMSG);
	ck_assert_int_eq(REFUSE(BASE_SIZE, 1, 0x98, 0xff, 1), -EBADMSG);
	/* MAX plus one byte. */
	ck_assert_int_eq(REFUSE(BASE_SIZE, 0x81, 0x80, 0x10), -EFBIG);
}
