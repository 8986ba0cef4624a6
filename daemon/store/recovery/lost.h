/*
 * Evidence: what recovery replaces or deletes though it was no ref, or no
 * packed-refs, is kept in the repository's refd/lost/, for people to look at.
 *
 * One thread; blocks; 0 or negative errno; nothing logs. Durable with what
 * replaced it.
 */
#ifndef STORE_LOST_H
#define STORE_LOST_H

#include "daemon/store/repos/repo.h"

/* What is there already counts: who has looked at it removes it. */
#define LOST_FILES    100
#define LOST_BYTES    (1 << 20) /* of one file, but for packed-refs */
#define LOST_PATH_MAX 300

/* A repository's. Zero-initialised. */
struct lost {
	bool is_open; /* the directory is there, and its files were counted */
	size_t nr;
};

/* NAME of WORKTREE, below DIRFD, gets a second name, that says when, and
 * which ref: KEPT, below the repository. -EDQUOT: there are enough, or it is
 * too large. */
int lost_keep(struct lost *lost, const struct sys *sys, const struct repo *repo,
    int dirfd, const char *worktree, const char *name,
    char kept[LOST_PATH_MAX]);
/* packed-refs goes there. Where there are enough, over the last such one. */
int lost_take_packed(struct lost *lost, const struct sys *sys,
    const struct repo *repo, char kept[LOST_PATH_MAX]);
/* When one last was, by the file system's clock; INT64_MIN: none is there,
 * INT64_MAX: that can't be told. */
int64_t lost_packed_ns(const struct sys *sys, const struct repo *repo);

#endif
