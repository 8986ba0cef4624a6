/*
 * The refs that a repository in a group of nodes had before its first update
 * through refd. No other node has these refs, so the daemon refuses other
 * updates until the refs are imported (daemon/store/repos/repo_import.c).
 * Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_IMPORT_H
#define CLIENT_ENABLE_IMPORT_H

#include <sys/stat.h>

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"

/* Does the daemon wait for the import of GD? */
bool import_is_due(const struct gitdir *gd);
/*
 * Gives all refs of GD, which belongs to the owner of ST, to the other nodes,
 * in one transaction. Waits some minutes while they fetch the objects. False:
 * an error was printed. May be repeated.
 */
bool import_refs(const struct gitdir *gd, const struct stat *st,
    const struct gitconfig *config, const char *socket);

#endif
