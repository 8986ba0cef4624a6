/*
 * Which directory a git-dir is, and its common dir.
 *
 * The happy path:
 *	root	the git-dir begins with the path of a root
 *	below	what is behind that is opened below the root, and nowhere
 *		else, whatever links somebody has put there
 *	common	GIT_DIR's own commondir file leads below a root again
 *
 * What fails is told in words. Nothing is looked at that is not below a root:
 * who may connect learns nothing of what the daemon sees elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_internal.h"

/* What is behind the root in PATH; NULL: it is not below that. */
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

/* -EXDEV: it is below none. */
static int open_below_root(const struct repos *repos, const char *path)
{
	const struct sys *sys = repos->sys;
	const char *rest;
	int root, fd = -EXDEV;
	size_t i;

	for (i = 0; i < repos->nr_roots && fd == -EXDEV; i++) {
		rest = behind(repos->roots[i], path);
		if (rest == NULL)
			continue;
		root = SYS(sys, openat, AT_FDCWD, repos->roots[i],
		    O_RDONLY | O_DIRECTORY, 0);
		fd = root < 0 ? root : SYS(sys, open_below, root, rest);
		if (root >= 0)
			SYS(sys, close, root);
	}
	return fd;
}

int repo_open_root(const void *arg, const char *path)
{
	return open_below_root(arg, path);
}

/* Where PATH is, and its real name. */
static enum refd_status open_dir(const struct repos *repos, const char *path,
    struct repo_place *place, char **why)
{
	const struct sys *sys = repos->sys;
	int r;

	r = place->fd = open_below_root(repos, path);
	if (r == -EXDEV) {
		*why = repo_why("'%s' is not under a root that refd serves "
				"(daemon.root, --root)",
		    path);
		return REFD_NOREPO;
	}
	if (r < 0) {
		*why = repo_why("can't open the repository '%s': %s", path,
		    strerror(-r));
		return REFD_NOREPO;
	}
	r = SYS(sys, fd_path, place->fd, place->path, sizeof(place->path));
	if (r == 0)
		r = SYS(sys, fstat, place->fd, &place->st);
	if (r == 0 && repo_owner_is_served(place->st.uid))
		return REFD_OK;
	if (r == 0)
		*why = repo_owner_why(place->path, place->st.uid);
	else
		*why = repo_why("can't read the repository's path '%s': %s",
		    path, strerror(-r));
	SYS(sys, close, place->fd);
	return r == 0 ? REFD_DENIED : REFD_NOREPO;
}

static enum refd_status open_common(const struct repos *repos,
    const struct repo_place *own, const char *common, struct repo_place *place,
    char **why)
{
	char path[2 * REFD_PATH_MAX];

	if (common[0] == '/')
		return open_dir(repos, common, place, why);
	snprintf(path, sizeof(path), "%s/%s", own->path, common);
	return open_dir(repos, path, place, why);
}

enum refd_status repo_find(const struct repos *repos, const char *git_dir,
    struct repo_place *place, char **why)
{
	struct repo_place own;
	enum refd_status status;
	size_t len;
	char *common;
	int r;

	if (git_dir[0] != '/') {
		*why =
		    repo_why("git-dir '%s' is not an absolute path", git_dir);
		return REFD_NOREPO;
	}
	status = open_dir(repos, git_dir, &own, why);
	if (status != REFD_OK)
		return status;
	r = sys_read_file(repos->sys, own.fd, "commondir", REFD_PATH_MAX,
	    &common, &len);
	if (r == -ENOENT) {
		*place = own;
		return REFD_OK;
	}
	if (r < 0) {
		*why = repo_why("can't read '%s/commondir': %s", own.path,
		    strerror(-r));
		status = REFD_NOREPO;
	} else {
		common[strcspn(common, "\n")] = '\0';
		status = open_common(repos, &own, common, place, why);
		free(common);
	}
	SYS(repos->sys, close, own.fd);
	return status;
}

int repo_find_known(const struct repos *repos, const char *path,
    struct repo_place *place)
{
	char *why = NULL;
	enum refd_status status = open_dir(repos, path, place, &why);

	free(why);
	if (status == REFD_DENIED)
		return -EKEYREJECTED;
	return status == REFD_OK ? 0 : -ENOENT;
}
