/*
 * Ref locks that refd can recognise as its own after a crash.
 *
 * A batch makes an empty file per repository, its *token*, in
 * <common-dir>/refd/stage/, and takes "<ref>.lock" by link(2) from the token.
 * git respects such a lock, and after a crash or a power loss, a .lock with the
 * inode of a file in stage/ is refd's. The name of the file has the number of
 * the batch, so the lock can be rolled forward or removed. The link count of a
 * token tells whether any lock still stands. New values are written beside the
 * token in stage/ and renamed onto the ref. The lock is unlinked afterwards, so
 * that it stands until the ref is right.
 *
 * One thread per token; every call may block. 0 or negative errno; nothing
 * logs. done() is allowed in any state and more than once.
 */
#ifndef STORE_TOKEN_H
#define STORE_TOKEN_H

#include <stdint.h>

#include "daemon/base/sys.h"
#include "proto/limits.h"

#define TOKEN_NAME_MAX 32
/* Nobody may write into a lock, because the file must stay empty. */
#define TOKEN_MODE 0444
/* ext4 allows 65,000 links, so a further file is made well before. */
#define TOKEN_LINKS_MAX 50000

struct token {
	const struct sys *sys;
	int stage_fd;       /* borrowed */
	uint64_t id;        /* of the batch, unique in the journal's life */
	unsigned nr_files;  /* 0: not made yet */
	unsigned links;     /* locks taken on the last file */
	unsigned made_dirs; /* by the last token_lock(), the innermost */
	char name[TOKEN_NAME_MAX]; /* of the last file */
};

/* The name of file K of token ID: 16 hex digits, ".", K. */
void token_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned k);
/* 0 when NAME is a token's; -1 otherwise. */
int token_parse_name(const char *name, uint64_t *id, unsigned *k);

/* The name in stage/ of the N-th new value of batch ID: the digits, "-", N. */
void token_value_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned n);

/* "<path>.lock", or -ENAMETOOLONG. */
int token_lock_path(char lock[REFD_PATH_MAX], const char *path);

/* Makes the file, below the borrowed stage_fd, and locks nothing yet. -EEXIST:
 * the id was used before. After a failure TOK holds nothing, and may be
 * done(). */
int token_init(struct token *tok, const struct sys *sys, int stage_fd,
    uint64_t id);

/*
 * Takes the lock of PATH (without ".lock"), relative to DIRFD, and makes
 * missing parent directories with mode DIR_MODE. Another process may prune a
 * directory meanwhile, so the call tries three times (as git's lock_raw_ref).
 *
 * -EEXIST: the lock is held. -ENOTDIR: a parent of PATH is a file.
 * -ENAMETOOLONG: PATH with ".lock" exceeds REFD_PATH_MAX, or a component
 * exceeds the file system's limit. -EXDEV, -EPERM: this file system cannot link
 * there.
 */
int token_lock(struct token *tok, int dirfd, const char *path, mode_t dir_mode);
/* A missing lock counts as unlocked. */
int token_unlock(struct token *tok, int dirfd, const char *path);

/* The file system's clock at the last link, so no lock of the token was taken
 * later. The time is the st_ctime of the token, which link(2) updates.
 * Unlocking updates the time, too, so ask while all locks stand. */
int token_locked_at(struct token *tok, int64_t *ctime_ns);

/* Removes the token's files, after all locks were unlocked. Negative errno: a
 * file stays. */
int token_done(struct token *tok);

#endif
