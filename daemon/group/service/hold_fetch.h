/*
 * Objects that this node fetches for two kinds of HOLD. The HOLD of a leader
 * comes as a row in refd.want. While another node leads, the daemon of this
 * node sends a HOLD of its own, too.
 *
 *	a row in refd.want -> fetch_pool.h -> a row in refd.held
 *
 * Failures: the row in refd.held has the reason. A row in refd.want counts for
 * a minute, as long as this node has not answered it, and only if its epoch is
 * not an earlier one. A lost session delays the answer. A later epoch ends the
 * fetches of an earlier epoch, because the machine of the former leader can be
 * lost.
 *
 * One thread; calls with a session block.
 */
#ifndef GROUP_SERVICE_HOLD_FETCH_H
#define GROUP_SERVICE_HOLD_FETCH_H

#include "daemon/group/service/daemon_link.h"
#include "daemon/group/service/fetch_pool.h"
#include "daemon/group/service/session.h"

struct hold_fetches {
	const struct group_config *config;
	struct daemon_link *link;
	struct fetch_pool *pool;
	uint64_t epoch; /* of the last ROLE */
	/* The source of a leader without a lease, or NULL. LOST: at two looks.
	 * SUSPECTED: at the last look. */
	const char *lost, *suspected;
	struct text ids;           /* of rows without an answer in refd.held */
	struct fetch_job *answers; /* that refd.held does not have yet */
	uint64_t told_ms;          /* of the last report; 0: none */
};

/* EPOCH has begun, for this node. */
void hold_fetch_begin_epoch(struct hold_fetches *h, uint64_t epoch);
/* Notes a look at the lease. NODE is the leader whose lease is over; NULL: the
 * lease is not over. After two looks with the same NODE, the machine of NODE
 * may be lost. If there are other sources, the fetches from NODE end, and the
 * daemon's objects come from NODE last. */
void hold_fetch_lose(struct hold_fetches *h, const char *node);
/* Takes fetches that have ended. A failed fetch begins again with the next
 * source. */
void hold_fetch_collect(struct hold_fetches *h);
/* A HOLD of the daemon; the objects come from the node LEADER. S is open, or
 * closed. */
void hold_fetch_add(struct hold_fetches *h, struct session *s,
    const struct group_frame *hold, const char *leader);
/* Reads rows, and answers. S is open, or closed. */
void hold_fetch_turn(struct hold_fetches *h, struct session *s);
/* After fetch_pool_end(). */
void hold_fetch_done(struct hold_fetches *h);

#endif
