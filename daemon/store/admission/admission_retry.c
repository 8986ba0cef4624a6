/*
 * A worker retries deferred redo after a checkpoint, a few repositories at a
 * time.
 *
 * Happy path: the checkpointer begins a turn, and one worker takes the turn. No
 * other worker is in the repository meanwhile.
 *
 * Failure: a repository that can't be opened, or with a different worker in it,
 * waits for the next turn.
 */
#include "daemon/store/admission/admissions_internal.h"

#include <stdlib.h>

#include "daemon/store/deferred/deferred_retry.h"

/* Admissions wait for the turn, so a turn has at most this many
 * repositories. */
#define RETRIES 16

/* Returns the open repository, with a reference, or opens it by the journal's
 * data. */
static struct repo *get_repo(struct repos *repos,
    const struct journal_repo *known)
{
	struct repo *repo;

	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (!repo->doomed && repo->id == known->id)
			break;
	if (repo != NULL)
		repo->refs++;
	mutex_unlock(&repos->mutex);
	if (repo == NULL && repos_get_known(repos, known, &repo) < 0)
		return NULL;
	return repo;
}

void admission_retry(struct admission_worker *w)
{
	struct deferred *deferred = w->cfg->deferred;
	struct repos *repos = w->cfg->repos;
	struct admissions *a = w->admissions;
	struct journal_repo some[RETRIES];
	struct repo *repo;
	size_t i, nr;

	/* Closes failed repositories, so that they can be repaired. */
	repos_trim(repos, INT64_MAX / 2);
	nr = deferred_next(deferred, some, RETRIES);
	for (i = 0; i < nr; i++) {
		admission_begin_at(a, w->slot, some[i].path);
		repo = get_repo(repos, &some[i]);
		if (repo != NULL && admission_claim(a, w->slot, repo))
			deferred_retry(deferred, repo, NULL);
		admission_end(a, w->slot);
		if (repo != NULL)
			repo_put(repos, repo);
		free(some[i].path);
	}
}
