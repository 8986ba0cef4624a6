/*
 * Reads the values of refs before git changes them: phase "prepared" of a gate.
 *
 * The happy path: git holds the locks, and waits. Every update gets the value
 * as `found`, and the status aborted, because the batch changes nothing. No
 * lock and no turn is taken.
 *
 * What fails:
 *	a value which cannot be read,	is not given: history then does not know
 *	the value of a symbolic ref	the value before
 *	git packs a value that it has	the transaction is refused: packed-refs
 *	read before the ref changed	would bring the value back
 */
#include "daemon/store/batch/backend.h"

void change_glanced(struct change *c, struct loose_value *value)
{
	if (value->kind == LOOSE_OID)
		c->u->found = value->oid;
	c->u->has_found = value->kind == LOOSE_OID ||
	    value->kind == LOOSE_ABSENT || value->kind == LOOSE_DIR;
	loose_value_done(value);
}

bool change_has_place(const struct change *c)
{
	return c->slice->git_err == 0 && c->edit.dirfd >= 0;
}

void pass_look(struct pass *p)
{
	struct repo_slice *g = &p->repo_slices[0];
	size_t i;

	/* Not at a different place, or in a different format. */
	if (p->nr_repo_slices > 0 && repo_is_same(p->ap->repos, g->repo)) {
		g->backend->glance(p, g);
		p->slices[0].txn->is_looked =
		    p->slices[0].txn->refused == REFD_OK;
	}
	for (i = 0; i < p->nr_asked; i++)
		txn_decide(p->changes[i]->u, REFD_ABORTED, NULL);
}
