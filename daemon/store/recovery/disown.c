/*
 * The happy path: take the repository's flock, so that no daemon is at work
 * there. Remove all locks with a token in stage/, because no daemon knows their
 * purpose any more. Then remove the note of the checkpoint and the id.
 *
 * Failures: a daemon serves the repository, or the disk fails. The id remains,
 * so the call can be repeated.
 */
#include "daemon/store/recovery/disown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/repos/repo_internal.h"

static int remove_locks(const struct sys *sys, struct repo *repo,
    size_t *unlocked)
{
	struct leftover_locks leftover = { .sys = sys };
	int r;

	r = leftover_locks_find(&leftover, sys, repo,
	    (struct live_batches){ .from = UINT64_MAX }, false);
	if (r == 0)
		r = leftover_locks_clean(&leftover, unlocked);
	leftover_locks_done(&leftover);
	return r;
}

static int remove_names(const struct sys *sys, struct repo *repo)
{
	int r;

	/* With an id the call can be repeated, so the id goes last. */
	r = SYS(sys, unlinkat, repo->refd_fd, "checkpoint");
	if (r == 0 || r == -ENOENT)
		r = SYS(sys, unlinkat, repo->refd_fd, "id");
	if (r == 0 || r == -ENOENT)
		r = SYS(sys, fsync, repo->refd_fd);
	return r;
}

int disown_repo(const struct sys *sys, const char *arg,
    char path[REFD_PATH_MAX], size_t *unlocked, char **why)
{
	static const char *const roots[] = { "/" };
	struct repo_place place;
	struct repos repos;
	struct repo *repo = NULL;
	char *no_repo = NULL;
	int r;

	*why = NULL;
	repos_init(&repos, sys, NULL, roots, 1, 1);
	if (repo_find_named(&repos, arg, &place, why) != REFD_OK) {
		repos_done(&repos);
		return -ENOENT;
	}
	snprintf(path, REFD_PATH_MAX, "%s", place.path);
	/* A damaged repository can be released, too. So NO_REPO is an error
	 * only if refd has nothing there, because then the path may be
	 * misspelt. */
	repo_check_git_dir(sys, place.fd, path, &no_repo);
	r = repo_open_claimed(&repos, &place, &repo);
	if (r == -ENOENT) {
		repos_done(&repos);
		*why = no_repo;
		return no_repo != NULL ? -ENOENT : 0;
	}
	free(no_repo);
	if (r == 0)
		r = remove_locks(sys, repo, unlocked);
	if (r == 0)
		r = remove_names(sys, repo);
	if (r == -EAGAIN)
		*why = repo_why("'%s' is served by a refd that runs", path);
	else if (r < 0)
		*why = repo_why("can't give '%s' free: %s", path,
		    leftover_locks_why(r));
	repo_close(&repos, repo);
	repos_done(&repos);
	return r;
}
