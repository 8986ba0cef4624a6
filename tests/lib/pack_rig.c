#include "tests/lib/pack_rig.h"

#include <errno.h>

static int peel(void *arg, const struct refd_oid *oid, struct refd_oid *peeled)
{
	(void)arg;
	if (oid->bytes[0] == 'p')
		return -ENOENT;
	*peeled = world_oid('P');
	return oid->bytes[0] == 'T';
}

int pack_rig_round(struct world *w, struct pack_round *round)
{
	struct repo *repo = world_repo(w, WORLD_REPO);
	int r;

	*round = (struct pack_round){ .sys = w->sys,
		.repo = repo,
		.token_id = pipeline_next_token(w->store.pipeline),
		.peel = peel };
	if (repo == NULL)
		return -EIO;
	r = pack_round(round);
	if (round->leaves_locks)
		deferred_add_locks(w->store.deferred, repo, round->token_id);
	repo_put(&w->store.repos, repo);
	return r;
}
