/*
 * A look at the WAL's file before SQLite opens the file, because SQLite
 * silently ignores all frames from the first damaged frame on, and refd's next
 * checkpoint would truncate these frames.
 * (https://www.sqlite.org/fileformat2.html, 4.1.)
 *
 * Happy path: a header; frames, where each frame continues the checksum of the
 * frame before; then the end of the file, or the zeros of the room in the WAL,
 * or frames of an older WAL with other salts.
 *
 * Failure modes:
 *	behind the end is a frame with the salts of the WAL
 *		a power loss or a failed commit left the frame, or a frame in
 *		between was damaged. Damage is certain if a frame behind the
 *		end says that a row was on disk, and the frames before the end
 *		lack the row: the journal is refused (journal_meta.c).
 *		Otherwise the place is remembered, and the caller decides
 *		(journal_config.check). In the bytes of the last flush, only a
 *		single wrong bit tells damage from a torn end
 *	one bit of a frame is wrong
 *		the journal is refused. Exception: frames whose first 8 bytes
 *		end a sector, because a power loss can look like a wrong bit
 *	the header is damaged
 *		SQLite would take the WAL for empty. That is right if a power
 *		loss tore the header when the WAL began anew: all frames had
 *		been copied into the database before, and the last commit among
 *		the frames can be found there. If the database lacks the
 *		commit, the journal is refused
 *	a WAL without a header, or no WAL at all
 *		remembered as in the first case
 *	the file can't be read	a negative errno
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

#define MAGIC        0x377f0682 /* or one more: sums of big-endian words */
#define HEADER_BYTES 32
#define SUMMED_BYTES 24 /* of the header */
#define FRAME_HEADER (JOURNAL_FRAME_BYTES - JOURNAL_PAGE_BYTES)

#define SECTOR_BYTES 512 /* the least that a disk writes as a whole */

#define META_PAGE  2    /* the first table that was made */
#define TABLE_LEAF 0x0d /* the kind of a page */
#define SHORT_ROW  127  /* with a length of one byte */
#define SEAL_TYPE  (12 + 2 * JOURNAL_SEAL_BYTES) /* of a column: a blob */

struct wal {
	const struct sys *sys;
	int fd, db_fd;
	uint8_t header[HEADER_BYTES];
	bool is_big_endian, has_wrong_bit;
	uint8_t salts[8]; /* of the frames */
	uint32_t sums[2]; /* after the last valid frame */
	uint64_t flushed; /* as frames behind the end say */
	uint8_t frame[JOURNAL_FRAME_BYTES], page[JOURNAL_PAGE_BYTES];
	uint8_t before[JOURNAL_FRAME_BYTES];
};

/* 1: all of LEN bytes. 0: the file ends before that. */
static int read_at(const struct sys *sys, int fd, void *buf, size_t len,
    uint64_t offset)
{
	uint8_t *p = buf;
	ssize_t n = 1;

	while (len > 0 && n > 0) {
		n = SYS(sys, pread, fd, p, len, (off_t)offset);
		if (n < 0)
			return (int)n;
		p += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return len == 0;
}

static uint64_t frame_at(uint64_t nr)
{
	return HEADER_BYTES + nr * JOURNAL_FRAME_BYTES;
}

/* ---- checksums ---- */

static uint32_t word(const struct wal *w, const uint8_t *p)
{
	uint32_t value = journal_big_endian(p);

	return w->is_big_endian ? value : __builtin_bswap32(value);
}

static void add_sums(const struct wal *w, const uint8_t *p, size_t len,
    uint32_t sums[2])
{
	size_t i;

	for (i = 0; i < len; i += 8) {
		sums[0] += word(w, p + i) + sums[1];
		sums[1] += word(w, p + i + 4) + sums[0];
	}
}

static bool are_stored(const uint32_t sums[2], const uint8_t *p)
{
	return sums[0] == journal_big_endian(p) &&
	    sums[1] == journal_big_endian(p + 4);
}

static bool has_header(struct wal *w)
{
	w->is_big_endian = journal_big_endian(w->header) & 1;
	memcpy(w->salts, w->header + 16, sizeof(w->salts));
	add_sums(w, w->header, SUMMED_BYTES, w->sums);
	return (journal_big_endian(w->header) & ~1U) == MAGIC &&
	    journal_big_endian(w->header + 8) == JOURNAL_PAGE_BYTES &&
	    are_stored(w->sums, w->header + SUMMED_BYTES);
}

static uint32_t page_of(const struct wal *w)
{
	return journal_big_endian(w->frame);
}

static bool ends_commit(const struct wal *w)
{
	return journal_big_endian(w->frame + 4) != 0;
}

static bool has_salts(const struct wal *w)
{
	return page_of(w) != 0 &&
	    memcmp(w->frame + 8, w->salts, sizeof(w->salts)) == 0;
}

static void add_frame(const struct wal *w, const uint8_t *frame,
    uint32_t sums[2])
{
	add_sums(w, frame, 8, sums);
	add_sums(w, frame + FRAME_HEADER, JOURNAL_PAGE_BYTES, sums);
}

/* Does the frame in w->frame continue the frames before? Most of a WAL is room
 * without salts, so only a frame with salts is summed up. */
static bool continues(struct wal *w)
{
	uint32_t sums[2] = { w->sums[0], w->sums[1] };

	if (!has_salts(w))
		return false;
	add_frame(w, w->frame, sums);
	if (!are_stored(sums, w->frame + 16))
		return false;
	memcpy(w->sums, sums, sizeof(sums));
	return true;
}

static int nr_bits(const uint32_t a[2], const uint32_t b[2])
{
	return __builtin_popcount(a[0] ^ b[0]) +
	    __builtin_popcount(a[1] ^ b[1]);
}

static bool is_one_bit(uint32_t value, uint32_t missing)
{
	return __builtin_popcount(value ^ (value + missing)) == 1;
}

/* Does a sector end with the first 8 bytes of the frame at byte AT? A power
 * loss may leave the older bytes of the sector. The number of the page and the
 * commit mark differ little from older numbers, so the difference of the sums
 * can be the same as after one wrong bit. */
static bool is_start_apart(uint64_t at)
{
	return (at + 8) % SECTOR_BYTES == 0;
}

/* The frame in w->frame does not continue. Would the frame continue with a
 * single bit changed? A torn end lacks whole sectors, so a torn end differs by
 * many bits. The function follows the difference of the sums back, word by
 * word, to a word where a single bit makes the difference. */
static bool has_wrong_bit(const struct wal *w)
{
	uint32_t sums[2] = { w->sums[0], w->sums[1] }, stored[2], salts[2],
		 of[2];
	const uint8_t *p = w->frame + JOURNAL_FRAME_BYTES;
	int i;

	add_frame(w, w->frame, sums);
	for (i = 0; i < 2; i++) {
		salts[i] = journal_big_endian(w->frame + 8 + 4 * i);
		stored[i] = journal_big_endian(w->frame + 16 + 4 * i);
		of[i] = journal_big_endian(w->salts + 4 * i);
	}
	if (nr_bits(salts, of) + nr_bits(sums, stored) == 1)
		return true;
	if (nr_bits(salts, of) > 0)
		return false;
	stored[0] -= sums[0];
	stored[1] -= sums[1];
	for (; p > w->frame; p -= 8) {
		if (p == w->frame + FRAME_HEADER)
			p = w->frame + 8;
		if ((stored[0] == stored[1] &&
			is_one_bit(word(w, p - 8), stored[0])) ||
		    (stored[0] == 0 && is_one_bit(word(w, p - 4), stored[1])))
			return true;
		stored[1] -= stored[0];
		stored[0] -= stored[1];
	}
	return false;
}

/* ---- with a header ---- */

/* The last record on disk, as the row of meta in the frame says; 0: the page is
 * not meta's. The page of meta is a leaf of a table, with a single short row.
 * The last column is the seal.
 * (https://www.sqlite.org/fileformat2.html, 1.6, 2.1.) */
static uint64_t flushed_by(const struct wal *w)
{
	const uint8_t *page = w->frame + FRAME_HEADER, *row;
	size_t at = (size_t)page[8] << 8 | page[9], len;

	if (page_of(w) != META_PAGE || page[0] != TABLE_LEAF || page[3] != 0 ||
	    page[4] != 1 || at + 3 > JOURNAL_PAGE_BYTES)
		return 0;
	len = page[at];
	row = page + at + 2;
	if (len > SHORT_ROW || at + 2 + len > JOURNAL_PAGE_BYTES ||
	    row[0] == 0 || (size_t)row[0] + JOURNAL_SEAL_BYTES > len ||
	    row[row[0] - 1] != SEAL_TYPE)
		return 0;
	return journal_seal_flushed(row + len - JOURNAL_SEAL_BYTES);
}

/* Finds the first frame *NR that does not continue the frame before. Returns 1
 * if this frame or a later frame has the salts of this WAL, because then more
 * was written. The LSN in a later frame counts only if its checksum is right:
 * counted on from the frame before as it is, or from the sums stored there,
 * because one bit of that frame may be wrong. */
static int find_end(struct wal *w, uint64_t *nr)
{
	uint64_t i, flushed;
	uint32_t stored[2];
	bool is_broken = false, is_sound;
	int r;

	for (*nr = 0;; ++*nr) {
		r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame),
		    frame_at(*nr));
		if (r <= 0 || !continues(w))
			break;
	}
	w->has_wrong_bit =
	    r > 0 && !is_start_apart(frame_at(*nr)) && has_wrong_bit(w);
	for (i = *nr + 1; r > 0; i++) {
		is_broken |= has_salts(w);
		stored[0] = journal_big_endian(w->frame + 16);
		stored[1] = journal_big_endian(w->frame + 20);
		memcpy(w->before, w->frame, sizeof(w->before));
		r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame),
		    frame_at(i));
		if (r > 0 && has_salts(w))
			add_frame(w, w->before, w->sums);
		is_sound = r > 0 && continues(w);
		if (!is_sound) {
			memcpy(w->sums, stored, sizeof(stored));
			is_sound = r > 0 && continues(w);
		}
		flushed = is_sound ? flushed_by(w) : 0;
		if (flushed > w->flushed)
			w->flushed = flushed;
	}
	return r < 0 ? r : is_broken;
}

/* ---- without a header ---- */

/* 1: the frames from FIRST to before END are the last commit. 0: there is no
 * commit. */
static int find_last_commit(struct wal *w, uint64_t *first, uint64_t *end)
{
	uint64_t nr;
	int r;

	*first = *end = 0;
	r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame), frame_at(0));
	if (r <= 0 || page_of(w) == 0)
		return r < 0 ? r : 0;
	/* The header is damaged, but the first frame has the salts, and the
	 * sums after this frame, too. */
	memcpy(w->salts, w->frame + 8, sizeof(w->salts));
	w->sums[0] = journal_big_endian(w->frame + 16);
	w->sums[1] = journal_big_endian(w->frame + 20);
	for (nr = 0; r > 0 && (nr == 0 || continues(w)); nr++) {
		if (ends_commit(w)) {
			*first = *end;
			*end = nr + 1;
		}
		r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame),
		    frame_at(nr + 1));
	}
	return r < 0 ? r : *end > 0;
}

/* 1: the database has the pages of the frames from FIRST to before END. */
static int are_copied(struct wal *w, uint64_t first, uint64_t end)
{
	int r = 1;

	for (; first < end && r > 0; first++) {
		r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame),
		    frame_at(first));
		if (r > 0)
			r = read_at(w->sys, w->db_fd, w->page, sizeof(w->page),
			    (uint64_t)(page_of(w) - 1) * JOURNAL_PAGE_BYTES);
		if (r > 0)
			r = memcmp(w->page, w->frame + FRAME_HEADER,
				sizeof(w->page)) == 0;
	}
	return r;
}

/* 1: the frames hold a commit that the database lacks. */
static int frames_are_needed(struct wal *w)
{
	uint64_t first, end;
	int r;

	r = find_last_commit(w, &first, &end);
	if (r <= 0)
		return r;
	r = are_copied(w, first, end);
	return r < 0 ? r : r == 0;
}

/* ---- all of it ---- */

static int scan_wal(struct journal *j, struct wal *w, char **why)
{
	uint64_t nr = 0;
	int r;

	r = read_at(w->sys, w->fd, w->header, sizeof(w->header), 0);
	if (r <= 0)
		return r;
	if (has_header(w)) {
		r = find_end(w, &nr);
		j->found.ends_at = frame_at(nr);
		j->found.is_broken = r > 0;
		j->found.flushed = w->flushed;
		if (r < 0 || !w->has_wrong_bit)
			return r < 0 ? r : 0;
		return journal_say(why, -EBADMSG,
		    "%s-wal is damaged: a bit of the %d bytes from byte %llu "
		    "on is wrong; nothing was changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path, JOURNAL_FRAME_BYTES,
		    (unsigned long long)j->found.ends_at);
	}
	/* The damaged header cannot tell the order of bytes, but SQLite sums in
	 * the order of the machine that writes. */
	w->is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	r = frames_are_needed(w);
	if (r <= 0)
		return r;
	return journal_say(why, -EBADMSG,
	    "the header of %s-wal is damaged, and %s lacks what the frames "
	    "behind it hold; nothing was changed: " JOURNAL_WHAT_HELPS,
	    j->cfg.path, j->cfg.path);
}

static int open_both(struct journal *j, struct wal *w)
{
	w->db_fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.path,
	    O_RDONLY | O_NOFOLLOW, 0);
	w->fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.wal,
	    O_RDONLY | O_NOFOLLOW, 0);
	return w->db_fd < 0 ? w->db_fd : w->fd < 0 ? w->fd : 0;
}

/* Closing the files would drop the locks of open connections, but none is open
 * yet. */
int journal_look_at_wal(struct journal *j, char **why)
{
	struct wal *w = calloc(1, sizeof(*w));
	int r;

	j->found.ends_at = 0;
	j->found.is_broken = false;
	j->found.flushed = 0;
	if (w == NULL)
		return -ENOMEM;
	w->sys = j->sys;
	w->fd = w->db_fd = -1;
	r = open_both(j, w);
	if (r == 0)
		r = scan_wal(j, w, why);
	if (w->fd >= 0)
		SYS(j->sys, close, w->fd);
	if (w->db_fd >= 0)
		SYS(j->sys, close, w->db_fd);
	free(w);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && *why == NULL)
		journal_say(why, r, "can't read %s-wal: %s", j->cfg.path,
		    strerror(-r));
	return r;
}

char *journal_wal_doubt(const struct journal *j)
{
	char *text;

	if (j->found.is_broken)
		journal_say(&text, 0,
		    "it is damaged, or an older copy: at byte %llu %s-wal is "
		    "not what was written there",
		    (unsigned long long)j->found.ends_at, j->cfg.path);
	else if (j->found.ends_at == 0)
		journal_say(&text, 0, "it is an older copy, or %s-wal was lost",
		    j->cfg.path);
	else
		journal_say(&text, 0,
		    "it is an older copy, or its disk lost the end of %s-wal",
		    j->cfg.path);
	return text;
}
