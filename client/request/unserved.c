#include "client/request/unserved.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_other_directory(const char *env, const struct gitdir *gd)
{
	const char *given = getenv(env);
	char *own = xasprintf("%s/objects", gd->common);
	char *a = given ? realpath(given, NULL) : NULL;
	char *b = realpath(own, NULL);
	bool other = given && (!a || !b || strcmp(a, b));

	free(a);
	free(b);
	free(own);
	return other;
}

const char *unserved_reason(const struct gitdir *gd,
    const struct gitconfig *config)
{
	const char *refs = gitconfig_get(config, "extensions.refstorage");
	const char *hash = gitconfig_get(config, "extensions.objectformat");
	const char *alternates = getenv("GIT_ALTERNATE_OBJECT_DIRECTORIES");

	if (refs && strcasecmp(refs, "files"))
		return "refd does not know this repository's ref storage";
	if (hash && strcasecmp(hash, "sha1"))
		return "refd does not know this repository's object format";
	if (gitconfig_get(config, "extensions.partialclone"))
		return "refd does not serve partial clones";
	if (is_other_directory("GIT_OBJECT_DIRECTORY", gd) ||
	    (alternates && *alternates))
		return "refd does not see the object directories of the "
		       "environment";
	return NULL;
}
