/*
 * Removes leftover locks, and frees the list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/refs/reflog.h"
#include "proto/limits.h"

int leftover_locks_unlock(struct leftover_locks *leftover,
    struct leftover_lock *lock)
{
	char path[REFD_PATH_MAX + 8];
	int r;

	snprintf(path, sizeof(path), "%s.lock", lock->path);
	r = SYS(leftover->sys, unlinkat, lock->dirfd, path);
	if (r < 0 && r != -ENOENT)
		return r;
	lock->done = true;
	return 0;
}

/* 1: PATH is a ref in packed-refs, 0: it is not, or negative errno. Recovery
 * moves a malformed packed-refs away, so it holds no ref. */
static int is_packed(struct repo *repo, const char *path)
{
	struct packed_snapshot *snap = NULL;
	int r;

	r = packed_snapshot(repo->packed, &snap);
	if (r == 0)
		r = packed_lookup(snap, path, NULL);
	packed_snapshot_put(snap);
	return r == -EBADMSG ? 0 : r;
}

/* Removes the empty log of a ref that was never made: the log would block
 * other names. A writer who makes the ref meanwhile waits for this lock. */
static void unmake_log(struct leftover_locks *leftover,
    const struct leftover_lock *lock)
{
	char path[REFD_PATH_MAX + 8];
	const struct reflog_file log = { .sys = leftover->sys,
		.dirfd = lock->dirfd,
		.path = path };
	struct sys_stat st;

	if (strncmp(lock->path, "refs/", 5) != 0 ||
	    SYS(leftover->sys, lstatat, lock->dirfd, lock->path, &st) !=
		-ENOENT)
		return;
	if (lock->dirfd == leftover->repo->fd &&
	    is_packed(leftover->repo, lock->path) != 0)
		return;
	snprintf(path, sizeof(path), "logs/%s", lock->path);
	reflog_unmake(&log);
}

int leftover_locks_unlock_others(struct leftover_locks *leftover,
    const uint64_t *tokens, size_t nr, size_t *unlocked)
{
	struct leftover_lock *lock;
	size_t i;
	int r;

	for (i = 0; i < leftover->nr_locks; i++) {
		lock = &leftover->locks[i];
		if (lock->done ||
		    leftover_locks_has_token(tokens, nr, lock->token))
			continue;
		unmake_log(leftover, lock);
		r = leftover_locks_unlock(leftover, lock);
		if (r < 0)
			return r;
		(*unlocked)++;
	}
	return 0;
}

void leftover_locks_done(struct leftover_locks *leftover)
{
	size_t i;

	for (i = 0; i < leftover->nr_locks; i++)
		free(leftover->locks[i].path);
	for (i = 0; i < leftover->nr_worktrees; i++) {
		SYS(leftover->sys, close, leftover->worktrees[i].fd);
		free(leftover->worktrees[i].id);
	}
	free(leftover->locks);
	free(leftover->worktrees);
	free(leftover->values);
	free(leftover->open);
	memset(leftover, 0, sizeof(*leftover));
}
