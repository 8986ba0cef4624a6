/* Parts of a repository in other places: worktrees and alternates. And its id
 * in the journal. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"

/* The daemon has lower limits. */
#define FILE_BYTES (1 << 20)

/* ---- worktrees ---- */

static void check_worktree(struct doctor_repo *p, const char *id)
{
	char *dir = xasprintf("%s/worktrees/%s", p->name, id);
	char *file = xasprintf("%s/gitdir", dir);
	struct text t = { 0 };
	struct stat st;

	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode)) {
		doctor_found_in(p, FOUND_WORKTREE_LINK,
		    "worktrees/%s is a link: refd serves no worktree behind it",
		    id);
	} else if (text_read_regular(&t, file, FILE_BYTES) == 0 && t.len) {
		t.data[strcspn(t.data, "\n")] = '\0';
		if (t.data[0] == '/' && access(t.data, F_OK) < 0 &&
		    errno == ENOENT)
			doctor_found_in(p, FOUND_WORKTREE_GONE,
			    "the worktree %s is gone, and its branch counts as "
			    "checked out",
			    id);
	}
	text_done(&t);
	free(file);
	free(dir);
}

void doctor_check_worktrees(struct doctor_repo *p)
{
	char *dir = xasprintf("%s/worktrees", p->name);
	DIR *all = opendir(dir);
	struct dirent *at;

	while (all && (at = readdir(all)))
		if (at->d_name[0] != '.')
			check_worktree(p, at->d_name);
	if (all)
		closedir(all);
	free(dir);
}

/* ---- alternates ---- */

static void check_alternate(struct doctor_repo *p, const struct stat *own,
    const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		doctor_found_in(p, FOUND_ALTERNATE_MISSING,
		    "its alternate %s: %s", path, strerror(errno));
	else if (st.st_dev != own->st_dev)
		doctor_found_in(p, FOUND_ALTERNATE_ELSEWHERE,
		    "its alternate %s is on another file system", path);
}

void doctor_check_alternates(struct doctor_repo *p)
{
	char *objects = xasprintf("%s/objects", p->name);
	char *file = xasprintf("%s/info/alternates", objects);
	struct text t = { 0 };
	struct stat own;
	char *line = NULL, *rest = NULL;

	if (stat(objects, &own) == 0 &&
	    text_read_regular(&t, file, FILE_BYTES) == 0)
		line = strtok_r(t.data, "\n", &rest);
	for (; line; line = strtok_r(NULL, "\n", &rest)) {
		char *path;

		if (line[0] == '#')
			continue;
		path = line[0] == '/' ? xstrdup(line) :
					xasprintf("%s/%s", objects, line);
		check_alternate(p, &own, path);
		free(path);
	}
	text_done(&t);
	free(file);
	free(objects);
}

/* ---- the id ---- */

static bool is_uuid(const char *s)
{
	return strspn(s, "0123456789abcdef") == 32 && s[32] == '\n';
}

static void look_for_twin(struct doctor_repo *p, const char *uuid)
{
	char *own = xasprintf("%.32s", uuid);
	size_t i;

	doctor_tell(TOLD_UUID, own);
	for (i = 0; i < p->d->nr_known; i++) {
		const struct known_repo *other = &p->d->known[i];

		if (other->uuid && !strcmp(other->uuid, own) &&
		    strcmp(other->path, p->name))
			doctor_found_in(p, FOUND_ID_CLASH,
			    "%s has the same id in refd/id", other->path);
	}
	free(own);
}

void doctor_check_id(struct doctor_repo *p)
{
	char *file = xasprintf("%s/refd/id", p->name);
	struct text t = { 0 };
	int err = text_read_regular(&t, file, FILE_BYTES);

	if (err == 0 && has_prefix(t.data, "uuid ") && is_uuid(t.data + 5) &&
	    has_prefix(t.data + 38, "journal ") && is_uuid(t.data + 46))
		look_for_twin(p, t.data + 5);
	else if (err != -ENOENT && err != -ENOTDIR)
		doctor_found_in(p, FOUND_ID_BROKEN,
		    "refd/id has an unknown content: the repository is not "
		    "served");
	text_done(&t);
	free(file);
}
