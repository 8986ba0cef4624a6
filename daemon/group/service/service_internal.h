/* The state of the service, for its own files. Main thread only, so no member
 * needs a lock. */
#ifndef GROUP_SERVICE_SERVICE_INTERNAL_H
#define GROUP_SERVICE_SERVICE_INTERNAL_H

#include "daemon/group/service/daemon_link.h"
#include "daemon/group/service/group_log.h"
#include "daemon/group/service/hold_thread.h"
#include "daemon/group/service/lease_keeper.h"

/* The last report of a failure. */
struct service_told {
	const char *doing; /* NULL: none */
	uint64_t ms;
};

/* More than there are values of DOING for service_report(). */
#define SERVICE_FAILURES 16

struct service {
	const struct group_config *config;
	struct daemon_link link;
	struct group_log log;
	struct lease_keeper *keeper;
	struct hold_thread *holds;
	uint64_t epoch; /* of this node as the leader; 0: follower */
	uint64_t last;  /* LSN of the last row that the daemon has */
	/* The id of this row. Zeros: an earlier process has sent the row. */
	uint8_t last_id[GROUP_UUID_BYTES];
	uint64_t applied;  /* by the daemon: all rows up to it */
	uint64_t taken;    /* the last one applied, or put off */
	uint64_t untaken;  /* bytes of the rows behind it, about */
	struct lease told; /* the lease of the last ROLE */
	bool has_role;     /* the daemon has the role by TOLD */
	uint64_t name_ms;  /* as long another machine may have the name */
	uint64_t noted, noted_ms; /* of applied, in PostgreSQL; and when */
	uint64_t current_ms;      /* of the last CURRENT */
	/* The time and the last LSN of a proven look at the log, until the
	 * daemon has applied the rows of the look; 0: there is none. */
	uint64_t look_ms, look_lsn;
	struct service_told failures[SERVICE_FAILURES];
	uint64_t wish_ms; /* of the last look of a leader at the wish */
	uint64_t follows; /* the epoch of the last FOLLOWS */
	bool is_next;     /* as a follower: this node shall lead */
	bool is_lost;     /* a later epoch than v->epoch was seen */
	bool stops;
};

/* ---- service.c ---- */

/* Opens the log if it is closed. False: not yet. A group that is wrong ends the
 * program. */
bool service_connect(struct service *v);
/* After a failure of v->log: reports, and pauses for a moment. False: STOP is
 * there, so no further attempt follows. */
bool service_retry(struct service *v, const char *doing);
/* Writes WHY to the log of the system, once a minute for each DOING, which is a
 * literal. */
void service_report(struct service *v, const char *doing, const char *why);

/* ---- batches.c ---- */

/* Takes frames for at most WAIT_MS, appends the batches as one transaction, and
 * answers. Returns when their outcome is known, or at STOP after a failure. */
void batches_lead(struct service *v, int wait_ms);
/* Takes frames for at most WAIT_MS, and refuses batches. */
void batches_follow(struct service *v, int wait_ms);

#endif
