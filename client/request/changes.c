#include "client/request/changes.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void changes_add(struct changes *c, const struct refd_update *u)
{
	struct refd_update *mine;

	c->updates = xroom(c->updates, c->nr, &c->size, sizeof(*c->updates));
	mine = &c->updates[c->nr++];
	*mine = *u;
	mine->name = copy(u->name);
	mine->target = copy(u->target);
	mine->old_target = copy(u->old_target);
}

void changes_clear(struct changes *c)
{
	size_t i;

	for (i = 0; i < c->nr; i++) {
		free((char *)c->updates[i].name);
		free((char *)c->updates[i].target);
		free((char *)c->updates[i].old_target);
	}
	c->nr = 0;
}

void changes_done(struct changes *c)
{
	changes_clear(c);
	free(c->updates);
	memset(c, 0, sizeof(*c));
}
