#include "proto/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define ANY ""

/* Git dies of a known extension in a format version before SINCE. SERVED: ANY,
 * or the values that refd serves, with blanks between, or NULL for none. */
#define EXTENSION(name, since, served, why)                                    \
	{ name, since, served, why " (extensions." name ")",                   \
		"extensions." name " needs core.repositoryFormatVersion 1" }
static const struct extension {
	const char *name;
	int since;
	const char *served, *why, *too_old;
} extensions[] = {
	EXTENSION("compatObjectFormat", 1, NULL,
	    "the objects have ids of two kinds"),
	EXTENSION("noop", 0, ANY, ""),
	EXTENSION("noop-v1", 1, ANY, ""),
	EXTENSION("objectFormat", 1, "sha1 sha256",
	    "the object ids are neither SHA-1 nor SHA-256"),
	EXTENSION("partialClone", 0, NULL, "the repository is a partial clone"),
	EXTENSION("preciousObjects", 0, ANY, ""),
	EXTENSION("refStorage", 1, "files",
	    "the refs are elsewhere, or not in files"),
	EXTENSION("relativeWorktrees", 1, ANY, ""),
	EXTENSION("submodulePathConfig", 1, ANY, ""),
	EXTENSION("worktreeConfig", 0, ANY, ""),
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

const char *format_unserved(int version, const char *name, const char *value)
{
	const struct extension *x = NULL;
	size_t i;

	for (i = 0; i < NR_EXTENSIONS && x == NULL; i++)
		if (strcasecmp(extensions[i].name, name) == 0)
			x = &extensions[i];
	if (x == NULL)
		return version == 0 ? NULL :
				      "the repository has an extension that "
				      "refd does not know";
	if (version < x->since)
		return x->too_old;
	if (x->served == NULL ||
	    (*x->served != '\0' && !is_among(x->served, value)))
		return x->why;
	return NULL;
}

const char *format_version_unserved(int version)
{
	return version == 0 || version == 1 ?
	    NULL :
	    "core.repositoryFormatVersion is not 0 or 1";
}
