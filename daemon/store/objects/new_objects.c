/*
 * The happy path: a fan-out changed since the limit. In the fan-out, the object
 * files that changed since the limit are read whole, and their checksums are
 * right.
 *
 * A link or rename to a new name changes the ctime of the file, on the file
 * systems of fs_type_marks_new_names(). So no new name is missed. But a fan-out
 * that was moved into place can have old files with new names. Such a move
 * changes only the ctime of the fan-out, and the mtime follows when the next
 * entry changes. So the barrier serves while both times differ.
 *
 * Failures: new_objects_add() does not return 0, and the barrier serves.
 */
#include "daemon/store/objects/new_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/objects/inflate.h"
#include "proto/lib/sha.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* ---- memory ---- */

/* Bytes of all struct new_objects. */
static atomic_size_t held;

static struct new_objects *make(size_t len)
{
	struct new_objects *objects;

	if (atomic_fetch_add(&held, len) + len <= NEW_OBJECTS_HELD &&
	    (objects = malloc(sizeof(*objects) + len)) != NULL) {
		objects->len = len;
		return objects;
	}
	atomic_fetch_sub(&held, len);
	return NULL;
}

struct new_objects *new_objects_copy(const struct new_objects *objects)
{
	struct new_objects *copy = make(objects->len);

	if (copy != NULL)
		memcpy(copy->bytes, objects->bytes, objects->len);
	return copy;
}

void new_objects_free(struct new_objects *objects)
{
	if (objects == NULL)
		return;
	atomic_fetch_sub(&held, objects->len);
	free(objects);
}

/* ---- a file ---- */

/* u32 length, u16 mode, u16 mode of the fan-out. */
#define HEAD_BYTES 8

static void put_int(uint8_t *p, size_t value, unsigned bytes)
{
	unsigned i;

	for (i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

static size_t get_int(const uint8_t *p, unsigned bytes)
{
	size_t value = 0;
	unsigned i;

	for (i = 0; i < bytes; i++)
		value |= (size_t)p[i] << (8 * i);
	return value;
}

static int append(struct new_objects_look *look,
    const struct new_object *object)
{
	const size_t oid_bytes = refd_object_format_bytes(look->format);
	const size_t old = look->found != NULL ? look->found->len : 0;
	struct new_objects *grown;
	uint8_t *p;

	grown = make(old + HEAD_BYTES + oid_bytes + object->len);
	if (grown == NULL)
		return 1;
	if (old > 0)
		memcpy(grown->bytes, look->found->bytes, old);
	p = grown->bytes + old;
	put_int(p, object->len, 4);
	put_int(p + 4, object->mode, 2);
	put_int(p + 6, object->dir_mode, 2);
	memcpy(p + HEAD_BYTES, object->oid.bytes, oid_bytes);
	memcpy(p + HEAD_BYTES + oid_bytes, object->data, object->len);
	new_objects_free(look->found);
	look->found = grown;
	return 0;
}

static int check(struct new_objects_look *look, const struct new_object *object)
{
	struct sha sum;
	struct refd_oid is;
	int r;

	sha_init(&sum, look->format);
	r = inflate_sum(object->data, object->len, &look->content, &sum);
	sha_done(&sum, is.bytes);
	return r == 0 && !refd_oid_eq(&is, &object->oid) ? -EBADMSG : r;
}

static int add_file(struct new_objects_look *look, int dirfd, const char *name,
    struct new_object *object)
{
	char *data;
	int fd, r;

	if (look->files-- == 0)
		return 1;
	fd = SYS(look->sys, openat, dirfd, name, FILE_FLAGS, 0);
	if (fd < 0)
		return fd;
	r = sys_read_fd(look->sys, fd, look->bytes, &data, &object->len);
	SYS(look->sys, close, fd);
	if (r < 0)
		return r;
	look->bytes -= object->len;
	object->data = (const uint8_t *)data;
	r = check(look, object);
	if (r == 0)
		r = append(look, object);
	free(data);
	return r;
}

/* ---- a fan-out ---- */

static bool is_object(const struct new_objects_look *look, const char *fanout,
    const char *name, struct refd_oid *oid)
{
	char hex[REFD_OID_MAX_HEX + 1];

	if (strlen(name) != refd_object_format_hex(look->format) - 2)
		return false;
	snprintf(hex, sizeof(hex), "%s%s", fanout, name);
	return refd_oid_parse(hex, look->format, oid) == 0;
}

/* A fan-out being read. */
struct fanout {
	int fd;
	const char *name;
	struct sys_stat st;
	int64_t limit;
};

static int add_entry(struct new_objects_look *look, const struct fanout *fanout,
    const char *name)
{
	struct new_object object = { .dir_mode = fanout->st.mode & 07777 };
	struct sys_stat st;
	int r;

	if (look->names-- == 0)
		return 1;
	if (!is_object(look, fanout->name, name, &object.oid))
		return 0;
	r = SYS(look->sys, lstatat, fanout->fd, name, &st);
	if (r < 0 || st.ctime_ns < fanout->limit)
		return r;
	object.mode = st.mode & 0777;
	return add_file(look, fanout->fd, name, &object);
}

/* The listing may miss objects if the fan-out changes meanwhile: btrfs does not
 * list names that are added after the begin, and a rename over an object gives
 * the object a new place in the list. So the result is 1 then, and nothing is
 * copied. */
static int add_entries(struct new_objects_look *look,
    const struct fanout *fanout)
{
	struct sys_dirent entry;
	struct sys_stat now;
	struct sys_dir *dir;
	int more = 0, r;

	r = SYS(look->sys, dir_open, fanout->fd, ".", &dir);
	if (r < 0)
		return r;
	while (r == 0 && (more = SYS(look->sys, dir_next, dir, &entry)) > 0)
		r = add_entry(look, fanout, entry.name);
	SYS(look->sys, dir_close, dir);
	if (r == 0)
		r = more;
	if (r == 0)
		r = SYS(look->sys, fstat, fanout->fd, &now);
	return r == 0 && now.ctime_ns != fanout->st.ctime_ns ? 1 : r;
}

/* Can recovery restore a file in a directory with the attributes ST? Rights by
 * further groups are not known here, so they do not count. */
bool new_objects_may_restore(const struct sys_stat *st)
{
	const uint32_t uid = geteuid();

	if (uid == 0)
		return true;
	if (st->mode & S_ISVTX)
		return st->uid == uid && (st->mode & 0300) == 0300;
	if (st->uid == uid)
		return (st->mode & 0300) == 0300;
	return st->gid == getegid() && (st->mode & 0030) == 0030;
}

int new_objects_add(struct new_objects_look *look, int fd, const char *name,
    int64_t limit)
{
	struct fanout fanout = { .name = name, .limit = limit };
	int r;

	fanout.fd = SYS(look->sys, openat, fd, name, DIR_FLAGS, 0);
	if (fanout.fd < 0)
		return fanout.fd;
	r = SYS(look->sys, fstat, fanout.fd, &fanout.st);
	if (r == 0 &&
	    (fanout.st.dev != look->dev ||
		fanout.st.ctime_ns != fanout.st.mtime_ns ||
		!new_objects_may_restore(&fanout.st)))
		r = 1;
	if (r == 0)
		r = add_entries(look, &fanout);
	SYS(look->sys, close, fanout.fd);
	return r;
}

void new_objects_begin(struct new_objects_look *look, const struct sys *sys,
    enum refd_object_format format, uint64_t dev)
{
	*look = (struct new_objects_look){ .sys = sys,
		.format = format,
		.dev = dev,
		.files = NEW_OBJECTS_FILES,
		.bytes = NEW_OBJECTS_BYTES,
		.content = NEW_OBJECTS_CONTENT,
		.names = NEW_OBJECTS_NAMES };
}

int new_objects_end(struct new_objects_look *look, int r,
    struct new_objects **objects)
{
	if (r != 0) {
		new_objects_free(look->found);
		look->found = NULL;
	}
	*objects = look->found;
	return r;
}

/* ---- the bytes ---- */

int new_objects_each(const uint8_t *bytes, size_t len,
    enum refd_object_format format,
    int (*cb)(void *arg, const struct new_object *object), void *arg)
{
	const size_t oid_bytes = refd_object_format_bytes(format);
	struct new_object object;
	int r = 0;

	while (r == 0 && len > 0) {
		if (len < HEAD_BYTES + oid_bytes)
			return -EBADMSG;
		object = (struct new_object){ .len = get_int(bytes, 4),
			.mode = (uint16_t)get_int(bytes + 4, 2),
			.dir_mode = (uint16_t)get_int(bytes + 6, 2) };
		memcpy(object.oid.bytes, bytes + HEAD_BYTES, oid_bytes);
		bytes += HEAD_BYTES + oid_bytes;
		len -= HEAD_BYTES + oid_bytes;
		if (object.len > len)
			return -EBADMSG;
		object.data = bytes;
		bytes += object.len;
		len -= object.len;
		r = cb(arg, &object);
	}
	return r;
}
