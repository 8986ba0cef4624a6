/*
 * The records of packed-refs: a single record, and all records in order.
 *
 * Happy path: the file is read in blocks, every record is parsed once.
 *
 * Failure modes:
 *	a malformed record, for example a hole of a sparse file: -EBADMSG, at
 *	the first such record
 *	the file was shortened meanwhile: the same
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/packed_internal.h"

#define STREAM_BYTES ((size_t)64 << 10)

/* ---- a record ---- */

static bool all_hex(const char *p, size_t len)
{
	unsigned bad = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned c = (unsigned char)p[i];

		bad |= c - '0' >= 10 && (c | 0x20) - 'a' >= 6;
	}
	return bad == 0;
}

/* HEX: the digits of an id. */
static bool is_peeled_line(const char *p, size_t available, size_t hex)
{
	return available >= hex + 2 && all_hex(p + 1, hex) &&
	    p[hex + 1] == '\n';
}

int packed_record(const char *p, size_t available,
    enum refd_object_format format, struct packed_record *rec)
{
	const size_t hex = refd_object_format_hex(format), name_at = hex + 1;
	const char *eol;

	if (available <= name_at || !all_hex(p, hex) || p[hex] != ' ')
		return -EBADMSG;
	rec->start = p;
	rec->name = p + name_at;
	eol = memchr(rec->name, '\n', available - name_at);
	if (eol == NULL || eol == rec->name || eol[-1] == '\r')
		return -EBADMSG;
	rec->name_len = (size_t)(eol - rec->name);
	rec->len = (size_t)(eol - p) + 1;
	if (memchr(rec->name, '\0', rec->name_len) != NULL)
		return -EBADMSG;
	if (rec->len < available && p[rec->len] == '^') {
		if (!is_peeled_line(p + rec->len, available - rec->len, hex))
			return -EBADMSG;
		rec->len += hex + 2;
	}
	return rec->len <= PACKED_RECORD_MAX ? 0 : -EBADMSG;
}

/* No name has a NUL, so strncmp() ends within both. */
int packed_record_order(const struct packed_record *rec, const char *key)
{
	int order = strncmp(rec->name, key, rec->name_len);

	return order != 0 ? order : key[rec->name_len] == '\0' ? 0 : -1;
}

/* ---- all of them ---- */

ssize_t packed_read(const struct packed_snapshot *snap, void *buf, size_t len,
    size_t at)
{
	size_t have = 0;
	ssize_t n;

	if (at >= snap->size)
		return 0;
	if (len > snap->size - at)
		len = snap->size - at;
	if (snap->text != NULL) {
		memcpy(buf, snap->text + at, len);
		return (ssize_t)len;
	}
	while (have < len) {
		n = SYS(snap->sys, pread, snap->fd, (char *)buf + have,
		    len - have, (off_t)(at + have));
		if (n <= 0)
			return n < 0 ? n : -EBADMSG;
		have += (size_t)n;
	}
	return (ssize_t)len;
}

int packed_stream_init(struct packed_stream *stream,
    const struct packed_snapshot *snap)
{
	*stream = (struct packed_stream){ .snap = snap,
		.at = snap->header_len,
		.buf = malloc(STREAM_BYTES) };
	return stream->buf != NULL ? 0 : -ENOMEM;
}

static int refill(struct packed_stream *stream)
{
	ssize_t n;

	memmove(stream->buf, stream->buf + stream->from, stream->have);
	stream->from = 0;
	n = packed_read(stream->snap, stream->buf + stream->have,
	    STREAM_BYTES - stream->have, stream->at);
	if (n < 0)
		return (int)n;
	stream->have += (size_t)n;
	stream->at += (size_t)n;
	return 0;
}

int packed_stream_next(struct packed_stream *stream, struct packed_record *rec)
{
	int r = 0;

	if (stream->have <= PACKED_RECORD_MAX &&
	    stream->at < stream->snap->size)
		r = refill(stream);
	if (r < 0 || stream->have == 0)
		return r;
	r = packed_record(stream->buf + stream->from, stream->have,
	    stream->snap->format, rec);
	if (r < 0)
		return r;
	stream->from += rec->len;
	stream->have -= rec->len;
	return 1;
}

void packed_stream_done(struct packed_stream *stream)
{
	free(stream->buf);
}

static int each(const struct packed_snapshot *snap,
    const struct packed_record *rec, packed_each_fn *fn, void *arg)
{
	char name[PACKED_RECORD_MAX];
	struct refd_oid oid;

	memcpy(name, rec->name, rec->name_len);
	name[rec->name_len] = '\0';
	if (refd_oid_parse(rec->start, snap->format, &oid) < 0)
		return -EBADMSG;
	return fn(arg, name, &oid);
}

int packed_each(const struct packed_snapshot *snap, packed_each_fn *fn,
    void *arg)
{
	struct packed_stream stream;
	struct packed_record rec;
	int r;

	if (snap->size > PACKED_STREAM_MAX)
		return -EFBIG;
	r = packed_stream_init(&stream, snap);
	if (r == 0)
		while ((r = packed_stream_next(&stream, &rec)) > 0 &&
		    (r = each(snap, &rec, fn, arg)) == 0)
			;
	packed_stream_done(&stream);
	return r;
}

int packed_check(const struct packed_snapshot *snap)
{
	struct packed_stream stream;
	struct packed_record rec;
	int r;

	if (snap->size > PACKED_STREAM_MAX)
		return -EFBIG;
	r = packed_stream_init(&stream, snap);
	if (r == 0)
		while ((r = packed_stream_next(&stream, &rec)) > 0)
			;
	packed_stream_done(&stream);
	return r;
}
