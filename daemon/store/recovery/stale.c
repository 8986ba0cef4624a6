/*
 * Finding one's own locks again.
 *
 * The happy path: stage/ holds nothing old and nothing else is looked at.
 * After a kill a token's link count says that locks stand; then the trees in
 * which a lock can be are walked once, and each "*.lock" that has a token's
 * inode is ours. Others can make directories, tokens and locks there, as many
 * and as deep as they like: the walk takes no path that is longer than that of
 * a lock, and has one buffer for it.
 *
 * What fails: a directory that can't be read ends the search with its errno,
 * since a lock might be missed; so does more than STALE_WORK of entries, since
 * other repositories wait meanwhile; a foreign lock, or a ref that happens to end
 * in ".lock", has another inode and is never touched. Below a mount, or on btrfs
 * in another subvolume, the number of its inode may be that of a token; then the
 * devices differ.
 */
#include "daemon/store/recovery/stale.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/refs/lockfile.h"
#include "daemon/store/refs/reflog.h"
#include "proto/limits.h"

struct token_inode {
	uint64_t token, ino;
};

/* Of the longest ref, with its end. */
#define LOCK_PATH_MAX (REFD_REFNAME_MAX + sizeof(".lock"))

struct search {
	struct stale *stale;
	struct token_inode *tokens; /* by inode, when all are found */
	size_t nr, size;
	uint64_t dev;             /* of the tokens */
	char path[LOCK_PATH_MAX]; /* that a walk is at */
	size_t left;              /* of STALE_WORK */
};

/* An entry costs one, and a directory to open more: that takes its path. A
 * worktree keeps a descriptor. */
#define PATH_BYTES_OF_WORK 32
#define WORKTREE_WORK      1000

static int spend(size_t *left, size_t work)
{
	if (*left < work)
		return -EUSERS;
	*left -= work;
	return 0;
}

const char *stale_why(int err)
{
	if (err == -EUSERS)
		return "there are more than 4,000,000 entries in refd/stage/, "
		       "refs/ and worktrees/ (or 4,000 worktrees): remove "
		       "those that are not git's, and wait a minute or more";
	if (err == -E2BIG)
		return "there are more than 10,000 directories below the name "
		       "of a ref: remove those that are empty";
	return strerror(-err);
}

static int add_value(struct stale *stale, uint64_t token, uint64_t ino)
{
	struct stale_value *grown;
	size_t size;

	if (stale->nr_values == stale->values_size) {
		size = stale->values_size == 0 ? 16 : 2 * stale->values_size;
		grown = realloc(stale->values, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		stale->values = grown;
		stale->values_size = size;
	}
	stale->values[stale->nr_values].token = token;
	stale->values[stale->nr_values++].ino = ino;
	return 0;
}

static int add_token(struct search *s, const char *name)
{
	struct token_inode *grown;
	struct sys_stat st;
	uint64_t id;
	size_t size;
	unsigned k;
	int r;

	if (stale_is_live(&s->stale->live, name))
		return 0;
	r = SYS(s->stale->sys, lstatat, s->stale->repo->stage_fd, name, &st);
	if (r < 0 || st.nlink < 2)
		return r == -ENOENT ? 0 : r;
	if (token_parse_name(name, &id, &k) < 0)
		return add_value(s->stale, stale_window_of(name), st.ino);
	if (s->nr == s->size) {
		size = s->size == 0 ? 16 : 2 * s->size;
		grown = realloc(s->tokens, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		s->tokens = grown;
		s->size = size;
	}
	s->dev = st.dev;
	s->tokens[s->nr].token = id;
	s->tokens[s->nr++].ino = st.ino;
	return 0;
}

static int compare_inodes(const void *va, const void *vb)
{
	const struct token_inode *a = va, *b = vb;

	return (a->ino > b->ino) - (a->ino < b->ino);
}

static int each_entry(const struct sys *sys, int dirfd, const char *path,
    size_t *left, int (*cb)(void *arg, const struct sys_dirent *entry),
    void *arg)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	r = SYS(sys, dir_open, dirfd, path, &dir);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = spend(left, 1);
		if (r == 0)
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

static int any_entry(void *arg, const struct sys_dirent *entry)
{
	return stale_is_live(arg, entry->name) ? 0 : -EEXIST;
}

int stale_any(const struct sys *sys, const struct repo *repo,
    struct stale_live live)
{
	size_t left = STALE_WORK;
	int r = each_entry(sys, repo->stage_fd, ".", &left, any_entry, &live);

	return r == -EEXIST ? 1 : r;
}

/* Where a walk stands: a directory below DIRFD, whose names begin at LEN of the
 * search's path. */
struct walk {
	struct search *search;
	int dirfd;
	const char *worktree;
	size_t len;
	bool deep;
};

static int add_lock(struct search *s, uint64_t token, const struct walk *w,
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
	lock->dirfd = w->dirfd;
	lock->worktree = w->worktree;
	lock->done = false;
	lock->path = strndup(path, strlen(path) - 5);
	if (lock->path == NULL)
		return -ENOMEM;
	stale->nr_locks++;
	return 0;
}

/* The walk is at a file that is listed with TOKEN's inode. 0 or negative
 * errno. */
static int add_if_linked(const struct walk *w, const struct token_inode *token)
{
	struct search *s = w->search;
	struct sys_stat st;
	int r;

	r = SYS(s->stale->sys, lstatat, w->dirfd, s->path, &st);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (st.dev != s->dev || st.ino != token->ino)
		return 0;
	return add_lock(s, token->token, w, s->path);
}

static int walk_dir(const struct walk *from, size_t len);

static int walk_entry(void *arg, const struct sys_dirent *entry)
{
	struct walk *w = arg;
	struct search *s = w->search;
	struct token_inode key = { .ino = entry->ino }, *token;
	size_t nr = strlen(entry->name), len = w->len + nr;
	int r;

	if (len >= sizeof(s->path))
		return 0;
	if (w->len > 0)
		s->path[w->len - 1] = '/';
	memcpy(s->path + w->len, entry->name, nr + 1);
	if (entry->type == DT_DIR || entry->type == DT_UNKNOWN) {
		r = w->deep ? walk_dir(w, len) : 0;
		if (r < 0 || entry->type == DT_DIR)
			return r;
		s->path[len] = '\0';
	}
	if (len < 5 || strcmp(s->path + len - 5, ".lock") != 0)
		return 0;
	token = bsearch(&key, s->tokens, s->nr, sizeof(key), compare_inodes);
	return token != NULL ? add_if_linked(w, token) : 0;
}

/* Of the search's path the first LEN bytes; 0 for DIRFD itself. */
static int walk_dir(const struct walk *from, size_t len)
{
	struct walk w = *from;
	size_t *left = &w.search->left;
	int r = spend(left, len / PATH_BYTES_OF_WORK);

	if (r < 0)
		return r;
	w.len = len > 0 ? len + 1 : 0;
	return each_entry(w.search->stale->sys, w.dirfd,
	    len > 0 ? w.search->path : ".", left, walk_entry, &w);
}

/* All places of one git-dir in which a ref's lock can be. */
static int walk_git_dir(struct search *s, int dirfd, const char *worktree)
{
	struct walk w = { .search = s, .dirfd = dirfd, .worktree = worktree };
	int r;

	r = walk_dir(&w, 0);
	w.deep = true;
	strcpy(s->path, "refs");
	return r < 0 ? r : walk_dir(&w, strlen(s->path));
}

static int worktree_entry(void *arg, const struct sys_dirent *entry)
{
	struct search *s = arg;
	struct stale *stale = s->stale;
	struct stale_worktree *grown;
	char *id;
	int fd = spend(&s->left, WORKTREE_WORK);

	if (fd < 0)
		return fd;
	fd = repo_open_worktree(stale->sys, stale->repo, entry->name);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ENOENT || fd == -ELOOP ? 0 : fd;
	grown = realloc(stale->worktrees,
	    (stale->nr_worktrees + 1) * sizeof(*grown));
	if (grown != NULL)
		stale->worktrees = grown;
	id = strdup(entry->name);
	if (grown == NULL || id == NULL) {
		SYS(stale->sys, close, fd);
		free(id);
		return -ENOMEM;
	}
	grown[stale->nr_worktrees].fd = fd;
	grown[stale->nr_worktrees++].id = id;
	return walk_git_dir(s, fd, id);
}

static int compare_lock(uint64_t token, const char *worktree, const char *path,
    const struct stale_lock *lock)
{
	int order;

	if (token != lock->token)
		return token < lock->token ? -1 : 1;
	order = strcmp(worktree, lock->worktree);
	return order != 0 ? order : strcmp(path, lock->path);
}

static int compare_locks(const void *va, const void *vb)
{
	const struct stale_lock *a = va;

	return compare_lock(a->token, a->worktree, a->path, vb);
}

static int compare_values(const void *va, const void *vb)
{
	const struct stale_value *a = va, *b = vb;

	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return (a->ino > b->ino) - (a->ino < b->ino);
}

int stale_find(struct stale *stale, const struct sys *sys, struct repo *repo,
    struct stale_live live)
{
	struct search s = { .stale = stale, .left = STALE_WORK };
	int r;

	memset(stale, 0, sizeof(*stale));
	stale->sys = sys;
	stale->repo = repo;
	stale->live = live;
	r = each_entry(sys, repo->stage_fd, ".", &s.left, token_entry, &s);
	if (r == 0 && s.nr > 0) {
		qsort(s.tokens, s.nr, sizeof(*s.tokens), compare_inodes);
		r = walk_git_dir(&s, repo->fd, "");
		if (r == 0)
			r = each_entry(sys, repo->fd, "worktrees", &s.left,
			    worktree_entry, &s);
	}
	free(s.tokens);
	if (r < 0) {
		stale_done(stale);
		return r;
	}
	if (stale->nr_locks > 0)
		qsort(stale->locks, stale->nr_locks, sizeof(*stale->locks),
		    compare_locks);
	if (stale->nr_values > 0)
		qsort(stale->values, stale->nr_values, sizeof(*stale->values),
		    compare_values);
	return 0;
}

bool stale_is_value(const struct stale *stale, uint64_t token, uint64_t ino)
{
	struct stale_value key = { token, ino };

	return stale->nr_values > 0 &&
	    bsearch(&key, stale->values, stale->nr_values, sizeof(key),
		compare_values) != NULL;
}

struct stale_lock *stale_lookup(struct stale *stale, uint64_t token,
    const char *worktree, const char *path)
{
	size_t low = 0, high = stale->nr_locks, mid;

	/* A killed window may have held a hundred thousand. */
	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare_lock(token, worktree, path, &stale->locks[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < stale->nr_locks; low++) {
		if (compare_lock(token, worktree, path, &stale->locks[low]) !=
		    0)
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

	if (stale_is_live(&s->stale->live, entry->name))
		return 0;
	r = SYS(s->stale->sys, unlinkat, s->stale->repo->stage_fd, entry->name);
	if (r < 0 && r != -ENOENT)
		s->err = r;
	return 0;
}

/* Of a ref that was never made its empty log stays, and would be in the way of
 * other names. Whoever makes the ref meanwhile waits for this lock. */
static void unmake_log(struct stale *stale, const struct stale_lock *lock)
{
	struct packed_snapshot *snap = NULL;
	char path[REFD_PATH_MAX + 8];
	struct sys_stat st;

	if (strncmp(lock->path, "refs/", 5) != 0 ||
	    SYS(stale->sys, lstatat, lock->dirfd, lock->path, &st) != -ENOENT)
		return;
	if (lock->dirfd == stale->repo->fd &&
	    (packed_snapshot(stale->repo->packed, &snap) < 0 ||
		packed_lookup(snap, lock->path, NULL) != 0)) {
		packed_snapshot_put(snap);
		return;
	}
	packed_snapshot_put(snap);
	snprintf(path, sizeof(path), "logs/%s", lock->path);
	reflog_unmake(stale->sys, lock->dirfd, path);
}

int stale_unlock_others(struct stale *stale, const uint64_t *tokens, size_t nr,
    size_t *unlocked)
{
	struct stale_lock *lock;
	size_t i;
	int r;

	for (i = 0; i < stale->nr_locks; i++) {
		lock = &stale->locks[i];
		if (lock->done || stale_has_token(tokens, nr, lock->token))
			continue;
		unmake_log(stale, lock);
		r = stale_unlock(stale, lock);
		if (r < 0)
			return r;
		(*unlocked)++;
	}
	return 0;
}

int stale_clean(struct stale *stale, size_t *unlocked)
{
	struct sweep s = { stale, 0 };
	size_t left = STALE_WORK;
	int r;

	r = stale_unlock_others(stale, NULL, 0, unlocked);
	if (r < 0)
		return r;
	r = each_entry(stale->sys, stale->repo->stage_fd, ".", &left,
	    sweep_entry, &s);
	return r < 0 ? r : s.err;
}

void stale_done(struct stale *stale)
{
	size_t i;

	for (i = 0; i < stale->nr_locks; i++)
		free(stale->locks[i].path);
	for (i = 0; i < stale->nr_worktrees; i++) {
		SYS(stale->sys, close, stale->worktrees[i].fd);
		free(stale->worktrees[i].id);
	}
	free(stale->locks);
	free(stale->worktrees);
	free(stale->values);
	memset(stale, 0, sizeof(*stale));
}
