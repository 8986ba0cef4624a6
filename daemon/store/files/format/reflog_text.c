/*
 * The contents of a reflog, and which refs have a log: no disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/base/config_value.h"
#include "daemon/store/files/format/reflog.h"

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
	if (config_value_bool(value, &yes) < 0)
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
    enum refd_object_format format, const char *committer, const char *message,
    size_t *len)
{
	char old_hex[REFD_OID_MAX_HEX + 1], new_hex[REFD_OID_MAX_HEX + 1];
	bool has_message = message != NULL && message[0] != '\0';
	char *line;
	int n;

	if (strchr(committer, '\n') != NULL ||
	    (has_message && strchr(message, '\n') != NULL))
		return NULL;
	n = asprintf(&line, "%s %s %s%s%s\n",
	    refd_oid_hex(old, format, old_hex),
	    refd_oid_hex(new_oid, format, new_hex), committer,
	    has_message ? "\t" : "", has_message ? message : "");
	if (n < 0)
		return NULL;
	*len = (size_t)n;
	return line;
}
