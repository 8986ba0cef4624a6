/*
 * The right to write the refs of a repository, and the modes of new files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/repos/repo_internal.h"

bool repo_may_write(const struct repo *repo, uint32_t uid, const uint32_t *gids,
    size_t nr_gids)
{
	size_t i;

	if (uid == repo->owner)
		return (repo->mode & 0200) != 0;
	for (i = 0; i < nr_gids; i++)
		if (gids[i] == repo->group)
			return (repo->mode & 0020) != 0;
	return (repo->mode & 0002) != 0;
}

bool repo_peer_has(const struct sys_stat *st, const struct txn_peer *peer,
    uint32_t bits)
{
	unsigned shift = 0;
	size_t i;

	for (i = 0; i < peer->nr_gids; i++)
		if (peer->gids[i] == st->gid)
			shift = 3;
	if (peer->uid == st->uid)
		shift = 6;
	return S_ISDIR(st->mode) && (st->mode >> shift & bits) == bits;
}

/* Opens the directory NAME in DIR if PEER may pass through it, and closes
 * DIR. */
static int step(const struct sys *sys, int dir, const char *name,
    const struct txn_peer *peer, struct sys_stat *st)
{
	int fd =
	    SYS(sys, openat, dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir != SYS_TRUSTED)
		SYS(sys, close, dir);
	if (fd < 0)
		return fd;
	if (SYS(sys, fstat, fd, st) == 0 && repo_peer_has(st, peer, 01))
		return fd;
	SYS(sys, close, fd);
	return -EACCES;
}

/* Goes step by step and without links, because the owner of a directory could
 * otherwise replace closed directories below by a link to the same repository.
 * Results as in repo_peer_may_see(). */
static enum refd_status may_reach(const struct sys *sys, const char *path,
    uint64_t dev, uint64_t ino, const struct txn_peer *peer)
{
	char copy[REFD_PATH_MAX], *rest = copy, *name;
	struct sys_stat st;
	int fd;

	if (strlen(path) >= sizeof(copy))
		return REFD_NOREPO;
	strcpy(copy, path);
	fd = step(sys, SYS_TRUSTED, "/", peer, &st);
	while (fd >= 0 && (name = strsep(&rest, "/")) != NULL)
		if (*name != '\0')
			fd = step(sys, fd, name, peer, &st);
	if (fd < 0)
		return repo_open_status(fd);
	SYS(sys, close, fd);
	return st.dev == dev && st.ino == ino ? REFD_OK : REFD_NOREPO;
}

bool repo_peer_may_reach(const struct sys *sys, const char *path, uint64_t dev,
    uint64_t ino, const struct txn_peer *peer)
{
	return may_reach(sys, path, dev, ino, peer) == REFD_OK;
}

/* Is NAME in DIR missing, or neither directory nor link? A link does not count,
 * because it may lead to where PEER may not look. */
static bool is_no_directory(const struct sys *sys, int dir, const char *name)
{
	struct sys_stat st;
	int r = SYS(sys, lstatat, dir, name, &st);

	return r == -ENOENT ||
	    (r == 0 && !S_ISDIR(st.mode) && !S_ISLNK(st.mode));
}

/* Follows PATH as far as PEER may, and returns the directory. -ENOENT: PEER may
 * see that the path is missing. Other errno: PEER may not see it. */
static int walk_as(const struct sys *sys, const char *path,
    const struct txn_peer *peer)
{
	char copy[REFD_PATH_MAX], *rest = copy, *name;
	struct sys_stat st;
	int dir;

	if (path[0] != '/' || strlen(path) >= sizeof(copy))
		return -EACCES;
	strcpy(copy, path);
	dir = step(sys, SYS_TRUSTED, "/", peer, &st);
	while (dir >= 0 && (name = strsep(&rest, "/")) != NULL) {
		if (*name == '\0')
			continue;
		if (is_no_directory(sys, dir, name)) {
			SYS(sys, close, dir);
			return -ENOENT;
		}
		dir = step(sys, dir, name, peer, &st);
	}
	return dir == -ENOENT ? -EACCES : dir;
}

enum refd_status repo_peer_may_see(const struct repos *repos,
    const char *git_dir, const struct txn_peer *peer)
{
	const struct sys *sys = repos->sys;
	enum refd_status status;
	struct repo_place place;
	struct sys_stat st;
	bool has_common;
	char *why = NULL;
	int fd;

	if (peer->uid == 0 || peer->uid == (uint32_t)geteuid())
		return REFD_OK;
	fd = walk_as(sys, git_dir, peer);
	if (fd < 0)
		return fd == -ENOENT ? REFD_OK : repo_open_status(fd);
	has_common = SYS(sys, lstatat, fd, "commondir", &st) != -ENOENT;
	SYS(sys, close, fd);
	status = repo_find(repos, git_dir, &place, &why);
	free(why);
	if (status == REFD_OK) {
		status = may_reach(sys, place.path, place.st.dev, place.st.ino,
		    peer);
		SYS(sys, close, place.fd);
		return status;
	}
	if (status == REFD_BUSY || status == REFD_IO)
		return status;
	/* A common dir that is not found may be anywhere, also where PEER may
	 * not look, so the reason is kept back. */
	return has_common ? REFD_NOREPO : REFD_OK;
}

/* Checks the present rights, not the rights at the opening. The daemon itself
 * can reach the repository, so its own account need not be checked on the
 * way. */
enum refd_status repo_peer_may_write(const struct sys *sys,
    const struct repo *repo, const struct txn_peer *peer)
{
	struct sys_stat st;
	int r;

	if (peer->uid == 0)
		return REFD_OK;
	r = SYS(sys, lstatat, repo->fd, "refs", &st);
	if (r < 0)
		return repo_open_status(r);
	if (!repo_peer_has(&st, peer, 03))
		return REFD_NOREPO;
	if (peer->uid == (uint32_t)geteuid())
		return REFD_OK;
	return may_reach(sys, repo->path, repo->dev, repo->ino, peer);
}

mode_t repo_shared_mode(int shared_perm, mode_t mode)
{
	mode_t tweak;

	if (shared_perm == 0)
		return mode;
	tweak = (mode_t)(shared_perm < 0 ? -shared_perm : shared_perm);
	if ((mode & 0200) == 0)
		tweak &= ~(mode_t)0222;
	if ((mode & 0100) != 0)
		tweak |= (tweak & 0444) >> 2;
	return shared_perm < 0 ? (mode & ~(mode_t)0777) | tweak : mode | tweak;
}

mode_t repo_file_mode(int shared_perm, uint32_t umask_bits)
{
	/* The daemon must be able to read the file, for recovery. */
	return repo_shared_mode(shared_perm,
	    (0666 & ~(umask_bits & 0777)) | 0600);
}

mode_t repo_dir_mode(int shared_perm, uint32_t umask_bits)
{
	mode_t mode;

	mode =
	    repo_shared_mode(shared_perm, (0777 & ~(umask_bits & 0777)) | 0700);
	/* git sets the group bit if the group shares the repository (path.c,
	 * adjust_shared_perm()). */
	return shared_perm != 0 && (mode & 060) != 0 ? mode | 02000 : mode;
}
