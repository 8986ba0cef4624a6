/*
 * Walks through the places of a repository that can hold locks of refs: the
 * top of the git-dir, reftable/ and refs/, also of the linked worktrees. The
 * caller decides about each lock.
 *
 * Everybody who may write the repository can make directories, names and links
 * there, in any number and at any depth. So each git-dir is opened only once,
 * and every path is below its descriptor, without a link on the way (sys.h). A
 * walk for locks takes no path longer than the path of a lock, and ends with
 * -EUSERS when its work is done. What vanishes meanwhile is left out.
 *
 * One thread; blocks; 0 or negative errno; logs nothing.
 */
#ifndef STORE_LOCK_WALK_H
#define STORE_LOCK_WALK_H

#include "daemon/store/repos/repo.h"

/* The work of a search, in entries, which takes seconds. A directory and a
 * "*.lock" cost more with a longer path, and so does each name without a type.
 * An open worktree keeps a descriptor, so it costs more, too. */
#define LOCK_WALK_WORK 4000000

/* A directory with names of its own. */
struct ref_place {
	int dirfd;            /* the common dir, or a linked worktree's */
	const char *worktree; /* "", or its id */
};

struct ref_places {
	struct ref_place *list; /* the common dir, then the worktrees */
	size_t nr;
};

/* Valid until the callback returns, except the descriptor and the id. */
struct lock_file {
	const struct ref_place *place;
	const char *path; /* below the place */
	uint64_t ino;     /* as its directory says */
	int err;          /* only of lock_walk_tree(), or 0 */
};

/* A value other than 0 ends the walk, which returns this value. */
typedef int lock_file_fn(void *arg, const struct lock_file *f);

/* Opens the linked worktrees of REPO, of which only fd is used, and which stays
 * open. Takes the work from *LEFT. After a failure PLACES has those that could
 * be opened. -ELOOP: worktrees/ is a link. PLACES is empty before, and needs
 * lock_places_close() in any case. */
int lock_places_open(struct ref_places *places, const struct sys *sys,
    const struct repo *repo, size_t *left);
void lock_places_close(struct ref_places *places, const struct sys *sys);

/* Opens PLACES, without worktrees if worktrees/ is a link, and calls FN there
 * for each "<file>.lock", except git's "<file>~pid.lock". The common dir
 * comes first, so that no number of worktrees can hide its locks. Ends at the
 * first directory that cannot be read. PLACES needs lock_places_close() in
 * any case. FN looks at a lock itself, so that a damaged lock that FN passes
 * over does not end the walk. */
int lock_walk(const struct sys *sys, const struct repo *repo,
    struct ref_places *places, size_t *left, lock_file_fn *fn, void *arg);
/* Calls FN for each file in the directory DIRFD, but for no directory.
 * -EUSERS: the work in *LEFT is done. */
int lock_walk_dir(const struct sys *sys, int dirfd, size_t *left,
    lock_file_fn *fn, void *arg);
/* Calls FN for each file below DIR, without a bound. Also for a directory that
 * cannot be read, with ERR, and the walk goes on. -ENAMETOOLONG: a path below
 * the directory has REFD_PATH_MAX bytes or more. */
int lock_walk_tree(const struct sys *sys, const struct ref_place *place,
    const char *dir, lock_file_fn *fn, void *arg);

/* Opens git's "<file>~pid.lock" beside the lock PATH, for lock_pid.h.
 * Negative: there is none. */
int lock_walk_open_pid(const struct sys *sys, int dirfd, const char *path);

#endif
