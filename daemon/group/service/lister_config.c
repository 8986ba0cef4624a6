#include "daemon/group/service/lister_config.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_HIDDEN "refs/refd"

/* Kept values of other programs belong to one node, so they may be hidden.
 * Other refs that a fetch does not see would be lost with this node. */
static bool is_kept(const char *hidden)
{
	const char *end = has_prefix(hidden, KEPT_HIDDEN) ?
	    hidden + strlen(KEPT_HIDDEN) :
	    "-";

	return *end == '\0' || *end == '/';
}

/* A key without a value has no newline. Neither a key nor a value has a NUL. */
static void take_entry(struct lister_config *c, const char *entry)
{
	const char *end = strchrnul(entry, '\n'), *value = *end ? end + 1 : end;
	char *key = xasprintf("%.*s", (int)(end - entry), entry);

	if (!strcmp(key, "extensions.objectformat"))
		c->is_sha256 = !strcmp(value, "sha256");
	else if (!strcmp(key, "transfer.hiderefs") ||
	    !strcmp(key, "uploadpack.hiderefs"))
		c->hides_refs = c->hides_refs || !is_kept(value);
	free(key);
}

struct lister_config lister_config_parse(const struct text *config)
{
	struct lister_config c = { false, false };
	size_t at = 0;

	/* The text has a NUL behind its end. */
	for (; at < config->len; at += strlen(config->data + at) + 1)
		take_entry(&c, config->data + at);
	return c;
}
