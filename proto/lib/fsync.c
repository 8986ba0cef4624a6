/*
 * core.fsync as git reads it (parse_fsync_components() in its config.c): words
 * between commas, blanks before one left out and any other a part of it, each
 * the beginning of a name, or of several. What is taken away with a "-" is
 * taken away from git's default alone, as is all of it by "none", and neither
 * refs nor loose objects are in that; so only what is added counts here. A "-"
 * with nothing behind it ends the list.
 */
#include "proto/lib/fsync.h"

#include <string.h>

enum { OBJECTS = 1, REFS = 2 };

static const struct {
	const char *name;
	unsigned covers;
} components[] = {
	{ "loose-object", OBJECTS },
	{ "objects", OBJECTS },
	{ "reference", REFS },
	{ "committed", OBJECTS | REFS },
	{ "added", OBJECTS | REFS },
	{ "all", OBJECTS | REFS },
};

static unsigned word_covers(const char *word, size_t len)
{
	unsigned covers = 0;
	size_t i;

	for (i = 0; i < sizeof(components) / sizeof(components[0]); i++)
		if (!strncmp(components[i].name, word, len))
			covers |= components[i].covers;
	return covers;
}

static unsigned covers(const char *value)
{
	unsigned all = 0;
	const char *end;

	for (; value; value = end) {
		bool is_less;

		value += strspn(value, ", \t\n\r");
		end = strchrnul(value, ',');
		is_less = *value == '-';
		if (value + is_less == end)
			break;
		if (!is_less)
			all |= word_covers(value, (size_t)(end - value));
	}
	return all;
}

bool fsync_covers_refs(const char *value)
{
	return covers(value) & REFS;
}

bool fsync_covers_objects(const char *value)
{
	return covers(value) & OBJECTS;
}
