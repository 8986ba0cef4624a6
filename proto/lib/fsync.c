/*
 * core.fsync as git reads the setting (parse_fsync_components() in git's
 * config.c). The words stand between commas, and blanks in front of a word are
 * left out. Each word is the beginning of a name, or of several names. A word
 * with "-", or "none", takes away from git's default alone. This default has
 * neither refs nor loose objects, so only added words count here. A "-" with
 * nothing behind ends the list.
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
