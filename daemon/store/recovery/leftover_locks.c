/*
 * Finds and removes the locks that an earlier run of refd left.
 *
 * The happy path: stage/ holds nothing old, and the search ends there. After a
 * crash the link count of a token shows that locks stand, so the search walks
 * once through all places that can have a lock (lock_walk.h). Every "*.lock"
 * with the inode of a token is refd's.
 *
 * refd makes only files in stage/, but e2fsck and administrators make
 * directories. So a directory in stage/ is nobody's lock, and stays.
 *
 * Failures: a lock might be missed if a directory cannot be read, so the search
 * ends with the errno. Other repositories wait meanwhile, so a search of more
 * than LOCK_WALK_WORK ends too. A foreign lock, or a ref with a name that
 * ends in ".lock", has a different inode and is never touched. Below a mount,
 * or in another subvolume of btrfs, an inode number may equal the number of a
 * token, so the devices are compared too.
 *
 * A power loss may keep a lock, and lose its token in stage/: a file system
 * syncs the names of each directory on its own. Git could not write until
 * somebody removes the lock, so an empty lock with the mode of a token is
 * refd's, too. In reftable/, which is synced with every batch, each search
 * looks for such locks. Elsewhere only a search with ORPHANS does.
 */
#include "daemon/store/recovery/leftover_locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/reflog.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/refs/token.h"
#include "daemon/store/tables/stack/stack.h"
#include "proto/lib/array.h"
#include "proto/lib/lock_pid.h"
#include "proto/limits.h"

/* The number of no batch. */
#define NO_TOKEN UINT64_MAX

struct token_inode {
	uint64_t token, ino;
};

struct lock_search {
	struct leftover_locks *leftover;
	struct token_inode *tokens; /* by inode, when all are found */
	size_t nr, size;
	uint64_t dev;     /* the device of the tokens */
	bool orphans;     /* looked for outside of reftable/ */
	bool has_orphans; /* found, anywhere */
};

const char *leftover_locks_why(int err)
{
	if (err == -EUSERS)
		return "there are more than 4,000,000 entries in refd/stage/, "
		       "refs/ and worktrees/ (or 4,000 worktrees): remove "
		       "those that are not git's, and wait a minute or more";
	if (err == -E2BIG)
		return "there are more than 10,000 directories below the name "
		       "of a ref: remove those that are empty";
	if (err == -EMEDIUMTYPE)
		return "its refs have a different format than its records: "
		       "restore the former repository, or end the daemon and "
		       "drop the records with 'refd recover --forget'";
	if (err == -EEXIST)
		return "a lock of another writer stands in reftable/, and a "
		       "table is damaged: run 'refd locks --clear-dead' on the "
		       "repository";
	if (err == -EBUSY)
		return "a lock of another writer stands on packed-refs, which "
		       "is malformed: run 'refd locks --clear-dead' on the "
		       "repository";
	if (err == -EBADMSG)
		return "a reftable, or the list of reftables, is missing or "
		       "damaged: restore it";
	if (err == -ENOTRECOVERABLE)
		return "an update of the group can't be redone there, and a "
		       "node gives up no update of its group";
	return strerror(-err);
}

/* ---- live batches ---- */

/* A name in stage/ begins with the number of its batch, so a file with another
 * name belongs to no batch and counts as old. */
uint64_t leftover_locks_batch_of(const char *name)
{
	if (strspn(name, "0123456789abcdef") != 16)
		return 0;
	return strtoull(name, NULL, 16);
}

bool leftover_locks_is_live(const struct live_batches *live, const char *name)
{
	uint64_t batch = leftover_locks_batch_of(name);

	return batch >= live->from && !(batch & JOURNAL_TOKEN_RECOVERY) &&
	    !array_has_u64(live->over, live->nr_over, batch);
}

/* ---- the search ---- */

static int remember_value(struct leftover_locks *leftover, uint64_t token,
    uint64_t ino)
{
	struct leftover_value *grown;

	grown = array_room(leftover->values, leftover->nr_values,
	    &leftover->values_size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	leftover->values = grown;
	leftover->values[leftover->nr_values].token = token;
	leftover->values[leftover->nr_values++].ino = ino;
	return 0;
}

static int remember_number(struct leftover_numbers *list, uint64_t item)
{
	uint64_t *grown;

	grown = array_room(list->items, list->nr, &list->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	list->items = grown;
	list->items[list->nr++] = item;
	return 0;
}

/* The name of a value ends in a number, which is even for a table and odd for a
 * list (stack_update.h). */
static int remember_list(struct leftover_locks *leftover, const char *name)
{
	const uint64_t batch = leftover_locks_batch_of(name);

	if (batch == 0 || name[16] != '-' ||
	    strtoul(name + 17, NULL, 10) % 2 == 0)
		return 0;
	return remember_number(&leftover->listed, batch);
}

/* lock_file_fn, as all that follow. */
static int remember_token(void *arg, const struct lock_file *f)
{
	struct lock_search *s = arg;
	const char *name = f->path;
	struct token_inode *grown;
	struct sys_stat st;
	uint64_t id;
	unsigned k;
	int r;

	if (leftover_locks_is_live(&s->leftover->live, name))
		return 0;
	r = SYS(s->leftover->sys, lstatat, s->leftover->repo->stage_fd, name,
	    &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (token_parse_name(name, &id, &k) < 0) {
		r = remember_list(s->leftover, name);
		return r < 0 || st.nlink < 2 ?
		    r :
		    remember_value(s->leftover, leftover_locks_batch_of(name),
			st.ino);
	}
	r = remember_number(&s->leftover->open, id);
	if (r < 0 || st.nlink < 2)
		return r;
	grown = array_room(s->tokens, s->nr, &s->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	s->tokens = grown;
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

static int find_old_entry(void *arg, const struct lock_file *f)
{
	return leftover_locks_is_live(arg, f->path) ? 0 : -EEXIST;
}

int leftover_locks_any(const struct sys *sys, const struct repo *repo,
    struct live_batches live)
{
	size_t left = LOCK_WALK_WORK;
	int r =
	    lock_walk_dir(sys, repo->stage_fd, &left, find_old_entry, &live);

	return r == -EEXIST ? 1 : r;
}

/* Takes over the path, also after a failure. */
static int add_lock(struct leftover_locks *leftover,
    const struct leftover_lock *lock)
{
	struct leftover_lock *grown;

	grown = array_room(leftover->locks, leftover->nr_locks, &leftover->size,
	    sizeof(*grown));
	if (grown != NULL)
		leftover->locks = grown;
	if (grown == NULL || lock->path == NULL) {
		free(lock->path);
		return -ENOMEM;
	}
	leftover->locks[leftover->nr_locks++] = *lock;
	return 0;
}

/* INO: 0, or that of a lock without its token. */
static int remember_lock(struct lock_search *s, uint64_t token, uint64_t ino,
    const struct lock_file *f)
{
	const struct leftover_lock lock = { .token = token,
		.ino = ino,
		.dirfd = f->place->dirfd,
		.worktree = f->place->worktree,
		.path = strndup(f->path, lock_file_len(f->path)) };

	return add_lock(s->leftover, &lock);
}

/* Can the lock at PATH be refd's without its token? At the top of a git-dir
 * refd locks packed-refs and refs in capitals. Git gives config.lock the mode
 * of config, so its mode tells nothing. */
static bool can_be_orphan(const struct lock_search *s, const char *path)
{
	if (strncmp(path, STACK_DIRECTORY "/", strlen(STACK_DIRECTORY "/")) ==
	    0)
		return true;
	return s->orphans &&
	    (strncmp(path, "refs/", strlen("refs/")) == 0 ||
		(path[0] >= 'A' && path[0] <= 'Z') ||
		strcmp(path, "packed-refs.lock") == 0);
}

static bool is_orphan(const struct sys_stat *st)
{
	return st->mode == (S_IFREG | TOKEN_MODE) && st->size == 0;
}

/* No other program makes an empty lock of a ref with the mode of a token, so
 * the mode tells that a lock without its token is refd's. */
static int remember_if_ours(void *arg, const struct lock_file *f)
{
	struct lock_search *s = arg;
	const struct token_inode key = { .ino = f->ino }, *token = NULL;
	struct sys_stat st;
	int r;

	if (s->nr > 0)
		token = bsearch(&key, s->tokens, s->nr, sizeof(key),
		    compare_inodes);
	if (token == NULL && !can_be_orphan(s, f->path))
		return 0;
	r = SYS(s->leftover->sys, lstatat, f->place->dirfd, f->path, &st);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	if (token != NULL && st.dev == s->dev && st.ino == f->ino)
		return remember_lock(s, token->token, 0, f);
	if (!can_be_orphan(s, f->path) || !is_orphan(&st))
		return 0;
	s->has_orphans = true;
	return remember_lock(s, NO_TOKEN, st.ino, f);
}

static int staged_entry(void *arg, const struct lock_file *f)
{
	return remember_number(arg, f->ino);
}

/* The token of a live batch is in stage/, so its locks are no orphans. stage/
 * is read last, because the batch makes its token before its locks. */
static int drop_live_orphans(struct lock_search *s)
{
	struct leftover_locks *leftover = s->leftover;
	struct leftover_lock *lock = leftover->locks;
	struct leftover_numbers staged = { 0 };
	size_t i, nr = 0, left = LOCK_WALK_WORK;
	int r = 0;

	if (s->has_orphans)
		r = lock_walk_dir(leftover->sys, leftover->repo->stage_fd,
		    &left, staged_entry, &staged);
	array_sort_u64(staged.items, staged.nr);
	for (i = 0; i < leftover->nr_locks && r == 0; i++) {
		if (lock[i].token == NO_TOKEN &&
		    array_has_u64(staged.items, staged.nr, lock[i].ino))
			free(lock[i].path);
		else
			lock[nr++] = lock[i];
	}
	if (r == 0)
		leftover->nr_locks = nr;
	free(staged.items);
	return r;
}

static int compare_lock(uint64_t token, const char *worktree, const char *path,
    const struct leftover_lock *lock)
{
	int order;

	if (token != lock->token)
		return token < lock->token ? -1 : 1;
	order = strcmp(worktree, lock->worktree);
	return order != 0 ? order : strcmp(path, lock->path);
}

static int compare_locks(const void *va, const void *vb)
{
	const struct leftover_lock *a = va;

	return compare_lock(a->token, a->worktree, a->path, vb);
}

static int compare_values(const void *va, const void *vb)
{
	const struct leftover_value *a = va, *b = vb;

	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return (a->ino > b->ino) - (a->ino < b->ino);
}

void leftover_locks_sort(struct leftover_locks *leftover)
{
	leftover->nr_added = 0;
	if (leftover->nr_locks > 0)
		qsort(leftover->locks, leftover->nr_locks,
		    sizeof(*leftover->locks), compare_locks);
}

int leftover_locks_find(struct leftover_locks *leftover, const struct sys *sys,
    struct repo *repo, struct live_batches live, bool orphans)
{
	struct lock_search s = { .leftover = leftover, .orphans = orphans };
	bool needed = repo_has_reftable(sys, repo);
	size_t left = LOCK_WALK_WORK;
	int r;

	memset(leftover, 0, sizeof(*leftover));
	leftover->sys = sys;
	leftover->repo = repo;
	leftover->live = live;
	r = lock_walk_dir(sys, repo->stage_fd, &left, remember_token, &s);
	if (s.nr > 0)
		qsort(s.tokens, s.nr, sizeof(*s.tokens), compare_inodes);
	needed = needed || leftover->open.nr > 0;
	if (r == 0 && (needed || orphans)) {
		r = lock_walk(sys, repo, &leftover->places, &left,
		    remember_if_ours, &s);
		/* Without NEEDED, only orphans were looked for. The refs of the
		 * repository are right with and without orphans, so the
		 * repository need not wait until all directories can be
		 * read. */
		if ((r == -EACCES || r == -EUSERS) && !needed)
			r = 0;
	}
	if (r == 0)
		r = drop_live_orphans(&s);
	free(s.tokens);
	if (r < 0) {
		leftover_locks_done(leftover);
		return r;
	}
	leftover_locks_sort(leftover);
	array_sort_u64(leftover->open.items, leftover->open.nr);
	array_sort_u64(leftover->listed.items, leftover->listed.nr);
	if (leftover->nr_values > 0)
		qsort(leftover->values, leftover->nr_values,
		    sizeof(*leftover->values), compare_values);
	return 0;
}

bool leftover_locks_is_value(const struct leftover_locks *leftover,
    uint64_t token, uint64_t ino)
{
	struct leftover_value key = { token, ino };

	return leftover->nr_values > 0 &&
	    bsearch(&key, leftover->values, leftover->nr_values, sizeof(key),
		compare_values) != NULL;
}

bool leftover_locks_is_open(const struct leftover_locks *leftover,
    uint64_t token)
{
	return array_has_u64(leftover->open.items, leftover->open.nr, token);
}

bool leftover_locks_has_list(const struct leftover_locks *leftover,
    uint64_t token)
{
	return array_has_u64(leftover->listed.items, leftover->listed.nr,
	    token);
}

int leftover_locks_add(struct leftover_locks *leftover, uint64_t token,
    const char *worktree, const char *path)
{
	const struct ref_place *place = leftover->places.list;
	const struct ref_place *end = place + leftover->places.nr;
	struct leftover_lock lock = { .token = token };
	int r;

	while (place < end && strcmp(place->worktree, worktree) != 0)
		place++;
	if (place == end)
		return -ENOENT;
	lock.dirfd = place->dirfd;
	lock.worktree = place->worktree;
	lock.path = strdup(path);
	r = add_lock(leftover, &lock);
	leftover->nr_added += r == 0;
	return r;
}

struct leftover_lock *leftover_locks_lookup(struct leftover_locks *leftover,
    uint64_t token, const char *worktree, const char *path)
{
	const size_t nr = leftover->nr_locks - leftover->nr_added;
	size_t low = 0, high = nr, mid;

	/* A crashed batch may have held 100,000 locks, so the search is
	 * binary. */
	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare_lock(token, worktree, path, &leftover->locks[mid]) >
		    0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < nr; low++) {
		if (compare_lock(token, worktree, path,
			&leftover->locks[low]) != 0)
			break;
		if (!leftover->locks[low].done)
			return &leftover->locks[low];
	}
	return NULL;
}

struct leftover_lock *leftover_locks_on(struct leftover_locks *leftover,
    const char *worktree, const char *path)
{
	struct leftover_lock *lock = leftover->locks;

	for (; lock < leftover->locks + leftover->nr_locks; lock++)
		if (!lock->done && strcmp(lock->worktree, worktree) == 0 &&
		    strcmp(lock->path, path) == 0)
			return lock;
	return NULL;
}

/* ---- removing ---- */

int leftover_locks_unlock(struct leftover_locks *leftover,
    struct leftover_lock *lock)
{
	char path[REFD_PATH_MAX + 8];
	struct sys_stat st;
	int r = 0;

	snprintf(path, sizeof(path), "%s.lock", lock->path);
	/* Somebody may have removed an orphan since, and git taken its name. */
	if (lock->token == NO_TOKEN)
		r = SYS(leftover->sys, lstatat, lock->dirfd, path, &st);
	if (r == 0 && lock->token == NO_TOKEN &&
	    (st.ino != lock->ino || !is_orphan(&st)))
		r = -ENOENT;
	if (r == 0)
		r = SYS(leftover->sys, unlinkat, lock->dirfd, path);
	if (r < 0 && r != -ENOENT)
		return r;
	lock->done = true;
	return 0;
}

/* 1: PATH is a ref in packed-refs, 0: PATH is not, or negative errno. Recovery
 * moves a malformed packed-refs away, so a malformed file holds no ref. */
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

/* The empty log of a ref that was never made would block other names, so the
 * log is removed. A writer who makes the ref meanwhile waits for this lock. */
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
		if (lock->done || array_has_u64(tokens, nr, lock->token))
			continue;
		unmake_log(leftover, lock);
		r = leftover_locks_unlock(leftover, lock);
		if (r < 0)
			return r;
		(*unlocked)++;
	}
	return 0;
}

/* The files of a token are .0, .1, and so on, and each is in the list. */
void leftover_locks_drop_tokens(const struct leftover_locks *leftover)
{
	const uint64_t *tokens = leftover->open.items;
	char name[TOKEN_NAME_MAX];
	unsigned k = 0;
	size_t i;

	for (i = 0; i < leftover->open.nr; i++) {
		k = i > 0 && tokens[i] == tokens[i - 1] ? k + 1 : 0;
		if (!(tokens[i] & JOURNAL_TOKEN_RECOVERY))
			continue;
		token_name(name, tokens[i], k);
		SYS(leftover->sys, unlinkat, leftover->repo->stage_fd, name);
	}
}

struct stage_sweep {
	struct leftover_locks *leftover;
	int err;
};

static int sweep_entry(void *arg, const struct lock_file *f)
{
	struct stage_sweep *s = arg;
	int r;

	if (leftover_locks_is_live(&s->leftover->live, f->path))
		return 0;
	r = SYS(s->leftover->sys, unlinkat, s->leftover->repo->stage_fd,
	    f->path);
	if (r < 0 && r != -ENOENT)
		s->err = r;
	return 0;
}

int leftover_locks_clean(struct leftover_locks *leftover, size_t *unlocked)
{
	struct stage_sweep s = { leftover, 0 };
	size_t left = LOCK_WALK_WORK;
	int r;

	r = leftover_locks_unlock_others(leftover, NULL, 0, unlocked);
	if (r < 0)
		return r;
	r = lock_walk_dir(leftover->sys, leftover->repo->stage_fd, &left,
	    sweep_entry, &s);
	return r < 0 ? r : s.err;
}

void leftover_locks_done(struct leftover_locks *leftover)
{
	size_t i;

	for (i = 0; i < leftover->nr_locks; i++)
		free(leftover->locks[i].path);
	lock_places_close(&leftover->places, leftover->sys);
	free(leftover->locks);
	free(leftover->values);
	free(leftover->open.items);
	free(leftover->listed.items);
	memset(leftover, 0, sizeof(*leftover));
}
