#include "daemon/store/objects/object_links.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct links {
	enum refd_object_format format;
	int (*cb)(void *arg, const struct object_link *link);
	void *arg;
};

/* A line "WORD <id>" at *TEXT, which ends before END. Moves *TEXT behind the
 * line. */
static bool take_line(const struct links *links, const char *word,
    const char **text, const char *end, struct refd_oid *oid)
{
	const size_t hex = refd_object_format_hex(links->format);
	const size_t len = strlen(word);

	if ((size_t)(end - *text) < len + hex + 1 ||
	    memcmp(*text, word, len) != 0 || (*text)[len + hex] != '\n' ||
	    refd_oid_parse(*text + len, links->format, oid) < 0)
		return false;
	*text += len + hex + 1;
	return true;
}

static int of_commit(const struct links *links, const char *text,
    const char *end)
{
	struct object_link link = { .kind = OBJECT_LINK_TREE };
	int r;

	if (!take_line(links, "tree ", &text, end, &link.oid))
		return -EBADMSG;
	r = links->cb(links->arg, &link);
	link.kind = OBJECT_LINK_PARENT;
	while (r == 0 && take_line(links, "parent ", &text, end, &link.oid))
		r = links->cb(links->arg, &link);
	return r;
}

static int of_tag(const struct links *links, const char *text, const char *end)
{
	struct object_link link = { .kind = OBJECT_LINK_TARGET };

	if (!take_line(links, "object ", &text, end, &link.oid))
		return -EBADMSG;
	return links->cb(links->arg, &link);
}

/* Takes the mode in octal digits, and the space behind it, from *TEXT. */
static bool take_mode(const char **text, unsigned *mode)
{
	const char *p = *text;

	for (*mode = 0; *p >= '0' && *p <= '7' && p - *text < 7; p++)
		*mode = *mode * 8 + (unsigned)(*p - '0');
	if (*p != ' ' || p == *text)
		return false;
	*text = p + 1;
	return true;
}

/* Entries "<mode> <name>" NUL id. */
static int of_tree(const struct links *links, const char *text, const char *end)
{
	const size_t bytes = refd_object_format_bytes(links->format);
	struct object_link link = { .kind = OBJECT_LINK_ENTRY };
	const char *name_end;
	unsigned mode;
	int r = 0;

	while (r == 0 && text < end) {
		name_end = memchr(text, '\0', (size_t)(end - text));
		if (name_end == NULL || (size_t)(end - name_end) <= bytes)
			return -EBADMSG;
		if (!take_mode(&text, &mode))
			return -EBADMSG;
		link.name = text;
		link.is_tree = S_ISDIR(mode);
		memset(&link.oid, 0, sizeof(link.oid));
		memcpy(link.oid.bytes, name_end + 1, bytes);
		if (S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode))
			r = links->cb(links->arg, &link);
		text = name_end + 1 + bytes;
	}
	return r;
}

int object_links_each(enum object_type type, const void *data, size_t len,
    enum refd_object_format format,
    int (*cb)(void *arg, const struct object_link *link), void *arg)
{
	const struct links links = { format, cb, arg };
	const char *text = data, *end = text + len;

	switch (type) {
	case OBJECT_COMMIT:
		return of_commit(&links, text, end);
	case OBJECT_TREE:
		return of_tree(&links, text, end);
	case OBJECT_TAG:
		return of_tag(&links, text, end);
	case OBJECT_BLOB:
		return 0;
	case OBJECT_ABSENT:
	case OBJECT_ERROR:
		break;
	}
	return -EBADMSG;
}
