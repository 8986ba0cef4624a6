/*
 * Saved files, for people. Before recovery or refd verify --repair replaces or
 * removes a broken file, the file goes to the directory refd/saved/ of the
 * repository:
 *
 *	refd/saved/<time>-<number>-<name>
 *
 * refd never removes a saved file, so saved files count until an administrator
 * removes them.
 *
 * One thread; blocks; 0 or negative errno; nothing logs. The caller syncs the
 * directory.
 */
#ifndef STORE_SAVED_H
#define STORE_SAVED_H

#include "daemon/store/repos/repo.h"

/* The limits of links and copies. A move takes no more room, and packed-refs
 * may have the only copy of many refs, so moves have no limit. */
#define SAVED_FILES      100
#define SAVED_LINK_BYTES (1 << 20) /* of one file */
#define SAVED_COPY_BYTES (1 << 30) /* of one file */
#define SAVED_PATH_MAX   300

/* Each function saves NAME of WORKTREE, below DIRFD, and sets PATH, below the
 * repository. Only FD and MODE of REPO are used. -EXFULL: a limit. */

/* NAME gets a second name, which takes no room and keeps times, owner and mode.
 * For a file that a rename replaces. */
int saved_link(const struct sys *sys, const struct repo *repo, int dirfd,
    const char *worktree, const char *name, char path[SAVED_PATH_MAX]);
/* For a file that is changed in place. The data of the copy is synced. -EACCES:
 * another account alone may write the file. */
int saved_copy(const struct sys *sys, const struct repo *repo, int dirfd,
    const char *worktree, const char *name, char path[SAVED_PATH_MAX]);
/* Renames the file NAME of the common directory. */
int saved_move(const struct sys *sys, const struct repo *repo, const char *name,
    char path[SAVED_PATH_MAX]);

/* The time of the last move of packed-refs, by the clock of the file system.
 * INT64_MIN: never; INT64_MAX: unknown. */
int64_t saved_packed_ns(const struct sys *sys, const struct repo *repo);

#endif
