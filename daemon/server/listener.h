/*
 * A listening socket: makes the socket, guards it against a second daemon,
 * accepts connections, and removes the socket at the end.
 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <event2/event.h>
#include <stdbool.h>

#include "daemon/base/sys.h"

struct listener;

/*
 * Binds PATH with MODE and listens. If PATH is a socket on which nobody
 * listens, a dead daemon left it, and it is replaced. May block; before the
 * loop runs.
 *
 * Negative errno and *WHY (to be freed; NULL when out of memory): the path is
 * too long, a daemon listens there (-EADDRINUSE), the path is no socket
 * (-ENOTSOCK), or the directory is missing.
 */
int listener_open(const struct sys *sys, const char *path, unsigned mode,
    struct listener **listener, char **why);

/* Takes ownership of FD, which listens on PATH already. The service manager
 * made PATH, so its mode never changes, and PATH stays. -ENOMEM: the caller
 * keeps FD. */
int listener_adopt(const struct sys *sys, int fd, const char *path,
    struct listener **listener);

/* Another descriptor of the socket, for a thread that accepts by itself; owned
 * by the caller. Negative errno. */
int listener_share(const struct listener *listener);

/* Before the end: stops accepting, if the socket outlives this daemon. New
 * clients then wait in the kernel's queue for the next daemon. */
void listener_leave(struct listener *listener);

/* Gives each new descriptor (non-blocking, close-on-exec) to ACCEPTED, which
 * owns it. If there are no more descriptors, waits a moment before it tries
 * again. 0 or -ENOMEM. Loop thread. */
int listener_start(struct listener *listener, struct event_base *base,
    void (*accepted)(void *arg, int fd), void *arg);

/* Changes the mode of the path, which decides who may connect. Blocks as long
 * as the file system of the path does, which is usually in memory. A failure is
 * logged. */
void listener_set_mode(struct listener *listener, unsigned mode);

/* Closes the socket. Removes the path if it still is this socket. Loop thread.
 * NULL is fine. */
void listener_close(struct listener *listener);

#endif
