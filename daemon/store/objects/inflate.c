#include "daemon/store/objects/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define PART 4096

ssize_t inflate_head(const void *in, size_t in_len, void *out, size_t out_len)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)in,
		.avail_in = (unsigned)in_len,
		.next_out = out,
		.avail_out = (unsigned)out_len };
	int zr;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	zr = inflate(&z, Z_NO_FLUSH);
	inflateEnd(&z);
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	if (zr != Z_OK && zr != Z_STREAM_END && zr != Z_BUF_ERROR)
		return -EBADMSG;
	return (ssize_t)(out_len - z.avail_out);
}

/* Feeds Z until the stream ends. */
static int feed(const struct sys *sys, int fd, uint64_t offset, z_stream *z,
    size_t most)
{
	unsigned char in[PART], beyond;
	uint64_t end = offset + most;
	int zr = Z_OK;
	ssize_t n;

	while (zr == Z_OK && offset < end) {
		n = SYS(sys, pread, fd, in, PART, (off_t)offset);
		if (n <= 0)
			return n < 0 ? (int)n : -EBADMSG;
		offset += (uint64_t)n;
		z->next_in = in;
		z->avail_in = (unsigned)n;
		zr = inflate(z, Z_NO_FLUSH);
		/* The check sum may still come, but more data may not, so one
		 * byte more than expected is a fault. */
		if ((zr == Z_OK || zr == Z_BUF_ERROR) && z->avail_out == 0) {
			z->next_out = &beyond;
			z->avail_out = 1;
			zr = inflate(z, Z_NO_FLUSH);
			if (z->avail_out == 0)
				return -EBADMSG;
			z->avail_out = 0;
		}
		if (zr == Z_BUF_ERROR)
			zr = Z_OK;
	}
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	if (z->avail_out > 0)
		return -EBADMSG;
	return zr == Z_STREAM_END ? 0 : -EBADMSG;
}

int inflate_file(const struct sys *sys, int fd, uint64_t offset, void *out,
    size_t out_len)
{
	z_stream z = { .next_out = out, .avail_out = (unsigned)out_len };
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = feed(sys, fd, offset, &z, 2 * out_len + PART);
	inflateEnd(&z);
	return r;
}

int inflate_sum(const void *in, size_t in_len, size_t *room, struct sha *sum)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)in,
		.avail_in = (unsigned)in_len };
	unsigned char out[PART];
	size_t nr = 0;
	int zr = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (zr == Z_OK && nr <= *room) {
		z.next_out = out;
		z.avail_out = PART;
		zr = inflate(&z, Z_NO_FLUSH);
		sha_add(sum, out, PART - z.avail_out);
		nr += PART - z.avail_out;
	}
	inflateEnd(&z);
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	if (zr != Z_STREAM_END || z.avail_in > 0 || nr > *room)
		return -EBADMSG;
	*room -= nr;
	return 0;
}

int inflate_whole(const void *in, size_t in_len, size_t max, uint8_t **out,
    size_t *len)
{
	struct sha unused;
	size_t room = max;
	ssize_t n;

	/* The length is not known before, so the first pass only measures. */
	sha_init(&unused, REFD_FORMAT_SHA1);
	n = inflate_sum(in, in_len, &room, &unused);
	if (n < 0)
		return (int)n;
	*len = max - room;
	*out = malloc(*len + 1);
	if (*out == NULL)
		return -ENOMEM;
	n = inflate_head(in, in_len, *out, *len);
	if (n == (ssize_t)*len)
		return 0;
	free(*out);
	*out = NULL;
	return n < 0 ? (int)n : -EBADMSG;
}
