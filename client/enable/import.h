/*
 * The refs that a repository on a node had before its first update through
 * refd. No other node has these refs, so the daemon refuses other updates until
 * the refs are imported (daemon/group/group_repo.c). Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_IMPORT_H
#define CLIENT_ENABLE_IMPORT_H

#include "client/git/gitdir.h"

/* Does the daemon wait for the import of GD? */
bool import_is_due(const struct gitdir *gd);
/* Notes the common dir DIR for import_due(). */
void import_later(const char *dir);
/*
 * Gives all refs of the noted repositories to the other nodes. Each repository
 * is one transaction, with the rights of the owner. The other nodes must fetch
 * the objects first, so each transaction waits up to ten minutes. SOCKET:
 * --socket, or NULL. False: an error was printed. May be repeated.
 */
bool import_due(const char *socket);

#endif
