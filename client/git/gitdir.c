#include "client/git/gitdir.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/oid.h"

/* As git's limit for a .git file. */
#define FILE_BYTES (1 << 20)

static char *join(const char *dir, const char *name)
{
	return name[0] == '/' ? xstrdup(name) : xasprintf("%s/%s", dir, name);
}

static void trim_end(struct text *t)
{
	while (t->len && strchr("\r\n", t->data[t->len - 1]))
		t->data[--t->len] = '\0';
}

/* The path in DIR/commondir, or DIR itself; NULL if it can't be read. */
static char *common_of(const char *dir)
{
	const char *env = getenv("GIT_COMMON_DIR");
	char *file, *common = NULL;
	struct text t = { 0 };
	int err;

	if (env && *env)
		return xstrdup(env);
	file = join(dir, "commondir");
	err = text_read_regular(&t, file, FILE_BYTES);
	trim_end(&t);
	if (err == -ENOENT)
		common = xstrdup(dir);
	else if (err == 0 && t.len)
		common = join(dir, t.data);
	text_done(&t);
	free(file);
	return common;
}

/* git only checks that HEAD looks valid (validate_headref). An id of SHA-256
 * begins as an id of SHA-1. */
static bool has_head(const char *dir)
{
	char *head = join(dir, "HEAD");
	struct text t = { 0 };
	struct refd_oid oid;
	struct stat st;
	bool ok = false;

	if (lstat(head, &st) == 0 && S_ISLNK(st.st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlink(head, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		ok = has_prefix(target, "refs/");
	} else if (text_read_regular(&t, head, FILE_BYTES) == 0) {
		const char *at = t.data;

		if (has_prefix(at, "ref:")) {
			at += 4;
			at += strspn(at, " \t\r\n");
			ok = has_prefix(at, "refs/");
		} else {
			ok = refd_oid_parse(at, REFD_FORMAT_SHA1, &oid) == 0;
		}
	}
	text_done(&t);
	free(head);
	return ok;
}

static bool may_enter(const char *dir, const char *name)
{
	char *path = join(dir, name);
	bool ok = access(path, X_OK) == 0;

	free(path);
	return ok;
}

static bool is_git_directory(const char *dir)
{
	const char *objects = getenv("GIT_OBJECT_DIRECTORY");
	char *common;
	bool ok;

	if (!has_head(dir))
		return false;
	common = common_of(dir);
	ok = common && may_enter(common, "refs") &&
	    (objects ? access(objects, X_OK) == 0 :
		       may_enter(common, "objects"));
	free(common);
	return ok;
}

/* The target of a gitfile, as in read_gitfile_gently() of git's setup.c; NULL
 * with *WHY. */
static char *parse_git_file(const char *path, const struct text *t,
    struct text *why)
{
	static const char key[] = "gitdir: ";
	const char *slash = strrchr(path, '/');
	char *dir, *target;

	if (!has_prefix(t->data, key)) {
		text_addf(why, "invalid gitfile format: %s", path);
		return NULL;
	}
	if (t->len == sizeof(key) - 1) {
		text_addf(why, "no path in gitfile: %s", path);
		return NULL;
	}
	dir = slash ? xasprintf("%.*s", (int)(slash - path) + 1, path) :
		      xstrdup(".");
	target = join(dir, t->data + sizeof(key) - 1);
	free(dir);
	if (is_git_directory(target))
		return target;
	free(target);
	text_addf(why, "gitfile does not point to a valid repository: %s",
	    path);
	return NULL;
}

/* The repository behind a ".git" file at PATH. NULL: PATH is no such file, or,
 * with *WHY, an invalid file. */
static char *follow_git_file(const char *path, struct text *why)
{
	struct text t = { 0 };
	char *target = NULL;
	struct stat st;
	int err;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	err = text_read_regular(&t, path, FILE_BYTES);
	if (err < 0) {
		text_addf(why, "error opening '%s': %s", path, strerror(-err));
	} else {
		trim_end(&t);
		target = parse_git_file(path, &t, why);
	}
	text_done(&t);
	return target;
}

static bool settle(struct gitdir *gd, const char *dir, struct text *why)
{
	char *common = common_of(dir);
	struct gitdir found = { 0 };
	struct stat st;

	found.path = realpath(dir, NULL);
	found.common = common ? realpath(common, NULL) : NULL;
	free(common);
	if (!found.path || !found.common || stat(found.common, &st) < 0) {
		text_addf(why, "cannot find the common directory of '%s'", dir);
		gitdir_done(&found);
		return false;
	}
	found.dev = st.st_dev;
	found.ino = st.st_ino;
	*gd = found;
	return true;
}

/* Checks DIR/.git (a directory or a file), then DIR. NULL: neither is a
 * repository, or, with *WHY, a file can't be followed. */
static char *repository_in(const char *dir, struct text *why)
{
	char *dot = join(dir, ".git");
	char *target = follow_git_file(dot, why);

	if (target || why->len) {
		free(dot);
		return target;
	}
	if (is_git_directory(dot))
		return dot;
	free(dot);
	return is_git_directory(dir) ? xstrdup(dir) : NULL;
}

/* Length of the longest directory in GIT_CEILING_DIRECTORIES above PATH, or
 * 0. */
static size_t ceiling_of(const char *path)
{
	const char *at = getenv("GIT_CEILING_DIRECTORIES");
	size_t longest = 0;

	while (at && *at) {
		size_t len = strcspn(at, ":");
		size_t trimmed = len;

		while (trimmed > 1 && at[trimmed - 1] == '/')
			trimmed--;
		if (at[0] == '/' && trimmed > longest &&
		    !strncmp(path, at, trimmed) && path[trimmed] == '/')
			longest = trimmed;
		at += len + (at[len] == ':');
	}
	return longest;
}

static bool is_other_device(const char *dir, dev_t dev)
{
	struct stat st;

	return stat(dir, &st) < 0 || st.st_dev != dev;
}

static bool may_cross_devices(void)
{
	const char *env = getenv("GIT_DISCOVERY_ACROSS_FILESYSTEM");

	return env && *env && strcmp(env, "0") && strcmp(env, "false");
}

/* Changes DIR to the directory where the repository was found. NULL: not found;
 * *WHY is set if there is a special reason. */
static char *search_upwards(char *dir, struct text *why)
{
	size_t ceiling = ceiling_of(dir), len;
	struct stat st;
	char *found;

	if (stat(dir, &st) < 0)
		return NULL;
	for (;;) {
		found = repository_in(dir, why);
		if (found || why->len || !strcmp(dir, "/"))
			return found;
		len = (size_t)(strrchr(dir, '/') - dir);
		if (ceiling && len <= ceiling)
			return NULL;
		dir[len ? len : 1] = '\0';
		if (may_cross_devices() || !is_other_device(dir, st.st_dev))
			continue;
		text_addf(why,
		    "not a git repository (or any parent up to mount point "
		    "%s)\nStopping at filesystem boundary "
		    "(GIT_DISCOVERY_ACROSS_FILESYSTEM not set).",
		    dir);
		return NULL;
	}
}

/* FOUND has the name DIR or DIR/.git, and is not from a gitfile. */
static bool is_directly_in(const char *found, const char *dir)
{
	char *dot = join(dir, ".git");
	bool is = !strcmp(found, dir) || !strcmp(found, dot);

	free(dot);
	return is;
}

static bool from_current_directory(struct gitdir *gd, struct text *why)
{
	char *cwd = getcwd(NULL, 0);
	char *found;
	bool ok;

	if (!cwd) {
		text_addf(why, "Unable to read current working directory: %s",
		    strerror(errno));
		return false;
	}
	found = search_upwards(cwd, why);
	if (!found && !why->len)
		text_adds(why,
		    "not a git repository (or any of the parent "
		    "directories): .git");
	ok = found && settle(gd, found, why);
	if (ok) {
		gd->top = cwd;
		gd->is_linked = !is_directly_in(found, cwd);
	} else {
		free(cwd);
	}
	free(found);
	return ok;
}

bool gitdir_find(struct gitdir *gd, const char *dir, struct text *why)
{
	char *target;
	bool ok = false;

	text_clear(why);
	if (!dir)
		return from_current_directory(gd, why);
	target = follow_git_file(dir, why);
	if (target || is_git_directory(dir))
		ok = settle(gd, target ? target : dir, why);
	else if (!why->len)
		text_addf(why, "not a git repository: '%s'", dir);
	if (ok)
		gd->is_linked = target != NULL;
	free(target);
	return ok;
}

void gitdir_require(struct gitdir *gd, const char *dir)
{
	struct text why = { 0 };

	if (!gitdir_find(gd, dir, &why))
		die("%s", why.data);
	text_done(&why);
}

bool gitdir_at(struct gitdir *gd, const char *dir, struct text *why)
{
	char *found;
	bool ok = false;

	text_clear(why);
	found = repository_in(dir, why);
	if (found)
		ok = settle(gd, found, why);
	else if (!why->len)
		text_addf(why, "not a git repository: '%s'", dir);
	free(found);
	return ok;
}

void gitdir_done(struct gitdir *gd)
{
	free(gd->path);
	free(gd->common);
	free(gd->top);
	memset(gd, 0, sizeof(*gd));
}
