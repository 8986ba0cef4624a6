#include "daemon/server/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Linux 4.13. The value is the same on all architectures of Debian. */
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* *GIDS has room for one more group behind the *NR groups. */
static int read_groups(int fd, uint32_t **gids, size_t *nr)
{
	socklen_t size = 0;
	uint32_t *list = NULL;

	/* The first call asks for the size: ERANGE, or success for none. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 &&
	    errno != ERANGE)
		return -errno;
	if (size > PEER_GROUPS_MAX * sizeof(*list))
		return -E2BIG;
	list = malloc(size + sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	if (size > 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &size) < 0) {
		free(list);
		return -errno;
	}
	*gids = list;
	*nr = size / sizeof(*list);
	return 0;
}

int peer_read(int fd, struct txn_peer *peer)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	struct txn_peer found = { 0 };
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	r = read_groups(fd, &found.gids, &found.nr_gids);
	if (r < 0)
		return r;
	found.gids[found.nr_gids++] = cred.gid;
	found.uid = cred.uid;
	found.pid = cred.pid;
	*peer = found;
	return 0;
}

int peer_copy(const struct txn_peer *from, struct txn_peer *to)
{
	size_t size = from->nr_gids * sizeof(*from->gids);
	uint32_t *gids = malloc(size);

	if (gids == NULL)
		return -ENOMEM;
	memcpy(gids, from->gids, size);
	*to = *from;
	to->gids = gids;
	return 0;
}

void peer_done(struct txn_peer *peer)
{
	free(peer->gids);
	memset(peer, 0, sizeof(*peer));
}
