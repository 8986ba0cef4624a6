/*
 * Any bytes as the objects of a row in the log of the group. The first byte
 * selects the object format. The walk over the bytes and over the links of each
 * object agrees with a plain reader, and so does the search for a missing
 * object, in a repository with an empty tree and an empty file. The allocation
 * has the exact size, so the sanitizer detects a read past the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/object_links.h"
#include "daemon/store/objects/row_objects.h"
#include "tests/lib/memfs.h"

#define IDS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

/* ---- the repository ---- */

static enum refd_object_format format;
static struct odb *odb;
static struct refd_oid present[2];

static int no_root(const void *arg, const char *path)
{
	(void)arg;
	(void)path;
	return -EXDEV;
}

static void make_repository(void)
{
	static const uint32_t root = 0;
	const struct object_rule rule = { no_root, NULL, &root, &root };
	static const enum object_type types[2] = { OBJECT_TREE, OBJECT_BLOB };
	struct row_object object = { .data = (const uint8_t *)"" };
	struct memfs *fs = memfs_new();
	const struct sys *sys = memfs_sys(fs);
	int i, fd;

	memfs_mkdirs(fs, "/r/objects/pack");
	fd = SYS(sys, openat, AT_FDCWD, "/r/objects", O_RDONLY, 0);
	expect(fd >= 0);
	for (i = 0; i < 4; i++) {
		object.type = types[i % 2];
		expect(loose_object_write(sys, fd, "tmp_obj_x",
			   i < 2 ? REFD_FORMAT_SHA1 : REFD_FORMAT_SHA256,
			   &object, 0777) == 0);
	}
	SYS(sys, close, fd);
	fd = SYS(sys, openat, AT_FDCWD, "/r", O_RDONLY, 0);
	expect(fd >= 0);
	odb = odb_new(sys, fd, &format, &rule);
	expect(odb != NULL && odb_refresh(odb) == 0);
}

/* ---- the plain reader ---- */

struct row {
	struct refd_oid links[IDS];
	size_t nr_links, nr_seen;
	bool has_all; /* not more than IDS */
};

static void add_link(struct row *row, const struct refd_oid *oid)
{
	if (row->nr_links == IDS)
		row->has_all = false;
	else
		row->links[row->nr_links++] = *oid;
}

/* "WORD <id>\n" at the front of TEXT. Returns its length, or 0. */
static size_t slow_line(const char *text, size_t len, const char *word,
    struct row *row)
{
	const size_t hex = refd_object_format_hex(format);
	struct refd_oid oid;
	char line[128];

	if (len < strlen(word) + hex + 1)
		return 0;
	memcpy(line, text, strlen(word) + hex + 1);
	line[strlen(word) + hex + 1] = '\0';
	if (strncmp(line, word, strlen(word)) != 0 ||
	    line[strlen(word) + hex] != '\n')
		return 0;
	line[strlen(word) + hex] = '\0';
	if (strlen(line + strlen(word)) != hex ||
	    strspn(line + strlen(word), "0123456789abcdefABCDEF") != hex)
		return 0;
	expect(refd_oid_parse(line + strlen(word), format, &oid) == 0);
	add_link(row, &oid);
	return strlen(word) + hex + 1;
}

static bool slow_tree(const uint8_t *data, size_t len, struct row *row)
{
	const size_t bytes = refd_object_format_bytes(format);
	struct refd_oid oid;
	size_t digits, name;
	char mode[8];

	while (len > 0) {
		for (name = 0; name < len && data[name] != '\0'; name++)
			continue;
		if (name + 1 + bytes > len)
			return false;
		snprintf(mode, sizeof(mode), "%.7s", (const char *)data);
		digits = strspn(mode, "01234567");
		if (digits == 0 || data[digits] != ' ')
			return false;
		mode[digits] = '\0';
		memset(&oid, 0, sizeof(oid));
		memcpy(oid.bytes, data + name + 1, bytes);
		switch (strtoul(mode, NULL, 8) & 0170000) {
		case 0040000:
		case 0100000:
		case 0120000:
			add_link(row, &oid);
		}
		data += name + 1 + bytes;
		len -= name + 1 + bytes;
	}
	return true;
}

/* False: malformed. The links before the error are noted. */
static bool slow_links(enum object_type type, const uint8_t *data, size_t len,
    struct row *row)
{
	const char *text = (const char *)data;
	size_t at, line;

	if (type == OBJECT_TREE)
		return slow_tree(data, len, row);
	if (type == OBJECT_TAG)
		return slow_line(text, len, "object ", row) > 0;
	if (type == OBJECT_BLOB)
		return true;
	at = slow_line(text, len, "tree ", row);
	if (at == 0)
		return false;
	while ((line = slow_line(text + at, len - at, "parent ", row)) > 0)
		at += line;
	return true;
}

static bool is_present(const struct refd_oid *oid)
{
	return refd_oid_eq(&present[0], oid) || refd_oid_eq(&present[1], oid);
}

/* The next object at *AT. 1; 0: the end; negative: malformed. */
static int slow_next(const uint8_t *data, size_t size, size_t *at,
    struct row_object *object)
{
	if (*at == size)
		return 0;
	if (size - *at < 5 || data[*at] < 1 || data[*at] > 4)
		return -EBADMSG;
	object->type = (enum object_type)data[*at];
	object->len = data[*at + 1] + ((size_t)data[*at + 2] << 8) +
	    ((size_t)data[*at + 3] << 16) + ((size_t)data[*at + 4] << 24);
	object->data = data + *at + 5;
	if (object->len > size - *at - 5)
		return -EBADMSG;
	*at += 5 + object->len;
	return 1;
}

/* What row_objects_missing() has to say. */
static int slow_missing(const uint8_t *data, size_t size, struct row *row,
    struct refd_oid *missing)
{
	struct row_object object;
	size_t at = 0, i;
	bool is_whole;
	int r;

	while ((r = slow_next(data, size, &at, &object)) > 0) {
		row->nr_links = 0;
		is_whole =
		    slow_links(object.type, object.data, object.len, row);
		for (i = 0; i < row->nr_links; i++)
			if (!is_present(&row->links[i])) {
				*missing = row->links[i];
				return 1;
			}
		if (!is_whole)
			return -EBADMSG;
	}
	return r;
}

/* ---- the comparison ---- */

static int check_link(void *arg, const struct object_link *link)
{
	struct row *row = arg;

	if (link->kind == OBJECT_LINK_ENTRY)
		expect(strlen(link->name) < SIZE_MAX);
	expect(!row->has_all ||
	    refd_oid_eq(&row->links[row->nr_seen++], &link->oid));
	return 0;
}

static int check_object(void *arg, const struct row_object *object)
{
	struct row *row = calloc(1, sizeof(*row));
	size_t *sum = arg;
	bool is_whole;
	int r;

	expect(row != NULL);
	row->has_all = true;
	is_whole = slow_links(object->type, object->data, object->len, row);
	r = object_links_each(object->type, object->data, object->len, format,
	    check_link, row);
	expect(r == (is_whole ? 0 : -EBADMSG));
	expect(!row->has_all || row->nr_seen == row->nr_links);
	free(row);
	*sum += ROW_OBJECTS_HEAD + object->len;
	return 0;
}

static void check(const uint8_t *data, size_t size)
{
	struct row *row = calloc(1, sizeof(*row));
	struct refd_oid missing, wanted;
	size_t sum = 0;
	int r;

	expect(row != NULL);
	r = row_objects_each(data, size, check_object, &sum);
	expect(r == 0 ? sum == size : r == -EBADMSG && sum < size);
	row->has_all = true;
	r = slow_missing(data, size, row, &wanted);
	if (row->has_all)
		expect(row_objects_missing(data, size, odb, format, &missing) ==
		    r);
	if (row->has_all && r == 1)
		expect(refd_oid_eq(&missing, &wanted));
	free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact;

	if (odb == NULL)
		make_repository();
	if (size == 0)
		return 0;
	format = data[0] & 1 ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
	object_id(OBJECT_TREE, "", 0, format, &present[0]);
	object_id(OBJECT_BLOB, "", 0, format, &present[1]);
	exact = malloc(size > 1 ? size - 1 : 1);
	expect(exact != NULL);
	memcpy(exact, data + 1, size - 1);
	check(exact, size - 1);
	free(exact);
	return 0;
}
