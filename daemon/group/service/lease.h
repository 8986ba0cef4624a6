/*
 * The lease of a group: which node leads, in which epoch, and until when by
 * PostgreSQL's clock. The time only decides when others may take the lease. No
 * clock can lose a row, because a batch of an old epoch finds the new epoch in
 * its own transaction.
 *
 * One thread at a time for a session; every call blocks.
 */
#ifndef GROUP_SERVICE_LEASE_H
#define GROUP_SERVICE_LEASE_H

#include "daemon/group/service/session.h"
#include "proto/group_frame.h"

/* So long a wish of refd group promote has an effect. */
#define LEASE_WISH_MS 30000
#define LEASE_WISH    "interval '30 s'"

struct lease {
	uint64_t epoch;
	char owner[GROUP_NAME_MAX + 1];
	char successor[GROUP_NAME_MAX + 1]; /* of the last wish, or empty */
	bool is_wished;                     /* the wish has an effect */
	bool is_handed; /* SUCCESSOR is the owner, and has not begun */
	bool is_over;
	bool waits_for_standbys; /* synchronous_standby_names is set */
};

/* The time of leases on this machine: milliseconds of CLOCK_BOOTTIME, because
 * leases end while the machine is suspended. */
uint64_t lease_now_ms(void);

/* False: the session failed. */
bool lease_look(struct session *s, struct lease *lease);

enum lease_result {
	LEASE_DONE, /* LEASE_TAKE: proven. Otherwise session_prove() follows */
	LEASE_LOST, /* the lease has another epoch or owner */
	LEASE_FAILED
};

/* Makes the lease of this node and EPOCH end group.lease from now. */
enum lease_result lease_renew(struct session *s, uint64_t epoch);
/* Makes the lease of this node and EPOCH end now, also while the standbys are
 * away. */
enum lease_result lease_leave(struct session *s, uint64_t epoch);

/*
 * If refd group promote has named a successor, gives the successor the lease,
 * with the epoch EPOCH + 1, for group.lease. Waits for the transactions of
 * EPOCH. LOST: there is no wish, the successor lacks a repository (damage.h),
 * or the lease has another epoch or owner. The successor takes the lease, and
 * has the next epoch then. Until lease_take(), nobody leads.
 */
enum lease_result lease_hand(struct session *s, uint64_t epoch);

/*
 * Wishes, as refd group promote does, that a node with room and with all rows
 * leads in place of this node, the leader in EPOCH. A node without damaged
 * objects is preferred. A node with damaged objects is wished only if this node
 * IS_FULL, because a full disk stops all repositories, and damage stops only
 * one. A node that lacks a repository (damage.h) is never wished. DONE: there
 * is a wish. LOST: there is no such node, another wish was made in the last
 * minute, or the lease has another epoch or owner.
 */
enum lease_result lease_wish(struct session *s, uint64_t epoch, bool is_full);

/*
 * Takes the lease after epoch FROM, if the lease is over or belongs to this
 * node, with the epoch FROM + 1. A node with damaged objects waits two seconds
 * after the end, so that another node can be first. A node that lacks a
 * repository takes no lease. The node refuses even a lease in its own name,
 * because a leader of an older version can have given it.
 *
 * Waits for the transactions of FROM, and ends their sessions after a moment.
 * DONE: no later transaction of FROM can insert a row, and this is proven.
 * FAILED: not known.
 */
enum lease_result lease_take(struct session *s, uint64_t from);

#endif
