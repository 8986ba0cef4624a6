/*
 * The happy path: the file is written under a temporary name, and renamed. A
 * leftover temporary file has a name that `git prune` removes.
 *
 * Failures: the call's error. The rename comes last, so the object is as
 * before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/store/objects/loose_object.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

int loose_object_put(const struct sys *sys, int dirfd, const char *temporary,
    const char *name, const void *file, size_t len, uint32_t mode)
{
	int fd, r;

	r = SYS(sys, unlinkat, dirfd, temporary);
	if (r < 0 && r != -ENOENT)
		return r;
	fd = SYS(sys, openat, dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL,
	    mode & 0444);
	if (fd < 0)
		return fd;
	r = SYS(sys, write_all, fd, file, len);
	SYS(sys, close, fd);
	if (r == 0)
		r = SYS(sys, renameat, dirfd, temporary, dirfd, name);
	if (r < 0)
		SYS(sys, unlinkat, dirfd, temporary);
	return r;
}

/* The content of a loose file before its compression. */
static uint8_t *with_header(const struct row_object *object, size_t *whole_len)
{
	char header[OBJECT_HEADER];
	size_t header_len = object_header(object->type, object->len, header);
	uint8_t *whole = malloc(header_len + object->len);

	*whole_len = header_len + object->len;
	if (whole == NULL)
		return NULL;
	memcpy(whole, header, header_len);
	memcpy(whole + header_len, object->data, object->len);
	return whole;
}

static int put_in_fanout(const struct sys *sys, int store_fd,
    const char *temporary, const char *hex, const void *file, size_t len,
    uint32_t dir_mode)
{
	char path[REFD_OID_MAX_HEX + 2];
	int dirfd, r;

	snprintf(path, sizeof(path), "%.2s/%s", hex, hex + 2);
	r = sys_make_parents(sys, store_fd, path, dir_mode);
	if (r < 0)
		return r;
	path[2] = '\0';
	dirfd = SYS(sys, openat, store_fd, path, DIR_FLAGS, 0);
	if (dirfd < 0)
		return dirfd;
	r = loose_object_put(sys, dirfd, temporary, path + 3, file, len,
	    dir_mode);
	SYS(sys, close, dirfd);
	return r;
}

int loose_object_write(const struct sys *sys, int store_fd,
    const char *temporary, enum refd_object_format format,
    const struct row_object *object, uint32_t dir_mode)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;
	size_t whole_len;
	uint8_t *whole = with_header(object, &whole_len), *file;
	uLongf file_len = compressBound(whole_len);
	int r = -ENOMEM;

	file = malloc(file_len);
	if (whole != NULL && file != NULL &&
	    compress2(file, &file_len, whole, whole_len, Z_BEST_SPEED) ==
		Z_OK) {
		object_id(object->type, object->data, object->len, format,
		    &oid);
		refd_oid_hex(&oid, format, hex);
		r = put_in_fanout(sys, store_fd, temporary, hex, file, file_len,
		    dir_mode);
	}
	free(whole);
	free(file);
	return r;
}
