/*
 * Proves that matching a pattern for refs (proto/pattern.h) follows the
 * documented rule, by comparison with a plain recursive matcher, and stays
 * within the bound on cost. Any bytes: a pattern, a NUL, and a name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pattern.h"

/* The plain matcher takes exponential time. */
#define PLAIN_MAX 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static bool plainly(const char *pattern, const char *name)
{
	if (*pattern == '\0')
		return *name == '\0';
	if (*pattern == '*')
		return plainly(pattern + 1, name) ||
		    (*name != '\0' && plainly(pattern, name + 1));
	return *name != '\0' && (*pattern == '?' || *pattern == *name) &&
	    plainly(pattern + 1, name + 1);
}

static void check(const char *pattern, const char *name)
{
	size_t len = strlen(pattern), literal = refd_pattern_literal(pattern);
	bool is_name = refd_pattern_is_name(pattern);
	bool matches = refd_pattern_matches(pattern, name);
	bool is_beginning =
	    literal == len && len > 0 && pattern[len - 1] == '/';

	expect(literal <= len && memchr(pattern, '*', literal) == NULL);
	expect(is_name == (literal == len && !is_beginning));
	expect(!matches || strncmp(pattern, name, literal) == 0);
	if (is_name)
		expect(matches == (strcmp(pattern, name) == 0));
	else if (is_beginning)
		expect(matches == (strncmp(pattern, name, len) == 0));
	else if (len <= PLAIN_MAX && strlen(name) <= PLAIN_MAX)
		expect(matches == plainly(pattern, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *both = malloc(size + 2);
	size_t len;

	if (both == NULL)
		return 0;
	memcpy(both, data, size);
	both[size] = both[size + 1] = '\0';
	len = strlen(both);
	check(both, len < size ? both + len + 1 : both);
	free(both);
	return 0;
}
