/*
 * The extensions of git's repository format, as far as refd serves them. Git
 * reads "extensions.*" from the file "config" of the common directory
 * (check_repo_format() of git's setup.c). Client and daemon decide by the one
 * table in format.c.
 *
 * Pure; any thread; nothing blocks or allocates.
 */
#ifndef PROTO_FORMAT_H
#define PROTO_FORMAT_H

/*
 * Why refd does not serve a repository of format VERSION with
 * extensions.NAME=VALUE; NULL: refd serves the repository. Static; quotes no
 * argument. The case of NAME does not count. An unknown NAME is refused in
 * version 1 and ignored in version 0, as in git.
 */
const char *format_unserved(int version, const char *name, const char *value);

/* Why refd does not serve format VERSION at all, or NULL. Static. */
const char *format_version_unserved(int version);

#endif
