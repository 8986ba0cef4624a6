#include "client/request/changes.h"

#include <stdlib.h>
#include <string.h>

#include "proto/lib/cli.h"

static const char *copy(struct changes *c, const char *s)
{
	const char *mine;

	if (!s)
		return NULL;
	mine = refd_arena_string(c->strings, s, strlen(s));
	if (!mine)
		die("out of memory");
	return mine;
}

void changes_add(struct changes *c, const struct refd_update *u)
{
	struct refd_update *mine;

	if (!c->strings)
		c->strings = refd_arena_new();
	if (!c->strings)
		die("out of memory");
	c->updates = xroom(c->updates, c->nr, &c->size, sizeof(*c->updates));
	mine = &c->updates[c->nr++];
	*mine = *u;
	mine->name = copy(c, u->name);
	mine->target = copy(c, u->target);
	mine->old_target = copy(c, u->old_target);
}

void changes_clear(struct changes *c)
{
	refd_arena_free(c->strings);
	c->strings = NULL;
	c->nr = 0;
}

void changes_done(struct changes *c)
{
	changes_clear(c);
	free(c->updates);
	memset(c, 0, sizeof(*c));
}
