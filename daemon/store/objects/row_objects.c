/*
 * The bytes of the objects of a row, and what the other node does with them.
 *
 * Failures: no memory, or an object that cannot be read.
 */
#include "daemon/store/objects/row_objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/object_links.h"

/* ---- the bytes ---- */

/* Bytes of all struct row_objects. */
static atomic_size_t held;

struct row_objects *row_objects_new(size_t len, size_t nr_rows, size_t nr_tips,
    size_t nr_ancestors)
{
	struct row_objects *o;
	const size_t arrays =
	    nr_ancestors * sizeof(*o->ancestors) + nr_tips * sizeof(*o->tips);
	const size_t all = sizeof(*o) + arrays + len * nr_rows;

	if (atomic_fetch_add(&held, all) + all <= ROW_OBJECTS_HELD &&
	    (o = malloc(sizeof(*o) + arrays + len)) != NULL) {
		o->len = len;
		o->charged = all;
		o->nr_tips = nr_tips;
		o->nr_ancestors = nr_ancestors;
		o->tips = (struct refd_oid *)&o->ancestors[nr_ancestors];
		o->bytes = (uint8_t *)&o->tips[nr_tips];
		return o;
	}
	atomic_fetch_sub(&held, all);
	return NULL;
}

void row_objects_free(struct row_objects *objects)
{
	if (objects == NULL)
		return;
	atomic_fetch_sub(&held, objects->charged);
	free(objects);
}

bool row_objects_is_behind(const struct row_objects *objects,
    const struct refd_oid *tip, const struct refd_oid *old)
{
	size_t i, nth = 0;

	while (nth < objects->nr_tips && !refd_oid_eq(&objects->tips[nth], tip))
		nth++;
	if (nth == objects->nr_tips)
		return false;
	for (i = 0; i < objects->nr_ancestors; i++)
		if (refd_oid_eq(&objects->ancestors[i].oid, old))
			return objects->ancestors[i].tips >> nth & 1;
	return false;
}

int row_objects_each(const uint8_t *bytes, size_t len,
    int (*cb)(void *arg, const struct row_object *object), void *arg)
{
	struct row_object object;
	size_t i;
	int r = 0;

	while (r == 0 && len > 0) {
		if (len < ROW_OBJECTS_HEAD || bytes[0] < OBJECT_COMMIT ||
		    bytes[0] > OBJECT_TAG)
			return -EBADMSG;
		object.type = (enum object_type)bytes[0];
		for (object.len = 0, i = 0; i < 4; i++)
			object.len |= (size_t)bytes[1 + i] << (8 * i);
		bytes += ROW_OBJECTS_HEAD;
		len -= ROW_OBJECTS_HEAD;
		if (object.len > len)
			return -EBADMSG;
		object.data = bytes;
		bytes += object.len;
		len -= object.len;
		r = cb(arg, &object);
	}
	return r;
}

/* ---- the other node ---- */

struct lookup {
	struct odb *odb;
	enum refd_object_format format;
	struct refd_oid *missing;
};

static int look_up(void *arg, const struct object_link *link)
{
	struct lookup *l = arg;

	switch (odb_type(l->odb, &link->oid)) {
	case OBJECT_ABSENT:
		*l->missing = link->oid;
		return 1;
	case OBJECT_ERROR:
		return -EIO;
	default:
		return 0;
	}
}

static int look_up_links(void *arg, const struct row_object *object)
{
	const struct lookup *l = arg;

	return object_links_each(object->type, object->data, object->len,
	    l->format, look_up, arg);
}

int row_objects_missing(const uint8_t *bytes, size_t len, struct odb *odb,
    enum refd_object_format format, struct refd_oid *missing)
{
	struct lookup l = { odb, format, missing };

	return row_objects_each(bytes, len, look_up_links, &l);
}
