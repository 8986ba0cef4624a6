/*
 * What all replicas share, and the replica of a single machine, which does
 * nothing.
 *
 * What fails: a store is not opened alone if other machines have the rows of
 * its journal, too, because writes to this journal alone would make the
 * machines differ.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"

static int open_alone(struct replica *r, char **why)
{
	const struct store_parts *host = r->host;

	if (host->config->is_offline || !journal_shares_rows(host->journal))
		return 0;
	*why = repo_why("the journal in '%s' belongs to a node of a group: set "
			"group.name and group.node, or leave the group by "
			"'refd recover --leave'",
	    host->config->state_dir);
	return -EINVAL;
}

/* The marks of a group that the node has left (daemon/group/group_repo.c). */
static int claim(struct replica *r, const struct sys *sys, struct repo *repo,
    uint8_t *uuid)
{
	int err = repo_unmark(sys, repo, "group");

	(void)r, (void)uuid;
	return err == 0 ? repo_unmark(sys, repo, "import") : err;
}

static int start(struct replica *r)
{
	(void)r;
	return 0;
}

static void nothing(struct replica *r)
{
	(void)r;
}

static bool allow(struct replica *r, struct txn *txn)
{
	(void)r, (void)txn;
	return true;
}

static bool may_commit(struct replica *r, const struct txn *txn)
{
	(void)r, (void)txn;
	return true;
}

static void nothing_for_txn(struct replica *r, struct txn *txn)
{
	(void)r, (void)txn;
}

static void nothing_for_change(struct replica *r, struct pass *p,
    struct change *c)
{
	(void)r, (void)p, (void)c;
}

static bool fill(struct replica *r, struct slice *s, struct journal_row *row)
{
	(void)r, (void)s, (void)row;
	return true;
}

static void ended(struct replica *r, struct batch *b, uint64_t lsn)
{
	(void)r, (void)b, (void)lsn;
}

static void look(struct replica *r, struct replica_state *state)
{
	*state = (struct replica_state){ .role = "single",
		.lsn = journal_last_lsn(r->host->journal) };
}

const struct replica_ops replica_single = {
	.open = open_alone,
	.start = start,
	.stop = nothing,
	.free = nothing,
	.claim = claim,
	.admit = allow,
	.check = allow,
	.collect = nothing_for_txn,
	.give_up = nothing_for_txn,
	.may_commit = may_commit,
	.permit = nothing_for_change,
	.compare_around = nothing_for_change,
	.fill = fill,
	.append = pipeline_append,
	.ended = ended,
	.unfinished = nothing,
	.look = look,
};

/* ---- tokens ---- */

void replica_token_log(const struct replica *r, uint8_t id[16])
{
	if (r->ops->shares_rows)
		journal_shared_uuid(r->host->journal, id);
	else
		memcpy(id, journal_uuid(r->host->journal), 16);
}

uint64_t replica_token_lsn(const struct replica *r,
    const struct journal_row *row)
{
	return r->ops->shares_rows ? row->shared_lsn : row->lsn;
}
