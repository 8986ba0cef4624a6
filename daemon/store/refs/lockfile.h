/*
 * Ref locks that can be told from everybody else's after a crash.
 *
 * Each window makes one empty file per repository, its *token*, in
 * <common-dir>/refd/stage/, and takes "<ref>.lock" by link(2) from it. git
 * respects such a lock like any other; and after a kill or a power cut a
 * .lock that shares its inode with a file in stage/ is ours, belongs to the
 * window that the file's name says, and can be rolled forward or removed.
 * A token's link count tells whether any of its locks still stands. New
 * values are written beside it in stage/ and renamed onto the ref from
 * there; the lock is unlinked after, so it stands until the ref is right.
 *
 * One thread per token; every call may block. 0 or negative errno; nothing
 * logs. done() is allowed in any state and more than once.
 */
#ifndef STORE_LOCKFILE_H
#define STORE_LOCKFILE_H

#include <stdint.h>

#include "daemon/base/sys.h"
#include "proto/limits.h"

#define TOKEN_NAME_MAX 32
/* ext4 allows 65,000 links; a further file is made well before. */
#define TOKEN_LINKS_MAX 50000

struct token {
	const struct sys *sys;
	int stage_fd;       /* borrowed */
	uint64_t id;        /* of the window, unique in the journal's life */
	unsigned nr_files;  /* 0: not made yet */
	unsigned links;     /* locks taken on the last file */
	unsigned made_dirs; /* by the last token_lock(), the innermost */
	char name[TOKEN_NAME_MAX]; /* of the last file */
};

/* The name of file K of token ID: 16 hex digits, ".", K. */
void token_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned k);
/* 0 when NAME is a token's; -1 otherwise. */
int token_parse_name(const char *name, uint64_t *id, unsigned *k);

/* The name in stage/ of the N-th new value of window ID: the digits, "-", N. */
void token_value_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned n);

/* "<path>.lock", or -ENAMETOOLONG. */
int lockfile_path(char lock[REFD_PATH_MAX], const char *path);

/* Makes the file; nothing is locked yet. stage_fd is borrowed. -EEXIST: the
 * id was used before. On failure TOK may be done() and holds nothing. */
int token_init(struct token *tok, const struct sys *sys, int stage_fd,
    uint64_t id);

/*
 * Takes PATH's lock, PATH without ".lock", relative to DIRFD; missing parent
 * directories are made with mode DIR_MODE. A directory that somebody prunes
 * meanwhile is tried three times (as git's lock_raw_ref).
 *
 * -EEXIST: somebody holds it. -ENOTDIR: a parent of PATH is a file.
 * -ENAMETOOLONG: PATH with ".lock" passes REFD_PATH_MAX or a component the
 * file system's own limit. -EXDEV, -EPERM: this file system can't link there.
 */
int token_lock(struct token *tok, int dirfd, const char *path, mode_t dir_mode);
/* A lock that is gone already counts as unlocked. */
int token_unlock(struct token *tok, int dirfd, const char *path);

/* The file system's own clock at the last link: an upper bound for when any
 * lock of the token was taken (st_ctime of the token; link(2) updates it, and
 * so does unlocking: ask while all locks stand). */
int token_locked_at(struct token *tok, int64_t *ctime_ns);

/* Removes the token's files; its locks must have been unlocked. Negative
 * errno: one of them stays. */
int token_done(struct token *tok);

#endif
