#include "proto/lib/config_units.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000ULL
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define WEEK   (7 * DAY)

/* From small to large, where the plural has the same factor. */
struct unit {
	const char *name, *plural;
	uint64_t factor;
};

static const struct unit times[] = {
	{ "ms", "ms", 1 },
	{ "s", "s", SECOND },
	{ "min", "min", 60 * SECOND },
	{ "h", "h", HOUR },
	{ " day", " days", DAY },
	{ " week", " weeks", WEEK },
	{ NULL, NULL, 0 },
};

static const struct unit sizes[] = {
	{ "MiB", "MiB", 1ULL << 20 },
	{ "GiB", "GiB", 1ULL << 30 },
	{ "TiB", "TiB", 1ULL << 40 },
	{ NULL, NULL, 0 },
};

static const struct unit *units_of(enum config_units units)
{
	return units == CONFIG_UNITS_TIME ? times : sizes;
}

const char *config_units_forms(enum config_units units)
{
	return units == CONFIG_UNITS_TIME ? "10ms, 5s, 2min, 1h or 1 week" :
					    "100MiB, 2GiB or 1TiB";
}

/* Ignores blanks before a unit. */
static bool is_unit(const char *text, const char *name)
{
	return strcmp(text + strspn(text, " "), name + strspn(name, " ")) == 0;
}

bool config_units_parse(enum config_units units, const char *text,
    uint64_t *value)
{
	const struct unit *unit = units_of(units);
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0)
		return false;
	if (number == 0 && *end == '\0') {
		*value = 0;
		return true;
	}
	while (unit->name != NULL && !is_unit(end, unit->name) &&
	    !is_unit(end, unit->plural))
		unit++;
	if (unit->name == NULL || number > UINT64_MAX / unit->factor)
		return false;
	*value = number * unit->factor;
	return true;
}

char *config_units_text(enum config_units units, uint64_t value)
{
	const struct unit *unit = units_of(units), *best = unit;
	char *text;
	int n;

	if (value == 0)
		return strdup("0");
	for (; unit->name != NULL; unit++)
		if (value % unit->factor == 0)
			best = unit;
	value /= best->factor;
	n = asprintf(&text, "%" PRIu64 "%s", value,
	    value == 1 ? best->name : best->plural);
	return n < 0 ? NULL : text;
}
