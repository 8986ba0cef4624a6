#include "proto/pattern.h"

#include <string.h>

size_t refd_pattern_literal(const char *pattern)
{
	return strcspn(pattern, "*?");
}

static bool is_beginning(const char *pattern, size_t len)
{
	return len > 0 && pattern[len - 1] == '/' &&
	    refd_pattern_literal(pattern) == len;
}

bool refd_pattern_is_name(const char *pattern)
{
	size_t len = strlen(pattern);

	return refd_pattern_literal(pattern) == len &&
	    !is_beginning(pattern, len);
}

/* The last star takes one byte more each time the rest does not fit: what an
 * earlier one took never has to be tried again. */
static bool glob_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	while (*name != '\0') {
		if (*pattern == '*') {
			star = pattern++;
			from = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star != NULL) {
			pattern = star + 1;
			name = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool refd_pattern_matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (is_beginning(pattern, len))
		return strncmp(name, pattern, len) == 0;
	return glob_matches(pattern, name);
}
