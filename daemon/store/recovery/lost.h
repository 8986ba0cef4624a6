/*
 * Evidence: before recovery replaces or deletes a file that is no ref, or a
 * malformed packed-refs, the file is kept in the repository's refd/lost/, for
 * people.
 *
 * One thread; blocks; 0 or negative errno; nothing logs. Durable with the
 * replacement.
 */
#ifndef STORE_LOST_H
#define STORE_LOST_H

#include "daemon/store/repos/repo.h"

/* Old files count too: an operator removes them after a look. */
#define LOST_FILES    100
#define LOST_BYTES    (1 << 20) /* of one file, except packed-refs */
#define LOST_PATH_MAX 300

/* A repository's. Zero-initialised. */
struct lost {
	bool is_open; /* the directory exists, and its files were counted */
	size_t nr;
};

/* Gives NAME of WORKTREE, below DIRFD, a second name with the time and the ref:
 * KEPT, below the repository. -EDQUOT: too many files, or NAME is too large. */
int lost_keep(struct lost *lost, const struct sys *sys, const struct repo *repo,
    int dirfd, const char *worktree, const char *name,
    char kept[LOST_PATH_MAX]);
/* Moves packed-refs there. If there are too many files, over the last file
 * moved so. */
int lost_take_packed(struct lost *lost, const struct sys *sys,
    const struct repo *repo, char kept[LOST_PATH_MAX]);
/* When packed-refs was last moved there, by the file system's clock. INT64_MIN:
 * never; INT64_MAX: unknown. */
int64_t lost_packed_ns(const struct sys *sys, const struct repo *repo);

#endif
