/*
 * Has the owner all rights that git and refd need? A git that root ran leaves
 * files of root. The check needs the rights of the owner.
 */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"

struct count {
	const struct doctor_repo *p;
	size_t nr;
	char *example; /* owned */
};

static void note_file(struct count *c, const char *path)
{
	if (!c->nr++)
		c->example = xstrdup(path);
}

/* Directories and logs are written; other files are at most read. */
static bool may_use(const FTSENT *at, bool appends)
{
	if (at->fts_info == FTS_D)
		return access(at->fts_path, W_OK | X_OK) == 0;
	return access(at->fts_path, appends ? R_OK | W_OK : R_OK) == 0;
}

/* DEPTH: levels of directories. The object store has too many files to check
 * each. */
static void check_below(struct count *c, const char *below, int depth,
    bool files, bool appends)
{
	char *path = xasprintf("%s/%s", c->p->name, below);
	char *const paths[] = { path, NULL };
	FTS *fts =
	    fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	FTSENT *at;

	while (fts && (at = fts_read(fts))) {
		switch (at->fts_info) {
		case FTS_D:
			if (at->fts_level >= depth)
				fts_set(fts, at, FTS_SKIP);
			if (!may_use(at, appends))
				note_file(c, at->fts_path);
			break;
		case FTS_DNR:
			note_file(c, at->fts_path);
			break;
		case FTS_F:
		case FTS_NSOK:
			if (files && !may_use(at, appends))
				note_file(c, at->fts_path);
			break;
		}
	}
	if (fts)
		fts_close(fts);
	free(path);
}

void doctor_check_owners(struct doctor_repo *p)
{
	struct count c = { .p = p };

	if (!p->as_owner || geteuid() == 0)
		return;
	check_below(&c, "refs", 1000, false, false);
	check_below(&c, "reftable", 1, true, false);
	check_below(&c, "logs", 1000, true, true);
	check_below(&c, "objects", 1, false, false);
	check_below(&c, "objects/pack", 1, true, false);
	if (c.nr)
		doctor_found_in(p, FOUND_OWNER_MIXED,
		    "its owner cannot use %zu files and directories, for "
		    "example %s",
		    c.nr, c.example);
	free(c.example);
}
