/*
 * <common-dir>/refd/group marks the repositories of a group of nodes. Clients
 * then never let git write (client/request/connect.h).
 *
 * The happy path: the opening of a repository makes the mark, or removes the
 * mark of a group that the node has left. Nothing is synced: the next opening
 * does the same.
 *
 * Failures: the disk. The repository is not opened.
 */
#include <errno.h>
#include <fcntl.h>

#include "daemon/store/repos/repo_internal.h"

#define MARK "group"

static int unmark(const struct repos *repos, const struct repo *repo)
{
	int r = SYS(repos->sys, unlinkat, repo->refd_fd, MARK);

	return r == -ENOENT ? 0 : r;
}

int repo_mark_group(const struct repos *repos, const struct repo *repo)
{
	const struct sys *sys = repos->sys;
	int fd;

	if (!repos->are_copies)
		return unmark(repos, repo);
	fd = SYS(sys, openat, repo->refd_fd, MARK,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
	if (fd >= 0)
		SYS(sys, close, fd);
	return fd < 0 ? fd : 0;
}

/* The opening removes the mark of a repository that is not there now. */
static int unmark_known(void *arg, const struct journal_repo *known)
{
	struct repos *repos = arg;
	struct repo *repo;
	int r;

	if (repos_get_known(repos, known, &repo) != 0)
		return 0;
	r = unmark(repos, repo);
	repo_put(repos, repo);
	repos_trim(repos, INT64_MAX / 2);
	return r;
}

int repos_unmark_group(struct repos *repos)
{
	int r = journal_each_repo(repos->journal, unmark_known, repos);

	return r > 0 ? -EIO : r;
}
