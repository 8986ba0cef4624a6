/*
 * Finds the directory of a git-dir, and its common dir.
 *
 * The happy path:
 *	root	the git-dir begins with the path of a root
 *	below	the rest of the path is opened below the root; no link leads
 *		out of the root
 *	common	the commondir file of GIT_DIR leads below a root again, to a
 *		directory of the same owner or group
 *
 * The client may lack the right to read the files, so the message of a failure
 * has no text from files. Nothing outside of the roots is opened, so a client
 * learns nothing about other directories of the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_internal.h"

/* The rest of PATH below ROOT, or ".". NULL: PATH is not below ROOT. */
static const char *behind(const char *root, const char *path)
{
	size_t len = strlen(root);

	while (len > 0 && root[len - 1] == '/')
		len--;
	if (strncmp(path, root, len) != 0 ||
	    (path[len] != '/' && path[len] != '\0'))
		return NULL;
	path += len;
	path += strspn(path, "/");
	return *path != '\0' ? path : ".";
}

/* As repo_open_below_root(). *IS_REAL: PATH has no link, and is the path that
 * the kernel would tell. (The path to a root is trusted, and was resolved.) */
static int open_below_root(const struct repos *repos, const char *path,
    bool *is_real)
{
	const struct sys *sys = repos->sys;
	int root, fd = -EXDEV;
	const char *rest;
	bool is_plain;
	size_t i;

	for (i = 0; i < repos->nr_roots && fd == -EXDEV; i++) {
		rest = behind(repos->roots[i], path);
		if (rest == NULL)
			continue;
		root = SYS(sys, openat, SYS_TRUSTED, repos->roots[i],
		    O_RDONLY | O_DIRECTORY, 0);
		fd = root < 0 ? root :
				SYS(sys, open_below, root, rest, &is_plain);
		if (root >= 0)
			SYS(sys, close, root);
		*is_real = fd >= 0 && is_plain && strcmp(rest, ".") != 0 &&
		    strstr(path, "//") == NULL;
	}
	return fd;
}

int repo_open_below_root(const struct repos *repos, const char *path)
{
	bool is_real;

	return open_below_root(repos, path, &is_real);
}

int repo_open_root(const void *arg, const char *path)
{
	return repo_open_below_root(arg, path);
}

/* Is PATH, which is resolved, below a root? Asked after the opening, because an
 * open directory may be moved out of the roots. */
static bool is_below_root(const struct repos *repos, const char *path)
{
	size_t i;

	for (i = 0; i < repos->nr_roots; i++)
		if (behind(repos->roots[i], path) != NULL)
			return true;
	return false;
}

static int copy_path(struct repo_place *place, const char *path)
{
	size_t size = strlen(path) + 1;

	if (size > sizeof(place->path))
		return -ENAMETOOLONG;
	memcpy(place->path, path, size);
	return 0;
}

/* Opens PATH and finds its real name. The kernel takes long to tell a path, so
 * it is only asked if a link may be on the way. */
static int open_place(const struct repos *repos, const char *path,
    struct repo_place *place)
{
	const struct sys *sys = repos->sys;
	bool is_real;
	int r;

	place->fd = open_below_root(repos, path, &is_real);
	if (place->fd < 0)
		return place->fd;
	r = is_real ?
	    copy_path(place, path) :
	    SYS(sys, fd_path, place->fd, place->path, sizeof(place->path));
	if (r == 0 && !is_below_root(repos, place->path))
		r = -EXDEV;
	if (r == 0)
		r = SYS(sys, fstat, place->fd, &place->st);
	if (r == 0 && !repo_owner_is_served(place->st.uid))
		r = -EKEYREJECTED;
	if (r < 0)
		SYS(sys, close, place->fd);
	return r;
}

enum refd_status repo_open_status(int err)
{
	switch (err) {
	case -EIO:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return txn_status_of(err);
	}
	return REFD_NOREPO;
}

/* Why the git-dir PATH, which the client named, can't be opened as PLACE. */
static enum refd_status cant_open(int err, const char *path,
    const struct repo_place *place, char **why)
{
	if (err == -EKEYREJECTED) {
		*why = repo_owner_why(path, place->st.uid);
		return REFD_DENIED;
	}
	if (err == -EXDEV)
		*why = repo_why("the repository '%s' is not under a root that "
				"refd serves (daemon.root, --root)",
		    path);
	else
		*why = repo_why("can't open the repository '%s': %s", path,
		    strerror(-err));
	return repo_open_status(err);
}

/* Only an owner or a group member of the repository can add a worktree, so a
 * git-dir of a foreign account must not lead to the repository. */
static bool belong_together(const struct repo_place *own,
    const struct repo_place *common)
{
	return own->st.uid == common->st.uid || own->st.gid == common->st.gid;
}

/* COMMON is the text of OWN's commondir file. 0 or negative errno. */
static int open_common(const struct repos *repos, const struct repo_place *own,
    const char *common, struct repo_place *place)
{
	char path[2 * REFD_PATH_MAX];
	int r;

	if (common[0] == '/')
		snprintf(path, sizeof(path), "%s", common);
	else
		snprintf(path, sizeof(path), "%s/%s", own->path, common);
	r = open_place(repos, path, place);
	/* A disk error must not tell which paths exist. */
	if (r == -EIO)
		return -EPERM;
	if (r < 0 || belong_together(own, place))
		return r;
	SYS(repos->sys, close, place->fd);
	return -EPERM;
}

enum refd_status repo_find(const struct repos *repos, const char *git_dir,
    struct repo_place *place, char **why)
{
	struct repo_place own;
	size_t len;
	char *common;
	int r;

	if (git_dir[0] != '/') {
		*why =
		    repo_why("git-dir '%s' is not an absolute path", git_dir);
		return REFD_NOREPO;
	}
	r = open_place(repos, git_dir, &own);
	if (r < 0)
		return cant_open(r, git_dir, &own, why);
	r = sys_read_file(repos->sys, own.fd, "commondir", REFD_PATH_MAX,
	    &common, &len);
	if (r == -ENOENT) {
		*place = own;
		return REFD_OK;
	}
	if (r == 0) {
		common[strcspn(common, "\n")] = '\0';
		r = open_common(repos, &own, common, place);
		free(common);
	}
	/* One text for all lasting reasons, because the client may lack the
	 * right to read the file or its directory. */
	if (repo_open_status(r) != REFD_NOREPO)
		*why = repo_why("can't follow '%s/commondir': %s", own.path,
		    strerror(-r));
	else if (r < 0)
		*why =
		    repo_why("'%s/commondir' does not lead to a repository of "
			     "the same owner or group under a root that "
			     "refd serves (daemon.root, --root)",
			own.path);
	SYS(repos->sys, close, own.fd);
	return r < 0 ? repo_open_status(r) : REFD_OK;
}

/* ---- the argument of a command ---- */

/* The repository to which the file FD/.git leads, as PATH below DIR, the real
 * path of FD. 0 or negative errno. */
static int read_git_file(const struct sys *sys, int fd, const char *dir,
    char *path, size_t size)
{
	static const char key[] = "gitdir: ";
	char *text, *target;
	size_t len;
	int r = sys_read_file(sys, fd, ".git", REFD_PATH_MAX, &text, &len);

	if (r < 0)
		return r;
	text[strcspn(text, "\r\n")] = '\0';
	target = text + sizeof(key) - 1;
	if (strncmp(text, key, sizeof(key) - 1) != 0 || *target == '\0')
		r = -EINVAL;
	else if ((size_t)snprintf(path, size, "%s%s%s",
		     *target == '/' ? "" : dir, *target == '/' ? "" : "/",
		     target) >= size)
		r = -ENAMETOOLONG;
	free(text);
	return r;
}

/* As git, but the file must belong to the owner of the repository, because
 * somebody else could name a repository that the user did not mean. */
static enum refd_status follow_git_file(const struct repos *repos, int fd,
    const char *dir, struct repo_place *place, char **why)
{
	char path[2 * REFD_PATH_MAX];
	enum refd_status status;
	struct sys_stat st;
	int r = SYS(repos->sys, lstatat, fd, ".git", &st);

	if (r == 0)
		r = read_git_file(repos->sys, fd, dir, path, sizeof(path));
	if (r < 0) {
		*why = repo_why("can't follow '%s/.git': %s", dir,
		    r == -EINVAL ? "the file names no repository" :
				   strerror(-r));
		return repo_open_status(r);
	}
	status = repo_find(repos, path, place, why);
	if (status != REFD_OK || st.uid == place->st.uid)
		return status;
	*why = repo_why("'%s/.git' belongs to uid %u, and the repository '%s' "
			"to uid %u: name the repository itself",
	    dir, st.uid, place->path, place->st.uid);
	SYS(repos->sys, close, place->fd);
	place->fd = -1;
	return REFD_DENIED;
}

enum refd_status repo_find_named(const struct repos *repos, const char *arg,
    struct repo_place *place, char **why)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	const struct sys *sys = repos->sys;
	char path[REFD_PATH_MAX];
	enum refd_status status;
	int dir, fd = -ENAMETOOLONG, r;

	dir = SYS(sys, openat, SYS_TRUSTED, arg, flags, 0);
	if (dir >= 0 &&
	    (size_t)snprintf(path, sizeof(path), "%s/.git", arg) < sizeof(path))
		fd = SYS(sys, openat, SYS_TRUSTED, path, flags, 0);
	r = dir < 0 ? dir :
		      SYS(sys, fd_path, fd >= 0 ? fd : dir, path, sizeof(path));
	if (r < 0) {
		*why = repo_why("can't open '%s': %s", arg, strerror(-r));
		status = repo_open_status(r);
	} else if (fd == -ENOTDIR) {
		status = follow_git_file(repos, dir, path, place, why);
	} else {
		status = repo_find(repos, path, place, why);
	}
	if (fd >= 0)
		SYS(sys, close, fd);
	if (dir >= 0)
		SYS(sys, close, dir);
	return status;
}

/* ---- by the daemon's own path ---- */

int repo_find_known(const struct repos *repos, const char *path,
    struct repo_place *place)
{
	return open_place(repos, path, place);
}

/* ---- git refs migrate ---- */

/* A git directory has about 15 entries, but others may make any number, so the
 * search has an end. */
#define ENTRIES_MAX 1000

bool repo_has_migration(const struct sys *sys, int fd,
    char name[REPO_MIGRATION_MAX])
{
	static const char prefix[] = "ref_migration.";
	struct sys_dirent entry;
	struct sys_dir *dir;
	bool found = false;
	unsigned nr = 0;

	if (SYS(sys, dir_open, fd, ".", &dir) < 0)
		return false;
	while (!found && nr++ < ENTRIES_MAX &&
	    SYS(sys, dir_next, dir, &entry) > 0) {
		found = strncmp(entry.name, prefix, strlen(prefix)) == 0 &&
		    strlen(entry.name) < REPO_MIGRATION_MAX;
		if (found)
			strcpy(name, entry.name);
	}
	SYS(sys, dir_close, dir);
	return found;
}
