/*
 * Admission in a group of nodes. Only the leader admits, and only what every
 * node can do in the same way.
 */
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/admission/admissions_internal.h"

static void refuse(struct txn *txn, enum refd_status status, char *why)
{
	txn->refused = status;
	txn->why = why;
}

bool admit_in_epoch(struct admissions *a, struct txn *txn)
{
	if (a->cfg.group == NULL || txn->row != NULL ||
	    txn->req.verb == REFD_VERB_PACK || txn->readmitted)
		return true;
	txn->group_epoch = group_epoch(a->cfg.group);
	if (txn->group_epoch != 0)
		return true;
	txn_lay_out(txn);
	refuse(txn, busy_cause_count(BUSY_GROUP), group_refusal(a->cfg.group));
	return false;
}

/* A follower must do the same as the leader. So there are no values that
 * another writer has written, no update indices, and no worktrees. The locks of
 * a session could hold the rows of the next leader up. */
static const char *not_in_group(const struct txn *txn)
{
	const struct repo *repo = txn->repo;
	size_t i, len = strlen(repo->path);

	if (repo->format == REPO_REFTABLE)
		return "refs in reftables";
	if (txn->req.gate != REFD_GATE_NONE || txn->req.verb == REFD_VERB_LOOK)
		return "changes that other programs make";
	if (txn->req.verb == REFD_VERB_SESSION)
		return "sessions";
	if (strncmp(txn->req.git_dir, repo->path, len) == 0 &&
	    txn->req.git_dir[len] != '\0')
		return "worktrees";
	for (i = 0; i < txn->nr_updates; i++)
		if (strncmp(txn->updates[i].ask->name, "worktrees/", 10) == 0 ||
		    strncmp(txn->updates[i].ask->name, "main-worktree/", 14) ==
			0)
			return "worktrees";
	return NULL;
}

bool admit_to_group(struct txn *txn)
{
	const char *what = NULL;

	if (txn->row == NULL && txn->req.verb != REFD_VERB_PACK)
		what = not_in_group(txn);

	if (what != NULL)
		refuse(txn, REFD_DENIED,
		    repo_why("'%s' is in a group of nodes, and groups have no "
			     "%s yet",
			txn->repo->path, what));
	if (txn->least < REFD_DURABILITY_JOURNAL)
		txn->least = REFD_DURABILITY_JOURNAL;
	return what == NULL;
}
