/*
 * The list of enabled repositories, in refd's state directory.
 *
 * Root and the user of the daemon use the state directory of the daemon. Root
 * reads and writes there with the rights of the owner of the directory. The
 * owner may have put any file there, so the length of the list is bounded. For
 * the same reason, the list leads root only to repositories of the owner of the
 * list. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_REGISTRY_H
#define CLIENT_ENABLE_REGISTRY_H

#include <sys/types.h>

#include "proto/lib/cli.h"

/* Zero-initialised is empty. */
struct registry {
	char **paths; /* owned */
	size_t nr;
};

/* Makes the directory and locks the list until registry_close(). False after a
 * warning if this is not possible, and nothing is listed then. */
bool registry_open(void);
void registry_close(void);
/* The path of a file beside the list, owned, or NULL if no directory is
 * known. */
char *registry_file(const char *name);

/* A missing list is empty. False: unreadable; an error was printed. */
bool registry_read(struct registry *r);
void registry_done(struct registry *r);
/* After registry_read(): may an entry lead to a repository of UID? Always for
 * the owner of the list, and if the list is root's. */
bool registry_leads_to(uid_t uid);
/* No effect unless the list is open. A failure is only a warning. */
void registry_add(const char *path);
void registry_remove(const char *path);

#endif
