/*
 * The file of a repository's known refs, as text. A torn file must not count,
 * so the last line has the number of refs.
 *
 * Failure modes:
 *	no file, another journal, malformed, cut off	-ENOENT: the next look
 *							has no values to compare
 *	the disk is full, ...				the old file stays
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/looking/seen_refs.h"

#define DIRECTORY "seen"
#define FILE_MIN  ((size_t)64 << 10)
#define PER_REF   ((size_t)330) /* the oid, and the text as in memory */
#define OUT_BYTES ((size_t)64 << 10)
#define HEAD_MAX  128

static void head_text(char head[HEAD_MAX],
    const uint8_t journal[REFD_JOURNAL_ID_BYTES])
{
	size_t i, len = (size_t)snprintf(head, HEAD_MAX, "refd-seen 1 ");

	for (i = 0; i < REFD_JOURNAL_ID_BYTES; i++)
		len += (size_t)snprintf(head + len, HEAD_MAX - len, "%02x",
		    journal[i]);
	snprintf(head + len, HEAD_MAX - len, " ");
}

/* ---- reading ---- */

static char *next_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (end == NULL)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line;
}

/* 0; -ENOENT: malformed. */
static int add_line(struct seen_refs *refs, enum refd_object_format format,
    char *line)
{
	const size_t hex = refd_object_format_hex(format);
	struct seen_ref ref = { 0 };
	char *space;

	if (strncmp(line, "ref: ", 5) == 0) {
		ref.target = line + 5;
		space = strchr(line + 5, ' ');
	} else {
		space = refd_oid_parse(line, format, &ref.oid) == 0 ?
		    line + hex :
		    NULL;
	}
	if (space == NULL || *space != ' ')
		return -ENOENT;
	*space = '\0';
	ref.name = space + 1;
	return seen_refs_has_place(ref.name) ?
	    seen_refs_set(refs, SEEN_KNOWN, &ref) :
	    -ENOENT;
}

static int parse(char *text, const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, struct seen_refs *refs, uint64_t *lsn)
{
	char head[HEAD_MAX], end[64], *line;
	uint64_t nr = 0;
	int r = 0;

	head_text(head, journal);
	line = next_line(&text);
	if (line == NULL || strncmp(line, head, strlen(head)) != 0 ||
	    sscanf(line + strlen(head), "%" SCNu64, lsn) != 1)
		return -ENOENT;
	while ((line = next_line(&text)) != NULL && strncmp(line, "end ", 4)) {
		r = add_line(refs, format, line);
		if (r < 0)
			return r;
		nr++;
	}
	snprintf(end, sizeof(end), "end %" PRIu64, nr);
	return line != NULL && strcmp(line, end) == 0 ? 0 : -ENOENT;
}

int seen_file_read(const struct sys *sys, int state_fd, uint64_t repo,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, struct seen_refs *refs, uint64_t *lsn)
{
	char path[64], *text;
	size_t len;
	int r;

	snprintf(path, sizeof(path), DIRECTORY "/%" PRIu64, repo);
	r = sys_read_file(sys, state_fd, path,
	    FILE_MIN + PER_REF * seen_refs_max(refs), &text, &len);
	if (r < 0)
		return r;
	r = parse(text, journal, format, refs, lsn);
	free(text);
	return r;
}

/* ---- writing ---- */

struct seen_output {
	const struct sys *sys;
	int fd, err;
	size_t len;
	char buf[OUT_BYTES];
};

static void flush(struct seen_output *out)
{
	if (out->err == 0)
		out->err =
		    SYS(out->sys, write_all, out->fd, out->buf, out->len);
	out->len = 0;
}

static void put(struct seen_output *out, const char *text)
{
	const size_t len = strlen(text);

	if (len > sizeof(out->buf) - out->len)
		flush(out);
	memcpy(out->buf + out->len, text, len);
	out->len += len;
}

static void put_ref(struct seen_output *out, enum refd_object_format format,
    const struct seen_ref *ref)
{
	char hex[REFD_OID_MAX_HEX + 1];

	if (ref->target != NULL) {
		put(out, "ref: ");
		put(out, ref->target);
	} else {
		put(out, refd_oid_hex(&ref->oid, format, hex));
	}
	put(out, " ");
	put(out, ref->name);
	put(out, "\n");
}

static int write_refs(const struct sys *sys, int fd,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, const struct seen_refs *refs, uint64_t lsn)
{
	struct seen_output *out = calloc(1, sizeof(*out));
	struct seen_ref ref;
	char text[HEAD_MAX];
	uint64_t nr = 0;
	size_t i;
	int r;

	if (out == NULL)
		return -ENOMEM;
	out->sys = sys;
	out->fd = fd;
	head_text(text, journal);
	put(out, text);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", lsn);
	put(out, text);
	for (i = 0; i < seen_refs_nr(refs); i++)
		if (seen_refs_get(refs, SEEN_KNOWN, i, &ref)) {
			put_ref(out, format, &ref);
			nr++;
		}
	snprintf(text, sizeof(text), "end %" PRIu64 "\n", nr);
	put(out, text);
	flush(out);
	r = out->err;
	free(out);
	return r;
}

int seen_file_write(const struct sys *sys, int state_fd, uint64_t repo,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, const struct seen_refs *refs, uint64_t lsn)
{
	char path[64], new[64];
	int fd, r;

	snprintf(path, sizeof(path), DIRECTORY "/%" PRIu64, repo);
	snprintf(new, sizeof(new), DIRECTORY "/%" PRIu64 ".new", repo);
	r = SYS(sys, mkdirat, state_fd, DIRECTORY, 0700);
	if (r < 0 && r != -EEXIST)
		return r;
	fd = SYS(sys, openat, state_fd, new,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	r = write_refs(sys, fd, journal, format, refs, lsn);
	if (r == 0)
		r = SYS(sys, fdatasync, fd);
	SYS(sys, close, fd);
	if (r == 0)
		r = SYS(sys, renameat, state_fd, new, state_fd, path);
	return r;
}
