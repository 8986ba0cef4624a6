#include "client/request/rows.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const char *value)
{
	return strtoull(value, NULL, 10);
}

const char *rows_value(const struct refd_answer *ans, const char *key)
{
	size_t i;

	for (i = 0; i < ans->nr_pairs; i++)
		if (!strcmp(ans->pairs[i].key, key))
			return ans->pairs[i].value;
	return "";
}

uint64_t rows_number(const struct refd_answer *ans, const char *key)
{
	return number_of(rows_value(ans, key));
}

/* The part of KEY after "KIND.", or NULL. */
static const char *of_kind(const char *key, const char *kind)
{
	size_t len = strlen(kind);

	return !strncmp(key, kind, len) && key[len] == '.' ? key + len + 1 :
							     NULL;
}

bool row_next(const struct refd_answer *ans, const char *kind, struct row *row)
{
	size_t i = row->end;

	while (i < ans->nr_pairs && !of_kind(ans->pairs[i].key, kind))
		i++;
	if (i == ans->nr_pairs)
		return false;
	*row = (struct row){ ans, kind, i, i + 1 };
	while (row->end < ans->nr_pairs &&
	    of_kind(ans->pairs[row->end].key, kind) &&
	    strcmp(ans->pairs[row->end].key, ans->pairs[i].key) != 0)
		row->end++;
	return true;
}

const char *row_value(const struct row *row, const char *key)
{
	const char *name;
	size_t i;

	for (i = row->begin; i < row->end; i++) {
		name = of_kind(row->ans->pairs[i].key, row->kind);
		if (!strcmp(name, key))
			return row->ans->pairs[i].value;
	}
	return "";
}

uint64_t row_number(const struct row *row, const char *key)
{
	return number_of(row_value(row, key));
}
