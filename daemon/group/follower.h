/*
 * Follows a group: a thread applies the rows that this node lacks, in their
 * order, as ordinary batches (own_txn.h). Rows that have arrived together have
 * one batch, and so one flush (together.c). Admission opens the repository and
 * checks the objects. No client's rights are checked, because the leader has
 * checked them.
 *
 * The happy path: admit, apply, tell refd-group.
 *
 * Failures: no repository may hold up the others, so after a second the row is
 * put off. The journal keeps this row and all later rows of its repository, and
 * the rows of other repositories go on (waiting.c). The first row that was put
 * off is tried again until it succeeds, and the log says why the row waits.
 * Meanwhile this node counts as a node without the row, so it cannot lead with
 * old refs. A value that another program has written is kept under a different
 * name (mend.h).
 */
#ifndef GROUP_FOLLOWER_H
#define GROUP_FOLLOWER_H

#include "daemon/group/group.h"
#include "daemon/store/admission/admissions.h"

struct follower;

/* HOST and GROUP are borrowed, and PATIENCE_NS is the group's. NULL: out of
 * memory. Lives until the workers have stopped. */
struct follower *follower_new(const struct store_parts *host,
    struct group *group, int64_t patience_ns);
/* After follower_stop(). F may be NULL. */
void follower_free(struct follower *f);
/* 0, -EAGAIN, or the failure of reading the journal. */
int follower_start(struct follower *f);
/* After group_stop(), and before the workers stop. Blocks for the row in
 * work. */
void follower_stop(struct follower *f);

/* Takes TXN, which the follower has given to admission and which is back.
 * False: TXN is not a row of the group. Any thread. */
bool follower_take(struct follower *f, struct txn *txn);

/* NAME of REPO has a different value than the group gave the ref. The group's
 * value comes back soon, and the found value is kept. Any thread; does not
 * block. */
void follower_mend(struct follower *f, const struct repo *repo,
    const char *name);

#endif
