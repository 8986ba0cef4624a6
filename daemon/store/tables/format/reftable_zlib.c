#include "daemon/store/tables/format/reftable_zlib.h"

#include <errno.h>
#include <zlib.h>

#define SPARE_INPUT 4096

/* As git. */
#define LEVEL 9

uint32_t reftable_zlib_crc(const void *bytes, size_t len)
{
	return (uint32_t)crc32(0, bytes, (unsigned)len);
}

/* Reads more of the file. */
static int refill(struct reftable_zlib_input *in)
{
	uint64_t left = in->end - in->at;
	ssize_t n;

	n = SYS(in->sys, pread, in->fd, in->buf,
	    left < in->buf_size ? (size_t)left : in->buf_size, (off_t)in->at);
	if (n <= 0)
		return n < 0 ? (int)n : -EBADMSG;
	in->at += (uint64_t)n;
	in->next = in->buf;
	in->len = (size_t)n;
	return 0;
}

static int feed(struct reftable_zlib_input *in, z_stream *z, size_t most)
{
	int zr = Z_OK, r;

	while (zr == Z_OK || zr == Z_BUF_ERROR) {
		r = in->len == 0 ? refill(in) : 0;
		if (r < 0)
			return r;
		z->next_in = (uint8_t *)(uintptr_t)in->next;
		z->avail_in = (unsigned)in->len;
		zr = inflate(z, Z_NO_FLUSH);
		in->next += in->len - z->avail_in;
		in->len = z->avail_in;
		/* Input is left, because the output is full or the stream is
		 * damaged. */
		if (in->len > 0 && zr != Z_STREAM_END)
			return zr == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
		if (z->total_in > most)
			return -EBADMSG;
	}
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	return zr == Z_STREAM_END && z->avail_out == 0 ? 0 : -EBADMSG;
}

int reftable_zlib_inflate(struct reftable_zlib_input *in, void *out, size_t len)
{
	z_stream z = { .next_out = out, .avail_out = (unsigned)len };
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = feed(in, &z, 2 * len + SPARE_INPUT);
	inflateEnd(&z);
	return r;
}

ssize_t reftable_zlib_deflate(const void *bytes, size_t len, void *out,
    size_t room)
{
	uLongf size = room;
	int zr = compress2(out, &size, bytes, len, LEVEL);

	if (zr == Z_BUF_ERROR)
		return -E2BIG;
	return zr == Z_OK ? (ssize_t)size : -ENOMEM;
}
