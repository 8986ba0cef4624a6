/*
 * The check sum of a footer, and the compression of log blocks. Any thread may
 * call, and nothing logs.
 */
#ifndef STORE_REFTABLE_ZLIB_H
#define STORE_REFTABLE_ZLIB_H

#include "daemon/base/sys.h"

uint32_t reftable_zlib_crc(const void *bytes, size_t len);

/* A stream, of which LEN bytes at NEXT are in memory, and the rest at AT of a
 * file. */
struct reftable_zlib_input {
	const struct sys *sys;
	int fd;
	uint64_t at, end; /* END: the stream ends here at the latest */
	uint8_t *buf;     /* for more bytes of the file */
	size_t buf_size;
	const uint8_t *next;
	size_t len;
};

/* Inflates the stream, which must have exactly LEN bytes and a correct check
 * sum. Afterwards IN is behind the stream, where the next block begins. Blocks.
 * A stream can go on for ever without any output, so its input must not exceed
 * twice LEN and 4 KiB. -EBADMSG if the stream is not so, -ENOMEM, or the error
 * of the read. */
int reftable_zlib_inflate(struct reftable_zlib_input *in, void *out,
    size_t len);

/* Deflates LEN bytes into OUT of ROOM bytes. Returns the number of bytes,
 * -E2BIG if ROOM is too small, or -ENOMEM. */
ssize_t reftable_zlib_deflate(const void *bytes, size_t len, void *out,
    size_t room);

#endif
