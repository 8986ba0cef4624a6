/*
 * The seam to other machines with the same rows: everything which differs if
 * this store is not alone. The rest of the store calls these operations, and
 * asks no more than shares_rows.
 *
 * A single machine has the null object (replica.c), which allows everything and
 * appends a row to the journal alone. daemon/group/ implements a group of
 * nodes.
 *
 * R is the replica, P the pass, C a change of P, S a slice of P (batch/pass.h).
 * Any thread may call an operation, and no operation blocks on the disk, unless
 * its comment says otherwise.
 */
#ifndef STORE_REPLICA_H
#define STORE_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_frame.h"

struct batch;
struct change;
struct journal_row;
struct pass;
struct replica;
struct repo;
struct slice;
struct store_parts;
struct sys;
struct txn;

/* The role of this machine, and its progress. */
struct replica_state {
	/* Static: "single", "leader", "follower" or "waits". */
	const char *role;
	/* All rows up to this one, in the log of replica_token_log(), are
	 * in the refs. */
	uint64_t lsn;
	/* Why an id that the journal lacks may be known elsewhere; static.
	 * NULL: no other machine knows more. */
	const char *doubt;
	bool shares_rows;                /* and the members below are set */
	char leader[GROUP_NAME_MAX + 1]; /* the last one known; or "" */
	/* How long ago this machine last had every row that existed. If there
	 * was no such moment since the start of the daemon, the role is
	 * "waits", and the time counts from this start. */
	int64_t lag_ns;
	bool is_connected; /* to the other machines */
	/* If a row waits: how long the first of these rows has waited.
	 * Otherwise, if a repository lacks refs of rows: since when, as a
	 * duration. Otherwise the time that the row in work has taken. 0: none
	 * of them. */
	int64_t row_ns;
	/* Repositories with waiting rows, plus repositories that lack refs of
	 * rows. A repository with both counts twice. */
	uint64_t waiting_repos;
	uint64_t epoch;   /* of a leader */
	uint64_t batches; /* that wait for the log of all machines */
	uint64_t holds;   /* transactions that wait for objects */
};

struct replica_ops {
	/* True: other machines have each row, too, so a row cannot be taken
	 * back, and what the row needs is durable before the row. Other
	 * machines may also know an id that this machine does not know. */
	bool shares_rows;

	/* ---- for the thread that opens and closes the store ---- */

	/* The host has all parts, and no thread runs. 0, or negative errno and
	 * perhaps *WHY (to be freed). Blocks. */
	int (*open)(struct replica *r, char **why);
	/* The workers run. 0 or negative errno. Blocks. */
	int (*start)(struct replica *r);
	/* Before the workers stop. Blocks. */
	void (*stop)(struct replica *r);
	/* Before the parts of the host are freed. Afterwards R is gone, unless
	 * R is the null object. */
	void (*free)(struct replica *r);

	/* REPO, which is locked, is about to be served. Makes or removes the
	 * marks that tell other programs whether other machines have REPO, and
	 * may set repo->replica. UUID: a new uuid, which may still be changed,
	 * because no file has it yet; NULL: REPO keeps its uuid. 0 or negative
	 * errno. Blocks. */
	int (*claim)(struct replica *r, const struct sys *sys,
	    struct repo *repo, uint8_t *uuid);

	/* ---- admission ---- */

	/* Before the id of TXN is looked up. False: TXN is refused. */
	bool (*admit)(struct replica *r, struct txn *txn);
	/* Can all machines do TXN, whose repository is open, in the same way?
	 * False: TXN is refused. Blocks. */
	bool (*check)(struct replica *r, struct txn *txn);
	/* All objects of the new values were read. Now the replica collects the
	 * objects that other machines need. May decide updates, and blocks. */
	void (*collect)(struct replica *r, struct txn *txn);
	/* TXN, which waits for other machines, comes back at once. */
	void (*give_up)(struct replica *r, struct txn *txn);
	/* Can TXN, which was admitted, still commit? Does not block. */
	bool (*may_commit)(struct replica *r, const struct txn *txn);

	/* ---- a pass: for its thread; these may block ---- */

	/* Called before C is checked, and if a ref on this disk is in the way
	 * of the name of C. Gives C back if the value of the ref on this disk
	 * is not the value that all machines have. Fails C if other machines
	 * could do something else. Sets c->hides_old and c->takes_any. */
	void (*permit)(struct replica *r, struct pass *p, struct change *c);
	/* C makes a new ref: gives C back if this disk alone lacks a ref above
	 * or below its name. */
	void (*compare_around)(struct replica *r, struct pass *p,
	    struct change *c);
	/* ROW is the row of S without its body. Adds to ROW what other machines
	 * need. False: the plan of S is not as its row on other machines, and
	 * the changes of S have failed, or are given back. */
	bool (
	    *fill)(struct replica *r, struct slice *s, struct journal_row *row);
	/* Appends ROWS, as applier.commit does. In the null object this is
	 * pipeline_append(). */
	int (*append)(struct replica *r, struct journal_row *rows, size_t nr,
	    bool flush);

	/* ---- progress ---- */

	/* B has ended. All rows of other machines up to LSN are in the refs,
	 * unless they were put off. */
	void (*ended)(struct replica *r, struct batch *b, uint64_t lsn);
	/* An update of a row can't be finished by this daemon. */
	void (*unfinished)(struct replica *r);
	void (*look)(struct replica *r, struct replica_state *state);
};

/* An implementation begins with this struct. */
struct replica {
	const struct replica_ops *ops;
	const struct store_parts *host; /* borrowed until free() */
};

/* REPLICA(r, look, state): calls an operation of R. */
#define REPLICA(r, op, ...) ((r)->ops->op((r), ##__VA_ARGS__))

/* The log to which the LSNs of tokens belong. ID is all zeros if the log is not
 * known yet. */
void replica_token_log(const struct replica *r, uint8_t id[16]);
/* The LSN of ROW in this log; 0: none. */
uint64_t replica_token_lsn(const struct replica *r,
    const struct journal_row *row);

extern const struct replica_ops replica_single;

#endif
