/*
 * Makes a reflog whole after a power loss. The disk can keep the size of a log
 * without its data, or a part of the last writes, so the end may be NULs, torn
 * or missing.
 *
 * Happy path: the log holds every line, so nothing is written.
 *
 * Failure modes:
 *	the end is NULs (ext4 kept the size and not the data), or a torn line:
 *	cut off
 *	a writer appended after the NULs: the line is kept
 *	lines are missing: appended in their order
 *	the log is longer than REFLOG_TAIL_MAX: only this much of the end is
 *	read and repaired, and the rest counts as sound
 *	a write fails: some of the missing lines are there, the last perhaps
 *	torn; a second repair continues
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/reflog_internal.h"
#include "proto/oid.h"

/* ---- cutting ---- */

/* Does the line begin with two ids, each followed by a blank? */
static bool is_log_line(const char *line, size_t len,
    enum refd_object_format format)
{
	const size_t field = refd_object_format_hex(format) + 1;
	struct refd_oid oid;

	return len > 2 * field && refd_oid_parse(line, format, &oid) == 0 &&
	    line[field - 1] == ' ' &&
	    refd_oid_parse(line + field, format, &oid) == 0 &&
	    line[2 * field - 1] == ' ';
}

/* The sound part of a line, with its LF: the whole line; the text after its
 * last NUL, if a line; or nothing. */
static const char *sound_part(const char *line, const char *end,
    enum refd_object_format format)
{
	const char *nul = memrchr(line, '\0', (size_t)(end - line));

	if (nul == NULL)
		return line;
	return is_log_line(nul + 1, (size_t)(end - nul - 1), format) ? nul + 1 :
								       end;
}

/* Removes torn parts from BUF; returns the remaining LEN. *SAME: bytes at the
 * front that did not change. */
static size_t clean(char *buf, size_t len, enum refd_object_format format,
    size_t *same)
{
	char *line = buf, *to = buf, *end;
	const char *from;
	size_t n;

	*same = 0;
	while ((end = memchr(line, '\n', len - (size_t)(line - buf))) != NULL) {
		end++;
		from = sound_part(line, end, format);
		n = (size_t)(end - from);
		if (from == to)
			*same += n;
		memmove(to, from, n);
		to += n;
		line = end;
	}
	return (size_t)(to - buf);
}

/* ---- counting ---- */

struct wanted_line {
	const char *line;
	size_t len;
	size_t have; /* times in the log; for equal lines only in the first */
};

static int compare_bytes(const char *a, size_t a_len, const char *b,
    size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted_line *x = a, *y = b;

	return compare_bytes(x->line, x->len, y->line, y->len);
}

/* The first of the NR sorted lines equal to LINE, or NULL. */
static struct wanted_line *find_wanted(struct wanted_line *wanted, size_t nr,
    const char *line, size_t len)
{
	size_t low = 0, high = nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare_bytes(wanted[mid].line, wanted[mid].len, line,
			len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == nr ||
	    compare_bytes(wanted[low].line, wanted[low].len, line, len) != 0)
		return NULL;
	return &wanted[low];
}

/* NULL: out of memory. */
static struct wanted_line *sort_wanted(const char *const *lines, size_t nr)
{
	struct wanted_line *wanted = calloc(nr + 1, sizeof(*wanted));
	size_t i;

	for (i = 0; i < nr && wanted != NULL; i++)
		wanted[i] =
		    (struct wanted_line){ lines[i], strlen(lines[i]), 0 };
	if (wanted != NULL)
		qsort(wanted, nr, sizeof(*wanted), compare_wanted);
	return wanted;
}

/* LOG is LEN bytes of whole lines. */
static void count_lines(struct wanted_line *wanted, size_t nr, const char *log,
    size_t len)
{
	const char *p, *eol, *end = log + len;
	struct wanted_line *w;

	for (p = log; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		w = find_wanted(wanted, nr, p, (size_t)(eol + 1 - p));
		if (w != NULL)
			w->have++;
	}
}

/* Appends to LOG, *LEN bytes, the LINES after the first KNOWN that were not
 * counted, in order. Returns the number. LOG has room for all. */
static size_t append_missing(char *log, size_t *len, const char *const *lines,
    size_t nr, size_t known, struct wanted_line *wanted)
{
	size_t i, missing = 0;
	struct wanted_line *w;

	for (i = 0; i < nr; i++) {
		w = find_wanted(wanted, nr, lines[i], strlen(lines[i]));
		if (w->have > 0) {
			w->have--;
		} else if (i >= known) {
			memcpy(log + *len, w->line, w->len);
			*len += w->len;
			missing++;
		}
	}
	return missing;
}

/* ---- the file ---- */

/* The end of a log: whole lines, except torn parts. */
struct tail {
	enum refd_object_format format; /* of the ids */
	char *buf;
	size_t len;
	uint64_t at, size; /* start in the file; size of the whole file */
	bool is_open;      /* the unread part before has no line end */
};

/* Reads at most the last MAX bytes of the file. If the file is longer, the
 * first line of this part is incomplete. So the result begins after the first
 * line end. But if NULs stand in this first line, and a sound line follows the
 * last NUL, the result begins with the sound line. Without a line end the part
 * has no whole line. */
static int read_tail(const struct sys *sys, int fd, size_t max,
    struct tail *tail)
{
	const char *eol, *from;
	struct sys_stat st;
	ssize_t n = 1;
	size_t skip;
	int r;

	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && !S_ISREG(st.mode))
		r = S_ISDIR(st.mode) ? -EISDIR : -EINVAL;
	if (r < 0)
		return r;
	tail->size = st.size;
	tail->at = st.size > max ? st.size - max : 0;
	tail->buf = malloc((size_t)(st.size - tail->at) + 1);
	if (tail->buf == NULL)
		return -ENOMEM;
	while (n > 0 && tail->len < st.size - tail->at) {
		n = SYS(sys, pread, fd, tail->buf + tail->len,
		    (size_t)(st.size - tail->at) - tail->len,
		    (off_t)(tail->at + tail->len));
		tail->len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return (int)n;
	eol = tail->at > 0 ? memchr(tail->buf, '\n', tail->len) : NULL;
	tail->is_open = tail->at > 0 && eol == NULL;
	if (eol == NULL)
		return 0;
	from = sound_part(tail->buf, eol + 1, tail->format);
	skip = (size_t)((from == tail->buf ? eol + 1 : from) - tail->buf);
	memmove(tail->buf, tail->buf + skip, tail->len - skip);
	tail->at += skip;
	tail->len -= skip;
	return 0;
}

/* Writes the bytes of BUF from FROM on after the AT bytes that stay, then sets
 * the size from SIZE to LEN. At no moment is a sound line in memory only. */
static int put_back(const struct sys *sys, int fd, const char *buf, size_t from,
    size_t len, const struct tail *tail)
{
	ssize_t n;

	while (from < len) {
		n = SYS(sys, pwrite, fd, buf + from, len - from,
		    (off_t)(tail->at + from));
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		from += (size_t)n;
	}
	return tail->at + len < tail->size ?
	    SYS(sys, ftruncate, fd, (off_t)(tail->at + len)) :
	    0;
}

struct log_repair {
	const struct sys *sys;
	const char *const *lines; /* that the log must have */
	size_t nr, known;         /* of LINES; as reflog_repair() */
	struct tail tail;
	size_t added, cut_bytes; /* the result */
};

/* The lines take ROOM bytes. */
static int repair_tail(struct log_repair *repair, int fd, size_t room)
{
	struct wanted_line *wanted = sort_wanted(repair->lines, repair->nr);
	struct tail *tail = &repair->tail;
	size_t sound, whole, same, missing;
	char *grown;
	int r = 0;

	sound = clean(tail->buf, tail->len, tail->format, &same);
	grown = realloc(tail->buf, sound + room + 2);
	if (grown != NULL)
		tail->buf = grown;
	if (wanted == NULL || grown == NULL) {
		free(wanted);
		return -ENOMEM;
	}
	count_lines(wanted, repair->nr, tail->buf, sound);
	if (tail->is_open)
		tail->buf[sound++] = '\n';
	whole = sound;
	missing = append_missing(tail->buf, &whole, repair->lines, repair->nr,
	    repair->known, wanted);
	if (missing > 0 || sound < tail->len)
		r = put_back(repair->sys, fd, tail->buf, same, whole, tail);
	if (r == 0) {
		repair->added = missing;
		repair->cut_bytes = tail->len - sound;
	}
	free(wanted);
	return r;
}

static int repair_open(struct log_repair *repair, int fd)
{
	size_t i, room = 0;
	int r;

	for (i = 0; i < repair->nr; i++)
		room += strlen(repair->lines[i]);
	r = read_tail(repair->sys, fd, REFLOG_TAIL_MAX + room, &repair->tail);
	if (r == 0)
		r = repair_tail(repair, fd, room);
	free(repair->tail.buf);
	return r;
}

int reflog_repair(const struct reflog_file *log, const char *const *lines,
    size_t nr, size_t known, size_t *added, size_t *cut_bytes)
{
	struct log_repair repair = { .sys = log->sys,
		.lines = lines,
		.nr = nr,
		.known = known,
		.tail.format = log->format };
	uint64_t size;
	int fd, r, closed;

	*added = *cut_bytes = 0;
	fd = reflog_open(log, 0, &size, NULL);
	if (fd == -ENOENT && !log->create)
		return 0;
	if (fd < 0)
		return fd;
	r = repair_open(&repair, fd);
	*added = repair.added;
	*cut_bytes = repair.cut_bytes;
	closed = SYS(log->sys, close, fd);
	return r < 0 ? r : closed;
}

/* Bytes. No line of refd is longer, and the packer may read many logs, so more
 * would only cost time. */
#define LAST_MAX ((size_t)1 << 20)

int reflog_last(const struct reflog_file *log, struct refd_oid *old_oid,
    struct refd_oid *new_oid)
{
	const enum refd_object_format format = log->format;
	struct tail tail = { .format = format };
	const char *line;
	size_t len, same;
	int fd, r;

	fd = SYS(log->sys, openat, log->dirfd, log->path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = read_tail(log->sys, fd, LAST_MAX, &tail);
	SYS(log->sys, close, fd);
	if (r == 0) {
		len = clean(tail.buf, tail.len, format, &same);
		line = len > 0 ? memrchr(tail.buf, '\n', len - 1) : NULL;
		line = line != NULL ? line + 1 : tail.buf;
		r = is_log_line(line, len - (size_t)(line - tail.buf),
			format) &&
		    refd_oid_parse(line, format, old_oid) == 0 &&
		    refd_oid_parse(line + refd_object_format_hex(format) + 1,
			format, new_oid) == 0;
	}
	free(tail.buf);
	return r;
}
