/*
 * Finding one's own locks again.
 *
 * The happy path: stage/ is empty and nothing else is looked at. After a kill
 * a token's link count says that locks stand; then the trees in which a lock
 * can be are walked once, and each "*.lock" that has a token's inode is ours.
 *
 * What fails: a directory that can't be read ends the search with its errno,
 * since a lock might be missed; a foreign lock, or a ref that happens to end
 * in ".lock", has another inode and is never touched.
 */
#include "daemon/store/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/lockfile.h"

struct token_inode {
	uint64_t token, ino;
};

struct search {
	struct stale *stale;
	struct token_inode *tokens;
	size_t nr;
};

static int add_token(struct search *s, const char *name)
{
	struct token_inode *grown;
	struct sys_stat st;
	uint64_t id;
	unsigned k;
	int r;

	if (token_parse_name(name, &id, &k) < 0)
		return 0;
	r = SYS(s->stale->sys, lstatat, s->stale->repo->stage_fd, name, &st);
	if (r < 0 || st.nlink < 2)
		return r == -ENOENT ? 0 : r;
	grown = realloc(s->tokens, (s->nr + 1) * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	s->tokens = grown;
	grown[s->nr].token = id;
	grown[s->nr++].ino = st.ino;
	return 0;
}

static int each_entry(const struct sys *sys, int dirfd, const char *path,
    int (*cb)(void *arg, const struct sys_dirent *entry), void *arg)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(sys, dir_open, dirfd, path, &dir);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = cb(arg, &entry);
		if (r < 0)
			break;
	}
	SYS(sys, dir_close, dir);
	return r;
}

static int token_entry(void *arg, const struct sys_dirent *entry)
{
	return add_token(arg, entry->name);
}

static int add_lock(struct search *s, uint64_t token, int dirfd,
    const char *path)
{
	struct stale *stale = s->stale;
	struct stale_lock *lock;
	size_t size;

	if (stale->nr_locks == stale->size) {
		size = stale->size == 0 ? 16 : 2 * stale->size;
		lock = realloc(stale->locks, size * sizeof(*lock));
		if (lock == NULL)
			return -ENOMEM;
		stale->locks = lock;
		stale->size = size;
	}
	lock = &stale->locks[stale->nr_locks];
	lock->token = token;
	lock->dirfd = dirfd;
	lock->done = false;
	lock->path = strndup(path, strlen(path) - 5);
	if (lock->path == NULL)
		return -ENOMEM;
	stale->nr_locks++;
	return 0;
}

/* Where a walk stands: a directory below DIRFD. */
struct walk {
	struct search *search;
	int dirfd;
	const char *dir; /* "" for DIRFD itself */
	bool deep;
};

static int walk_dir(struct search *s, int dirfd, const char *dir, bool deep);

static int walk_entry(void *arg, const struct sys_dirent *entry)
{
	struct walk *w = arg;
	char path[REFD_PATH_MAX];
	size_t i, len;

	len = (size_t)snprintf(path, sizeof(path), "%s%s%s", w->dir,
	    w->dir[0] != '\0' ? "/" : "", entry->name);
	if (len >= sizeof(path))
		return 0;
	if (entry->type == DT_DIR || entry->type == DT_UNKNOWN) {
		int r = w->deep ? walk_dir(w->search, w->dirfd, path, true) : 0;

		if (r < 0 || entry->type == DT_DIR)
			return r;
	}
	if (len < 5 || strcmp(path + len - 5, ".lock") != 0)
		return 0;
	for (i = 0; i < w->search->nr; i++)
		if (w->search->tokens[i].ino == entry->ino)
			return add_lock(w->search, w->search->tokens[i].token,
			    w->dirfd, path);
	return 0;
}

static int walk_dir(struct search *s, int dirfd, const char *dir, bool deep)
{
	struct walk w = { s, dirfd, dir, deep };

	return each_entry(s->stale->sys, dirfd, dir[0] != '\0' ? dir : ".",
	    walk_entry, &w);
}

static int worktree_entry(void *arg, const struct sys_dirent *entry)
{
	struct search *s = arg;
	struct stale *stale = s->stale;
	char path[REFD_PATH_MAX];
	int fd, *grown, r;

	snprintf(path, sizeof(path), "worktrees/%s", entry->name);
	fd = SYS(stale->sys, openat, stale->repo->fd, path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ENOENT ? 0 : fd;
	grown = realloc(stale->worktrees,
	    (stale->nr_worktrees + 1) * sizeof(*grown));
	if (grown == NULL) {
		SYS(stale->sys, close, fd);
		return -ENOMEM;
	}
	stale->worktrees = grown;
	grown[stale->nr_worktrees++] = fd;
	r = walk_dir(s, fd, "", false);
	return r < 0 ? r : walk_dir(s, fd, "refs", true);
}

static int compare_lock(uint64_t token, const char *path,
    const struct stale_lock *lock)
{
	if (token != lock->token)
		return token < lock->token ? -1 : 1;
	return strcmp(path, lock->path);
}

static int compare_locks(const void *va, const void *vb)
{
	const struct stale_lock *a = va;

	return compare_lock(a->token, a->path, vb);
}

int stale_find(struct stale *stale, const struct sys *sys, struct repo *repo)
{
	struct search s = { .stale = stale };
	int r;

	memset(stale, 0, sizeof(*stale));
	stale->sys = sys;
	stale->repo = repo;
	r = each_entry(sys, repo->stage_fd, ".", token_entry, &s);
	if (r == 0 && s.nr > 0) {
		r = walk_dir(&s, repo->fd, "", false);
		if (r == 0)
			r = walk_dir(&s, repo->fd, "refs", true);
		if (r == 0)
			r = each_entry(sys, repo->fd, "worktrees",
			    worktree_entry, &s);
	}
	free(s.tokens);
	if (r < 0)
		stale_done(stale);
	else if (stale->nr_locks > 0)
		qsort(stale->locks, stale->nr_locks, sizeof(*stale->locks),
		    compare_locks);
	return r;
}

struct stale_lock *stale_lookup(struct stale *stale, uint64_t token,
    const char *path)
{
	size_t low = 0, high = stale->nr_locks, mid;

	/* A killed window may have held a hundred thousand. */
	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare_lock(token, path, &stale->locks[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < stale->nr_locks; low++) {
		if (compare_lock(token, path, &stale->locks[low]) != 0)
			break;
		if (!stale->locks[low].done)
			return &stale->locks[low];
	}
	return NULL;
}

int stale_unlock(struct stale *stale, struct stale_lock *lock)
{
	char path[REFD_PATH_MAX + 8];
	int r;

	snprintf(path, sizeof(path), "%s.lock", lock->path);
	r = SYS(stale->sys, unlinkat, lock->dirfd, path);
	if (r < 0 && r != -ENOENT)
		return r;
	lock->done = true;
	return 0;
}

struct sweep {
	struct stale *stale;
	int err;
};

static int sweep_entry(void *arg, const struct sys_dirent *entry)
{
	struct sweep *s = arg;
	int r;

	r = SYS(s->stale->sys, unlinkat, s->stale->repo->stage_fd, entry->name);
	if (r < 0 && r != -ENOENT)
		s->err = r;
	return 0;
}

int stale_clean(struct stale *stale, size_t *unlocked)
{
	struct sweep s = { stale, 0 };
	size_t i;
	int r;

	*unlocked = 0;
	for (i = 0; i < stale->nr_locks; i++) {
		if (stale->locks[i].done)
			continue;
		r = stale_unlock(stale, &stale->locks[i]);
		if (r < 0)
			return r;
		(*unlocked)++;
	}
	r = each_entry(stale->sys, stale->repo->stage_fd, ".", sweep_entry, &s);
	return r < 0 ? r : s.err;
}

void stale_done(struct stale *stale)
{
	size_t i;

	for (i = 0; i < stale->nr_locks; i++)
		free(stale->locks[i].path);
	for (i = 0; i < stale->nr_worktrees; i++)
		SYS(stale->sys, close, stale->worktrees[i]);
	free(stale->locks);
	free(stale->worktrees);
	memset(stale, 0, sizeof(*stale));
}
