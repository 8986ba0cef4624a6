#include "proto/format.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ANY      ""
#define NAME_MAX 40

/* Git dies of a known extension in a format version before SINCE. SERVED: ANY,
 * or the values that refd serves, with blanks between, or NULL for none. */
static const struct extension {
	const char *name;
	int since;
	const char *served, *why;
} extensions[] = {
	{ "compatObjectFormat", 1, NULL, "the objects have ids of two kinds" },
	{ "noop", 0, ANY, NULL },
	{ "noop-v1", 1, ANY, NULL },
	{ "objectFormat", 1, "sha1 sha256",
	    "the object ids are neither SHA-1 nor SHA-256" },
	/* Objects may be absent: see admit_object() in admission/admit.c. */
	{ "partialClone", 0, ANY, NULL },
	{ "preciousObjects", 0, ANY, NULL },
	{ "refStorage", 1, "files reftable",
	    "the refs are neither in files nor in reftables" },
	{ "relativeWorktrees", 1, ANY, NULL },
	{ "submodulePathConfig", 1, ANY, NULL },
	{ "worktreeConfig", 0, ANY, NULL },
};

#define NR_EXTENSIONS (sizeof(extensions) / sizeof(extensions[0]))

static bool is_among(const char *values, const char *value)
{
	size_t len;

	for (; *values != '\0'; values += strspn(values, " ")) {
		len = strcspn(values, " ");
		if (strlen(value) == len && strncmp(values, value, len) == 0)
			return true;
		values += len;
	}
	return false;
}

static bool is_plain(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	size_t len = strspn(name, plain);

	return len > 0 && len <= NAME_MAX && name[len] == '\0';
}

static const struct extension *find(const char *name)
{
	size_t i;

	for (i = 0; i < NR_EXTENSIONS; i++)
		if (strcasecmp(extensions[i].name, name) == 0)
			return &extensions[i];
	return NULL;
}

static bool serves_unknown(int version, const char *name, char *why)
{
	if (version == 0)
		return true;
	if (is_plain(name))
		snprintf(why, FORMAT_WHY_MAX,
		    "refd does not know the extension '%s'", name);
	else
		snprintf(why, FORMAT_WHY_MAX,
		    "refd does not know an extension of the repository");
	return false;
}

bool format_serves(int version, const char *name, const char *value,
    char why[FORMAT_WHY_MAX])
{
	const struct extension *x = find(name);
	const char *reason;

	if (x == NULL)
		return serves_unknown(version, name, why);
	if (version < x->since) {
		snprintf(why, FORMAT_WHY_MAX,
		    "extensions.%s needs core.repositoryFormatVersion 1",
		    x->name);
		return false;
	}
	if (x->served != NULL &&
	    (*x->served == '\0' || is_among(x->served, value)))
		return true;
	/* Git 2.54 and later: "files://DIRECTORY". */
	reason = x->why;
	if (strcmp(x->name, "refStorage") == 0 && strstr(value, "://") != NULL)
		reason = "the refs are elsewhere";
	snprintf(why, FORMAT_WHY_MAX, "%s (extensions.%s)", reason, x->name);
	return false;
}

const char *format_version_unserved(int version)
{
	return version == 0 || version == 1 ?
	    NULL :
	    "core.repositoryFormatVersion is not 0 or 1";
}
