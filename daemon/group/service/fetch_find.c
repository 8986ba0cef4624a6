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

/* Counts a failure, if it can hide the repository. Everybody who may write
 * below the root can put anything into a directory, so most failures of a
 * directory mean nothing. But a failure of the disk, and a lack of memory or
 * descriptors, counts, because the repository can be there unseen. An id that
 * others may write counts, too, because the id can be right. */
static int or_none(int err)
{
	return err == -EIO || err == -EUCLEAN || err == -EBADMSG ||
		err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
		err == -EKEYREJECTED ?
	    err :
	    -ENOENT;
}

/* Closes FD unless the result is FD. */
static int find_in(int fd, const struct fetch_wish *wish, unsigned depth)
{
	enum own_file whose;
	int found = fetch_id_look(fd, wish, &whose);

	if (found == 0 && whose == OWN_FILE_CLOSED)
		return fd;
	if (found == 0)
		found = -EKEYREJECTED;
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

static bool is_to_be_searched(const struct dirent *entry)
{
	return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
	    strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
	    !has_prefix(entry->d_name, FETCH_REPO_WAY);
}

/* Closes FD. The search goes on after a failure, because one bad block must
 * hide no other directory. */
static int find_below(int fd, const struct fetch_wish *wish, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	int found = -ENOENT, next;

	if (!dir) {
		found = -errno;
		close(fd);
		return found;
	}
	do {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			next = or_none(-errno);
		else if (is_to_be_searched(entry))
			next = find_entry(fd, entry->d_name, wish, depth);
		else
			next = -ENOENT;
		if (next >= 0 || found == -ENOENT)
			found = next;
	} while (entry && found < 0);
	closedir(dir);
	return found;
}

int fetch_find(const char *root, const struct fetch_wish *wish)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : find_below(fd, wish, 0);
}
