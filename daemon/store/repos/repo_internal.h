/*
 * Shared by the files of this folder: repo.c opens a repository, repos.c has
 * the table of open repositories. Threads and blocking as in repo.h.
 */
#ifndef STORE_REPO_INTERNAL_H
#define STORE_REPO_INTERNAL_H

#include "daemon/store/repos/repo.h"

/* The flock on <common-dir>/refd/lock. Ends when its last reference is dropped,
 * not when another descriptor of the file is closed. Only the thread that opens
 * or closes the repository (struct repo_busy) counts references, so no lock is
 * needed. */
struct repo_lock {
	int fd;
	unsigned refs;
};

/* The begin of repo_open(), with the common dir, which was found but is not
 * trusted. */
struct repo_place {
	int fd; /* taken over on success */
	char path[4096];
	struct sys_stat st;
	const struct repo_first *first; /* of repos_get(); or NULL */
};

/* Finds the common dir of GIT_DIR by its commondir file. GIT_DIR and the common
 * dir must both lie under a root and belong to a served owner. REFD_OK and
 * *PLACE, whose descriptor the caller closes; or another status and *WHY. */
enum refd_status repo_find(const struct repos *repos, const char *git_dir,
    struct repo_place *place, char **why);
/* The same for ARG, the trusted argument of an administrator's command, which
 * is a git-dir, or a work tree whose .git may be a file. */
enum refd_status repo_find_named(const struct repos *repos, const char *arg,
    struct repo_place *place, char **why);

/* The status after a failure ERR to open a repository. A client takes NOREPO as
 * final. So a lack of memory or descriptors is BUSY, and a failure of the disk
 * is IO. */
enum refd_status repo_open_status(int err);

/* The reason why a repository of UID is not served, to be freed by the
 * caller. */
char *repo_owner_why(const char *path, uint32_t uid);

/* object_rule.open_root: ARG is a struct repos. */
int repo_open_root(const void *arg, const char *path);

/* Finds the common dir at PATH, which must lie under a root. 0; -ENOENT: none;
 * -EXDEV, -ENOTDIR, -ELOOP: the path leads elsewhere by now; -EKEYREJECTED: the
 * owner is not served; otherwise the disk failed. */
int repo_find_known(const struct repos *repos, const char *path,
    struct repo_place *place);

/* Opens the repository with its config, rights, flock, id and journal. LOCK is
 * the lock of an older opening, or NULL. The fields of the table are left to
 * repos.c. */
enum refd_status repo_open(struct repos *repos, struct repo_place *place,
    struct repo_lock *lock, struct repo **repo, char **why);
/* The same for recovery, but only by path and id. -EKEYREJECTED: the owner is
 * not served. */
int repo_open_known(struct repos *repos, const struct journal_repo *known,
    struct repo **repo);
void repo_close(struct repos *repos, struct repo *repo);

/* Opens a repository of any journal and takes its flock, but writes nothing and
 * reads no configuration. -ENOENT: refd never served the repository. -EAGAIN: a
 * daemon serves the repository. -EKEYREJECTED: its owner is not served. PLACE
 * is closed or taken over. */
int repo_open_claimed(struct repos *repos, struct repo_place *place,
    struct repo **repo);

/* In repo_claim.c, refd/ of an open directory is made, locked, named and noted
 * in the journal. */
enum refd_status repo_claim(struct repos *repos, struct repo *repo,
    struct repo_lock *lock, char **why);
/* Claims REPO only if its id is KNOWN, and writes nothing. -ESTALE: a different
 * id. -EAGAIN: locked. */
int repo_claim_known(const struct repos *repos, struct repo *repo,
    const struct journal_repo *known);
/* Claims REPO, of any journal. -ENOENT: never served. -EAGAIN: locked. */
int repo_claim_any(const struct repos *repos, struct repo *repo);

/* fs.c. Gives REPO its file system. -EIO: the file system failed to sync. */
int fs_attach(struct repos *repos, struct repo *repo);
void fs_free_all(struct repos *repos);

/* By owner, group and mode of refs/, as open(2) would decide. */
bool repo_may_write(const struct repo *repo, uint32_t uid, const uint32_t *gids,
    size_t nr_gids);

#endif
