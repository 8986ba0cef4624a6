/*
 * Proves that numbers and records of reftables keep their value when they are
 * written and read, and that no cut-off or wrong record is accepted.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/reftable_help.h"
#include "tests/lib/suite.h"

static uint8_t bytes[REFTABLE_BLOCK_BYTES];
static const char *why;

static int decode(const struct reftable_record *rec, const uint8_t *key,
    size_t key_len, size_t len, struct reftable_record *out)
{
	const struct reftable_context context = { REFD_FORMAT_SHA256, 5 };
	const struct reftable_raw raw = { rec->section, key, key_len,
		reftable_record_type(rec), bytes, len };

	return reftable_record_decode(&context, &raw, out, &why);
}

/* Every shorter input must fail. */
static void round_trip(struct reftable_record rec, struct reftable_record *out)
{
	static uint8_t key[REFTABLE_KEY_MAX + 1];
	size_t key_len = reftable_record_key(&rec, key);
	int len = reftable_record_encode(&rec, REFD_FORMAT_SHA256, 5, bytes,
	    sizeof(bytes));
	int i;

	key[key_len] = '\0';
	ck_assert_int_ge(len, 0);
	ck_assert_int_eq(decode(&rec, key, key_len, (size_t)len, out), len);
	ck_assert_str_eq(out->name, rec.name);
	ck_assert_uint_eq(out->update_index, rec.update_index);
	ck_assert_int_eq(out->is_deletion, rec.is_deletion);
	for (i = 0; i < len; i++) {
		ck_assert_int_eq(decode(&rec, key, key_len, (size_t)i, out),
		    -EBADMSG);
		ck_assert_str_eq(why, "a record is cut off");
		ck_assert_int_eq(reftable_record_encode(&rec,
				     REFD_FORMAT_SHA256, 5, bytes, (size_t)i),
		    -E2BIG);
	}
	reftable_record_encode(&rec, REFD_FORMAT_SHA256, 5, bytes,
	    sizeof(bytes));
	decode(&rec, key, key_len, (size_t)len, out);
}

TEST(numbers)
{
	const uint64_t values[] = { 0, 1, 127, 128, 255, 16511, 16512, 1 << 24,
		UINT32_MAX, UINT64_C(1) << 62, UINT64_MAX - 1, UINT64_MAX };
	uint64_t value;
	uint8_t p[10];
	size_t i, n;

	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		n = reftable_record_put_varint(p, values[i]);
		ck_assert_uint_le(n, sizeof(p));
		ck_assert_uint_eq(reftable_record_get_varint(p, n, &value), n);
		ck_assert_uint_eq(value, values[i]);
		ck_assert_uint_eq(reftable_record_get_varint(p, n - 1, &value),
		    0);
	}
	/* 2 to the power of 64, and the longest run of continuations. */
	ck_assert_uint_eq(
	    reftable_record_get_varint(
		(const uint8_t *)"\x80\xfe"
				 "\xfe\xfe\xfe\xfe\xfe\xfe\xff\x00",
		10, &value),
	    0);
	memset(p, 0xff, sizeof(p));
	ck_assert_uint_eq(reftable_record_get_varint(p, sizeof(p), &value), 0);
	reftable_record_put(p, 8, UINT64_C(0x0102030405060708));
	ck_assert_uint_eq(reftable_record_get(p, 3), 0x010203);
}

TEST(records)
{
	struct reftable_record rec = rh_ref("refs/heads/a", 7, 0xab), out;

	round_trip(rec, &out);
	ck_assert_int_eq(out.ref.kind, REFTABLE_REF_OID);
	ck_assert_mem_eq(out.ref.oid.bytes, rec.ref.oid.bytes, 32);
	rec.ref.kind = REFTABLE_REF_PEELED;
	memset(rec.ref.peeled.bytes, 0xcd, 32);
	round_trip(rec, &out);
	ck_assert_int_eq(out.ref.kind, REFTABLE_REF_PEELED);
	ck_assert_mem_eq(out.ref.peeled.bytes, rec.ref.peeled.bytes, 32);
	round_trip(rh_symref("HEAD", 5, "refs/heads/main"), &out);
	ck_assert_uint_eq(out.ref.target.len, 15);
	ck_assert_mem_eq(out.ref.target.at, "refs/heads/main", 15);
	round_trip(rh_deleted("a", UINT64_MAX), &out);
	rec = rh_log("refs/heads/a", UINT64_MAX - 3, 1, 2, "created\n");
	round_trip(rec, &out);
	ck_assert_int_eq(out.log.zone, -830);
	ck_assert_uint_eq(out.log.time_s, rec.log.time_s);
	ck_assert_mem_eq(out.log.message.at, "created\n", 8);
	ck_assert_mem_eq(out.log.from.bytes, rec.log.from.bytes, 32);
	ck_assert_mem_eq(out.log.to.bytes, rec.log.to.bytes, 32);
	rec.is_deletion = true;
	round_trip(rec, &out);
}

static int decode_as(enum reftable_section section, const char *key,
    size_t key_len, unsigned type, const char *value, size_t len)
{
	const struct reftable_context context = { REFD_FORMAT_SHA1, 1 };
	const struct reftable_raw raw = { section, (const uint8_t *)key,
		key_len, type, (const uint8_t *)value, len };
	static struct reftable_record out;

	return reftable_record_decode(&context, &raw, &out, &why);
}

TEST(wrong_records)
{
	const char *const largest = "\x80\xfe\xfe\xfe\xfe\xfe\xfe\xfe\xfe\x7f";

	ck_assert_int_eq(decode_as(REFTABLE_REFS, "", 0, 0, "\0", 1), -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_REFS, "a\0b", 3, 0, "\0", 1),
	    -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_REFS, "a", 1, 4, "\0", 1),
	    -EBADMSG);
	ck_assert_str_eq(why, "a ref has an unknown type");
	/* 1 + the largest number */
	ck_assert_int_eq(decode_as(REFTABLE_REFS, "a", 1, 0, largest, 10),
	    -EBADMSG);
	ck_assert_str_eq(why, "the update index of a ref is too large");
	ck_assert_int_eq(decode_as(REFTABLE_LOGS, "abc\0", 4, 0, "", 0),
	    -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_LOGS, "\0abcdefgh", 9, 0, "", 0),
	    -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_LOGS, "abcdefghij", 10, 0, "", 0),
	    -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_LOGS, "a\0bcdefghi", 10, 2, "", 0),
	    -EBADMSG);
	ck_assert_int_eq(decode_as(REFTABLE_INDEX, "a", 1, 1, "\1", 1),
	    -EBADMSG);
	/* Object records: the number of positions is in the type, or before
	 * the positions. */
	ck_assert_int_eq(decode_as(REFTABLE_OBJECTS, "a", 1, 2, "\1\2\3", 3),
	    2);
	ck_assert_int_eq(decode_as(REFTABLE_OBJECTS, "a", 1, 0, "\2\1\2\3", 4),
	    3);
	ck_assert_int_eq(decode_as(REFTABLE_OBJECTS, "a", 1, 0, largest, 10),
	    -EBADMSG);
}
