/*
 * A lane thread retries deferred redo after a checkpoint, a few repositories
 * at a time.
 *
 * Happy path: the checkpointer begins a turn, and one lane thread takes it. In
 * each repository the thread is the only lane thread.
 *
 * Failure: a repository that can't be opened, or in which another lane thread
 * works, waits for the next turn.
 */
#include <stdlib.h>

#include "daemon/store/deferred/deferred_retry.h"
#include "daemon/store/lane.h"

/* Repositories in one turn. Admissions wait for the turn. */
#define RETRIES 16

/* The open one, with a reference; or one opened as the journal knows it. */
static struct repo *get_repo(struct store *s, const struct journal_repo *known)
{
	struct repo *repo;

	pthread_mutex_lock(&s->repos.mutex);
	for (repo = s->repos.open; repo != NULL; repo = repo->next)
		if (!repo->doomed && repo->id == known->id)
			break;
	if (repo != NULL)
		repo->refs++;
	pthread_mutex_unlock(&s->repos.mutex);
	if (repo == NULL && repos_get_known(&s->repos, known, &repo) < 0)
		return NULL;
	return repo;
}

void lane_retry_some(struct store *s, size_t slot)
{
	struct journal_repo some[RETRIES];
	struct repo *repo;
	size_t i, nr;

	/* A repository that failed is closed, so that it can be mended. */
	repos_trim(&s->repos, INT64_MAX / 2);
	nr = deferred_next(s->deferred, some, RETRIES);
	for (i = 0; i < nr; i++) {
		lane_begin_at(s, slot, some[i].path);
		repo = get_repo(s, &some[i]);
		if (repo != NULL && lane_claim(s, slot, repo))
			deferred_retry(s->deferred, repo, NULL);
		lane_let_go(s, slot);
		if (repo != NULL)
			repo_put(&s->repos, repo);
		free(some[i].path);
	}
}
