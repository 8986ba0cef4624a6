/*
 * Asks the daemon whether it serves a repository. Blocks for some seconds at
 * most; one thread.
 */
#ifndef CLIENT_REQUEST_PROBE_H
#define CLIENT_REQUEST_PROBE_H

#include <sys/types.h>

#include "client/request/connect.h"
#include "proto/lib/cli.h"
#include "proto/oid.h"

enum probe {
	PROBE_OK,
	PROBE_AWAY,     /* nobody listens */
	PROBE_CLOSED,   /* the user can't open the socket */
	PROBE_DENIED,   /* the daemon denies the user */
	PROBE_PROTOCOL, /* the daemon has another protocol */
	PROBE_STATE,    /* the daemon does not serve */
	PROBE_REFUSED   /* the daemon does not serve the repository */
};

/* Connects as this user, and verifies that a ref is absent in GD, with ids of
 * FORMAT. GD NULL: only connects. *WHY is a reason, except for PROBE_OK. */
enum probe probe_daemon(const struct daemon_socket *socket,
    const struct gitdir *gd, enum refd_object_format format, struct text *why);
/* Only connects, as UID if this process is of root. */
enum probe probe_as(uid_t uid, char *socket, struct text *why);

#endif
