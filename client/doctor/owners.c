/*
 * Has the owner all rights that git and refd need? A git that root ran leaves
 * files of root. The check needs the rights of the owner.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/base/walk.h"
#include "client/doctor/doctor_internal.h"

struct count {
	int levels;    /* of directories, from 1 on */
	int file_mode; /* the rights that files need; or -1: are not checked */
	size_t nr;
	char *example; /* owned */
};

/* Directories are written. */
static enum walk_next check(void *arg, const struct walk_at *at)
{
	struct count *c = arg;
	const int mode = at->dir >= 0 ? W_OK | X_OK : c->file_mode;

	if (at->err ? at->err == -EACCES :
		      mode >= 0 && faccessat(at->around, at->name, mode, 0) < 0)
		if (!c->nr++)
			c->example = xstrdup(at->path);
	return at->level < c->levels ? WALK_ON : WALK_PAST;
}

/* The object store has too many files to check each. */
static void check_below(const struct doctor_repo *p, struct count *c,
    const char *below, int levels, int file_mode)
{
	char *path = xasprintf("%s/%s", p->name, below);

	c->levels = levels;
	c->file_mode = file_mode;
	walk_below(path, check, c);
	free(path);
}

void doctor_check_owners(struct doctor_repo *p)
{
	struct count c = { 0 };

	if (!p->as_owner || geteuid() == 0)
		return;
	check_below(p, &c, "refs", WALK_LEVELS_MAX, -1);
	check_below(p, &c, "reftable", 1, R_OK);
	check_below(p, &c, "logs", WALK_LEVELS_MAX, R_OK | W_OK);
	check_below(p, &c, "objects", 1, -1);
	check_below(p, &c, "objects/pack", 1, R_OK);
	if (c.nr)
		doctor_found_in(p, FOUND_OWNER_MIXED,
		    "its owner cannot use %zu files and directories, for "
		    "example %s",
		    c.nr, c.example);
	free(c.example);
}
