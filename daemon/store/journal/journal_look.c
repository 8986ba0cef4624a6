/*
 * A look at the WAL's file before SQLite opens it. SQLite takes the frames
 * before the first damaged one for all there are, without a word, and refd's
 * next checkpoint would truncate the others.
 * (https://www.sqlite.org/fileformat2.html, 4.1.)
 *
 * Happy path: a header; frames, each of which continues the checksum of the
 * one before; then the end of the file, or the zeros of the room in the WAL, or
 * frames of an older WAL, which have other salts.
 *
 * Failure modes:
 *	behind the end is a frame that has the WAL's salts
 *		a cut left that, or a commit that failed, or the frame in
 *		between was damaged. The frames do not tell. The place is
 *		remembered, and the caller's check of what must be there
 *		decides (journal_config.check)
 *	the header is damaged
 *		SQLite would take the WAL for empty. So it is where a header
 *		was torn when the WAL began anew: all frames had been copied
 *		into the database before, and the last commit among them can be
 *		found there. Where it can't, the journal is refused
 *	a WAL without a header, or none at all
 *		remembered as the first of these
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

struct wal {
	const struct sys *sys;
	int fd, db_fd;
	uint8_t header[HEADER_BYTES];
	bool is_big_endian, has_commit;
	uint8_t salts[8]; /* of its frames */
	uint32_t sums[2]; /* after the last frame that was valid */
	uint8_t frame[JOURNAL_FRAME_BYTES], page[JOURNAL_PAGE_BYTES];
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

/* Does the frame that was read continue those before it? */
static bool continues(struct wal *w)
{
	uint32_t sums[2] = { w->sums[0], w->sums[1] };

	if (!has_salts(w))
		return false;
	add_sums(w, w->frame, 8, sums);
	add_sums(w, w->frame + FRAME_HEADER, JOURNAL_PAGE_BYTES, sums);
	if (!are_stored(sums, w->frame + 16))
		return false;
	memcpy(w->sums, sums, sizeof(sums));
	return true;
}

/* ---- with a header ---- */

/* *NR: of the first frame that does not continue. 1: it, or one behind it, is
 * of this WAL all the same. */
static int find_end(struct wal *w, uint64_t *nr)
{
	uint64_t i;
	int r;

	for (*nr = 0;; ++*nr) {
		r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame),
		    frame_at(*nr));
		if (r <= 0 || !continues(w))
			break;
		w->has_commit |= ends_commit(w);
	}
	for (i = *nr + 1; r > 0 && !has_salts(w); i++)
		r = read_at(w->sys, w->fd, w->frame, FRAME_HEADER, frame_at(i));
	return r;
}

/* ---- without one ---- */

/* The frames from FIRST to before END are one commit, which begins with the
 * frame after the commit before. 1: the last one; 0: there is none. */
static int find_last_commit(struct wal *w, uint64_t *first, uint64_t *end)
{
	uint64_t nr;
	int r;

	*first = *end = 0;
	r = read_at(w->sys, w->fd, w->frame, sizeof(w->frame), frame_at(0));
	if (r <= 0 || page_of(w) == 0)
		return r < 0 ? r : 0;
	/* What the header had said is taken from the first frame. */
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

/* 1: the database's pages are those of the frames from FIRST to before END. */
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

/* 1: they hold a commit that the database has not. */
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

static int look(struct journal *j, struct wal *w, char **why)
{
	uint64_t nr = 0;
	int r;

	r = read_at(w->sys, w->fd, w->header, sizeof(w->header), 0);
	if (r <= 0)
		return r;
	if (has_header(w)) {
		r = find_end(w, &nr);
		j->wal_ends_at = frame_at(nr);
		j->is_wal_broken = r > 0;
		j->has_wal_commit = w->has_commit;
		return r < 0 ? r : 0;
	}
	/* SQLite sums in the order of the machine that writes. */
	w->is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	r = frames_are_needed(w);
	if (r <= 0)
		return r;
	return journal_say(why, -EBADMSG,
	    "the header of %s-wal is damaged, and %s lacks what the frames "
	    "behind it hold; nothing was changed: " JOURNAL_WHAT_HELPS,
	    j->path, j->path);
}

static int open_both(struct journal *j, struct wal *w)
{
	char *path = journal_path_with(j, "-wal");

	if (path == NULL)
		return -ENOMEM;
	w->db_fd =
	    SYS(j->sys, openat, SYS_TRUSTED, j->path, O_RDONLY | O_NOFOLLOW, 0);
	w->fd =
	    SYS(j->sys, openat, SYS_TRUSTED, path, O_RDONLY | O_NOFOLLOW, 0);
	free(path);
	return w->db_fd < 0 ? w->db_fd : w->fd < 0 ? w->fd : 0;
}

/* No connection is open yet that would lose its locks by closing the files. */
int journal_look_at_wal(struct journal *j, char **why)
{
	struct wal *w = calloc(1, sizeof(*w));
	int r;

	j->wal_ends_at = 0;
	j->is_wal_broken = j->has_wal_commit = false;
	if (w == NULL)
		return -ENOMEM;
	w->sys = j->sys;
	w->fd = w->db_fd = -1;
	r = open_both(j, w);
	if (r == 0)
		r = look(j, w, why);
	if (w->fd >= 0)
		SYS(j->sys, close, w->fd);
	if (w->db_fd >= 0)
		SYS(j->sys, close, w->db_fd);
	free(w);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && *why == NULL)
		journal_say(why, r, "can't read %s-wal: %s", j->path,
		    strerror(-r));
	return r;
}

char *journal_wal_doubt(const struct journal *j)
{
	char *text;

	if (j->is_wal_broken)
		journal_say(&text, 0,
		    "it is damaged, or an older copy: at byte %llu %s-wal is "
		    "not what was written there",
		    (unsigned long long)j->wal_ends_at, j->path);
	else if (j->wal_ends_at == 0)
		journal_say(&text, 0, "it is an older copy, or %s-wal was lost",
		    j->path);
	else
		journal_say(&text, 0,
		    "it is an older copy, or the end of %s-wal was lost",
		    j->path);
	return text;
}
