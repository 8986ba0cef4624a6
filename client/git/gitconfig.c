#include "client/git/gitconfig.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/base/child.h"
#include "client/git/configfiles.h"
#include "client/git/quote.h"
#include "proto/lib/config_file.h"

/* The owner of a repository can include a FIFO, or a file without an end, so
 * the time and the size have limits. */
static int ask_git(const char *const argv[], struct text *out)
{
	return child_capture_within(argv, out, 30, 64 << 20);
}

static void clear(struct gitconfig *config)
{
	text_clear(&config->list);
	config->own = config->own_end = 0;
	config->is_from_files = false;
}

/* Takes the entries of OUT, in which each entry follows its scope, and each of
 * both ends with a NUL. The repository's files follow each other, so their
 * entries are one part of the list. With IN_REPO false, the entries of the
 * repository are left out. */
static void take_scoped(struct gitconfig *config, const struct text *out,
    bool in_repo)
{
	size_t at = 0, begin = 0;
	const char *scope;
	bool is_own;

	while (at < out->len) {
		scope = out->data + at;
		at += strlen(scope) + 1;
		if (at >= out->len)
			break;
		is_own = !strcmp(scope, "local") || !strcmp(scope, "worktree");
		begin = config->list.len;
		if (in_repo || !is_own)
			text_add(&config->list, out->data + at,
			    strlen(out->data + at) + 1);
		if (is_own && !config->own_end)
			config->own = begin;
		if (is_own)
			config->own_end = config->list.len;
		at += strlen(out->data + at) + 1;
	}
}

int gitconfig_read(struct gitconfig *config, const char *git_dir)
{
	char *dir = xasprintf("--git-dir=%s", git_dir ? git_dir : "/dev/null");
	const char *argv[] = { "git", dir, "config", "-z", "--list",
		"--show-scope", NULL };
	struct text out = { 0 };
	int status = ask_git(argv, &out);

	clear(config);
	take_scoped(config, &out, git_dir != NULL);
	text_done(&out);
	free(dir);
	return status;
}

int gitconfig_read_own(struct gitconfig *config, const char *git_dir)
{
	int status = gitconfig_read(config, git_dir);
	struct text *list = &config->list;

	list->len = config->own_end - config->own;
	if (list->len)
		memmove(list->data, list->data + config->own, list->len);
	config->own = 0;
	config->own_end = list->len;
	return status;
}

int gitconfig_read_file(struct gitconfig *config, const char *file)
{
	const char *argv[] = { "git", "config", "--file", file, "-z", "--list",
		NULL };

	clear(config);
	return ask_git(argv, &config->list);
}

int gitconfig_try(struct gitconfig *config, const struct gitdir *gd)
{
	clear(config);
	if (configfiles_list(&config->list, gd, &config->own)) {
		config->own_end = config->list.len;
		config->is_from_files = true;
		return 0;
	}
	return gitconfig_read(config, gd ? gd->path : NULL);
}

void gitconfig_load(struct gitconfig *config, const struct gitdir *gd)
{
	int status = gitconfig_try(config, gd);

	if (status)
		die("git config failed with status %d", status);
}

bool gitconfig_expand(const char *value, struct text *path)
{
	char *setting = xasprintf("refd.path=%s", value);
	const char *argv[] = { "git", "--git-dir=/dev/null", "-c", setting,
		"config", "--type=path", "-z", "--get", "refd.path", NULL };
	bool ok = ask_git(argv, path) == 0;

	free(setting);
	return ok;
}

char *gitconfig_unset_command(const struct gitdir *gd, const char *key,
    const char *pattern)
{
	char *dir = xasprintf("--git-dir=%s", gd ? gd->path : "/dev/null");
	const char *argv[] = { "git", dir, "config", "-z", "--show-origin",
		"--get", key, pattern, NULL };
	struct text out = { 0 }, command = { 0 };

	if (ask_git(argv, &out) == 0 && out.len &&
	    has_prefix(out.data, "file:/")) {
		text_adds(&command, "git config --file ");
		quote_shell(out.data + strlen("file:"), &command);
		text_addf(&command, " --unset-all %s", key);
		if (pattern)
			text_adds(&command, " ");
		if (pattern)
			quote_shell(pattern, &command);
	} else {
		text_addf(&command, "git config --show-origin --get-all %s",
		    key);
	}
	text_done(&out);
	free(dir);
	return command.data;
}

char *gitconfig_hooks_path(const struct gitconfig *config,
    const struct gitdir *gd)
{
	const char *set = gitconfig_get(config, "core.hookspath");
	struct text t = { 0 };
	char *path = NULL;

	if (set && set[0] == '~' && gitconfig_expand(set, &t) && t.len)
		set = t.data;
	/* Git puts a slash and the name of the hook behind an empty value, so
	 * an empty value means the root directory. */
	if (set && !*set)
		set = "/";
	if (set)
		path = set[0] == '/' ? xstrdup(set) :
				       xasprintf("%s/%s", gd->path, set);
	text_done(&t);
	return path;
}

static int add_entry(void *list, const char *key, const char *value,
    unsigned line)
{
	(void)line;
	text_adds(list, key);
	if (value)
		text_addf(list, "\n%s", value);
	text_addc(list, '\0');
	return 0;
}

void gitconfig_parse(struct gitconfig *config, const struct text *file)
{
	const char *why = "out of memory";
	unsigned line = 0;

	if (config_file_parse(file->data, file->len, add_entry, &config->list,
		&line, &why) < 0)
		die("bad config line %u of the repository: %s", line, why);
	config->own_end = config->list.len;
	config->is_from_files = true;
}

void gitconfig_done(struct gitconfig *config)
{
	text_done(&config->list);
}

bool gitconfig_next(const struct gitconfig *config, size_t *at,
    const char **key, const char **value)
{
	static _Thread_local char name[1024];
	const char *entry, *newline;
	size_t len;

	if (*at >= config->list.len)
		return false;
	entry = config->list.data + *at;
	*at += strlen(entry) + 1;
	newline = strchr(entry, '\n');
	len = newline ? (size_t)(newline - entry) : strlen(entry);
	if (len >= sizeof(name))
		len = sizeof(name) - 1;
	memcpy(name, entry, len);
	name[len] = '\0';
	*key = name;
	*value = newline ? newline + 1 : "true";
	return true;
}

bool gitconfig_is_key(const char *name, const char *key)
{
	size_t sub = strcspn(key, ".");
	const char *last = strrchr(key, '.');
	size_t sub_len = last ? (size_t)(last - key) - sub : 0;

	return !strcasecmp(name, key) &&
	    !strncmp(name + sub, key + sub, sub_len);
}

const char *gitconfig_get(const struct gitconfig *config, const char *key)
{
	const char *name, *value, *last = NULL;
	size_t at = 0;

	while (gitconfig_next(config, &at, &name, &value))
		if (gitconfig_is_key(name, key))
			last = value;
	return last;
}

bool gitconfig_has(const struct gitconfig *config, const char *key,
    const char *wanted)
{
	const char *name, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &name, &value))
		if (gitconfig_is_key(name, key) && !strcmp(value, wanted))
			return true;
	return false;
}

/* A number with an optional suffix k, m or g. */
static bool is_number(const char *value, long *n)
{
	char *end;

	*n = strtol(value, &end, 0);
	if (end == value)
		return false;
	end += *end && strchr("kKmMgG", *end);
	return !*end;
}

bool gitconfig_has_outside(const struct gitconfig *config, const char *key,
    const char *wanted)
{
	const char *name, *value;
	size_t at = 0, begin = 0;

	for (; gitconfig_next(config, &at, &name, &value); begin = at)
		if ((begin < config->own || begin >= config->own_end) &&
		    gitconfig_is_key(name, key) && !strcmp(value, wanted))
			return true;
	return false;
}

bool gitconfig_bool(const struct gitconfig *config, const char *key, bool unset)
{
	const char *value = gitconfig_get(config, key);
	long n;

	if (!value)
		return unset;
	if (!strcasecmp(value, "true") || !strcasecmp(value, "yes") ||
	    !strcasecmp(value, "on"))
		return true;
	if (!*value || !strcasecmp(value, "false") ||
	    !strcasecmp(value, "no") || !strcasecmp(value, "off"))
		return false;
	if (!is_number(value, &n))
		die("bad boolean config value '%s' for '%s'", value, key);
	return n != 0;
}

enum refd_object_format gitconfig_object_format(const struct gitconfig *config,
    const struct gitdir *gd)
{
	const char *named = gitconfig_get(config, "extensions.objectformat");
	char *dir = gd ? xasprintf("--git-dir=%s", gd->path) : NULL;
	const char *argv[] = { "git", dir, "rev-parse", "--show-object-format",
		NULL };
	enum refd_object_format format = REFD_FORMAT_SHA1;
	struct text name = { 0 };

	if (named && config->is_from_files) {
		refd_object_format_from_name(named, &format);
	} else if (dir && named && ask_git(argv, &name) == 0 && name.len) {
		name.data[strcspn(name.data, "\n")] = '\0';
		refd_object_format_from_name(name.data, &format);
	}
	text_done(&name);
	free(dir);
	return format;
}

bool gitconfig_is_reftable(const struct gitconfig *config)
{
	const char *set = gitconfig_get(config, "core.repositoryformatversion");
	const char *storage = gitconfig_get(config, "extensions.refstorage");

	return set && strcmp(set, "0") && storage &&
	    !strcmp(storage, "reftable");
}
