/*
 * Proves that a table without its footer gets exactly the lost footer back: a
 * missing footer, a zero footer, and every torn footer. Proves that no other
 * damage is mended: a table whose blocks are not all there, at every cut; a
 * wrong byte in the footer; a table that perhaps had more refs; a table that
 * decodes to more than 256 MiB.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_mend.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"

static struct reftable_mend mend;
static struct rh_bytes whole;
static size_t footer; /* bytes */

/* Looks at the first LEN bytes of DATA. */
static int look(const uint8_t *data, size_t len, bool git_syncs)
{
	int r;

	rh_put(rr_sys, rr_dir, "t", data, len);
	r = reftable_mend_open(rr_sys, rr_dir, "t", git_syncs, &mend,
	    &rr_fault);
	if (r < 0)
		ck_assert_str_eq(rr_fault.table, "t");
	return r;
}

static void mended(const uint8_t *data, size_t len, bool git_syncs)
{
	ck_assert_msg(look(data, len, git_syncs) == 0, "%zu of %zu: %s", len,
	    whole.len, rr_fault.why);
	ck_assert_uint_eq(mend.table.end, whole.len - footer);
	ck_assert_uint_eq(mend.footer_len, footer);
	ck_assert_mem_eq(mend.footer, whole.data + mend.table.end, footer);
	ck_assert(mend.may_lack_logs != git_syncs);
	reftable_mend_close(&mend);
}

static void refused(const uint8_t *data, size_t len, bool git_syncs,
    const char *why)
{
	int r = look(data, len, git_syncs);

	ck_assert_msg(r == -EBADMSG, "%zu of %zu: %d", len, whole.len, r);
	if (why != NULL)
		ck_assert_str_eq(rr_fault.why, why);
}

/* Every state of a lost footer of the table WHOLE. */
static void lose_footer(bool git_syncs)
{
	const size_t end = whole.len - footer;
	uint8_t *data = malloc(whole.len);
	size_t i;

	refused(whole.data, whole.len, git_syncs,
	    "the footer is not the damage");
	for (i = end; i < whole.len; i++)
		mended(whole.data, i, git_syncs);
	for (i = 0; i < footer; i++) {
		/* The beginning is zero, or the end. */
		memcpy(data, whole.data, whole.len);
		memset(data + end, 0, i + 1);
		mended(data, whole.len, git_syncs);
		memcpy(data, whole.data, whole.len);
		if (whole.data[end + i] == 0)
			continue;
		memset(data + end + i, 0, footer - i);
		mended(data, whole.len, git_syncs);
	}
	free(data);
}

static void make(enum refd_object_format format, unsigned nr, bool with_logs)
{
	rh_free(&whole);
	whole = rr_many(format, nr, with_logs);
	footer = format == REFD_FORMAT_SHA1 ? 68 : 72;
}

static void teardown(void)
{
	rh_free(&whole);
	rr_teardown();
}

CASE(.setup = rr_setup, .teardown = teardown, .seconds = 120);

TEST(lost_footers)
{
	static const unsigned sizes[] = { 0, 1, 100, 300, 1000, 5000 };
	unsigned i, logs;

	for (i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++)
		for (logs = 0; logs < 2; logs++) {
			make(i % 2 ? REFD_FORMAT_SHA1 : REFD_FORMAT_SHA256,
			    sizes[i / 2], logs);
			lose_footer(true);
		}
}

/* With refs at the end, more refs may have been there. */
TEST(without_the_sync)
{
	size_t end;

	make(REFD_FORMAT_SHA1, 1, false);
	refused(whole.data, whole.len - footer, false,
	    "the footer is lost, and perhaps refs, because core.fsync lacks "
	    "'reference'");
	make(REFD_FORMAT_SHA1, 0, false);
	refused(whole.data, whole.len - footer, false, NULL);
	make(REFD_FORMAT_SHA1, 1, true);
	lose_footer(false);
	/* An index, which all refs precede. */
	make(REFD_FORMAT_SHA1, 5000, false);
	lose_footer(false);
	for (end = 4096; end < whole.len - footer; end += 4096)
		refused(whole.data, end, false, NULL);
}

/* No prefix of a table is taken for the table, unless it has all refs. */
TEST(every_cut, .times = 4)
{
	const bool git_syncs = _i % 2 == 1, with_logs = _i / 2 == 1;
	struct reftable_layout layout;
	struct reftable_table table;
	uint64_t refs_end;
	unsigned nr_mended = 0;
	size_t len;

	make(REFD_FORMAT_SHA1, 400, with_logs);
	ck_assert_int_eq(rr_open(&whole, &table), 0);
	ck_assert_int_eq(
	    reftable_check_layout(&table, rh_budget(), &layout, &rr_fault), 0);
	/* Behind the refs are the index, and the logs. */
	refs_end = layout.ref_index;
	ck_assert_uint_gt(refs_end, 0);
	for (len = 0; len < whole.len - footer; len++) {
		if (look(whole.data, len, git_syncs) < 0)
			continue;
		nr_mended++;
		if (!git_syncs)
			ck_assert_uint_gt(mend.table.end, refs_end);
		if (!git_syncs)
			ck_assert(mend.may_lack_logs);
		reftable_mend_close(&mend);
	}
	/* A cut at the end of a block looks like the end. */
	ck_assert(with_logs || git_syncs ? nr_mended > 0 : nr_mended == 0);
	ck_assert_uint_lt(nr_mended, 250);
	reftable_table_close(&table);
}

/* Blocks whose pages were lost are zero. */
TEST(lost_pages)
{
	uint8_t *data;
	size_t at, len;

	make(REFD_FORMAT_SHA1, 1000, true);
	data = malloc(whole.len);
	len = whole.len - footer;
	for (at = 0; at < len; at += 4096) {
		memcpy(data, whole.data, whole.len);
		memset(data + at, 0, len - at < 4096 ? len - at : 4096);
		refused(data, len, true, NULL);
		refused(data, whole.len, true, NULL);
		memset(data + at, 0, whole.len - at);
		refused(data, whole.len, true, NULL);
	}
	free(data);
}

TEST(a_wrong_byte)
{
	uint8_t *data;
	size_t i, end;

	make(REFD_FORMAT_SHA1, 300, true);
	data = malloc(whole.len + 1);
	memcpy(data, whole.data, whole.len);
	end = whole.len - footer;
	for (i = end; i < whole.len; i++) {
		data[i] ^= 0x55;
		refused(data, whole.len, true, NULL);
		if (i + 1 < whole.len)
			refused(data, i + 1, true, NULL);
		data[i] ^= 0x55;
	}
	/* Zeroes that are shorter, or longer, than a footer. */
	memset(data + end, 0, footer + 1);
	refused(data, end + 1, true, NULL);
	refused(data, whole.len - 1, true, NULL);
	refused(data, whole.len + 1, true, NULL);
	free(data);
}

/* A section which is too long for a table without an index. */
TEST(a_lost_index)
{
	static const char why[] = "the footer and an index are lost";
	unsigned nr = 0;
	size_t len;

	make(REFD_FORMAT_SHA1, 5000, false);
	for (len = 4 * 4096; len < 6 * 4096; len++) {
		refused(whole.data, len, true, NULL);
		nr += strcmp(rr_fault.why, why) == 0;
	}
	ck_assert_uint_ge(nr, 2);
}

/* Reads at most 256 MiB of blocks. Each entry of the log takes a block of 4096
 * bytes. */
TEST(a_bomb, .times = 2)
{
	const size_t nr = _i == 0 ? 32768 : 65600;
	struct reftable_record *records = calloc(nr, sizeof(*records));
	char message[3800] = "";
	size_t i;

	memset(message, 'm', sizeof(message) - 2);
	message[sizeof(message) - 2] = '\n';
	for (i = 0; i < nr; i++)
		records[i] = rh_log("refs/heads/x", nr - i, 1, 2, message);
	whole = rh_table(REFD_FORMAT_SHA1, 1, nr, records, nr);
	ck_assert_uint_lt(whole.len, 16 * 1024 * 1024);
	footer = 68;
	if (_i == 0)
		mended(whole.data, whole.len - footer, true);
	else
		ck_assert_int_eq(look(whole.data, whole.len - footer, true),
		    -EFBIG);
	free(records);
}
