#include "client/native.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gitdate.h"

/* Readers of symbolic refs stop here too (SYMREF_MAXDEPTH). */
#define SYMREFS_MAX 5

static bool is_rule_for_update(const char *key, const char *value)
{
	size_t len = strlen(key);

	if (has_prefix(key, "receive.deny"))
		return true;
	/* Hooks from the configuration, git 2.54 and later. */
	return has_prefix(key, "hook.") && len > 6 &&
	    !strcmp(key + len - 6, ".event") &&
	    (!strcmp(value, "update") ||
		!strcmp(value, "reference-transaction"));
}

static bool has_rules(const struct gitconfig *config)
{
	const char *key, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &key, &value))
		if (is_rule_for_update(key, value))
			return true;
	return false;
}

static bool is_executable(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	bool is = access(path, X_OK) == 0;

	free(path);
	return is;
}

static bool has_hooks(const struct gitconfig *config, const struct gitdir *gd)
{
	const char *set = gitconfig_get(config, "core.hookspath");
	char *dir;
	bool has;

	/* git expands these two. */
	if (set && (set[0] == '~' || set[0] == '%'))
		return true;
	dir = set ? xstrdup(set) : xasprintf("%s/hooks", gd->common);
	has = is_executable(dir, "update") ||
	    is_executable(dir, "reference-transaction");
	free(dir);
	return has;
}

/* Branches checked out elsewhere are not for a push to move. */
static bool has_worktrees(const struct gitdir *gd)
{
	char *path = xasprintf("%s/worktrees", gd->common);
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool has = false;

	free(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			has = true;
	if (dir)
		closedir(dir);
	return has;
}

/* What the symbolic ref NAME points to; false if it is none. */
static bool read_symref(const struct gitdir *gd, struct text *name)
{
	char *path = xasprintf("%s/%s", gd->common, name->data);
	struct text t = { 0 };
	const char *target;
	bool is;

	is = text_read_file(&t, path) == 0 && has_prefix(t.data, "ref:");
	if (is) {
		target = t.data + 4 + strspn(t.data + 4, " \t");
		text_clear(name);
		text_add(name, target, strcspn(target, " \t\r\n"));
	}
	text_done(&t);
	free(path);
	return is;
}

/* receive.denyDeleteCurrent refuses unless it is told not to. */
static bool deletes_current(const struct push *push, const struct gitdir *gd)
{
	struct text current = { 0 };
	bool does = false;
	size_t i;

	text_adds(&current, "HEAD");
	for (i = 0; i < SYMREFS_MAX && read_symref(gd, &current); i++)
		;
	for (i = 0; i < push->nr; i++)
		if (refd_oid_is_null(&push->commands[i].new_oid) &&
		    !strcmp(push->commands[i].name, current.data))
			does = true;
	text_done(&current);
	return does;
}

static bool has_symlinked_head(const struct gitdir *gd)
{
	char *path = xasprintf("%s/HEAD", gd->common);
	struct stat st;
	bool has = lstat(path, &st) < 0 || S_ISLNK(st.st_mode);

	free(path);
	return has;
}

/* git warns, and lets it pass. */
static bool deletes_nothing(const struct push *push)
{
	size_t i;

	for (i = 0; i < push->nr; i++)
		if (refd_oid_is_null(&push->commands[i].new_oid) &&
		    refd_oid_is_null(&push->commands[i].old_oid))
			return true;
	return false;
}

static bool has_odd_date(void)
{
	const char *date = getenv("GIT_COMMITTER_DATE");
	struct gitdate parsed;

	return date && *date && !gitdate_parse(date, &parsed);
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

const char *native_reason(const struct push *push,
    const struct gitconfig *config, const struct gitdir *gd)
{
	if (push->other_hash)
		return "its object ids are not SHA-1";
	if (is_set("GIT_NAMESPACE"))
		return "GIT_NAMESPACE is set";
	if (getenv("GIT_SHALLOW_FILE"))
		return "the push is shallow";
	if (!gitconfig_bool(config, "core.bare", false) ||
	    gitconfig_get(config, "core.worktree"))
		return "the repository is not bare";
	if (strcmp(gd->path, gd->common) || has_worktrees(gd))
		return "the repository has work trees";
	if (has_rules(config))
		return "receive.deny* or a hook is configured";
	if (has_hooks(config, gd))
		return "it has an update or reference-transaction hook";
	if (deletes_nothing(push))
		return "a ref is to be deleted that was not there";
	if (has_symlinked_head(gd))
		return "HEAD is a symbolic link";
	if (deletes_current(push, gd))
		return "the current branch is to be deleted";
	if (has_odd_date())
		return "GIT_COMMITTER_DATE is for git to read";
	return NULL;
}
