/*
 * The parts of a node in a group, and the operations that are a few lines.
 *
 * Happy path: open, start, stop, free.
 *
 * What fails: no memory; no thread; the journal can't be read.
 */
#include "daemon/group/group_replica_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening and closing ---- */

/* completions.hold */
static bool hold(void *replica, struct txn *txn)
{
	struct group_replica *gr = replica;

	group_txn_deny_unsupported(txn);
	return follower_take(gr->follower, txn) || group_hold(gr->group, txn);
}

static void mend(struct group_replica *gr, const struct repo *repo,
    const char *name)
{
	follower_mend(gr->follower, repo, name);
}

static int open_node(struct replica *r, char **why)
{
	struct group_replica *gr = group_replica_of(r);
	const struct replica_host *host = r->host;
	const struct group_config group = { .sys = host->sys,
		.node = gr->node,
		.patience_ns = gr->patience_ns,
		.log = host->log,
		.roots = host->roots,
		.nr_roots = host->nr_roots,
		.completions = host->completions,
		.fatal = host->fatal,
		.event = host->cfg->event,
		.arg = host->arg };
	struct follower_config follower = { .sys = host->sys,
		.repos = host->repos,
		.admissions = host->admissions,
		.pipeline = host->pipeline,
		.workers = host->workers,
		.patience_ns = gr->patience_ns,
		.event = host->cfg->event };

	(void)why;
	gr->group = group_new(&group);
	if (gr->group == NULL)
		return -ENOMEM;
	follower.group = gr->group;
	gr->follower = follower_new(&follower);
	if (gr->follower == NULL)
		return -ENOMEM;
	host->repos->are_copies = true;
	host->completions->hold = hold;
	host->completions->hold_arg = gr;
	return 0;
}

static int start(struct replica *r)
{
	struct group_replica *gr = group_replica_of(r);
	int err = follower_start(gr->follower);

	if (err == 0) {
		err = group_start(gr->group, gr->fd);
		gr->fd = -1;
	}
	return err;
}

static void stop(struct replica *r)
{
	group_stop(group_replica_of(r)->group);
	follower_stop(group_replica_of(r)->follower);
}

static void free_node(struct replica *r)
{
	struct group_replica *gr = group_replica_of(r);

	follower_free(gr->follower);
	group_free(gr->group);
	if (gr->fd >= 0)
		SYS(r->host->sys, close, gr->fd);
	free(gr->node);
	free(gr);
}

struct replica *group_replica_new(const char *node, int64_t patience_ns)
{
	struct group_replica *gr = calloc(1, sizeof(*gr));

	if (gr == NULL)
		return NULL;
	gr->base.ops = &group_replica_ops;
	gr->node = strdup(node);
	gr->patience_ns = patience_ns;
	gr->fd = -1;
	gr->diverged = mend;
	if (gr->node == NULL) {
		free(gr);
		return NULL;
	}
	return &gr->base;
}

void group_replica_listen(struct replica *r, int fd)
{
	group_replica_of(r)->fd = fd;
}

/* ---- operations ---- */

static void give_up(struct replica *r, struct txn *txn)
{
	group_give_up(group_replica_of(r)->group, txn);
}

static const char *doubt(struct replica *r)
{
	return group_epoch(group_replica_of(r)->group) != 0 ?
	    NULL :
	    "this node does not lead its group, and may lack the transaction: "
	    "ask the node that leads";
}

static void ended(struct replica *r, struct batch *b, uint64_t lsn)
{
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		group_txn_deny_unsupported(b->slices[i].txn);
	group_applied(group_replica_of(r)->group, lsn);
}

static void unfinished(struct replica *r)
{
	group_fail(group_replica_of(r)->group,
	    "an update of the group can't be finished: the next start does it");
}

static void token_log(struct replica *r, uint8_t id[16])
{
	journal_group_uuid(r->host->journal, id);
}

static uint64_t token_lsn(struct replica *r, const struct journal_row *row)
{
	(void)r;
	return row->group_lsn;
}

static void look(struct replica *r, struct replica_state *state)
{
	group_look(group_replica_of(r)->group, state);
}

const struct replica_ops group_replica_ops = {
	.shares_rows = true,
	.open = open_node,
	.start = start,
	.stop = stop,
	.free = free_node,
	.admit = group_admit,
	.check = group_check,
	.collect = group_collect,
	.give_up = give_up,
	.doubt = doubt,
	.compare = group_compare,
	.permit = group_permit,
	.compare_around = group_compare_around,
	.fits = group_fits,
	.fill = group_fill,
	.append = group_append_rows,
	.appended = group_appended,
	.ended = ended,
	.unfinished = unfinished,
	.token_log = token_log,
	.token_lsn = token_lsn,
	.look = look,
};
