/*
 * The happy path of a removal:
 *	check	the path leads to the inode
 *	unlink	"<file>~pid.lock": while the dead lock stands, no process can
 *		take the lock, so the file belongs to no living process
 *	rename	the lock to DEAD_LOCK_ASIDE
 *	check	the inode again
 *	unlink
 *
 * Failures: while the dead lock stands, git, refd and other programs cannot
 * take the lock, and none of them removes a lock that it did not take, so only
 * a person can. If a person removes the dead lock between the first check and
 * the rename, and a process takes the lock in this moment, the second check
 * finds that lock. Then link(2), which replaces no lock, puts it back.
 *
 * If the daemon or the machine stops in between, DEAD_LOCK_ASIDE stays, and the
 * next removal replaces it.
 */
#include "daemon/store/refs/dead_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/fs_type.h"
#include "proto/lib/lock_pid.h"
#include "proto/limits.h"

int dead_lock_open(struct dead_lock *l, const struct sys *sys, int dirfd,
    const char *path)
{
	int r;

	*l = (struct dead_lock){ .dirfd = dirfd };
	l->fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_NOFOLLOW, 0);
	if (l->fd < 0)
		return l->fd;
	r = SYS(sys, fstat, l->fd, &l->st);
	if (r == 0 && !S_ISREG(l->st.mode))
		r = -EINVAL;
	if (r == 0 && l->st.nlink != 1)
		r = l->st.nlink == 0 ? -ENOENT : -EMLINK;
	if (r == 0 && (l->path = strdup(path)) == NULL)
		r = -ENOMEM;
	if (r < 0)
		dead_lock_close(l, sys);
	return r;
}

const char *dead_lock_not_older(const struct dead_lock *l,
    const struct sys *sys, const struct this_boot *boot)
{
	uint64_t type;

	if (SYS(sys, fs_type, l->fd, &type) < 0 ||
	    !fs_type_has_one_kernel(type))
		return "the file system is not ext4, XFS or btrfs, and another "
		       "machine may have made the lock";
	return this_boot_is_after(boot, sys, l->st.ctime_ns);
}

const struct process *dead_lock_holder(const struct dead_lock *l,
    const struct processes *all, size_t *nr)
{
	const struct process *first = NULL;
	size_t i;

	*nr = 0;
	for (i = 0; i < all->nr; i++) {
		if (!process_may_hold(&all->list[i], l->st.uid))
			continue;
		first = first != NULL ? first : &all->list[i];
		(*nr)++;
	}
	return first;
}

static int check(const struct dead_lock *l, const struct sys *sys, int dirfd,
    const char *path)
{
	struct sys_stat st;
	int r = SYS(sys, lstatat, dirfd, path, &st);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? -ESTALE : r;
	/* A file of refd/stage/ with a single name left is a lock again if refd
	 * links it again, so a second name counts as another lock. */
	return st.dev == l->st.dev && st.ino == l->st.ino && st.nlink == 1 ?
	    0 :
	    -ESTALE;
}

int dead_lock_check(const struct dead_lock *l, const struct sys *sys)
{
	return check(l, sys, l->dirfd, l->path);
}

static int put_back(const struct dead_lock *l, const struct sys *sys,
    int git_dir)
{
	int r = SYS(sys, linkat, git_dir, DEAD_LOCK_ASIDE, l->dirfd, l->path);

	if (r < 0)
		return -EBUSY;
	SYS(sys, unlinkat, git_dir, DEAD_LOCK_ASIDE);
	return -ESTALE;
}

int dead_lock_remove(const struct dead_lock *l, const struct sys *sys,
    int git_dir)
{
	char pid[REFD_PATH_MAX];
	int r = dead_lock_check(l, sys);

	if (r == 0)
		r = lock_pid_path(pid, l->path);
	if (r == 0)
		r = SYS(sys, unlinkat, l->dirfd, pid);
	if (r == 0 || r == -ENOENT)
		r = SYS(sys, renameat, l->dirfd, l->path, git_dir,
		    DEAD_LOCK_ASIDE);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	r = check(l, sys, git_dir, DEAD_LOCK_ASIDE);
	if (r == 0)
		return SYS(sys, unlinkat, git_dir, DEAD_LOCK_ASIDE);
	return r == -ESTALE ? put_back(l, sys, git_dir) : r;
}

void dead_lock_close(struct dead_lock *l, const struct sys *sys)
{
	if (l->fd >= 0)
		SYS(sys, close, l->fd);
	l->fd = -1;
	free(l->path);
	l->path = NULL;
}
