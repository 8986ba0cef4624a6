/*
 * Sockets that the service manager made and passed to this process
 * (sd_listen_fds(3)). The service manager listens on them while no daemon runs,
 * so clients wait for a daemon, and get no error.
 *
 * Before there are threads; nothing blocks.
 */
#ifndef SERVICE_ACTIVATION_H
#define SERVICE_ACTIVATION_H

#include <stdbool.h>

/*
 * The socket called NAME (FileDescriptorName=), close-on-exec and non-blocking.
 * The caller closes it. A socket is given only once. -1: there is no such
 * socket. FIRST: a single passed socket is taken whatever its name is.
 */
int activation_take(const char *name, bool first);

/* The path on which FD listens, to be freed. NULL and *WHY, to be freed: FD is
 * no listening Unix stream socket with a path. */
char *activation_path(int fd, char **why);

#endif
