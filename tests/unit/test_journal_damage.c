/*
 * Proves that damage to the journal's files is found: a flipped bit in the
 * WAL's header or frames, and more damage in frames that were on disk before a
 * later commit. If the caller knows the last row, damage in the last flush and
 * a missing WAL are found, too. refd refuses a damaged journal with a sentence,
 * and changes no byte of the files. Without damage the journal opens: after a
 * torn end of any length, a lost sector that ends with the start of a frame,
 * rows without a flush, a torn header of a new WAL, or lost room. A view beside
 * no daemon refuses and opens the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define ROWS      10
#define ROW_BYTES 3000
#define HEADER    32
#define FRAME     (4096 + 24)
#define BYTES_MAX (1 << 20)

/* ---- the files, as a crash leaves them ---- */

struct damaged_file {
	uint8_t bytes[BYTES_MAX];
	size_t len;
};

static struct damaged_file db, wal, now;
static size_t frames_end;
static unsigned rows_at[BYTES_MAX / FRAME]; /* in so many frames */

static void read_file(const char *name, struct damaged_file *f)
{
	int fd = openat(tmp_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	n = pread(fd, f->bytes, sizeof(f->bytes), 0);
	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, BYTES_MAX);
	f->len = (size_t)n;
	close(fd);
}

/* Every commit has one row, except the commit of the start. */
static void take_files(void)
{
	const uint8_t *p;
	unsigned nr = 0, commits = 0;

	read_file("journal.db", &db);
	read_file("journal.db-wal", &wal);
	for (frames_end = HEADER; frames_end + FRAME <= wal.len;
	    frames_end += FRAME) {
		p = wal.bytes + frames_end;
		if (memcmp(p + 8, wal.bytes + 16, 8) != 0)
			break;
		commits += (p[4] | p[5] | p[6] | p[7]) != 0;
		rows_at[++nr] = commits > 0 ? commits - 1 : 0;
	}
}

/* ROWS rows in the WAL, behind the start. */
static void setup(void)
{
	struct journal *j;
	unsigned i;

	tmp_setup();
	j = help_open_here();
	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(help_commit(j, i, 1, ROW_BYTES), 0);
	take_files();
	ck_assert_uint_eq(rows_at[(frames_end - HEADER) / FRAME], ROWS);
	help_close(j);
}

static void put_files(void)
{
	unlinkat(tmp_fd, "journal.db-shm", 0);
	tmp_put_bytes("journal.db", db.bytes, db.len);
	tmp_put_bytes("journal.db-wal", wal.bytes, wal.len);
}

static void assert_unchanged(const char *name, const struct damaged_file *was)
{
	read_file(name, &now);
	ck_assert_uint_eq(now.len, was->len);
	ck_assert_mem_eq(now.bytes, was->bytes, was->len);
}

/* ---- opening ---- */

/* The caller knows that the journal must reach row *ARG. */
static int check_last(void *arg, struct journal *j, char **why)
{
	if (journal_last_lsn(j) >= *(const uint64_t *)arg)
		return 0;
	*why = journal_wal_doubt(j);
	return -ESTALE;
}

/* A view beside no daemon says the same. */
static int try(uint64_t expected, struct journal **j, char **why)
{
	struct journal_config cfg = { .sys = &sys_kernel,
		.dir = tmp_root,
		.boot_id = HELP_BOOT,
		.check = check_last,
		.check_arg = &expected };

	struct journal *view = NULL;
	char *view_why;
	int view_r = journal_view(&cfg, &view, &view_why), r;

	journal_view_close(view);
	r = help_start(&cfg, j, why);
	ck_assert_int_eq(view_r, r);
	if (r < 0)
		ck_assert_str_eq(view_why, *why);
	free(view_why);
	return r;
}

/* Refused with R and a sentence with WORD in it. No byte changes. */
static void assert_refused(uint64_t expected, int r, const char *word,
    const char *when)
{
	struct journal *j;
	char *why = NULL;
	int got;

	put_files();
	got = try(expected, &j, &why);
	ck_assert_msg(got == r, "%s: %d, not %d: %s", when, got, r,
	    why != NULL ? why : "");
	ck_assert_msg(strstr(why, word) != NULL, "%s: '%s' not in: %s", when,
	    word, why);
	free(why);
	assert_unchanged("journal.db", &db);
	assert_unchanged("journal.db-wal", &wal);
}

/* The journal opens and has ROWS rows. */
static void assert_opens(uint64_t expected, unsigned rows, const char *when)
{
	struct journal *j;
	char *why = NULL;
	size_t found;
	int r;

	put_files();
	r = try(expected, &j, &why);
	ck_assert_msg(r == 0, "%s: %d: %s", when, r, why != NULL ? why : "");
	found = help_scan(j, NULL, 0);
	ck_assert_msg(found == rows, "%s: %zu rows, not %u", when, found, rows);
	ck_assert_int_eq(help_commit(j, 100, 1, 16), 0);
	help_close(j);
}

/* ---- the WAL ---- */

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 120);

TEST(as_it_was_left)
{
	assert_opens(ROWS, ROWS, "as it was");
}

TEST(a_bit_of_the_header)
{
	char when[32];
	unsigned bit;

	for (bit = 0; bit < 8 * HEADER; bit++) {
		snprintf(when, sizeof(when), "bit %u", bit);
		wal.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_refused(0, -EBADMSG, "the header of", when);
		wal.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	memset(wal.bytes, 0, HEADER);
	assert_refused(0, -EBADMSG, "the header of", "no header");
}

static void change(size_t at)
{
	size_t i;

	for (i = at; i < at + 64; i++)
		wal.bytes[i] ^= 0x5a;
}

/* In the page's number, the commit mark, a salt, a sum, and in the page. */
TEST(a_bit_of_each_frame)
{
	static const unsigned within[] = { 3, 7, 12, 20, 24, 24 + 2000,
		FRAME - 64 };
	size_t frame, at, i;
	char when[64];

	for (frame = 0; HEADER + frame * FRAME < frames_end; frame++)
		for (i = 0; i < sizeof(within) / sizeof(within[0]); i++) {
			at = HEADER + frame * FRAME + within[i];
			snprintf(when, sizeof(when), "frame %zu, byte %u",
			    frame, within[i]);
			wal.bytes[at] ^= 4;
			assert_refused(0, -EBADMSG, "journal.db-wal is damaged",
			    when);
			wal.bytes[at] ^= 4;
			/* More than one bit, as after a torn end. */
			change(at);
			if (rows_at[frame] < ROWS - 1) {
				assert_refused(0, -EBADMSG, "was on disk",
				    when);
			} else {
				assert_refused(ROWS, -ESTALE, "journal.db-wal",
				    when);
				assert_opens(0, rows_at[frame], when);
			}
			change(at);
		}
}

TEST(the_sentence_names_the_byte)
{
	char words[64];

	wal.bytes[HEADER + 3 * FRAME + 1000] ^= 3;
	snprintf(words, sizeof(words), "damaged from byte %d ",
	    HEADER + 3 * FRAME);
	assert_refused(0, -EBADMSG, words, "in the middle");
}

/* No flush followed these rows, so a power loss may keep the last rows
 * alone. */
TEST(rows_that_were_not_flushed)
{
	struct journal *j = help_open_here();
	static struct damaged_file whole;
	struct journal_row row;
	size_t frame, at;
	char when[32];
	unsigned i;

	for (i = 0; i < ROWS; i++) {
		row = help_row(ROWS + i, ROW_BYTES);
		ck_assert_int_eq(journal_commit(j, &row, 1, false), 0);
		help_row_done(&row);
	}
	take_files();
	help_close(j);
	whole = wal;
	for (at = HEADER, frame = 0; at < frames_end; at += FRAME, frame++) {
		snprintf(when, sizeof(when), "frame %zu", frame);
		memset(wal.bytes + at, 0, 512);
		assert_opens(0, ROWS + rows_at[frame], when);
		wal = whole;
	}
}

/* The file is cut at lengths around the parts of every frame, or has zeros from
 * there on. */
TEST(a_torn_end)
{
	static const size_t parts[] = { 0, 1, 8, 23, 24, 25, 2000, FRAME - 16 };
	static struct damaged_file whole;
	size_t len, frame, i;
	char when[64];

	whole = wal;
	for (frame = 0; HEADER + frame * FRAME < frames_end; frame++)
		for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			len = HEADER + frame * FRAME + parts[i];
			snprintf(when, sizeof(when), "%zu bytes", len);
			wal.len = len;
			assert_opens(0, rows_at[frame], when);
			wal = whole;
			memset(wal.bytes + len, 0, wal.len - len);
			/* The end may consist of zeros anyway. */
			if (memcmp(wal.bytes + len, whole.bytes + len,
				FRAME - parts[i]) != 0)
				assert_opens(0, rows_at[frame], when);
			wal = whole;
		}
	for (len = 0; len < HEADER; len++) {
		snprintf(when, sizeof(when), "%zu bytes", len);
		wal.len = len;
		assert_opens(0, 0, when);
		wal = whole;
	}
}

/* Frame 41 has its first 8 bytes at the end of a sector. A power loss leaves
 * the older bytes, and the numbers can differ by one bit. */
TEST(a_lost_sector_with_the_start_of_a_frame)
{
	struct journal *j = help_open_here();
	const size_t at = HEADER + 41 * FRAME;
	unsigned bit, nr = ROWS;

	for (frames_end = 0; frames_end <= at; nr++) {
		ck_assert_int_eq(help_commit(j, nr, 1, 16), 0);
		take_files();
	}
	help_close(j);
	for (bit = 0; bit < 64; bit += 3) {
		wal.bytes[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_opens(0, ROWS + rows_at[41], "a bit of the start");
		wal.bytes[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(the_room_was_lost)
{
	wal.len = frames_end;
	assert_opens(ROWS, ROWS, "without its room");
}

TEST(the_wal_was_lost)
{
	wal.len = 0;
	assert_refused(ROWS, -ESTALE, "journal.db-wal was lost", "empty");
	assert_opens(0, 0, "empty, and nobody knows");
	put_files();
	tmp_run("rm journal.db-wal");
	ck_assert_int_eq(help_try_open(&sys_kernel, tmp_root, NULL, NULL), 0);
}

/* The database has the contents of the old frames. */
TEST(a_header_that_was_torn_when_the_wal_began_anew)
{
	static const uint8_t torn[HEADER / 2] = { 0x37, 0x7f, 6, 0x82 };
	struct journal *j = help_open_here();

	ck_assert_int_eq(help_commit(j, ROWS, 1, ROW_BYTES), 0);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	take_files();
	memcpy(wal.bytes, torn, sizeof(torn));
	help_close(j);
	assert_opens(ROWS + 1, ROWS + 1, "torn header");
}

TEST(frames_of_an_older_wal_do_not_count)
{
	struct journal *j = help_open_here();
	unsigned i;

	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(help_commit(j, ROWS + i, 1, ROW_BYTES), 0);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_int_eq(help_commit(j, 3 * ROWS, 1, 16), 0);
	take_files();
	help_close(j);
	for (i = 0; HEADER + (i + 1) * FRAME <= wal.len; i++)
		if (memcmp(wal.bytes + HEADER + i * FRAME + 8, wal.bytes + 16,
			8) != 0)
			wal.bytes[HEADER + i * FRAME + 100] ^= 1;
	assert_opens(2 * ROWS + 1, 2 * ROWS + 1, "older frames");
	wal.bytes[20] ^= 1;
	assert_refused(0, -EBADMSG, "the header of", "its header");
}

/* Rows before the last flush are known without a note of the caller. */
TEST(damage_while_it_is_open)
{
	struct journal *j = help_open_here();
	char *why = NULL;
	int fd;

	ck_assert_int_eq(help_commit(j, ROWS, 1, 16), 0);
	read_file("journal.db-wal", &wal);
	wal.bytes[HEADER + FRAME / 2] ^= 1;
	fd = openat(tmp_fd, "journal.db-wal", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, wal.bytes, HEADER + FRAME, 0),
	    HEADER + FRAME);
	close(fd);
	ck_assert_int_eq(journal_reopen(j, &why), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "journal.db-wal is damaged"));
	free(why);
	ck_assert_int_eq(journal_close(j), JOURNAL_UNKNOWN);
	assert_unchanged("journal.db-wal", &wal);
}
