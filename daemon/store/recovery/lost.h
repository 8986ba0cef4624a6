/*
 * Evidence: before recovery replaces or deletes a file that is no ref, or a
 * malformed packed-refs, it keeps the file in the repository's refd/lost/, for
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

/* The evidence of one repository. Zero-initialised. */
struct lost {
	bool is_open; /* the directory exists, and its files were counted */
	size_t nr;
};

/* Gives NAME of WORKTREE, below DIRFD, a second name: KEPT, below the
 * repository, with the time and the ref. -EDQUOT: too many files, or NAME is
 * too large. */
int lost_keep(struct lost *lost, const struct sys *sys, const struct repo *repo,
    int dirfd, const char *worktree, const char *name,
    char kept[LOST_PATH_MAX]);
/* Moves packed-refs to refd/lost/. If there are too many files, always uses the
 * same name, and replaces the last file. */
int lost_take_packed(struct lost *lost, const struct sys *sys,
    const struct repo *repo, char kept[LOST_PATH_MAX]);
/* The time of the last such move, by the clock of the file system. INT64_MIN:
 * never; INT64_MAX: unknown. */
int64_t lost_packed_ns(const struct sys *sys, const struct repo *repo);

#endif
