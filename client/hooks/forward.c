#include "client/hooks/forward.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first lines of forward.sh. */
#define HEAD                                                                   \
	"#!/bin/sh\n"                                                          \
	"# Installed with refd: runs the repository's own hook of this "       \
	"name.\n"

/* More than the forwarder. */
#define SCRIPT_BYTES (64 << 10)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool forward_is(const char *path)
{
	struct text t = { 0 };
	bool is = text_read_regular(&t, path, SCRIPT_BYTES) == 0 &&
	    has_prefix(t.data, HEAD);

	text_done(&t);
	return is;
}

bool forward_is_in(const char *hooks)
{
	char *file = xasprintf("%s/forward", hooks);
	char *hook = xasprintf("%s/pre-receive", hooks);
	bool is = forward_is(file) && access(hook, X_OK) == 0;

	free(file);
	free(hook);
	return is;
}

char *forward_follow(const char *path, const char *common)
{
	if (!forward_is(path))
		return xstrdup(path);
	return xasprintf("%s/hooks/%s", common, base_name(path));
}
