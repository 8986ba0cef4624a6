/*
 * Between repo.c (opening one) and repos.c (the table of the open ones). As
 * repo.h has it.
 */
#ifndef STORE_REPO_INTERNAL_H
#define STORE_REPO_INTERNAL_H

#include "daemon/store/repos/repo.h"

/* The flock on <common-dir>/refd/lock. Closing any descriptor of the file
 * would not drop it, closing the last reference does. repos->mutex. */
struct repo_lock {
	int fd;
	unsigned refs;
};

/* What repo_open() starts from: the common dir, found but not trusted. */
struct repo_place {
	int fd; /* taken over on success */
	char path[4096];
	struct sys_stat st;
};

/* 0 and *PLACE (close place->fd), or a status. GIT_DIR's own commondir file
 * is followed; both ends must lie under a root, and belong to an owner that is
 * served. */
enum refd_status repo_find(const struct repos *repos, const char *git_dir,
    struct repo_place *place, char **why);

/* The status of a repository that a call, which failed with ERR, could not
 * open. NOREPO is final, so it is not for a machine that lacks memory or
 * descriptors (BUSY) or for a disk that fails (IO). */
enum refd_status repo_open_status(int err);

/* Why a repository of UID is not served, in words; the caller frees it. */
char *repo_owner_why(const char *path, uint32_t uid);

/* object_rule.open_root: ARG is a struct repos. */
int repo_open_root(const void *arg, const char *path);

/* The one at PATH, which must lie under a root. 0; -ENOENT: there is none;
 * -EKEYREJECTED: the owner is not served; another errno: the disk fails. */
int repo_find_known(const struct repos *repos, const char *path,
    struct repo_place *place);

/* Opens it: config, rights, flock, id, journal. LOCK is an older opening's,
 * or NULL. Everything but the table's own fields is filled in. */
enum refd_status repo_open(struct repos *repos, struct repo_place *place,
    struct repo_lock *lock, struct repo **repo, char **why);
/* The same for recovery: only by path and id. -EKEYREJECTED: the owner is not
 * served. */
int repo_open_known(struct repos *repos, const struct journal_repo *known,
    struct repo **repo);
void repo_close(struct repos *repos, struct repo *repo);

/* With its flock, whoever's it is; nothing is made, nothing read. -ENOENT: no
 * refd ever served it. -EAGAIN: one does. -EKEYREJECTED: as above. PLACE is
 * closed or taken over. */
int repo_open_claimed(struct repos *repos, struct repo_place *place,
    struct repo **repo);

/* repo_claim.c: refd/ of an open directory: made, locked, named and noted in
 * the journal. */
enum refd_status repo_claim(struct repos *repos, struct repo *repo,
    struct repo_lock *lock, char **why);
/* Only if it is KNOWN; makes nothing. -ESTALE: it is another. -EAGAIN. */
int repo_claim_known(const struct repos *repos, struct repo *repo,
    const struct journal_repo *known);
/* Whoever's it is. -ENOENT, -EAGAIN. */
int repo_claim_any(const struct repos *repos, struct repo *repo);

/* fs.c. Gives REPO its file system; -EIO: one that failed to sync. */
int fs_attach(struct repos *repos, struct repo *repo);
void fs_free_all(struct repos *repos);

/* By owner, group and mode of refs/, as open(2) would decide. */
bool repo_may_write(const struct repo *repo, uint32_t uid, const uint32_t *gids,
    size_t nr_gids);

#endif
