#include "client/base/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/walk.h"
#include "proto/lib/cli.h"
#include "proto/lib/interrupt.h"

static bool has(int dir, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (!type || (st.st_mode & S_IFMT) == type);
}

static bool is_repository(int dir)
{
	return has(dir, ".git", S_IFREG) || has(dir, ".git/HEAD", 0) ||
	    (has(dir, "HEAD", 0) &&
		(has(dir, "objects", 0) || has(dir, "commondir", 0)));
}

bool scan_is_repository(const char *dir)
{
	const int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool is = fd >= 0 && is_repository(fd);

	if (fd >= 0)
		close(fd);
	return is;
}

char *scan_around(const char *dir)
{
	char *path = xstrdup(dir);

	while (*path && !scan_is_repository(path))
		*strrchr(path, '/') = '\0';
	if (*path)
		return path;
	free(path);
	return NULL;
}

struct root_search {
	void (*each)(const char *dir, void *data);
	void *data;
	/* Directories that were not searched: with too many levels or long
	 * names, and because of other failures. */
	size_t nr_beyond, nr_failed;
};

/* Anybody can make any number of such directories, so only the first of each
 * kind is named. A directory that is gone or closed is none. */
static void leave(struct root_search *s, const struct walk_at *at)
{
	const bool is_beyond = at->err == -ELOOP || at->err == -ENAMETOOLONG;
	size_t *nr = is_beyond ? &s->nr_beyond : &s->nr_failed;

	if (at->err == -ENOENT || at->err == -EACCES || (*nr)++ > 0)
		return;
	say_warning("%s: not searched for repositories: %s", at->path,
	    at->err == -ELOOP ? "it is too many levels below the root" :
				strerror(-at->err));
}

static enum walk_next look(void *arg, const struct walk_at *at)
{
	struct root_search *s = arg;

	if (interrupt_came())
		return WALK_END;
	if (at->err)
		leave(s, at);
	if (at->err || at->dir < 0 || !is_repository(at->dir))
		return WALK_ON;
	s->each(at->path, s->data);
	return WALK_PAST;
}

bool scan_all_but_beyond(const char *root,
    void (*each)(const char *dir, void *data), void *data, size_t *nr_beyond)
{
	struct root_search s = { .each = each, .data = data };
	const int err = walk_below(root, look, &s);

	if (err < 0)
		say_error("%s: %s", root, strerror(-err));
	if (s.nr_beyond + s.nr_failed > 1)
		say_warning("%s: %zu directories were not searched", root,
		    s.nr_beyond + s.nr_failed);
	*nr_beyond = s.nr_beyond;
	return err == 0 && s.nr_failed == 0;
}

bool scan_repositories(const char *root,
    void (*each)(const char *dir, void *data), void *data)
{
	size_t nr_beyond;

	return scan_all_but_beyond(root, each, data, &nr_beyond) &&
	    nr_beyond == 0;
}
