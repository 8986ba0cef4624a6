/*
 * The daemon that gets the pushes of a repository, for commands to which a
 * person names the repository. Any other daemon does not know the repository,
 * and its answer without changes would look as if nothing had happened there.
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_DAEMON_OF_H
#define CLIENT_REQUEST_DAEMON_OF_H

#include "client/request/connect.h"

/*
 * connect_choose() with the configuration of the repository DIR. Root reads the
 * configuration with the rights of the owner. A repository that is gone, or
 * that git would not use for this user, has no say, so then the configuration
 * of the user and of the system counts alone. False: the configuration cannot
 * be read, and may hide the name of the socket; *WHY says so.
 */
bool daemon_of(struct daemon_socket *s, const char *option, const char *dir,
    struct text *why);
/* The same for GD, with the rights of this process. */
bool daemon_of_gitdir(struct daemon_socket *s, const struct gitdir *gd,
    struct text *why);
/* For the caller of a worker that told the PATH of a socket, after
 * daemon_of_gitdir() in a repository of OWNER. False: there is no path. */
bool daemon_of_read(struct daemon_socket *s, const char *path, uid_t owner);

#endif
