/*
 * Sockets that the service manager made and passed to this process
 * (sd_listen_fds(3)): it listens on them while no daemon runs, so that who
 * connects then waits instead of being turned away.
 *
 * Before there are threads; nothing blocks.
 */
#ifndef SERVICE_ACTIVATION_H
#define SERVICE_ACTIVATION_H

#include <stdbool.h>

/*
 * The one of this name (FileDescriptorName=), close-on-exec and not blocking,
 * to be closed by who takes it; each is given once. -1: there is none. FIRST:
 * a single one is meant whatever its name is.
 */
int activation_take(const char *name, bool first);

/* The path that the Unix stream socket FD listens on, to be freed. NULL and
 * *WHY, to be freed: it is none. */
char *activation_path(int fd, char **why);

#endif
