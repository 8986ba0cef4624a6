#include "daemon/store/objects/loose_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/objects/inflate.h"

/* Bytes of the compressed file that suffice for a header of 32 bytes. */
#define HEAD_BYTES 4096

static int open_loose(const struct sys *sys, int store_fd,
    const struct refd_oid *oid, enum refd_object_format format)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	char hex[REFD_OID_MAX_HEX + 1], fanout[3];
	struct sys_stat st;
	int dirfd, fd, r;

	refd_oid_hex(oid, format, hex);
	memcpy(fanout, hex, 2);
	fanout[2] = '\0';
	dirfd = SYS(sys, openat, store_fd, fanout, flags | O_DIRECTORY, 0);
	if (dirfd < 0)
		return dirfd;
	fd = SYS(sys, openat, dirfd, hex + 2, flags, 0);
	SYS(sys, close, dirfd);
	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && !S_ISREG(st.mode))
		r = -EBADMSG;
	if (r == 0)
		return fd;
	SYS(sys, close, fd);
	return r;
}

/* As git's parse_loose_header(). */
int loose_object_header(const char *text, size_t len, enum object_type *type,
    uint64_t *size, size_t *header)
{
	const char *p = text;
	uint64_t n = 0;

	if (memchr(text, '\0', len) == NULL)
		return -EBADMSG;
	*type = object_type_take(&p, text + len, ' ');
	if (*type == OBJECT_ERROR)
		return -EBADMSG;
	if (*p < '0' || *p > '9' || (*p == '0' && p[1] != '\0'))
		return -EBADMSG;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (n > (UINT64_MAX - 9) / 10)
			return -EBADMSG;
		n = 10 * n + (uint64_t)(*p - '0');
	}
	if (*p != '\0')
		return -EBADMSG;
	*size = n;
	*header = (size_t)(p + 1 - text);
	return 0;
}

static int read_header(const struct sys *sys, int fd, enum object_type *type,
    uint64_t *size, size_t *header)
{
	unsigned char in[HEAD_BYTES];
	char out[LOOSE_HEADER];
	ssize_t n;

	n = SYS(sys, pread, fd, in, sizeof(in), 0);
	if (n > 0)
		n = inflate_head(in, (size_t)n, out, sizeof(out));
	return n < 0 ? (int)n :
		       loose_object_header(out, (size_t)n, type, size, header);
}

int loose_object_type(const struct sys *sys, int store_fd,
    const struct refd_oid *oid, enum refd_object_format format,
    enum object_type *type)
{
	enum object_type found;
	uint64_t size;
	size_t header;
	int fd, r;

	fd = open_loose(sys, store_fd, oid, format);
	if (fd < 0)
		return fd;
	r = read_header(sys, fd, &found, &size, &header);
	SYS(sys, close, fd);
	if (r == 0)
		*type = found;
	return r;
}

static int read_contents(const struct sys *sys, int fd, size_t header,
    size_t size, uint8_t **data)
{
	uint8_t *whole = malloc(header + size);
	int r;

	if (whole == NULL)
		return -ENOMEM;
	r = inflate_file(sys, fd, 0, whole, header + size);
	if (r < 0) {
		free(whole);
		return r;
	}
	memmove(whole, whole + header, size);
	*data = whole;
	return 0;
}

int loose_object_read(const struct sys *sys, int store_fd,
    const struct refd_oid *oid, enum refd_object_format format, size_t max,
    struct object_content *out)
{
	uint64_t size;
	size_t header;
	int fd, r;

	fd = open_loose(sys, store_fd, oid, format);
	if (fd < 0)
		return fd;
	r = read_header(sys, fd, &out->type, &size, &header);
	if (r == 0 && size > max)
		r = -EFBIG;
	if (r == 0)
		r = read_contents(sys, fd, header, (size_t)size, &out->data);
	if (r == 0)
		out->len = (size_t)size;
	SYS(sys, close, fd);
	return r;
}
