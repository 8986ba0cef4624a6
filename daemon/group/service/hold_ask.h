/*
 * HOLDs of the daemon of a leader: followers are asked in PostgreSQL to fetch
 * the objects, and the daemon gets HELD when group.held of them have answered.
 *
 *	HOLD -> a row in refd.want, NOTIFY refd_want -> rows in refd.held,
 *	NOTIFY refd_held -> HELD, or NOT_HELD
 *
 * Failures: NOT_HELD when all known followers have answered, and too few of
 * them hold the objects; after ten seconds, if too few of them are here; and
 * after a minute. A lost session can lose the rows, so they are sent again,
 * with the same id.
 *
 * One thread; calls with a session block.
 */
#ifndef GROUP_SERVICE_HOLD_ASK_H
#define GROUP_SERVICE_HOLD_ASK_H

#include "daemon/group/service/daemon_link.h"
#include "daemon/group/service/session.h"

struct hold_asks {
	const struct group_config *config;
	struct daemon_link *link;
	struct hold_ask *first;
};

/* Owns FRAME, a HOLD of the leader in EPOCH. */
void hold_ask_add(struct hold_asks *a, struct daemon_frame *frame,
    uint64_t epoch);
/* Sends rows, reads answers, and answers the daemon. S is open, or closed. */
void hold_ask_turn(struct hold_asks *a, struct session *s);
/* The rows may be lost with a session. */
void hold_ask_again(struct hold_asks *a);
void hold_ask_done(struct hold_asks *a);

#endif
