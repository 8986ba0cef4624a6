/* The state of struct group, and the operations of the replica. Private to the
 * files of this folder. */
#ifndef GROUP_INTERNAL_H
#define GROUP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "daemon/base/mutex.h"
#include "daemon/group/follower.h"
#include "daemon/group/group.h"
#include "daemon/group/group_replica.h"
#include "daemon/group/group_txn.h"
#include "daemon/store/parts.h"

/* A batch without an outcome, on the stack of a worker. */
struct group_batch {
	uint64_t number;
	enum {
		GROUP_BATCH_WAITS,
		GROUP_BATCH_COMMITTED,
		GROUP_BATCH_REFUSED
	} outcome;
	uint64_t lsn; /* COMMITTED: of the first row */
	LIST_ENTRY(group_batch) link;
};

/* A transaction that waits for its objects. */
struct group_hold {
	struct txn *txn;
	/* The number of the frame HOLD. If the row contains the objects, no
	 * frame was sent, and TXN waits only because other transactions of its
	 * repository come first. */
	uint64_t number;
	bool is_done; /* goes back as soon as it is the first */
	TAILQ_ENTRY(group_hold) link;
};

/* A value that other nodes have (group_known.c). */
struct group_value {
	uint64_t nr; /* of known_nr */
	uint8_t repo[GROUP_UUID_BYTES];
	struct refd_oid oid;
};

#define GROUP_KNOWN 65536 /* values: 4 MiB */

/* An encoded frame on its way to refd-group. */
struct group_output {
	size_t len, sent;
	struct group_output *next;
	uint8_t bytes[];
};

struct group {
	struct replica base;       /* first */
	char *node;                /* group.node; owned */
	int64_t patience_ns;       /* group.patience */
	struct follower *follower; /* with its own mutex; owned */
	/* follower_mend(): NAME of REPO has a different value than the group
	 * gave the ref, and the update is given back. */
	void (*diverged)(struct follower *f, const struct repo *repo,
	    const char *name);
	struct journal *journal;       /* of the host */
	struct journal_reader *reader; /* under READER_MUTEX */
	struct mutex reader_mutex;
	int listen_fd; /* owned; -1: none */
	pthread_t link_thread, send_thread;
	bool has_threads;
	char refusal[GROUP_NAME_MAX + 128]; /* group_refusal() */

	/* The last row that was put off, and is not flushed. Only the thread of
	 * the follower uses it. PUT_MARK.nr 0: there is none. */
	struct journal_row put_row;
	struct commit_log_mark put_mark;

	struct mutex known_mutex;  /* the next four; taken last */
	uint64_t known_epoch;      /* of this leader; 0: none */
	struct group_value *known; /* owned; GROUP_KNOWN values */
	uint64_t known_nr;         /* grows with each value */
	uint64_t forgotten_nr;     /* values up to this number are void */

	/* All members below: under MUTEX. */
	struct mutex mutex;
	/* The threads that write and follow have conditions of their own,
	 * because with one condition each update woke them up, which delayed
	 * the answer of the update. */
	pthread_cond_t has_output, has_input;
	pthread_cond_t changed; /* all else: outcomes, turns, the end */
	/* The epoch while this node is open for writes; else 0. Only
	 * group_take_role() sets it, on the thread of the follower, because
	 * this thread gets ROLE also on a leader. If the node no longer leads,
	 * step_down() clears it, and end() if the connection ends
	 * (group_link.c). So do group_stop() and group_die(). */
	uint64_t epoch;
	bool follows;  /* the last ROLE that was handled */
	bool may_lead; /* the last ROLE that has come */
	/* The node has every row that existed before this time (now_boot); 0:
	 * not known. Of a leader this is the end of the lease, since no other
	 * node writes before it. group_set_current() and group_end_lease(), on
	 * the reading thread. */
	int64_t current_ns;
	int64_t start_ns;                /* now_boot, of this daemon */
	char leader[GROUP_NAME_MAX + 1]; /* of the last ROLE; or "" */
	size_t nr_appending;             /* calls of commit_log_append() */
	bool is_dead;                    /* the daemon ends */
	bool is_stopping;
	bool has_ended; /* for the writing thread */
	bool is_sending;
	uint64_t next_number; /* of BATCH and HOLD */
	/* The LSN of the next row that the journal takes. append_in_turn() of
	 * group_batches.c moves it on, on a worker or on the thread of the
	 * follower. */
	uint64_t next_lsn;
	/* The last row that is applied, or waits, durably: group_applied(). */
	uint64_t done_lsn;
	/* DONE_LSN stays below this row, which was put off, and which a power
	 * loss could take; 0: there is none. */
	uint64_t unflushed_lsn;
	struct group_waiting waiting;
	uint64_t near_lsn; /* of the last NEAR */
	int64_t near_ns;   /* when NEAR came (now_boot); 0: none */
	/* HELD_LSN: the last row whose objects are not in the log. AWAITED_LSN:
	 * a row of this kind that the other nodes have not reached since
	 * AWAITED_NS, by the frames NEAR. */
	uint64_t held_lsn, awaited_lsn;
	int64_t awaited_ns;
	LIST_HEAD(, group_batch) batches;
	TAILQ_HEAD(group_hold_list, group_hold) holds;
	int fd; /* the connection; -1: none */
	/* Frames for the follower, and whether the follower has a frame. */
	struct group_input *input, **input_end;
	size_t input_bytes;
	bool is_woken; /* group_wake() */
	bool is_following;
	int64_t following_ns; /* since when the follower has the frame */
	struct group_output *output, **output_end;
	struct timespec tell_at; /* the next APPLIED, at the latest */
};

/* ---- group.c; under MUTEX ---- */

/* All rows up to this one are applied. 0: the node does not lead, and a
 * repository that is there lacks refs of some row, which recovery could not
 * redo. */
uint64_t group_applied_lsn(const struct group *g);
/* Sends APPLIED. */
void group_tell_applied(struct group *g);
/* CURRENT has come. */
void group_set_current(struct group *g, uint64_t ms);
/* Other nodes may write from now on. */
void group_end_lease(struct group *g);
/* Must the threads end? Takes MUTEX itself. */
bool group_is_stopping(struct group *g);
/* The daemon ends. */
void group_die(struct group *g, const char *why);
void group_tell(struct group *g, enum store_event event, const char *why);
/* Sets *BELOW to the part of PATH below its root; borrowed. -EXDEV: below no
 * root. */
int group_path_below(const struct group *g, const char *path,
    struct group_bytes *below);

/* ---- group_link.c ---- */

/* Sends F to refd-group if a connection is open. The writing thread sends what
 * the socket does not take at once, so this call does not block. 0; -EFBIG,
 * -ENOMEM, -ENOTCONN. Under MUTEX. */
int group_send(struct group *g, const struct group_frame *f);
void *group_link_main(void *group);
void *group_send_main(void *group);
/* Frees everything queued. Under MUTEX. */
void group_drop_input(struct group *g);
void group_drop_output(struct group *g);

/* ---- group_known.c; under MUTEX ---- */

/* Forgets all values. The next ones are of EPOCH; 0: this node does not
 * lead. */
void group_begin_known(struct group *g, uint64_t epoch);
/* A frame NEAR. */
void group_take_near(struct group *g, uint64_t lsn);
/* group_is_near(), which takes MUTEX, asks this. */
bool group_are_near(const struct group *g);

/* ---- group_batches.c; under MUTEX ---- */

/* Waits for a change. The daemon ends when UNTIL has passed. */
void group_wait(struct group *g, const struct timespec *until);

void group_batch_committed(struct group *g, uint64_t number, uint64_t lsn);
void group_batch_refused(struct group *g, uint64_t number);

/* ---- group_holds.c; under MUTEX ---- */

/* WHY NULL: other nodes hold the objects. Otherwise the transaction is refused
 * with WHY. */
void group_held(struct group *g, uint64_t number, const char *why);
/* Without MUTEX: replica.give_up(). */
void group_give_up(struct replica *r, struct txn *txn);
/* Refuses all transactions that wait. */
void group_refuse_holds(struct group *g, const char *why);

/* ---- group_replica.c: any thread, as the rest ---- */

static inline struct group *group_of(struct replica *r)
{
	return (struct group *)r;
}

/* The operations of all nodes. */
extern const struct replica_ops group_replica_ops;

/* ---- group_repo.c: these block on the disk ---- */

/* Kept with an open repository. */
struct group_repo {
	/* No other node has the refs. */
	atomic_bool awaits_import;
	atomic_bool has_values; /* once true, never asked again */
	/* The bytes of objects in rows since IN_ROW_SINCE_NS (monotonic). For
	 * the admission worker that is in the repository. */
	size_t in_row_bytes;
	int64_t in_row_since_ns;
};

int group_claim(struct replica *r, const struct sys *sys, struct repo *repo,
    uint8_t *uuid);
/* Does not block. */
bool group_repo_awaits_import(const struct repo *repo);
/* The group has a row with the refs of REPO: removes the mark, durably. If the
 * mark stays, the import is done again, which changes nothing. */
void group_repo_imported(const struct sys *sys, const struct repo *repo);

/* ---- admit.c, admit_import.c ---- */

bool group_admit(struct replica *r, struct txn *txn);
bool group_check(struct replica *r, struct txn *txn);
void group_collect(struct replica *r, struct txn *txn);
/* True: the open repository of TXN needs no import, or TXN is the import.
 * False: TXN is refused. Blocks on files. */
bool admit_import(const struct sys *sys, struct txn *txn);

/* ---- compare.c ---- */

void group_permit(struct replica *r, struct pass *p, struct change *c);
void group_compare_around(struct replica *r, struct pass *p, struct change *c);

/* ---- append.c ---- */

bool group_fill(struct replica *r, struct slice *s, struct journal_row *row);
int group_append_rows(struct replica *r, struct journal_row *rows, size_t nr,
    bool flush);
/* Does the row of S have new values, and the objects of all of them? */
bool group_is_in_row(const struct slice *s);

#endif
