/*
 * The process at the other end of a connection, as the kernel knows it
 * (SO_PEERCRED, SO_PEERGROUPS; unix(7)). Loop thread; nothing blocks.
 */
#ifndef SERVER_PEER_H
#define SERVER_PEER_H

#include "daemon/store/txn.h"

/* Supplementary groups. The kernel allows 65,536, which anybody with
 * subordinate ids can have. Then each connection and each request would hold
 * 256 KiB, so the daemon allows fewer. */
#define PEER_GROUPS_MAX 4096

/* 0 or negative errno; -E2BIG: more groups. The groups are the supplementary
 * groups and the primary group of the process at the time of connecting. */
int peer_read(int fd, struct txn_peer *peer);
int peer_copy(const struct txn_peer *from, struct txn_peer *to);
void peer_done(struct txn_peer *peer);

#endif
