/*
 * <common-dir>/refd/import marks a repository in a group of nodes which had
 * refs before its first row. The other nodes do not have these refs. Until one
 * transaction has given every ref the value that the ref has, nothing else is
 * admitted (admit_import.c).
 *
 * The happy path: the mark is durable before the id. The first row of the
 * repository that writes a ref has all its refs, and takes the mark away.
 *
 * Failures: the disk. If the mark stays after the row, the import is done
 * again.
 */
#include <errno.h>
#include <fcntl.h>

#include "daemon/store/repos/repo_internal.h"

#define MARK "import"

int repo_await_import(const struct sys *sys, const struct repo *repo)
{
	int fd = SYS(sys, openat, repo->refd_fd, MARK,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);

	if (fd < 0)
		return fd;
	SYS(sys, close, fd);
	return SYS(sys, fsync, repo->refd_fd);
}

int repo_learn_import(const struct sys *sys, struct repo *repo)
{
	struct sys_stat st;
	int r = SYS(sys, lstatat, repo->refd_fd, MARK, &st);

	atomic_store(&repo->awaits_import, r == 0);
	return r == -ENOENT ? 0 : r;
}

int repo_forget_import(const struct sys *sys, struct repo *repo)
{
	int r = SYS(sys, unlinkat, repo->refd_fd, MARK);

	atomic_store(&repo->awaits_import, false);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return SYS(sys, fsync, repo->refd_fd);
}
