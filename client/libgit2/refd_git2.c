/*
 * Attaches a repository to refd.
 *
 * The happy path: checks that libgit2 can read the refs of the repository, and
 * replaces the backend of its ref database.
 *
 * What fails: the call. The repository then has its earlier backend.
 */
#include "client/libgit2/refd_git2.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/libgit2/backend.h"
#include "proto/limits.h"

#ifdef GIT_EXPERIMENTAL_SHA256
#error "this build of libgit2 has ids of another form"
#endif

static int is_of_user_or_system(const git_config_entry *entry, void *value)
{
	return entry->level < GIT_CONFIG_LEVEL_LOCAL &&
	    strcmp(entry->value, value) == 0;
}

/* Is PATH named by the repository alone? As is_named_by() of the commands'
 * client/request/connect.c. */
static bool is_named_by_repository(const git_config *config, const char *path)
{
	return strcmp(path, REFD_SYSTEM_SOCKET) != 0 &&
	    git_config_get_multivar_foreach(config, "refd.socket", NULL,
		is_of_user_or_system, (void *)path) == 0;
}

static bool is_own(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 &&
	    (st.st_uid == 0 || st.st_uid == geteuid());
}

/* Writes the path to OWN or returns a borrowed path. */
static const char *find_socket(const git_config *config, char own[PATH_MAX],
    bool *is_guarded)
{
	const char *path = getenv("REFD_SOCKET");
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (path && *path)
		return path;
	if (git_config_get_string(&path, config, "refd.socket") == 0 && *path) {
		*is_guarded = is_named_by_repository(config, path);
		return path;
	}
	/* As in client/request/connect.c. */
	if (run && *run && is_own(run) &&
	    snprintf(own, PATH_MAX, "%s/refd.sock", run) < PATH_MAX &&
	    is_own(own))
		return own;
	return REFD_SYSTEM_SOCKET;
}

/* Is KEY unset, or WANTED? */
static bool is_or_unset(const git_config *config, const char *key,
    const char *wanted)
{
	const char *value;
	int err = git_config_get_string(&value, config, key);

	return err == GIT_ENOTFOUND ||
	    (err == 0 && strcasecmp(value, wanted) == 0);
}

/* libgit2 refuses most of these repositories itself. A program can change this
 * by GIT_OPT_SET_EXTENSIONS, so all are checked here. */
static int check_repository(git_repository *repo, const git_config *config)
{
	if (!git_repository_path(repo))
		return backend_fail(GIT_EINVALID,
		    "refd: the repository is only in memory");
	if (git_repository_get_namespace(repo))
		return backend_fail(GIT_EINVALID,
		    "refd: a repository with a namespace is not supported");
	if (!is_or_unset(config, "extensions.objectformat", "sha1"))
		return backend_fail(GIT_EINVALID,
		    "refd: libgit2 cannot read a repository of SHA-256");
	if (!is_or_unset(config, "extensions.refstorage", "files"))
		return backend_fail(GIT_EINVALID,
		    "refd: libgit2 cannot read refs in reftables");
	return 0;
}

/* Another version may have another struct git_refdb_backend. */
static int check_version(void)
{
	int major, minor, patch;

	git_libgit2_version(&major, &minor, &patch);
	if (major == LIBGIT2_VER_MAJOR && minor == LIBGIT2_VER_MINOR)
		return 0;
	return backend_fail(GIT_EINVALID,
	    "refd: librefd-git2 was built for libgit2 %d.%d, and this is "
	    "libgit2 %d.%d",
	    LIBGIT2_VER_MAJOR, LIBGIT2_VER_MINOR, major, minor);
}

static int replace_backend(git_repository *repo, struct backend *be)
{
	git_refdb *db;
	int err = git_repository_refdb(&db, repo);

	if (err < 0)
		return err;
	err = git_refdb_set_backend(db, &be->parent);
	git_refdb_free(db);
	return err;
}

int refd_git2_attach(git_repository *repo, const char *socket)
{
	git_config *config = NULL;
	struct backend *be = NULL;
	bool is_guarded = false;
	char own[PATH_MAX];
	int err;

	err = check_version();
	if (err == 0)
		err = git_repository_config_snapshot(&config, repo);
	if (err == 0)
		err = check_repository(repo, config);
	if (err == 0)
		err = backend_new(&be, repo,
		    socket ? socket : find_socket(config, own, &is_guarded));
	git_config_free(config);
	if (err == 0)
		be->is_guarded = is_guarded;
	if (err == 0)
		err = replace_backend(repo, be);
	if (err < 0)
		backend_free(be);
	return err;
}
