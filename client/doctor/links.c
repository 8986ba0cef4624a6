/* Symbolic links instead of files and directories. Git follows some of them;
 * refd does not. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/walk.h"
#include "client/doctor/doctor_internal.h"

static bool is_link(const struct doctor_repo *p, const char *name)
{
	char *path = xasprintf("%s/%s", p->name, name);
	struct stat st;
	bool is = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

	free(path);
	return is;
}

static bool leads_out(const struct doctor_repo *p, const char *path)
{
	char real[PATH_MAX];
	size_t len = strlen(p->name);

	return realpath(path, real) &&
	    (strncmp(real, p->name, len) || real[len] != '/');
}

static enum walk_next look(void *arg, const struct walk_at *at)
{
	struct doctor_repo *p = arg;
	struct stat st;

	if (at->dir >= 0 || fstatat(at->around, at->name, &st, 0) < 0 ||
	    !S_ISDIR(st.st_mode) || !leads_out(p, at->path))
		return WALK_ON;
	doctor_found(p->d, FOUND_REFS_LINK, p->name,
	    at->path + strlen(p->name) + 1,
	    "the link leads out of the repository: refd refuses refs there");
	return WALK_END;
}

/* Reports only the first link below NAME. */
static void look_below(struct doctor_repo *p, const char *name)
{
	char *path = xasprintf("%s/%s", p->name, name);

	walk_below(path, look, p);
	free(path);
}

void doctor_check_links(struct doctor_repo *p)
{
	if (!p->is_enabled)
		return;
	if (is_link(p, "HEAD"))
		doctor_found_in(p, FOUND_HEAD_LINK,
		    "HEAD is a link of the file system: pushes are left to "
		    "git, and have its durability");
	if (is_link(p, "packed-refs"))
		doctor_found_in(p, FOUND_PACKED_LINK,
		    "packed-refs is a link: deletions of refs are left to git");
	if (is_link(p, "reftable"))
		doctor_found(p->d, FOUND_REFS_LINK, p->name, "reftable",
		    "a link in the place of the directory of the tables: refd "
		    "does not follow it");
	look_below(p, "refs");
	look_below(p, "logs");
}
