#include "client/git/gitdir.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/quote.h"
#include "proto/lib/cli.h"
#include "proto/oid.h"

/* ---- safe.directory ---- */

/*
 * git's rules about the repositories that git works in (safe.* in
 * git-config(1)), as in setup.c of git 2.55. Whoever owns a repository decides
 * about its hooks and settings, so both would serve a stranger.
 *
 * Blocking: a few stat(2). Only a repository of another user, and a bare
 * repository, cost a look at git's configuration; the repository's own files
 * do not count there. One thread.
 */

/* Without the repository's own files. */
static bool load(struct gitconfig *config, struct text *why)
{
	int status = gitconfig_try(config, NULL);

	if (status)
		text_addf(why, "git config failed with status %d", status);
	return status == 0;
}

/* ---- owners ---- */

/* As extract_id_from_env(). */
static void take_sudo_uid(uid_t *uid)
{
	const char *value = getenv("SUDO_UID");
	unsigned long id;
	char *end;

	if (!value || !*value)
		return;
	errno = 0;
	id = strtoul(value, &end, 10);
	if (!*end && !errno)
		*uid = (uid_t)id;
}

/* A link counts as its owner's, because the owner chose the target. */
static bool is_own(const char *path)
{
	uid_t uid = geteuid();
	struct stat st;

	if (!path)
		return true;
	if (lstat(path, &st) < 0)
		return false;
	if (uid == 0 && st.st_uid != 0)
		take_sudo_uid(&uid);
	return st.st_uid == uid;
}

/* ---- safe.directory ---- */

/* As real_pathdup(), so the last component need not exist. */
static char *real_path(const char *path)
{
	char *real = realpath(path, NULL), *parent, *slash;

	if (real || errno != ENOENT)
		return real;
	parent = xstrdup(path);
	slash = strrchr(parent, '/');
	if (slash && slash[1]) {
		*slash = '\0';
		real = realpath(slash == parent ? "/" : parent, NULL);
	}
	if (real) {
		char *whole = xasprintf("%s/%s", strcmp(real, "/") ? real : "",
		    slash + 1);

		free(real);
		real = whole;
	}
	free(parent);
	return real;
}

/* Only git knows its prefix, and which paths are optional, so git expands such
 * a value. */
static bool interpolate(const char *value, struct text *path)
{
	text_clear(path);
	if (strchr("~%:", value[0]))
		return gitconfig_expand(value, path);
	text_adds(path, value);
	return true;
}

static bool names(const char *allowed, const char *here, const char *repository)
{
	char *real;
	size_t len;
	bool is;

	if (allowed[0] != '/' && strcmp(allowed, ".")) {
		say_warning("safe.directory '%s' not absolute", allowed);
		return false;
	}
	real = real_path(allowed[0] == '/' ? allowed : here);
	len = real ? strlen(real) : 0;
	if (len >= 2 && !strcmp(real + len - 2, "/*"))
		is = !strncmp(real, repository, len - 1);
	else
		is = real && !strcmp(real, repository);
	free(real);
	return is;
}

/* As safe_directory_cb() for each value in turn. A key without a value resets
 * the list, as an empty value does; gitconfig_next() has "true" for it. */
static bool is_listed(const char *repository, const char *here,
    struct text *why)
{
	const char *key, *value;
	struct gitconfig config = { 0 };
	struct text path = { 0 };
	bool is_safe = false, ok = load(&config, why);
	size_t at = 0;

	while (ok && gitconfig_next(&config, &at, &key, &value)) {
		if (strcmp(key, "safe.directory"))
			continue;
		if (!*value || !strcmp(value, "true"))
			is_safe = false;
		else if (!strcmp(value, "*"))
			is_safe = true;
		else if (!(ok = interpolate(value, &path)))
			text_addf(why, "failed to expand user dir in: '%s'",
			    value);
		else if (path.len && names(path.data, here, repository))
			is_safe = true;
	}
	gitconfig_done(&config);
	text_done(&path);
	return ok && is_safe;
}

/*
 * As ensure_valid_ownership(): do GITFILE, WORKTREE and GIT_DIR belong to this
 * user, or does safe.directory name the repository? Root also trusts the user
 * who called sudo. GITFILE and WORKTREE may be NULL. HERE is the directory in
 * which the search began, the meaning of "." in safe.directory. False with *WHY
 * in git's words.
 */
static bool safe_owner(const char *gitfile, const char *worktree,
    const char *git_dir, const char *here, struct text *why)
{
	const char *named = worktree ? worktree : git_dir;
	char *real;
	bool is_safe;

	if (is_own(gitfile) && is_own(worktree) && is_own(git_dir))
		return true;
	real = real_path(named);
	is_safe = real && is_listed(real, here, why);
	free(real);
	if (is_safe || why->len)
		return is_safe;
	text_addf(why,
	    "detected dubious ownership in repository at '%s'\n"
	    "To add an exception for this directory, call:\n\n"
	    "\tgit config --global --add safe.directory ",
	    named);
	quote_shell(named, why);
	return false;
}

/* ---- safe.bareRepository ---- */

/* As is_implicit_bare_repo(): inside of the git-dir of a work tree. */
static bool is_of_work_tree(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return !strcmp(slash ? slash + 1 : dir, ".git") ||
	    strstr(dir, "/.git/worktrees/") || strstr(dir, "/.git/modules/");
}

/* May a search use the bare repository DIR (safe.bareRepository)? False with
 * *WHY. */
static bool safe_bare(const char *dir, struct text *why)
{
	static const char key[] = "safe.barerepository";
	struct gitconfig config = { 0 };
	const char *value = NULL;

	if (load(&config, why))
		value = gitconfig_get(&config, key);
	if (value && strcmp(value, "all") && strcmp(value, "explicit"))
		text_addf(why, "bad value '%s' for '%s'", value, key);
	else if (value && !strcmp(value, "explicit") && !is_of_work_tree(dir))
		text_addf(why,
		    "cannot use bare repository '%s' "
		    "(safe.bareRepository is '%s')",
		    dir, value);
	gitconfig_done(&config);
	return !why->len;
}

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

/* The path in DIR/commondir, or DIR itself, or NULL if the path can't be
 * read. */
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
 * begins as an id of SHA-1, so one check serves both formats. */
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
	found.owner = st.st_uid;
	*gd = found;
	return true;
}

/* The repository that git would find in a directory, with git's names. */
struct candidate {
	char *dir;     /* the git-dir; NULL: there is none */
	char *gitfile; /* the file that leads there, or NULL */
	bool is_bare;  /* the directory itself is the git-dir */
};

static void candidate_done(struct candidate *c)
{
	free(c->dir);
	free(c->gitfile);
}

/* Checks DIR/.git (a directory or a file), then DIR. False: neither is a
 * repository, or, with *WHY, a file can't be followed. */
static bool repository_in(const char *dir, struct candidate *c,
    struct text *why)
{
	char *dot = join(dir, ".git");

	memset(c, 0, sizeof(*c));
	c->dir = follow_git_file(dot, why);
	if (c->dir) {
		c->gitfile = dot;
		return true;
	}
	if (!why->len && is_git_directory(dot)) {
		c->dir = dot;
		return true;
	}
	free(dot);
	c->is_bare = !why->len && is_git_directory(dir);
	if (c->is_bare)
		c->dir = xstrdup(dir);
	return c->is_bare;
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

/* Changes DIR to the directory where the repository was found. False if there
 * is none, and *WHY is set if there is a special reason. */
static bool search_upwards(char *dir, struct candidate *c, struct text *why)
{
	size_t ceiling = ceiling_of(dir), len;
	struct stat st;

	if (stat(dir, &st) < 0)
		return false;
	for (;;) {
		if (repository_in(dir, c, why))
			return true;
		len = (size_t)(strrchr(dir, '/') - dir);
		if (why->len || !strcmp(dir, "/") ||
		    (ceiling && len <= ceiling))
			return false;
		dir[len ? len : 1] = '\0';
		if (may_cross_devices() || !is_other_device(dir, st.st_dev))
			continue;
		text_addf(why,
		    "not a git repository (or any parent up to mount point "
		    "%s)\nStopping at filesystem boundary "
		    "(GIT_DISCOVERY_ACROSS_FILESYSTEM not set).",
		    dir);
		return false;
	}
}

/* Fills in *GD from C in the directory DIR, under the rule of ownership. HERE
 * is where the search began, or NULL without the rule. */
static bool enter(struct gitdir *gd, const struct candidate *c, const char *dir,
    const char *here, struct text *why)
{
	if (!settle(gd, c->dir, why))
		return false;
	gd->is_linked = c->gitfile != NULL;
	if (!here ||
	    safe_owner(c->gitfile, c->is_bare ? NULL : dir,
		c->gitfile ? gd->path : c->dir, here, why))
		return true;
	gitdir_done(gd);
	return false;
}

static bool search(struct gitdir *gd, bool any_owner, struct text *why)
{
	char *cwd = getcwd(NULL, 0);
	struct candidate c = { 0 };
	bool ok = false;

	if (!cwd) {
		text_addf(why, "Unable to read current working directory: %s",
		    strerror(errno));
		return false;
	}
	if (search_upwards(cwd, &c, why))
		ok = (any_owner || !c.is_bare || safe_bare(cwd, why)) &&
		    enter(gd, &c, cwd, any_owner ? NULL : ".", why);
	else if (!why->len)
		text_adds(why,
		    "not a git repository (or any of the parent "
		    "directories): .git");
	if (ok)
		gd->top = cwd;
	else
		free(cwd);
	candidate_done(&c);
	return ok;
}

bool gitdir_find(struct gitdir *gd, const char *dir, struct text *why)
{
	char *target;
	bool ok = false;

	text_clear(why);
	if (!dir)
		return search(gd, false, why);
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

/* The rule looks at real paths, as after the chdir(2) of "git -C DIR", so a
 * link of another user decides about nothing. */
static bool find_in(struct gitdir *gd, const char *dir, bool any_owner,
    struct text *why)
{
	char *real = realpath(dir, NULL);
	struct candidate c = { 0 };
	bool ok = false;

	text_clear(why);
	if (!real)
		text_addf(why,
		    "can't open '%s': %s; name the directory of a "
		    "repository",
		    dir, strerror(errno));
	else if (repository_in(real, &c, why))
		ok = enter(gd, &c, real, any_owner ? NULL : real, why);
	else if (!why->len)
		text_addf(why, "not a git repository: '%s'", dir);
	candidate_done(&c);
	free(real);
	return ok;
}

bool gitdir_at(struct gitdir *gd, const char *dir, struct text *why)
{
	return find_in(gd, dir, false, why);
}

bool gitdir_locate(struct gitdir *gd, const char *dir, struct text *why)
{
	text_clear(why);
	return dir ? find_in(gd, dir, true, why) : search(gd, true, why);
}

void gitdir_done(struct gitdir *gd)
{
	free(gd->path);
	free(gd->common);
	free(gd->top);
	memset(gd, 0, sizeof(*gd));
}
