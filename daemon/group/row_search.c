#include "daemon/group/row_search.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 32
#define WAY       ".refd-way-"

struct uuid_search {
	const struct sys *sys;
	const uint8_t *uuid;
	char *path; /* of the directory in work; in the end of the repository */
};

int row_search_id(const struct sys *sys, int fd, struct repo_id *id)
{
	int r = repo_id_read_in(sys, fd, id);

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EBADMSG)
		return -ENODATA;
	return r == 0 && id->whose == OWN_FILE_FOREIGN ? -ENODATA : r;
}

static bool is_repository(const struct uuid_search *s, int fd)
{
	struct sys_stat st;

	return SYS(s->sys, lstatat, fd, "objects", &st) == 0;
}

static bool search_below(struct uuid_search *s, int fd, unsigned depth);

/* Looks at the directory FD, whose path is s->path. No row confirms a path that
 * only a search has found, so an id that others may write does not count. */
static bool search_in(struct uuid_search *s, int fd, unsigned depth)
{
	struct repo_id id;

	if (row_search_id(s->sys, fd, &id) == 0)
		return id.whose == OWN_FILE_CLOSED &&
		    memcmp(id.uuid, s->uuid, sizeof(id.uuid)) == 0;
	return depth < DEPTH_MAX && !is_repository(s, fd) &&
	    search_below(s, fd, depth + 1);
}

static bool search_entry(struct uuid_search *s, int parent, const char *name,
    unsigned depth)
{
	size_t len = strlen(s->path);
	bool is_found;
	int fd;

	if (snprintf(s->path + len, REFD_PATH_MAX - len, "/%s", name) >=
	    (int)(REFD_PATH_MAX - len))
		fd = -ENAMETOOLONG;
	else
		fd = SYS(s->sys, openat, parent, name, O_RDONLY | O_DIRECTORY,
		    0);
	is_found = fd >= 0 && search_in(s, fd, depth);
	if (fd >= 0)
		SYS(s->sys, close, fd);
	if (!is_found)
		s->path[len] = '\0';
	return is_found;
}

static bool is_old_copy(const char *name)
{
	return strncmp(name, WAY, strlen(WAY)) == 0 &&
	    strchr(name + strlen(WAY), '-') != NULL;
}

static bool search_below(struct uuid_search *s, int fd, unsigned depth)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	bool is_found = false;

	if (SYS(s->sys, dir_open, fd, ".", &dir) < 0)
		return false;
	while (!is_found && SYS(s->sys, dir_next, dir, &entry) == 1)
		if ((entry.type == DT_DIR || entry.type == DT_UNKNOWN) &&
		    !is_old_copy(entry.name))
			is_found = search_entry(s, fd, entry.name, depth);
	SYS(s->sys, dir_close, dir);
	return is_found;
}

bool row_search_find(const struct repos *repos, const uint8_t uuid[16],
    char path[REFD_PATH_MAX])
{
	struct uuid_search s = { repos->sys, uuid, path };
	bool is_found = false;
	size_t i;
	int fd;

	for (i = 0; i < repos->nr_roots && !is_found; i++) {
		snprintf(path, REFD_PATH_MAX, "%s", repos->roots[i]);
		fd = repo_open_below_root(repos, path);
		if (fd < 0)
			continue;
		is_found = search_below(&s, fd, 0);
		SYS(s.sys, close, fd);
	}
	return is_found;
}
