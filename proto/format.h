/*
 * The extensions of git's repository format, as far as refd serves them. Git
 * reads "extensions.*" from the file "config" of the common directory
 * (check_repo_format() of git's setup.c). Client and daemon have to decide
 * alike, so both use the one table in format.c.
 *
 * Pure; any thread; nothing blocks or allocates.
 */
#ifndef PROTO_FORMAT_H
#define PROTO_FORMAT_H

#include <stdbool.h>

#define FORMAT_WHY_MAX 160

/*
 * Does refd serve a repository of format VERSION with extensions.NAME=VALUE?
 * The case of NAME does not count. An unknown NAME is refused in version 1 and
 * ignored in version 0, as in git. If false, WHY is a sentence, which names the
 * extension and quotes no VALUE. An unknown NAME is quoted if it consists of
 * at most 40 letters, digits and "-", as all names by git.
 */
bool format_serves(int version, const char *name, const char *value,
    char why[FORMAT_WHY_MAX]);

/* Why refd does not serve format VERSION at all, or NULL. Static. */
const char *format_version_unserved(int version);

#endif
