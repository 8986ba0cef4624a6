#include "client/git/safe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/quote.h"

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

/* As real_pathdup(): the last component need not exist. */
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

/* Only git knows its prefix, and which paths are optional. */
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

bool safe_owner(const char *gitfile, const char *worktree, const char *git_dir,
    const char *here, struct text *why)
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

bool safe_bare(const char *dir, struct text *why)
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
