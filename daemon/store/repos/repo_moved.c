/*
 * The end of an admission that failed.
 *
 * The happy path: nothing failed.
 *
 * Failure: somebody moved the repository out of the roots, so the daemon can't
 * reach the files any more; or somebody removes the repository, so files are
 * missing. Admission then sees an error of the disk, of the rights or of an
 * object. Every later transaction gets norepo, so the answer is norepo here,
 * too.
 */
#include "daemon/store/repos/repo_moved.h"

#include <stdlib.h>

#include "daemon/store/repos/repo.h"
#include "daemon/store/txn.h"

/* Results of an earlier batch are final. */
static bool has_doubtful_update(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates && txn->nr_decided > 0; i++)
		if (repo_move_may_cause(txn->updates[i].status))
			return !txn->readmitted;
	return false;
}

static void take_back_doubtful(struct txn *txn)
{
	struct txn_update *u;

	for (u = txn->updates; u < txn->updates + txn->nr_updates; u++) {
		if (!repo_move_may_cause(u->status))
			continue;
		free(u->text);
		u->text = NULL;
		u->status = REFD_PENDING;
	}
	txn_count(txn);
}

void repo_moved_refuse(struct repos *repos, struct txn *txn)
{
	bool by_update = has_doubtful_update(txn);

	if (txn->repo == NULL ||
	    (!by_update && !repo_move_may_cause(txn->refused)) ||
	    !repo_is_moved(repos, txn->repo))
		return;
	if (by_update)
		take_back_doubtful(txn);
	txn->refused = REFD_NOREPO;
	free(txn->why);
	txn->why = repo_why_moved(txn->req.git_dir);
}
