#include "client/git/configfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/format.h"
#include "proto/lib/config_file.h"

/* Git reads larger files, too, so a larger file is left to git. */
#define FILE_MAX_BYTES (1 << 20)
/* A hostile file could include a large file any number of times, so the number
 * of files has a limit. */
#define FILES_MAX 16

/* ---- a file ---- */

static const char *const booleans[] = { "true", "false", NULL };

static bool is_one_of(const char *s, const char *const words[])
{
	while (*words && strcmp(s, *words))
		words++;
	return *words != NULL;
}

/* The format in the repository's own "config". Git takes the format from this
 * file alone, without included files (check_repo_format() of git's setup.c), so
 * no other file adds to it. */
struct git_format {
	int version;            /* -1: the file names none */
	struct text extensions; /* name, NUL, value, NUL */
	bool has_worktree_config;
};

struct config_file {
	struct text *list;
	const struct gitdir *gd; /* NULL: no repository */
	unsigned *nr_files;      /* shared by all files */
	bool is_included;        /* the file is included by another */
	struct git_format *own;  /* NULL: another file */
};

static int add_file(const struct config_file *r, const char *path);

/* May git read the entry differently, or read more because of the entry? git
 * checks the core.* settings of check_repo_format() (setup.c) while it looks
 * for the repository. Before version 2.45, git replaced a tab inside a value by
 * a blank, so such a value depends on the version. */
static bool is_uncertain(const char *key, const char *value)
{
	static const char *const formats[] = { "0", "1", NULL };

	if (!strcmp(key, "core.worktree"))
		return true;
	if (!strcmp(key, "core.repositoryformatversion"))
		return !value || !is_one_of(value, formats);
	if (!strcmp(key, "core.bare") && value && !is_one_of(value, booleans))
		return true;
	return value && strpbrk(value, "\t\r");
}

/* ---- the format of the repository ---- */

/* Git dies if a value is not a boolean, or is missing, so such an extension is
 * left to git. */
static bool is_certain_extension(const char *name, const char *value)
{
	static const char *const ignored[] = { "noop", "noop-v1", NULL };
	static const char *const switches[] = { "preciousobjects",
		"relativeworktrees", "submodulepathconfig", "worktreeconfig",
		NULL };

	if (is_one_of(name, switches))
		return !value || is_one_of(value, booleans);
	return value || is_one_of(name, ignored);
}

/* False: only git knows. */
static bool note_format(struct git_format *own, const char *key,
    const char *value)
{
	const char *name = key + strlen("extensions.");

	if (!strcmp(key, "core.repositoryformatversion"))
		own->version = value[0] - '0';
	if (!has_prefix(key, "extensions."))
		return true;
	if (!is_certain_extension(name, value))
		return false;
	text_add(&own->extensions, name, strlen(name) + 1);
	value = value ? value : "true";
	text_add(&own->extensions, value, strlen(value) + 1);
	if (!strcmp(name, "worktreeconfig"))
		own->has_worktree_config = !strcmp(value, "true");
	return true;
}

/* Does refd serve the format? The version may follow the extensions in the
 * file, so all extensions are checked at the end. Git prints no settings of a
 * repository with an extension that git does not know. If refd serves the
 * extension, git must be older than the repository. */
static bool is_served(const struct git_format *own)
{
	char why[FORMAT_WHY_MAX];
	const char *name, *value;
	size_t at = 0;

	/* Git ignores all extensions if the file names no version. */
	if (own->version < 0 && own->extensions.len)
		return false;
	while (at < own->extensions.len) {
		name = own->extensions.data + at;
		value = name + strlen(name) + 1;
		if (!format_serves(own->version, name, value, why))
			return false;
		at += strlen(name) + strlen(value) + 2;
	}
	return true;
}

/* ---- entries ---- */

static int add_under(const struct config_file *r, const char *dir,
    const char *name);

/*
 * Follows the two includes that "refd enable" makes, as include_by_gitdir() of
 * git's config.c does: the record beside a repository's "config", whose
 * condition is always true; and with --system a file with an absolute path, for
 * all repositories below a directory.
 */
static int include(const struct config_file *r, const char *key,
    const char *path)
{
	static const char begin[] = "includeif.gitdir:/", end[] = "/.path";
	struct config_file included = *r;
	const char *dir = key + strlen(begin) - 1;
	size_t len = strlen(key);

	included.is_included = true;
	included.own = NULL;
	if (r->own && path && !strcmp(key, "includeif.gitdir:/.path") &&
	    !strcmp(path, "refd.gitconfig"))
		return add_under(&included, r->gd->common, path);
	if (r->is_included || !has_prefix(key, begin) ||
	    strcmp(key + len - strlen(end), end) || strpbrk(key, "*?[\\") ||
	    !path || path[0] != '/')
		return -EDOM;
	if (!r->gd || strncmp(r->gd->path, dir, strlen(dir) - strlen(".path")))
		return 0;
	return add_file(&included, path);
}

static int add_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	const struct config_file *r = arg;

	(void)line;
	if (is_uncertain(key, value))
		return -EDOM;
	if (r->own ? !note_format(r->own, key, value) :
		     has_prefix(key, "extensions."))
		return -EDOM;
	text_adds(r->list, key);
	if (value) {
		text_addc(r->list, '\n');
		text_adds(r->list, value);
	}
	text_addc(r->list, '\0');
	if (has_prefix(key, "include.") || has_prefix(key, "includeif."))
		return include(r, key, value);
	return 0;
}

static bool add_text(const struct config_file *r, const char *data, size_t len)
{
	struct config_file copy = *r;
	const char *why;
	unsigned line;

	return config_file_parse(data, len, add_entry, &copy, &line, &why) == 0;
}

bool configfiles_add(struct text *list, const char *data, size_t len)
{
	unsigned nr_files = 0;
	struct config_file r = { .list = list, .nr_files = &nr_files };

	return add_text(&r, data, len);
}

/* 0: the file is read, or absent. -EACCES: not readable. -EDOM: only git
 * knows. access() asks for the real user, as in git's access_or_die(), and not
 * for the effective user or the capabilities. */
static int add_file(const struct config_file *r, const char *path)
{
	struct text t = { 0 };
	struct stat st;
	bool ok;
	int fd;

	if (access(path, R_OK) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return errno == EACCES ? -EACCES : -EDOM;
	}
	if (++*r->nr_files > FILES_MAX)
		return -EDOM;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -EDOM;
	/* A file of /proc has the size 0, and its content may depend on the
	 * process, so only git can read the file. */
	ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    text_read(&t, fd, FILE_MAX_BYTES) == 0 &&
	    t.len == (size_t)st.st_size && add_text(r, t.data, t.len);
	close(fd);
	text_done(&t);
	return ok ? 0 : -EDOM;
}

/* ---- the system's file ---- */

static bool is_absent(const char *path)
{
	return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Does PATH run without an interpreter? A script could add settings, so the
 * result would not be certain. */
static bool is_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char magic[4];
	bool is =
	    fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4);

	if (fd >= 0)
		close(fd);
	return is;
}

/* The real path of the git in PATH, or NULL if none is certain. */
static char *find_git(void)
{
	const char *at = getenv("PATH");
	char *path, *real = NULL;
	bool found = false;

	while (at && *at == '/' && !found) {
		size_t len = strcspn(at, ":");

		path = xasprintf("%.*s/git", (int)len, at);
		found = access(path, X_OK) == 0;
		if (found)
			real = realpath(path, NULL);
		free(path);
		at += len + (at[len] == ':');
	}
	return real;
}

/*
 * Adds the system's file, if its path is certain. The path is a decision of
 * git's build (ETC_GITCONFIG). With the prefix /usr, as in distributions, the
 * path is /etc/gitconfig. With /usr/local there are two possible paths. Any
 * other build may have any path, so then the result is false, and git is asked.
 *
 * A build for one prefix can be copied to the other prefix, and a build that
 * can be moved (RUNTIME_PREFIX) has its file below its prefix. So if a second
 * file exists at one of these places, git is asked, too.
 */
static bool add_system(const struct config_file *r)
{
	/* In openSUSE, git itself is in the directory of its programs. */
	static const char *const usual[] = { "/usr/bin/git",
		"/usr/lib/git-core/git", "/usr/libexec/git-core/git",
		"/usr/lib/git/git", "/usr/libexec/git/git", NULL };
	static const char *const local[] = { "/usr/local/bin/git",
		"/usr/local/libexec/git-core/git", NULL };
	static const char *const yes[] = { "1", "true", NULL };
	const char *none = getenv("GIT_CONFIG_NOSYSTEM");
	char *git;
	bool ok;

	if (none)
		return is_one_of(none, yes);
	git = find_git();
	ok = git && is_program(git) && is_absent("/usr/etc/gitconfig") &&
	    is_absent("/usr/local/etc/gitconfig");
	if (ok && is_one_of(git, usual))
		ok = add_file(r, "/etc/gitconfig") == 0;
	else if (ok)
		ok = is_one_of(git, local) && is_absent("/etc/gitconfig");
	free(git);
	return ok;
}

/* ---- the other files ---- */

/* A relative path depends on the directory in which git runs, so only git knows
 * the file. */
static int add_under(const struct config_file *r, const char *dir,
    const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	int err = dir[0] == '/' ? add_file(r, path) : -EDOM;

	free(path);
	return err;
}

/* A service may have the HOME of another account, so git skips a user's file
 * that is not readable. */
static bool add_of_user(const struct config_file *r, const char *dir,
    const char *name)
{
	int err = add_under(r, dir, name);

	return err == 0 || err == -EACCES;
}

static bool add_user(const struct config_file *r)
{
	const char *home = getenv("HOME");
	const char *xdg = getenv("XDG_CONFIG_HOME");
	bool ok = true;

	if (xdg && *xdg)
		ok = add_of_user(r, xdg, "git/config");
	else if (home)
		ok = add_of_user(r, home, ".config/git/config");
	return ok && (!home || add_of_user(r, home, ".gitconfig"));
}

/* GIT_CONFIG_SYSTEM and GIT_CONFIG_GLOBAL mean nothing before git 2.32, so
 * their effect depends on the version. */
static bool has_settings_in_environment(void)
{
	static const char *const names[] = { "GIT_CONFIG",
		"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
		"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_COMMON_DIR",
		"GIT_WORK_TREE" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			return true;
	return false;
}

/* Git reads "config.worktree" as the last file (do_git_config_sequence() of
 * git's config.c). */
static bool add_repository(const struct config_file *r)
{
	struct git_format format = { .version = -1 };
	struct config_file own = *r;
	bool ok;

	own.own = &format;
	ok = add_under(&own, r->gd->common, "config") == 0 &&
	    is_served(&format) &&
	    (!format.has_worktree_config ||
		add_under(r, r->gd->path, "config.worktree") == 0);
	text_done(&format.extensions);
	return ok;
}

bool configfiles_list(struct text *list, const struct gitdir *gd, size_t *own)
{
	unsigned nr_files = 0;
	struct config_file r = { .list = list,
		.gd = gd,
		.nr_files = &nr_files };
	bool ok =
	    !has_settings_in_environment() && add_system(&r) && add_user(&r);

	*own = list->len;
	return ok && (!gd || add_repository(&r));
}
