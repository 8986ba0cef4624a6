/*
 * git's configuration: all entries in the order of "git config -z --list"
 * (system, user, repository, worktree, includes, environment). Blocking; one
 * thread.
 */
#ifndef CLIENT_GIT_GITCONFIG_H
#define CLIENT_GIT_GITCONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "client/git/gitdir.h"
#include "proto/lib/cli.h"
#include "proto/oid.h"

/* Zero-initialised is an empty configuration. */
struct gitconfig {
	struct text list;
	/* LIST from OWN to OWN_END is from the repository's own files, which
	 * whoever writes to the repository can change. */
	size_t own, own_end;
	/* LIST is from configfiles_list(): each "extensions.*" is from the
	 * repository's own file, and git heeds it. */
	bool is_from_files;
};

/* Reads git's files (configfiles.h), or runs git if they are not enough. A
 * failure of git ends the program. GD may be NULL: the configuration without
 * any repository, as of git_protected_config() of git's config.c. */
void gitconfig_load(struct gitconfig *config, const struct gitdir *gd);
/* The same, but a failure of git is returned: its exit status. */
int gitconfig_try(struct gitconfig *config, const struct gitdir *gd);
/* Runs git and returns its exit status. GIT_DIR may be NULL. An include may
 * lead to a file without an end, so git is killed after 30 seconds, and at most
 * 64 MiB are read. */
int gitconfig_read(struct gitconfig *config, const char *git_dir);
/* The same; only the values of the repository's own files, and of files that
 * these include. */
int gitconfig_read_own(struct gitconfig *config, const char *git_dir);
/* The same; FILE alone, without included files. */
int gitconfig_read_file(struct gitconfig *config, const char *file);
/* The entries of FILE alone, without includes. FILE is a repository's own file,
 * from which git takes the format of the repository. A malformed FILE ends the
 * program. */
void gitconfig_parse(struct gitconfig *config, const struct text *file);
void gitconfig_done(struct gitconfig *config);

/* Whether NAME and KEY are the same, where letter case counts in a
 * subsection. */
bool gitconfig_is_key(const char *name, const char *key);
/* The last value of KEY, borrowed; NULL if unset, "true" for a key without "=".
 * Letter case of KEY counts only in a subsection. */
const char *gitconfig_get(const struct gitconfig *config, const char *key);
/* The absolute path in core.hooksPath, owned; NULL: unset. A relative path
 * begins in the directory in which git runs hooks. Runs git for "~". */
char *gitconfig_hooks_path(const struct gitconfig *config,
    const struct gitdir *gd);
/* The command, owned, that removes values of KEY from the file with the last
 * value. PATTERN is a regular expression for these values; NULL: all values. If
 * no file has a value, the command shows where the values are instead. Runs
 * git. */
char *gitconfig_unset_command(const struct gitdir *gd, const char *key,
    const char *pattern);
/* Whether WANTED is a value of KEY outside of the repository's own files. */
bool gitconfig_has_outside(const struct gitconfig *config, const char *key,
    const char *wanted);
/* Appends the path in VALUE, with "~" and "%(prefix)/" expanded, or nothing if
 * an optional path is missing. False if git cannot expand the path. Runs
 * git. */
bool gitconfig_expand(const char *value, struct text *path);
/* Whether WANTED is a value of KEY. */
bool gitconfig_has(const struct gitconfig *config, const char *key,
    const char *wanted);
/* As git reads a boolean, so an invalid value ends the program. Returns UNSET
 * if there is no value. */
bool gitconfig_bool(const struct gitconfig *config, const char *key,
    bool unset);
/* The object format of the repository GD with CONFIG. Git reads extensions only
 * from the repository's own file. If git has printed CONFIG, its entries are
 * from all files. So if such a CONFIG names a format, git itself is asked.
 * Without an answer, the format is SHA-1. */
enum refd_object_format gitconfig_object_format(const struct gitconfig *config,
    const struct gitdir *gd);
/* Are the refs of the repository with CONFIG in reftables? */
bool gitconfig_is_reftable(const struct gitconfig *config);
/* Walks all entries; *AT starts at 0. */
bool gitconfig_next(const struct gitconfig *config, size_t *at,
    const char **key, const char **value);

#endif
