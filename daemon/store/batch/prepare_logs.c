/*
 * Finds the log lines of a pass; the backend prepares their logs.
 *
 * The happy path: the log of a ref gets a line if the ref is written. The logs
 * of symbolic refs that lead to the ref, and of HEAD, always get the line, as
 * in git: after an update from X to X, HEAD's log has a line from X to X.
 *
 * What fails: the update, or its atomic transaction.
 */
#include "daemon/store/batch/backend.h"

bool change_forces_log(const struct change *c)
{
	if (!c->slice->txn->req.create_reflog)
		return false;
	switch (c->u->ask->action) {
	case REFD_UPDATE:
	case REFD_CREATE:
	case REFD_SYMREF_UPDATE:
	case REFD_SYMREF_CREATE:
		return true;
	case REFD_DELETE:
	case REFD_VERIFY:
	case REFD_SYMREF_DELETE:
	case REFD_SYMREF_VERIFY:
		break;
	}
	return false;
}

/* C writes a symbolic ref to a missing ref. Neither this ref nor the symbolic
 * refs that lead to it get a line. */
static bool leads_nowhere(const struct change *c)
{
	return c->action == CHANGE_WRITE && change_new_target(c) != NULL &&
	    refd_oid_is_null(&c->new_oid);
}

static bool is_logged(const struct change *c)
{
	switch (c->action) {
	case CHANGE_WRITE:
		return !leads_nowhere(c);
	case CHANGE_LOG:
		/* The deletion of a missing ref is not logged. */
		return c->of->action == CHANGE_DELETE ? c->of->exists :
							!leads_nowhere(c->of);
	case CHANGE_DELETE:
	case CHANGE_NOTHING:
		break;
	}
	return false;
}

static bool may_create_log(const struct change *c)
{
	return change_forces_log(c) ||
	    reflog_policy_creates(c->slice->log_policy, change_shown_name(c));
}

void pass_prepare_logs(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_live(c) &&
		    (is_logged(c) || c->action == CHANGE_DELETE))
			g->backend->log(p, c, may_create_log(c));
}
