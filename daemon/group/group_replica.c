/*
 * The parts of a node in a group, and the operations that are a few lines.
 *
 * Happy path: open, start, stop, free. The follower starts before the link,
 * because it reads which rows wait, and HELLO counts these rows.
 *
 * What fails: no memory; no thread; the journal can't be read.
 */
#include "daemon/group/group_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening and closing ---- */

/* completions.hold, after admission and barrier. A transaction of the store's
 * own goes back to the follower, which waits for it. A transaction of a client
 * may have to wait until other nodes have its objects. */
static bool hold(void *group, struct txn *txn)
{
	struct group *g = group;

	group_txn_deny_unsupported(txn);
	return follower_take(g->follower, txn) || group_hold(g, txn);
}

static int open_node(struct replica *r, char **why)
{
	const struct store_parts *host = r->host;
	struct group *g = group_of(r);

	(void)why;
	if (group_open(g) < 0)
		return -ENOMEM;
	g->follower = follower_new(host, g, g->patience_ns);
	if (g->follower == NULL)
		return -ENOMEM;
	host->completions->hold = hold;
	host->completions->hold_arg = g;
	return 0;
}

static int start(struct replica *r)
{
	int err = follower_start(group_of(r)->follower);

	return err == 0 ? group_start(group_of(r)) : err;
}

static void stop(struct replica *r)
{
	group_stop(group_of(r));
	follower_stop(group_of(r)->follower);
}

static void free_node(struct replica *r)
{
	follower_free(group_of(r)->follower);
	group_free(group_of(r));
}

struct replica *group_replica_new(const char *node, int64_t patience_ns)
{
	struct group *g = group_new(node, patience_ns);

	if (g == NULL)
		return NULL;
	g->base.ops = &group_replica_ops;
	g->diverged = follower_mend;
	return &g->base;
}

void group_replica_listen(struct replica *r, int fd)
{
	group_of(r)->listen_fd = fd;
}

/* ---- operations ---- */

/* The id of TXN was looked up in its epoch. In a later epoch, other nodes may
 * have rows that this node has not seen, so the old look-up proves nothing. */
static bool may_commit(struct replica *r, const struct txn *txn)
{
	return group_epoch(group_of(r)) == group_txn_of(txn)->epoch;
}

static void ended(struct replica *r, struct batch *b, uint64_t lsn)
{
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		group_txn_deny_unsupported(b->slices[i].txn);
	group_applied(group_of(r), lsn);
}

static void unfinished(struct replica *r)
{
	group_fail(group_of(r),
	    "an update of the group can't be finished: the next start does it");
}

static void look(struct replica *r, struct replica_state *state)
{
	group_look(group_of(r), state);
	if (group_epoch(group_of(r)) == 0)
		state->doubt = "this node does not lead its group, and may "
			       "lack the transaction: ask the node that leads";
}

const struct replica_ops group_replica_ops = {
	.shares_rows = true,
	.open = open_node,
	.start = start,
	.stop = stop,
	.free = free_node,
	.claim = group_claim,
	.admit = group_admit,
	.check = group_check,
	.collect = group_collect,
	.give_up = group_give_up,
	.may_commit = may_commit,
	.permit = group_permit,
	.compare_around = group_compare_around,
	.fill = group_fill,
	.append = group_append_rows,
	.ended = ended,
	.unfinished = unfinished,
	.look = look,
};
