#include "daemon/group/service/fetch_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/group/service/fetch_id.h"
#include "daemon/group/service/fetch_repo.h"

#define DEPTH_MAX 32

static int find_below(int fd, const struct fetch_wish *wish, unsigned depth);

static bool is_repository(int fd)
{
	return faccessat(fd, "objects", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Everybody who may write below the root can put anything into a directory. So
 * only a failure of the disk, or a lack of memory or descriptors, ends the
 * search: then nothing says that the repository is not there. */
static int or_none(int err)
{
	return err == -EIO || err == -ENOMEM || err == -EMFILE ||
		err == -ENFILE ?
	    err :
	    -ENOENT;
}

/* Closes FD unless the result is FD. */
static int find_in(int fd, const struct fetch_wish *wish, unsigned depth)
{
	int found = fetch_id_look(fd, wish);

	if (found == 0)
		return fd;
	if (found != -ENOENT || depth == DEPTH_MAX || is_repository(fd)) {
		close(fd);
		return or_none(found);
	}
	return find_below(fd, wish, depth + 1);
}

static int find_entry(int parent, const char *name,
    const struct fetch_wish *wish, unsigned depth)
{
	int fd = fetch_repo_beneath(parent, name, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? or_none(fd) : find_in(fd, wish, depth);
}

/* Closes FD. */
static int find_below(int fd, const struct fetch_wish *wish, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	int found = -ENOENT;

	if (!dir) {
		found = -errno;
		close(fd);
		return found;
	}
	while (found == -ENOENT && (entry = readdir(dir)))
		if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    !has_prefix(entry->d_name, FETCH_REPO_WAY))
			found = find_entry(fd, entry->d_name, wish, depth);
	closedir(dir);
	return found;
}

int fetch_find(const char *root, const struct fetch_wish *wish)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : find_below(fd, wish, 0);
}
