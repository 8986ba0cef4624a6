/*
 * A thread that renews the lease on a connection of its own, because the main
 * thread waits for a COMMIT. As soon as the daemon has closed the socket, the
 * thread ends the lease and the program, without a cleanup.
 *
 * All calls come from the main thread. Only the last one blocks.
 */
#ifndef GROUP_SERVICE_LEASE_KEEPER_H
#define GROUP_SERVICE_LEASE_KEEPER_H

#include "daemon/group/service/daemon_link.h"
#include "daemon/group/service/group_config.h"

struct lease_keeper;

/* LINK is borrowed. While the daemon is silent, the lease is not renewed. */
struct lease_keeper *lease_keeper_start(const struct group_config *config,
    struct daemon_link *link);
/* Renews the lease of EPOCH from now on; 0: of no epoch. The lease lasts until
 * UNTIL_MS (lease_now_ms()). */
void lease_keeper_set(struct lease_keeper *k, uint64_t epoch,
    uint64_t until_ms);
/* No other node can have the lease before this time (lease_now_ms()), if the
 * clocks of PostgreSQL run like the clock of this machine. */
uint64_t lease_keeper_until(struct lease_keeper *k);
/* Ends the thread, and frees K. A renewal that is in work is cancelled, so that
 * no renewal follows. Blocks while a connection is opened or cancelled. */
void lease_keeper_end(struct lease_keeper *k);
/* Did a renewal find a different epoch? */
bool lease_keeper_has_lost(struct lease_keeper *k);

#endif
