/*
 * Follows references from a new value through recorded objects. Recovery must
 * not restore a value whose older objects were pruned meanwhile, or are missing
 * in a restored backup.
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

struct history {
	enum refd_object_format format;
	struct new_object objects[NEW_OBJECTS_FILES];
	bool is_wanted[NEW_OBJECTS_FILES], is_done[NEW_OBJECTS_FILES];
	size_t nr;
	int (*exists)(void *arg, const struct refd_oid *oid);
	void *arg;
};

static int keep(void *arg, const struct new_object *object)
{
	struct history *h = arg;

	if (h->nr == NEW_OBJECTS_FILES)
		return -EBADMSG;
	h->objects[h->nr++] = *object;
	return 0;
}

/* False: not recorded. */
static bool want(struct history *h, const struct refd_oid *oid)
{
	size_t i;

	for (i = 0; i < h->nr; i++)
		if (refd_oid_eq(&h->objects[i].oid, oid)) {
			h->is_wanted[i] = true;
			return true;
		}
	return false;
}

static bool follow(struct history *h, const struct refd_oid *oid)
{
	return want(h, oid) || h->exists(h->arg, oid) != 0;
}

/* A line "WORD <id>" at *TEXT, which ends before END. Moves *TEXT behind the
 * line. */
static bool take_line(const struct history *h, const char *word,
    const char **text, const char *end, struct refd_oid *oid)
{
	const size_t hex = refd_object_format_hex(h->format);
	const size_t len = strlen(word);

	if ((size_t)(end - *text) < len + hex + 1 ||
	    memcmp(*text, word, len) != 0 || (*text)[len + hex] != '\n' ||
	    refd_oid_parse(*text + len, h->format, oid) < 0)
		return false;
	*text += len + hex + 1;
	return true;
}

static bool follow_commit(struct history *h, const char *text, const char *end)
{
	struct refd_oid oid;

	if (!take_line(h, "tree ", &text, end, &oid) || !follow(h, &oid))
		return false;
	while (take_line(h, "parent ", &text, end, &oid))
		if (!follow(h, &oid))
			return false;
	return true;
}

static bool follow_tag(struct history *h, const char *text, const char *end)
{
	struct refd_oid oid;

	return take_line(h, "object ", &text, end, &oid) && follow(h, &oid);
}

/* Entries "<mode> <name>" NUL id. The commit of a submodule is elsewhere. */
static bool follow_tree(struct history *h, const char *text, const char *end)
{
	const size_t bytes = refd_object_format_bytes(h->format);
	static const char submodule[] = "160000 ";
	struct refd_oid oid;
	const char *name_end;

	while (text < end) {
		name_end = memchr(text, '\0', (size_t)(end - text));
		if (name_end == NULL || (size_t)(end - name_end) <= bytes)
			return false;
		memset(&oid, 0, sizeof(oid));
		memcpy(oid.bytes, name_end + 1, bytes);
		if (strncmp(text, submodule, strlen(submodule)) != 0 &&
		    !follow(h, &oid))
			return false;
		text = name_end + 1 + bytes;
	}
	return true;
}

static bool follow_object(struct history *h, const struct new_object *object)
{
	enum object_type type;
	size_t len, header;
	const char *text;
	uint64_t size;
	uint8_t *data;
	bool is_whole = false;

	if (inflate_whole(object->data, object->len, NEW_OBJECTS_CONTENT, &data,
		&len) < 0)
		return false;
	text = (const char *)data;
	if (loose_object_header(text, len, &type, &size, &header) == 0 &&
	    size == len - header) {
		if (type == OBJECT_COMMIT)
			is_whole = follow_commit(h, text + header, text + len);
		else if (type == OBJECT_TREE)
			is_whole = follow_tree(h, text + header, text + len);
		else if (type == OBJECT_TAG)
			is_whole = follow_tag(h, text + header, text + len);
		else
			is_whole = true;
	}
	free(data);
	return is_whole;
}

/* The next object to follow; h->nr: none. */
static size_t next_wanted(const struct history *h)
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
	struct history h = { .format = format, .exists = exists, .arg = arg };
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
