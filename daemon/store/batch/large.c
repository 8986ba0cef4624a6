/*
 * The slots for batches with much work in the files of one repository: a
 * rewrite of a large packed-refs, or reftables of which much must be read. Such
 * work may take seconds, so others must not wait for it.
 */
#include "daemon/store/batch/pass.h"

/* Is G the only repository of the batch? Rejections without a repository do
 * not count. */
static bool is_alone(const struct pass *p, const struct repo_slice *g)
{
	const struct batch *b = p->batch;
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		if (b->slices[i].txn->repo != NULL &&
		    b->slices[i].txn->repo != g->repo)
			return false;
	return true;
}

/* There are only a few slots. A user gets one slot at most. */
static bool take_slot(const struct pass *p, struct repo_slice *g, uint32_t uid)
{
	atomic_uint_fast64_t *users = p->ap->large_users;
	uint_fast64_t nobody = 0, user = (uint_fast64_t)uid + 1;
	size_t i, mine = APPLY_LARGE_MAX;

	for (i = 0; i < APPLY_LARGE_MAX && mine == APPLY_LARGE_MAX; i++) {
		nobody = 0;
		if (atomic_compare_exchange_strong(&users[i], &nobody, user))
			mine = i;
	}
	if (mine == APPLY_LARGE_MAX)
		return false;
	g->large_user = &users[mine];
	for (i = 0; i < APPLY_LARGE_MAX; i++)
		if (i != mine && atomic_load(&users[i]) == user) {
			large_give(g);
			return false;
		}
	return true;
}

bool large_take(struct pass *p, struct repo_slice *g)
{
	if (!is_alone(p, g) ||
	    !take_slot(p, g, g->changes->slice->txn->peer.uid))
		return false;
	apply_is_prepared(p->ap, p->batch);
	return true;
}

void large_give(struct repo_slice *g)
{
	if (g->large_user != NULL)
		atomic_store(g->large_user, 0);
	g->large_user = NULL;
}
