/*
 * Repositories through libgit2.
 *
 * Happy path:
 *	open	read <common>/config, check the format; let libgit2 open the
 *		directory, which checks what makes a repository; read the
 *		settings; open the object database
 *	object	read one header
 *
 * Failure modes:
 *	a format that refd can't write (git itself does it then), told by name
 *	no repository there, or one that can't be read
 *	objects pruned meanwhile: refresh opens the object database anew
 */
#include "daemon/store/repos/gitrepo.h"

#include <assert.h>
#include <git2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Permission bits that core.sharedRepository's words stand for (git's
 * path.h: PERM_GROUP, PERM_EVERYBODY). */
#define SHARED_GROUP     0660
#define SHARED_EVERYBODY 0664

/* Tags of tags: nobody has more, and who made more would be waited for. */
#define TAGS_DEEP 8

struct gitrepo {
	struct gitrepo_config config;
	char *log_all_ref_updates;
	char *objects_dir;
	git_odb *odb;
};

/* ---- the process ---- */

/* Ownership is refd's own rule, and no repository's reading may depend on
 * whose home the daemon was started in. The object cache would only grow:
 * headers are read, objects are not. */
void gitrepo_global_init(void)
{
	static const git_config_level_t levels[] = {
		GIT_CONFIG_LEVEL_PROGRAMDATA,
		GIT_CONFIG_LEVEL_SYSTEM,
		GIT_CONFIG_LEVEL_XDG,
		GIT_CONFIG_LEVEL_GLOBAL,
	};
	size_t i;
	int r;

	r = git_libgit2_init();
	for (i = 0; r >= 0 && i < sizeof(levels) / sizeof(levels[0]); i++)
		r = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	if (r >= 0)
		r = git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	if (r >= 0)
		r = git_libgit2_opts(GIT_OPT_ENABLE_CACHING, 0);
	/* Some builds have read all authorities that the system trusts by now,
	 * half a megabyte for nothing: a directory without files has none. */
	git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, NULL,
	    "/proc/self/task");
	/* Only a libgit2 other than the one built for, or no memory. */
	assert(r >= 0);
}

void gitrepo_global_done(void)
{
	git_libgit2_shutdown();
}

/* ---- what is wrong ---- */

/* NULL when out of memory, as *WHY may be. */
__attribute__((format(printf, 1, 2))) static char *text(const char *fmt, ...)
{
	va_list ap;
	char *out;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&out, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : out;
}

static const char *libgit2_says(void)
{
	const git_error *error = git_error_last();

	return error != NULL && error->message != NULL ? error->message : "";
}

/* ---- the format ---- */

static bool is_any(const char *name, const char *const *names, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

#define IS_ANY(name, names)                                                    \
	is_any(name, names, sizeof(names) / sizeof(*(names)))

/* In version 1 git refuses what it does not know, and so does refd; in
 * version 0 git passes over what it does not know, but for these, which it
 * obeys or dies of. */
static bool extension_ok(int32_t version, const char *name, const char *value)
{
	static const char *const minded_in_v0[] = {
		"compatobjectformat",
		"noop-v1",
		"objectformat",
		"partialclone",
		"refstorage",
		"relativeworktrees",
	};
	static const char *const harmless[] = {
		"noop",
		"noop-v1",
		"preciousobjects",
		"relativeworktrees",
		"worktreeconfig",
	};

	if (version == 0)
		return !IS_ANY(name, minded_in_v0);
	return IS_ANY(name, harmless) ||
	    (strcmp(name, "objectformat") == 0 && strcmp(value, "sha1") == 0) ||
	    (strcmp(name, "refstorage") == 0 && strcmp(value, "files") == 0);
}

/* 1 and *WHY for the first extension that is in the way. By an iterator of
 * ours: libgit2's own matching of names leaks for each that does not match. */
static int find_refused(git_config *config, int32_t version, char **why)
{
	static const char prefix[] = "extensions.";
	git_config_iterator *iter;
	git_config_entry *entry;
	const char *value;
	int r;

	r = git_config_iterator_new(&iter, config);
	if (r < 0)
		return r;
	while ((r = git_config_next(&entry, iter)) == 0) {
		value = entry->value != NULL ? entry->value : "";
		if (strncmp(entry->name, prefix, sizeof(prefix) - 1) != 0 ||
		    extension_ok(version, entry->name + sizeof(prefix) - 1,
			value))
			continue;
		*why = text("unsupported extension %s=%s", entry->name, value);
		r = 1;
		break;
	}
	git_config_iterator_free(iter);
	return r == GIT_ITEROVER ? 0 : r;
}

/* git reads the format from <common>/config alone, without what its own user
 * configures. */
static enum gitrepo_problem check_format(const char *common_dir, char **why)
{
	git_config *config = NULL;
	int32_t version = 0;
	char *path;
	int r;

	path = text("%s/config", common_dir);
	if (path == NULL) {
		*why = NULL;
		return GITREPO_FAILED;
	}
	r = git_config_open_ondisk(&config, path);
	if (r == 0) {
		r = git_config_get_int32(&version, config,
		    "core.repositoryformatversion");
		if (r == GIT_ENOTFOUND)
			r = 0;
	}
	if (r == 0 && (version < 0 || version > 1)) {
		r = 1;
		*why = text("core.repositoryFormatVersion is not 0 or 1");
	}
	if (r == 0)
		r = find_refused(config, version, why);
	if (r < 0)
		*why = text("can't read its config: %s", libgit2_says());
	git_config_free(config);
	free(path);
	return r < 0 ? GITREPO_FAILED :
	    r > 0    ? GITREPO_UNSUPPORTED :
		       GITREPO_OK;
}

/* ---- the settings ---- */

int gitrepo_parse_shared(const char *value, int *perm)
{
	long n;
	char *end;
	int yes;

	if (value == NULL || strcmp(value, "group") == 0) {
		*perm = SHARED_GROUP;
		return 0;
	}
	if (strcmp(value, "umask") == 0) {
		*perm = 0;
		return 0;
	}
	if (strcmp(value, "all") == 0 || strcmp(value, "world") == 0 ||
	    strcmp(value, "everybody") == 0) {
		*perm = SHARED_EVERYBODY;
		return 0;
	}
	n = strtol(value, &end, 8);
	if (*end != '\0') {
		if (git_config_parse_bool(&yes, value) < 0)
			return -1;
		*perm = yes ? SHARED_GROUP : 0;
		return 0;
	}
	if (n >= 0 && n <= 2) {
		*perm = n == 0 ? 0 : n == 1 ? SHARED_GROUP : SHARED_EVERYBODY;
		return 0;
	}
	if ((n & 0600) != 0600)
		return -1;
	*perm = -(int)(n & 0666);
	return 0;
}

static bool is_dot_git(const char *common_dir)
{
	size_t len = strlen(common_dir);

	while (len > 0 && common_dir[len - 1] == '/')
		len--;
	return len >= 5 && strncmp(common_dir + len - 5, "/.git", 5) == 0;
}

/* One string; 1 when it is set, and *VALUE is NULL for a key without "=". */
static int get(git_config *config, const char *key, char **value)
{
	git_config_entry *entry;
	int r;

	*value = NULL;
	r = git_config_get_entry(&entry, config, key);
	if (r == GIT_ENOTFOUND)
		return 0;
	if (r < 0)
		return -1;
	r = 1;
	if (entry->value != NULL && (*value = strdup(entry->value)) == NULL)
		r = -1;
	git_config_entry_free(entry);
	return r;
}

static enum gitrepo_problem read_settings(git_config *config,
    const char *common_dir, struct gitrepo *repo, char **why)
{
	char *shared = NULL;
	int bare, r;

	r = git_config_get_bool(&bare, config, "core.bare");
	if (r == GIT_ENOTFOUND) {
		bare = !is_dot_git(common_dir);
		r = 0;
	}
	repo->config.bare = bare;
	if (r == 0)
		r = get(config, "core.logallrefupdates",
		    &repo->log_all_ref_updates);
	if (r == 1 && repo->log_all_ref_updates == NULL)
		repo->log_all_ref_updates = strdup("true");
	repo->config.log_all_ref_updates = repo->log_all_ref_updates;
	if (r >= 0)
		r = get(config, "core.sharedrepository", &shared);
	if (r < 0) {
		*why = text("can't read its config: %s", libgit2_says());
		return GITREPO_FAILED;
	}
	if (r == 1 &&
	    gitrepo_parse_shared(shared, &repo->config.shared_perm) < 0) {
		*why = text("bad core.sharedRepository: %s", shared);
		free(shared);
		return GITREPO_UNSUPPORTED;
	}
	free(shared);
	return GITREPO_OK;
}

/* Where extensions.worktreeConfig is set, core.bare of the main worktree may
 * stand in config.worktree, which libgit2 does not know. */
static int add_worktree_config(git_config *config, const char *common_dir)
{
	int yes = 0, r;
	char *path;

	r = git_config_get_bool(&yes, config, "extensions.worktreeconfig");
	if (r == GIT_ENOTFOUND || (r == 0 && !yes))
		return 0;
	if (r < 0 || (path = text("%s/config.worktree", common_dir)) == NULL)
		return -1;
	r = git_config_add_file_ondisk(config, path, GIT_CONFIG_LEVEL_APP, NULL,
	    0);
	free(path);
	return r;
}

/* ---- opening ---- */

static enum gitrepo_problem fill(git_repository *git, const char *common_dir,
    struct gitrepo *repo, char **why)
{
	git_buf objects = GIT_BUF_INIT;
	enum gitrepo_problem problem;
	git_config *config = NULL;
	int r;

	if (strcmp(git_repository_path(git), git_repository_commondir(git)) !=
	    0) {
		*why = text("it belongs to a linked worktree");
		return GITREPO_NOT_A_REPOSITORY;
	}
	r = git_repository_config(&config, git);
	if (r == 0)
		r = add_worktree_config(config, common_dir);
	if (r < 0) {
		*why = text("can't read its config: %s", libgit2_says());
		git_config_free(config);
		return GITREPO_FAILED;
	}
	problem = read_settings(config, common_dir, repo, why);
	git_config_free(config);
	if (problem != GITREPO_OK)
		return problem;
	r = git_repository_item_path(&objects, git,
	    GIT_REPOSITORY_ITEM_OBJECTS);
	if (r == 0 && (repo->objects_dir = strdup(objects.ptr)) == NULL)
		r = -1;
	git_buf_dispose(&objects);
	if (r < 0 || gitrepo_refresh_objects(repo) < 0) {
		*why = text("can't open its objects: %s", libgit2_says());
		return GITREPO_FAILED;
	}
	return GITREPO_OK;
}

/* git_repository_open_bare() searches nowhere, reads no environment and
 * judges no format: that is done by then, and by git's rules. */
enum gitrepo_problem gitrepo_open(const char *common_dir, struct gitrepo **out,
    char **why)
{
	enum gitrepo_problem problem;
	git_repository *git = NULL;
	struct gitrepo *repo;
	int r;

	git_error_clear();
	problem = check_format(common_dir, why);
	if (problem != GITREPO_OK)
		return problem;
	r = git_repository_open_bare(&git, common_dir);
	if (r == GIT_ENOTFOUND) {
		*why = text("not a git repository");
		return GITREPO_NOT_A_REPOSITORY;
	}
	repo = calloc(1, sizeof(*repo));
	if (r < 0 || repo == NULL) {
		problem = GITREPO_FAILED;
		*why = text("can't be opened: %s", libgit2_says());
	} else {
		problem = fill(git, common_dir, repo, why);
	}
	git_repository_free(git);
	if (problem == GITREPO_OK)
		*out = repo;
	else
		gitrepo_free(repo);
	return problem;
}

void gitrepo_free(struct gitrepo *repo)
{
	if (repo == NULL)
		return;
	git_odb_free(repo->odb);
	free(repo->objects_dir);
	free(repo->log_all_ref_updates);
	free(repo);
}

const struct gitrepo_config *gitrepo_config(const struct gitrepo *repo)
{
	return &repo->config;
}

/* ---- objects ---- */

int gitrepo_refresh_objects(struct gitrepo *repo)
{
	git_odb *odb;

	if (git_odb_open(&odb, repo->objects_dir) < 0)
		return -1;
	git_odb_free(repo->odb);
	repo->odb = odb;
	return 0;
}

enum gitrepo_object gitrepo_object(struct gitrepo *repo,
    const struct refd_oid *oid)
{
	git_object_t type;
	git_oid id;
	size_t len;
	int r;

	git_oid_fromraw(&id, oid->bytes);
	r = git_odb_read_header(&len, &type, repo->odb, &id);
	if (r == GIT_ENOTFOUND)
		return GITREPO_ABSENT;
	if (r < 0)
		return GITREPO_ERROR;
	switch (type) {
	case GIT_OBJECT_COMMIT:
		return GITREPO_COMMIT;
	case GIT_OBJECT_TREE:
		return GITREPO_TREE;
	case GIT_OBJECT_BLOB:
		return GITREPO_BLOB;
	case GIT_OBJECT_TAG:
		return GITREPO_TAG;
	case GIT_OBJECT_ANY:
	case GIT_OBJECT_INVALID:
	case GIT_OBJECT_OFS_DELTA:
	case GIT_OBJECT_REF_DELTA:
		break;
	}
	return GITREPO_ERROR;
}

/* 1: TO is another tag. Its first two lines are "object <hex>" and
 * "type <type>". */
static int peel_once(git_odb *odb, const struct refd_oid *tag,
    struct refd_oid *to)
{
	static const char type_tag[] = "\ntype tag\n";
	const size_t hex_at = strlen("object "), type_at = hex_at + 40;
	git_odb_object *object;
	const char *text;
	git_oid id;
	size_t len;
	int r = -1;

	git_oid_fromraw(&id, tag->bytes);
	if (git_odb_read(&object, odb, &id) < 0)
		return -1;
	text = git_odb_object_data(object);
	len = git_odb_object_size(object);
	if (git_odb_object_type(object) == GIT_OBJECT_TAG &&
	    len > type_at + strlen(type_tag) &&
	    strncmp(text, "object ", hex_at) == 0 &&
	    refd_oid_parse(text + hex_at, to) == 0)
		r = strncmp(text + type_at, type_tag, strlen(type_tag)) == 0;
	git_odb_object_free(object);
	return r;
}

int gitrepo_peel(struct gitrepo *repo, const struct refd_oid *tag,
    struct refd_oid *to)
{
	struct refd_oid at = *tag;
	int r = 1, deep;

	for (deep = 0; r > 0 && deep < TAGS_DEEP; deep++) {
		r = peel_once(repo->odb, &at, to);
		at = *to;
	}
	return r == 0 ? 0 : -1;
}
