/*
 * This node's part of the log of a group (docs/group-internals.md): the
 * socket to refd-group, the rows that wait for the log of the group, and the
 * transactions whose objects other nodes do not hold yet.
 *
 *	group_batches.c	a batch waits for the log of the group, and is appended
 *			to the journal in the order of the group
 *	group_holds.c	a transaction waits until other nodes hold its objects
 *	group_known.c	values that other nodes have
 *	group_link.c	the socket: two threads, one reads and one writes
 *	group.c		the role of this node, start and stop
 *	group_replica.c	the table of operations for the store
 *
 * A node is open for writes while it leads, has all rows of the log, and its
 * lease lasts by the clock of this machine. With every doubt about a batch the
 * daemon ends, because only the log of the group can tell the outcome. The
 * batch is answered `unknown`, its locks stay, and the next start reads the
 * log.
 *
 * Threads: any, unless a function says otherwise. MUTEX, the mutex of struct
 * group, is taken under the mutex of the barriers (docs/threads.md has the
 * order of all locks).
 */
#ifndef GROUP_H
#define GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/completions.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/replica.h"
#include "proto/group_frame.h"

struct group;

/* NODE is the name of this node, and is copied. PATIENCE_NS: a batch that has
 * had no outcome for so long ends the daemon. NULL: out of memory. */
struct group *group_new(const char *node, int64_t patience_ns);
/* The host must be set before. 0 or -ENOMEM. For the thread that opens the
 * store, like the next two. */
int group_open(struct group *g);
void group_free(struct group *g);
/* Starts the threads of the link. 0 or -EAGAIN. */
int group_start(struct group *g);
/* For the same thread, while no batch is in work. Asks refd-group to end, so
 * that another node can lead at once, waits for some seconds, and ends the
 * threads. group_next() returns NULL afterwards. */
void group_stop(struct group *g);

/* ---- leading ---- */

/* The epoch in which this node leads and takes writes. 0: this node takes no
 * writes, or its lease has surely ended. */
uint64_t group_epoch(struct group *g);
/* The reason why this node takes no writes now, to be freed. NULL: it takes
 * writes, or there is no memory. */
char *group_refusal(struct group *g);

/*
 * Appends ROWS to the log of the group, and then to the journal. Called by a
 * worker, and blocks for as long as PostgreSQL takes. Rows that have a
 * shared_lsn (group_fill() of append.c sets it) are in the log of the group
 * already, so only the journal gets them.
 *
 * 0: the rows are proven, and appended; wait for MARK. -EREMOTE: definitely not
 * in the log of the group: this node does not lead, or leads in another epoch
 * than a row has. Another negative errno: nothing was done. JOURNAL_UNKNOWN:
 * the daemon ends.
 */
int group_append(struct group *g, struct journal_row *rows, size_t nr,
    struct commit_log_mark *mark);
/* Ends the daemon, because an update of the group can't be finished here.
 * Returns JOURNAL_UNKNOWN. */
int group_fail(struct group *g, const char *why);

/* The role and the progress of this node. */
void group_look(struct group *g, struct replica_state *state);

/* ---- objects ---- */

/* Are enough other nodes alive, and have they applied nearly all rows? Only
 * then may a row with the objects replace the question HOLD. Otherwise a group
 * without a second node would have only one copy of the older objects for days.
 * Any thread. */
bool group_is_near(struct group *g);
/* Will other nodes have OID, and all that OID reaches, as soon as they have
 * applied all rows? If OID is null: will they have the repository with the uuid
 * REPO? False: perhaps not. The calls from here to group_forget() do not block.
 * Any thread. */
bool group_knows(struct group *g, const uint8_t repo[GROUP_UUID_BYTES],
    const struct refd_oid *oid);
/* This node has committed a row with the new value OID, as the leader in EPOCH.
 * A null OID stands for the repository itself. */
void group_know(struct group *g, uint64_t epoch,
    const uint8_t repo[GROUP_UUID_BYTES], const struct refd_oid *oid);
/* The row may have new values whose objects are not in the log. */
void group_note_held(struct group *g);
/* A ref has left its old value behind, so other nodes may prune this value. */
void group_forget(struct group *g, const uint8_t repo[GROUP_UUID_BYTES]);
/* Called by hold() of group_replica.c, after admission. Takes TXN if TXN has to
 * wait for its objects, or for an earlier transaction of its repository,
 * because the transactions of a repository keep their order. Every transaction
 * comes back to the completions. */
bool group_hold(struct group *g, struct txn *txn);
/* Asks refd-group to bring the repository with the uuid REPO, PATH as in a row,
 * and the NR objects OIDS, to this node. Does not wait for the result. */
void group_fetch(struct group *g, const uint8_t repo[GROUP_UUID_BYTES],
    const struct group_bytes *path, enum refd_object_format format,
    const struct refd_oid *oids, size_t nr);
/* The same for one object of a repository that is here. */
void group_fetch_here(struct group *g, const struct repo *repo,
    const struct refd_oid *oid);

/* ---- repositories (group_repo.c) ---- */

/* Two questions about a row whose repository had refs before the row. For the
 * leader: has REPO refs by the values in the journal, so that its next row is
 * such a row? For other nodes: may REPO get such a row, because the journal has
 * values, or because somebody has copied refs? Both return 1, 0, or a negative
 * errno, and block on the disk until the answer was 1. Any thread. */
int group_repo_continues(const struct store_parts *host,
    const struct repo *repo);
int group_repo_may_continue(const struct store_parts *host,
    const struct repo *repo);

/* ---- following: for one thread ---- */

/* Rows that group_next() returns together, at most. */
#define GROUP_ROWS 64

/* A frame ROW or ROLE, in the order of arrival. */
struct group_input {
	struct group_frame frame;
	struct refd_arena *arena; /* owned */
	uint8_t *bytes;           /* FRAME borrows; owned */
	size_t len;
	struct group_input *next;
};

/* Waits at most WAIT_NS for the next frame. A row comes with the rows that have
 * arrived behind it, so that one batch can apply them; the caller frees all of
 * them. *NEXT NULL: there is none yet. False: the end. */
bool group_next(struct group *g, int64_t wait_ns, struct group_input **next);
/* The call waits no longer. Any thread. */
void group_wake(struct group *g);
/* Frees IN, and all behind IN. */
void group_input_free(struct group_input *in);

/* Rows in the journal that this node could not apply yet. */
struct group_waiting {
	uint64_t lsn;     /* of the first one; 0: none waits */
	int64_t since_ns; /* monotonic */
	size_t nr_repos;
};
/* Sets the rows that wait. Other nodes and the lease count only the rows before
 * WAITING->lsn as applied, because a node with waiting rows must not count as a
 * whole copy. Nothing changes once the daemon ends. */
void group_set_waiting(struct group *g, const struct group_waiting *waiting);
/* Puts the row IN into the journal, in its turn, as a row that waits. A power
 * loss can still take the row. So nobody hears of this row or of later rows
 * before group_flush_postponed(). 0; negative errno: nothing was done;
 * JOURNAL_UNKNOWN: the daemon ends. */
int group_postpone(struct group *g, const struct group_input *in);
/* Makes all postponed rows durable, with one flush. Before this call,
 * group_set_waiting() must have told the group that the rows wait, and the
 * inputs of the rows must not be freed. 0, or JOURNAL_UNKNOWN: the daemon
 * ends. */
int group_flush_postponed(struct group *g);
/* The rows up to LSN are applied, or wait. Does not count rows that were put
 * off and not flushed, nor any row once the daemon ends. For any thread. */
void group_applied(struct group *g, uint64_t lsn);
/* All rows before ROLE are applied. */
void group_take_role(struct group *g, const struct group_frame *role);
/* Is the connection open that has brought the last input? The next connection
 * begins only after the caller has asked for the next input, so the answer is
 * never about a later connection. */
bool group_is_linked(struct group *g);

#endif
