/*
 * Follows references from a new value through recorded objects. `git gc` would
 * fail at a restored commit without its parents, so recovery must not restore a
 * value whose older objects were pruned meanwhile, or are missing in a restored
 * backup.
 *
 * The happy path: each recorded object on the way is inflated, and names
 * recorded objects, which are followed, and others, which exist.
 *
 * Failures: an object that cannot be read counts as a missing object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/inflate.h"
#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/new_objects.h"
#include "daemon/store/objects/object_links.h"

struct ancestry {
	enum refd_object_format format;
	struct new_object objects[NEW_OBJECTS_FILES];
	bool is_wanted[NEW_OBJECTS_FILES], is_done[NEW_OBJECTS_FILES];
	size_t nr;
	int (*exists)(void *arg, const struct refd_oid *oid);
	void *arg;
};

static int keep(void *arg, const struct new_object *object)
{
	struct ancestry *h = arg;

	if (h->nr == NEW_OBJECTS_FILES)
		return -EBADMSG;
	h->objects[h->nr++] = *object;
	return 0;
}

/* False: not recorded. */
static bool want(struct ancestry *h, const struct refd_oid *oid)
{
	size_t i;

	for (i = 0; i < h->nr; i++)
		if (refd_oid_eq(&h->objects[i].oid, oid)) {
			h->is_wanted[i] = true;
			return true;
		}
	return false;
}

/* For object_links_each(). 1: missing. */
static int follow(void *arg, const struct object_link *link)
{
	struct ancestry *h = arg;

	return want(h, &link->oid) || h->exists(h->arg, &link->oid) != 0 ? 0 :
									   1;
}

static bool follow_object(struct ancestry *h, const struct new_object *object)
{
	enum object_type type;
	size_t len, header;
	const char *text;
	uint64_t size;
	uint8_t *data;
	bool is_whole;

	if (inflate_whole(object->data, object->len, NEW_OBJECTS_CONTENT, &data,
		&len) < 0)
		return false;
	text = (const char *)data;
	is_whole = loose_object_header(text, len, &type, &size, &header) == 0 &&
	    size == len - header &&
	    object_links_each(type, text + header, (size_t)size, h->format,
		follow, h) == 0;
	free(data);
	return is_whole;
}

/* The next object to follow, or h->nr if there is none. */
static size_t next_wanted(const struct ancestry *h)
{
	size_t i = 0;

	while (i < h->nr && (!h->is_wanted[i] || h->is_done[i]))
		i++;
	return i;
}

int new_objects_is_complete(const uint8_t *bytes, size_t len,
    enum refd_object_format format, const struct refd_oid *tip,
    int (*exists)(void *arg, const struct refd_oid *oid), void *arg)
{
	struct ancestry h = { .format = format, .exists = exists, .arg = arg };
	size_t i;

	if (new_objects_each(bytes, len, format, keep, &h) < 0)
		return 0;
	want(&h, tip);
	while ((i = next_wanted(&h)) < h.nr) {
		h.is_done[i] = true;
		if (!follow_object(&h, &h.objects[i]))
			return 0;
	}
	return 1;
}
