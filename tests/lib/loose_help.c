#include "tests/lib/loose_help.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "proto/lib/sha.h"

struct loose_help loose_help_make(const char *objects, const char *type,
    const void *data, size_t len, int level)
{
	struct loose_help object = { .file = NULL };
	char hex[REFD_OID_MAX_HEX + 1], header[32];
	struct sha sum;
	uLongf room;
	uint8_t *whole;
	int head;

	head = snprintf(header, sizeof(header), "%s %zu", type, len) + 1;
	whole = malloc((size_t)head + len);
	ck_assert_ptr_nonnull(whole);
	memcpy(whole, header, (size_t)head);
	memcpy(whole + head, data, len);
	sha_init(&sum, REFD_FORMAT_SHA1);
	sha_add(&sum, whole, (size_t)head + len);
	sha_done(&sum, object.oid.bytes);
	room = compressBound((uLong)head + len);
	object.file = malloc(room);
	ck_assert_int_eq(compress2(object.file, &room, whole, (uLong)head + len,
			     level),
	    Z_OK);
	free(whole);
	object.len = room;
	refd_oid_hex(&object.oid, REFD_FORMAT_SHA1, hex);
	memcpy(object.fanout, hex, 2);
	memcpy(object.name, hex + 2, REFD_SHA1_HEX - 2);
	snprintf(object.path, sizeof(object.path), "%s/%s/%s", objects,
	    object.fanout, object.name);
	return object;
}

struct loose_help loose_help_text(const char *objects, const char *text)
{
	return loose_help_make(objects, "blob", text, strlen(text),
	    Z_DEFAULT_COMPRESSION);
}

void loose_help_done(struct loose_help *object)
{
	free(object->file);
}

void loose_help_put(struct memfs *fs, const struct loose_help *object,
    const void *data, size_t len)
{
	const struct sys *sys = memfs_other(fs);
	char tmp[256];
	int fd, r;

	snprintf(tmp, sizeof(tmp), "%.*s",
	    (int)(strlen(object->path) - strlen(object->name) - 1),
	    object->path);
	r = SYS(sys, mkdirat, AT_FDCWD, tmp, 0777);
	ck_assert(r == 0 || r == -EEXIST);
	strcat(tmp, "/tmp_obj_git");
	fd = SYS(sys, openat, AT_FDCWD, tmp, O_WRONLY | O_CREAT | O_EXCL, 0444);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, data, len), 0);
	SYS(sys, close, fd);
	ck_assert_int_eq(
	    SYS(sys, renameat, AT_FDCWD, tmp, AT_FDCWD, object->path), 0);
}

void loose_help_write(struct memfs *fs, const struct loose_help *object)
{
	loose_help_put(fs, object, object->file, object->len);
}

bool loose_help_holds(struct memfs *fs, const struct loose_help *object)
{
	size_t len;
	char *now = memfs_read(fs, object->path, &len);
	bool holds = now != NULL && len == object->len &&
	    memcmp(now, object->file, len) == 0;

	free(now);
	return holds;
}
