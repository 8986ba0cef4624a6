/*
 * Proves that refd reads tables of any size with and without indexes, and that
 * a damaged table never harms the reader: damage is found by the check, and
 * otherwise changes values at most.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_iterator.h"
#include "daemon/store/tables/format/reftable_zlib.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"

#define FOOTER_1 68

static struct reftable_table table;
static struct reftable_iterator it;

static int seek(enum reftable_section section, const char *name)
{
	int r;

	it.budget = rh_budget();
	r = reftable_iterator_seek(&it, &table, section, (const uint8_t *)name,
	    strlen(name), &rr_fault);
	return r < 0 ? r : reftable_iterator_next(&it, &rr_fault);
}

static void check_all(enum refd_object_format format, unsigned nr,
    bool with_logs)
{
	struct rh_bytes bytes = rr_many(format, nr, with_logs);
	unsigned i;

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault), 0);
	ck_assert_int_eq(table.context.format, format);
	ck_assert_int_eq(seek(REFTABLE_REFS, ""), nr > 0);
	for (i = 0; i < nr; i++) {
		ck_assert_str_eq(it.cursor.record.name, rr_name(i));
		ck_assert_uint_eq(it.cursor.record.ref.oid.bytes[19],
		    (uint8_t)i);
		ck_assert_int_eq(reftable_iterator_next(&it, &rr_fault),
		    i + 1 < nr);
	}
	for (i = 0; i < nr; i += 1 + nr / 999) {
		ck_assert_int_eq(seek(REFTABLE_REFS, rr_name(i)), 1);
		ck_assert_str_eq(it.cursor.record.name, rr_name(i));
		ck_assert_int_eq(seek(REFTABLE_LOGS, rr_name(i)), with_logs);
		ck_assert(!with_logs ||
		    strcmp(it.cursor.record.name, rr_name(i)) == 0);
	}
	ck_assert_int_eq(seek(REFTABLE_REFS, "refs/heads/a"), nr > 0);
	ck_assert(nr == 0 || strcmp(it.cursor.record.name, rr_name(0)) == 0);
	ck_assert_int_eq(seek(REFTABLE_REFS, "refs/heads/b0000000a"), nr > 1);
	ck_assert_int_eq(seek(REFTABLE_REFS, "refs/heads/c"), 0);
	ck_assert_int_eq(reftable_iterator_next(&it, &rr_fault), 0);
	ck_assert_int_eq(seek(REFTABLE_LOGS, "refs/heads/c"), 0);
	reftable_iterator_done(&it);
	reftable_table_close(&table);
	rh_free(&bytes);
}

CASE(.setup = rr_setup, .teardown = rr_teardown, .seconds = 120);

TEST(sizes)
{
	check_all(REFD_FORMAT_SHA1, 0, false);
	check_all(REFD_FORMAT_SHA1, 1, false);
	check_all(REFD_FORMAT_SHA1, 1, true);
	check_all(REFD_FORMAT_SHA256, 1, true);
	check_all(REFD_FORMAT_SHA1, 300, true);
	check_all(REFD_FORMAT_SHA256, 1000, true);
	check_all(REFD_FORMAT_SHA1, 5000, false);
	ck_assert_uint_ne(table.ref_index, 0);
}

TEST(an_index_of_several_levels)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 40000, false);
	struct reftable_block block = { 0 };
	struct reftable_cursor cursor;
	const char *why;

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_table_read(&table, table.ref_index, &block,
			     rh_budget(), &rr_fault),
	    0);
	reftable_block_first(&block, &cursor);
	ck_assert_int_eq(
	    reftable_block_next(&block, &table.context, &cursor, &why), 1);
	ck_assert_int_eq(bytes.data[cursor.record.position], REFTABLE_INDEX);
	reftable_block_done(&block);
	reftable_table_close(&table);
	rh_free(&bytes);
	check_all(REFD_FORMAT_SHA1, 40000, true);
}

TEST(logs_alone)
{
	struct rh_bytes bytes = { 0 };
	struct reftable_writer *w =
	    reftable_writer_new(REFD_FORMAT_SHA256, 1, 900, rh_append, &bytes);
	struct reftable_record rec;
	uint64_t i;

	for (i = 900; i > 0; i--) {
		rec = rh_log("HEAD", i, 1, 2, "m\n");
		ck_assert_int_eq(reftable_writer_add(w, &rec), 0);
	}
	ck_assert_int_eq(reftable_writer_finish(w), 0);
	reftable_writer_free(w);
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault), 0);
	ck_assert_uint_ne(table.log_index, 0);
	ck_assert_int_eq(seek(REFTABLE_REFS, ""), 0);
	ck_assert_int_eq(seek(REFTABLE_LOGS, "HEAD"), 1);
	for (i = 900; i > 0; i--) {
		ck_assert_uint_eq(it.cursor.record.update_index, i);
		ck_assert_int_eq(reftable_iterator_next(&it, &rr_fault), i > 1);
	}
	reftable_iterator_done(&it);
	reftable_table_close(&table);
	rh_free(&bytes);
}

/* ---- damage ---- */

static void refused(struct rh_bytes *bytes, const char *why)
{
	ck_assert_int_eq(rr_open(bytes, &table), -EBADMSG);
	ck_assert_str_eq(rr_fault.why, why);
	ck_assert_str_eq(rr_fault.table, "t");
}

TEST(wrong_ends)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 3, false);
	uint8_t *footer = bytes.data + bytes.len - FOOTER_1;
	size_t len = bytes.len;

	bytes.data[24] = 'i';
	refused(&bytes, "the first block has a wrong type");
	bytes.data[24] = 'r';
	bytes.len = 0;
	refused(&bytes, "the file is empty");
	bytes.len = 80;
	refused(&bytes, "the file is too short");
	bytes.len = len - 1;
	refused(&bytes, "the check sum of the footer is wrong");
	bytes.len = len;
	footer[30] ^= 1;
	refused(&bytes, "the check sum of the footer is wrong");
	footer[30] ^= 1;
	footer[23] ^= 1;
	rh_mend_crc(&bytes);
	refused(&bytes, "header and footer differ");
	footer[23] ^= 1;
	footer[31] = 0xf0;
	footer[30] = 0xf0;
	rh_mend_crc(&bytes);
	refused(&bytes, "a position in the footer is not in the file");
	bytes.data[0] = 'r';
	refused(&bytes, "the file is no reftable");
	bytes.data[0] = 'R';
	bytes.data[4] = 3;
	refused(&bytes, "the version of the format is unknown");
	bytes.data[4] = 2;
	refused(&bytes, "the object format is unknown");
	bytes.data[4] = 1;
	memset(bytes.data + 5, 0, 2);
	bytes.data[7] = 5;
	refused(&bytes, "the block size is too small");
	bytes.data[15] = 9;
	refused(&bytes, "the least update index is above the largest");
	ck_assert_int_eq(reftable_table_open(rr_sys, rr_dir, ".", &table,
			     &rr_fault),
	    -EBADMSG);
	ck_assert_str_eq(rr_fault.why, "not a regular file");
	rh_free(&bytes);
}

TEST(wrong_restart_points)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 20, false);
	size_t end = (size_t)reftable_record_get(bytes.data + 25, 3);
	uint8_t *second = bytes.data + end - 2 - 3;

	ck_assert_uint_eq(bytes.data[end - 1], 2);
	second[2]++;
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault),
	    -EBADMSG);
	ck_assert_str_eq(rr_fault.why, "a restart point is not at a record");
	reftable_table_close(&table);
	/* The second record. */
	reftable_record_put(second, 3,
	    28 + 2 + strlen(rr_name(0)) + 1 + 20 + (strlen(rr_name(0)) > 31));
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault),
	    -EBADMSG);
	ck_assert_str_eq(rr_fault.why,
	    "the key at a restart point has a prefix");
	reftable_table_close(&table);
	rh_free(&bytes);
}

/* The check takes time in proportion to the size of a block, even if all
 * records follow a single restart point. */
TEST(one_restart_point)
{
	struct rh_bytes bytes = rh_one_block(0, 150000);

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault), 0);
	reftable_table_close(&table);
	rh_free(&bytes);
}

/* The refs of a table do not vanish if the first block looks like a log. */
TEST(a_first_block_of_another_type)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 3, true);

	bytes.data[24] = 'g';
	refused(&bytes, "the first block has a wrong type");
	bytes.data[24] = 'x';
	refused(&bytes, "the first block has a wrong type");
	rh_free(&bytes);
}

/* Reads everything; counts the refs. */
static unsigned read_all(void)
{
	unsigned nr = 0;
	int r = seek(REFTABLE_REFS, "");

	for (; r > 0; nr++)
		r = reftable_iterator_next(&it, &rr_fault);
	for (r = seek(REFTABLE_LOGS, ""); r > 0;)
		r = reftable_iterator_next(&it, &rr_fault);
	seek(REFTABLE_REFS, rr_name(500));
	return nr;
}

/* Flips a bit of every seventh byte of a table with all sections. */
TEST(wrong_bits)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 250, true);
	size_t at, unnoticed = 0, tried = 0;

	for (at = 0; at < bytes.len; at += at % 13 + 1) {
		tried++;
		bytes.data[at] ^= (uint8_t)(1 << tried % 8);
		if (rr_open(&bytes, &table) == 0) {
			if (reftable_check(&table, rh_budget(), &rr_fault) ==
			    0) {
				unnoticed++;
				/* A symbolic ref may swallow refs. */
				ck_assert_uint_gt(read_all(), 230);
			} else {
				read_all();
			}
			reftable_iterator_done(&it);
			reftable_table_close(&table);
		}
		bytes.data[at] ^= (uint8_t)(1 << tried % 8);
	}
	/* Ids, padding, a kind of a ref, letters of a name. */
	ck_assert_uint_lt(unnoticed, tried * 9 / 10);
	rh_free(&bytes);
}

TEST(an_index_that_leads_forward)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 5000, false);
	const uint8_t forward[] = { 0, 4 << 3, 'z', 'z', 'z', 'z', 0x80, 0x80,
		0x80, 0 };
	int r;

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	memcpy(bytes.data + table.ref_index + 4, forward, sizeof(forward));
	reftable_table_close(&table);
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	r = seek(REFTABLE_REFS, "refs/heads/b");
	ck_assert_int_eq(r, -EBADMSG);
	reftable_iterator_done(&it);
	reftable_table_close(&table);
	rh_free(&bytes);
}

/* The file becomes shorter after it was opened. */
TEST(cut_meanwhile)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 650, true);
	int fd;

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	fd = SYS(rr_sys, openat, rr_dir, "t", O_WRONLY, 0);
	ck_assert_int_eq(SYS(rr_sys, ftruncate, fd, 5000), 0);
	SYS(rr_sys, close, fd);
	ck_assert_int_eq(reftable_check(&table, rh_budget(), &rr_fault),
	    -EBADMSG);
	ck_assert_str_eq(rr_fault.why, "the file became shorter");
	ck_assert_uint_lt(read_all(), 650);
	reftable_iterator_done(&it);
	reftable_table_close(&table);
	rh_free(&bytes);
}

/* A log block claims 16 MiB; its data inflates to less. */
TEST(a_log_of_a_wrong_length)
{
	struct rh_bytes bytes = rr_many(REFD_FORMAT_SHA1, 1, true);
	struct reftable_budget memory = { .memory = 65536, .work = SIZE_MAX };
	struct reftable_block block = { 0 };

	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(bytes.data[table.logs], 'g');
	memset(bytes.data + table.logs + 1, 0xff, 3);
	reftable_table_close(&table);
	ck_assert_int_eq(rr_open(&bytes, &table), 0);
	ck_assert_int_eq(reftable_table_read(&table, table.logs, &block,
			     rh_budget(), &rr_fault),
	    -EBADMSG);
	ck_assert_str_eq(rr_fault.why, "a log block cannot be inflated");
	reftable_block_done(&block);
	ck_assert_int_eq(reftable_table_read(&table, table.logs, &block,
			     &memory, &rr_fault),
	    -EFBIG);
	reftable_block_done(&block);
	reftable_table_close(&table);
	rh_free(&bytes);
}
