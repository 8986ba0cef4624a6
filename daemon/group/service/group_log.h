/*
 * The log of a group, on one connection to PostgreSQL. The happy path:
 *
 *	group_log_open -> group_log_append ... -> group_log_done
 *
 * If an append is doubtful: group_log_open again, and group_log_settle until
 * the outcome is known (docs/decisions/025-group.md).
 *
 * LSNs count rows from 1; row 0 is there from the start. Rows and ids are
 * borrowed for the call. One thread at a time; every call blocks. After a
 * failure the session is closed, so no transaction stays open, and log->s.why
 * has the reason.
 */
#ifndef GROUP_SERVICE_GROUP_LOG_H
#define GROUP_SERVICE_GROUP_LOG_H

#include "daemon/group/service/lease.h"
#include "daemon/group/service/session.h"
#include "proto/group_frame.h"

struct group_log {
	struct session s;
	/* Zeros before the first group_log_open(). Later openings must find the
	 * same group. */
	uint8_t group[GROUP_UUID_BYTES];
};

/* WRONG: also another group, or tables of a newer version. */
enum session_result group_log_open(struct group_log *log);
void group_log_done(struct group_log *log);

enum group_outcome {
	GROUP_LOG_COMMITTED, /* in the log, and proven */
	GROUP_LOG_REFUSED,   /* not in the log, and never will be */
	GROUP_LOG_DOUBTFUL   /* not known */
};

/*
 * Appends NR rows with the LSNs from LSN on, all or none, if this node has the
 * lease in EPOCH. IS_FIRST: no earlier attempt with these rows. A later attempt
 * is never REFUSED.
 */
enum group_outcome group_log_append(struct group_log *log, uint64_t epoch,
    uint64_t lsn, const struct group_row *rows, size_t nr, bool is_first);

enum group_settled {
	GROUP_LOG_OURS, /* LSNS are proven. A missing row can still come */
	GROUP_LOG_LOST, /* LSNS are proven. A missing row will never come */
	GROUP_LOG_AGAIN /* nothing is known */
};

/*
 * Reads the LSNs of NR rows by their ids; 0: missing. The rows are of this node
 * and EPOCH. OURS: this node has the lease in EPOCH. LOST: another epoch has
 * begun. IDS must have at least one element.
 */
enum group_settled group_log_settle(struct group_log *log, uint64_t epoch,
    const uint8_t (*ids)[GROUP_UUID_BYTES], size_t nr, uint64_t *lsns);

/* The last LSN. False: failed. */
bool group_log_last(struct group_log *log, uint64_t *lsn);
/* Has the row LSN a different id than ID? A missing row counts as the same.
 * False: failed. */
bool group_log_compare(struct group_log *log, uint64_t lsn,
    const uint8_t id[GROUP_UUID_BYTES], bool *differs);

/*
 * Proves that this session is of the primary on which EPOCH began: the lease
 * has EPOCH or a later one, and a commit of the session is proven. So all that
 * the session has read before stays. False: failed, or not proven.
 */
bool group_log_prove(struct group_log *log, uint64_t epoch, uint64_t applied);

/*
 * Names this machine in the row of the node, and writes down that the node has
 * applied APPLIED; not proven, and not delayed by standbys that are away. The
 * number can be lower than before, because the node can be an old copy. WRONG:
 * another machine has written to the row within GROUP_LOG_NAME_MS, so both have
 * one group.node.
 */
#define GROUP_LOG_NAME_MS 4000
#define GROUP_LOG_TWO                                                          \
	"another machine is the node '%s' now: give each machine a group.node" \
	" of its own, and make this one a new node (docs/group.md)"
enum session_result group_log_begin(struct group_log *log, uint64_t applied);
/* Writes APPLIED down as group_log_begin() does, but later, and never a lower
 * number than before, except 0. Here and in each proof, the program ends if the
 * row has the name of another machine. */
bool group_log_note(struct group_log *log, uint64_t applied);

/* Ends the program because this node can't use the log. Writes the reason down
 * for the administrator of another node, until group_log_begin() removes the
 * reason. */
void group_log_refuse(struct group_log *log, const char *why)
    __attribute__((noreturn));

typedef void group_log_row_fn(void *arg, uint64_t lsn, uint64_t epoch,
    const struct group_row *row);
/*
 * Reads rows behind AFTER, writes down that this node has applied APPLIED, and
 * proves this. Then gives the rows to FN in the order of LSNs. Returns the
 * number of rows, or -1: failed, or not proven. Paths, records and objects have
 * at most 16 MiB, or there is one row.
 */
long group_log_read(struct group_log *log, uint64_t after, uint64_t applied,
    group_log_row_fn *fn, void *arg);

#endif
