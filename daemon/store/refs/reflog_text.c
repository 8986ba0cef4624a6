/*
 * What stands in a reflog, and which refs have one: no disk.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/store/refs/reflog.h"

/* git_parse_int(): any base that strtoimax knows, k, m or g behind. */
static int parse_int_as_git(const char *value, bool *nonzero)
{
	static const char *const units[] = { "", "k", "m", "g" };
	intmax_t n, factor = 1;
	size_t i;
	char *end;

	errno = 0;
	n = strtoimax(value, &end, 0);
	if (errno != 0 || end == value)
		return -1;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i]) == 0)
			break;
		factor *= 1024;
	}
	if (i == sizeof(units) / sizeof(units[0]) || n > INT_MAX / factor ||
	    n < -(INT_MAX / factor))
		return -1;
	*nonzero = n != 0;
	return 0;
}

static int parse_bool_as_git(const char *value, bool *yes)
{
	static const struct {
		const char *word;
		bool yes;
	} words[] = {
		{ "true", true },
		{ "yes", true },
		{ "on", true },
		{ "false", false },
		{ "no", false },
		{ "off", false },
		{ "", false },
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(value, words[i].word) == 0) {
			*yes = words[i].yes;
			return 0;
		}
	return parse_int_as_git(value, yes);
}

int reflog_policy_parse(const char *value, bool bare,
    enum reflog_policy *policy)
{
	bool yes;

	if (value == NULL) {
		*policy = bare ? REFLOG_NEVER : REFLOG_NORMAL;
		return 0;
	}
	if (strcasecmp(value, "always") == 0) {
		*policy = REFLOG_ALWAYS;
		return 0;
	}
	if (parse_bool_as_git(value, &yes) < 0)
		return -1;
	*policy = yes ? REFLOG_NORMAL : REFLOG_NEVER;
	return 0;
}

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool reflog_policy_creates(enum reflog_policy policy, const char *name)
{
	switch (policy) {
	case REFLOG_NEVER:
		return false;
	case REFLOG_NORMAL:
		return starts_with(name, "refs/heads/") ||
		    starts_with(name, "refs/remotes/") ||
		    starts_with(name, "refs/notes/") ||
		    strcmp(name, "HEAD") == 0;
	case REFLOG_ALWAYS:
		return true;
	}
	return false;
}

/* git's own isspace(). */
static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

char *reflog_normalise(const char *message)
{
	char *out = malloc(strlen(message) + 1), *to = out;
	bool blank = true;

	if (out == NULL)
		return NULL;
	for (; *message != '\0'; message++) {
		if (!is_space(*message))
			*to++ = *message;
		else if (!blank)
			*to++ = ' ';
		blank = is_space(*message);
	}
	if (to > out && to[-1] == ' ')
		to--;
	*to = '\0';
	return out;
}

char *reflog_line(const struct refd_oid *old, const struct refd_oid *new_oid,
    const char *committer, const char *message, size_t *len)
{
	char old_hex[REFD_OID_HEX + 1], new_hex[REFD_OID_HEX + 1];
	bool has_message = message != NULL && message[0] != '\0';
	char *line;
	int n;

	if (strchr(committer, '\n') != NULL ||
	    (has_message && strchr(message, '\n') != NULL))
		return NULL;
	n = asprintf(&line, "%s %s %s%s%s\n", refd_oid_hex(old, old_hex),
	    refd_oid_hex(new_oid, new_hex), committer, has_message ? "\t" : "",
	    has_message ? message : "");
	if (n < 0)
		return NULL;
	*len = (size_t)n;
	return line;
}
