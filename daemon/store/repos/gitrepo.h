/*
 * What refd asks libgit2: is this a repository it may serve, what does its
 * configuration say, which objects does it hold. The only file that includes
 * libgit2. Never used to read or write refs: libgit2 loses updates there
 * under concurrent pack-refs.
 *
 * A struct gitrepo is used by one thread at a time (the caller's matter).
 * Calls may block. Nothing logs.
 */
#ifndef STORE_GITREPO_H
#define STORE_GITREPO_H

#include <stdbool.h>

#include "proto/oid.h"

struct gitrepo;

struct gitrepo_config {
	bool bare; /* core.bare; unset: the directory is not ".git" */
	/* core.sharedRepository as git's calc_shared_perm() uses it: 0 for
	 * umask, positive bits to add, negative: minus the exact mode. */
	int shared_perm;
	const char *log_all_ref_updates; /* NULL: unset; owned by it */
};

/* A value of core.sharedRepository (git_config_perm()); NULL: a key without
 * one. -1 for what git dies of. Pure; any thread. */
int gitrepo_parse_shared(const char *value, int *perm);

enum gitrepo_problem {
	GITREPO_OK,
	GITREPO_NOT_A_REPOSITORY, /* a linked worktree's git-dir too */
	GITREPO_UNSUPPORTED,      /* reftable, SHA-256, partial clone, ...; or a
				   configuration that git itself dies of */
	GITREPO_FAILED            /* could not be read */
};

enum gitrepo_object {
	GITREPO_ABSENT,
	GITREPO_COMMIT,
	GITREPO_TREE,
	GITREPO_BLOB,
	GITREPO_TAG,
	GITREPO_ERROR
};

/* Once per process, before any thread: global init, no config of the
 * daemon's own user or system, no rule of libgit2's about owners. */
void gitrepo_global_init(void);
void gitrepo_global_done(void);

/*
 * Opens the repository whose common dir is COMMON_DIR (absolute); no search,
 * no environment. On anything but GITREPO_OK *REPO is untouched and *WHY (to
 * be freed; NULL when out of memory) is a sentence that names the reason.
 */
enum gitrepo_problem gitrepo_open(const char *common_dir, struct gitrepo **repo,
    char **why);
void gitrepo_free(struct gitrepo *repo);
const struct gitrepo_config *gitrepo_config(const struct gitrepo *repo);

/* Forgets what was learnt of packs: libgit2 keeps reporting pruned packed
 * objects otherwise. Call when objects/pack changed. -1: could not be read,
 * and what was known stays. */
int gitrepo_refresh_objects(struct gitrepo *repo);
/* Reads the object's header alone; alternates are searched too. An object
 * that is not found makes it look for new packs once. */
enum gitrepo_object gitrepo_object(struct gitrepo *repo,
    const struct refd_oid *oid);
/* What the tag TAG is of, tags of tags followed, up to eight. -1: it is no
 * tag, can't be read, or there are more. */
int gitrepo_peel(struct gitrepo *repo, const struct refd_oid *tag,
    struct refd_oid *to);

#endif
