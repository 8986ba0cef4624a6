/*
 * The daemon's socket: made, guarded against a second daemon, listened on,
 * and taken away again.
 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <event2/event.h>
#include <stdbool.h>

#include "daemon/base/sys.h"

struct listener;

/*
 * Binds PATH with MODE and listens; a socket there that nobody listens
 * on is a dead daemon's and is replaced. May block; before the loop runs.
 * Negative errno and *WHY (to be freed; NULL when out of memory): the path is
 * too long, a live daemon has it (-EADDRINUSE), it is no socket (-ENOTSOCK),
 * the directory is missing.
 */
int listener_open(const struct sys *sys, const char *path, unsigned mode,
    struct listener **listener, char **why);

/* The same for FD, which listens on PATH already and becomes the listener's; the
 * path is left alone, and its mode is what the service manager made it. -ENOMEM: FD is the caller's. */
int listener_adopt(const struct sys *sys, int fd, const char *path,
    struct listener **listener);

/* Before the end: of a socket that outlives this daemon no more are accepted.
 * Who connects waits, in the kernel's queue, for the next one. */
void listener_leave(struct listener *listener);

/* Hands each new descriptor (non-blocking, close-on-exec) to ACCEPTED, which
 * owns it. While there are no descriptors to be had it stops for a moment,
 * so as not to spin. 0 or -ENOMEM. Loop thread, as close. */
int listener_start(struct listener *listener, struct event_base *base,
    void (*accepted)(void *arg, int fd), void *arg);

/* Who may connect from now on. Blocks for a file system in
 * memory. What fails is in the log. */
void listener_set_mode(struct listener *listener, unsigned mode);

/* Removes the path if it is still this socket's. NULL is fine. */
void listener_close(struct listener *listener);

#endif
