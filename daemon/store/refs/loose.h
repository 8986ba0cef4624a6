/*
 * Loose refs on disk: reading one under its lock, staging a new value, and
 * the directories around it. files-backend.c of git is the model:
 * files_read_raw_ref() for what may stand in the file. The last component of
 * a path is never followed if it is a link; parents that are links are, as
 * git does.
 *
 * Any thread; every call may block. 0 or negative errno; nothing logs.
 */
#ifndef STORE_LOOSE_H
#define STORE_LOOSE_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/limits.h"
#include "proto/oid.h"

enum loose_kind {
	LOOSE_ABSENT, /* no file, or only empty directories there */
	LOOSE_OID,
	LOOSE_SYMREF, /* "ref: x", or a symlink to a ref's name */
	LOOSE_DIR,    /* a directory with something in it, if only a lock */
	LOOSE_BROKEN  /* empty, NULs, garbage; another symlink, which git
			   would follow; a FIFO, a socket, a device */
};

struct loose_value {
	enum loose_kind kind;
	struct refd_oid oid;
	/* It says no more than loose_format() writes; of a symref: it ends
	 * with a line feed and no NUL is in it. What is torn is not exact. */
	bool exact;
	bool is_vacant;   /* ABSENT, and there is no directory either */
	char *target;     /* of a symref, unchecked, may be ""; owned */
	int64_t mtime_ns; /* of the file, where there is one */
};

void loose_value_done(struct loose_value *value);

/* -ENOTDIR from a parent that is a file reads as LOOSE_ABSENT. Where this is
 * ABSENT or DIR the ref may still be packed. Changes nothing on disk. */
int loose_read(const struct sys *sys, int dirfd, const char *path,
    struct loose_value *value);

/* Parses the content of a ref file: "<hex>" then NUL or white space or end,
 * or "ref:" white space target, CRLF and trailing blanks allowed. Whether the
 * target is a refname is the caller's to check. -ENOMEM. */
int loose_parse(const char *buf, size_t len, struct loose_value *value);

/* Longer than any ref's file that is written. */
#define LOOSE_CONTENT_MAX (REFD_PATH_MAX + 16)

/* What a ref's file says: "ref: <target>\n", or where TARGET is NULL
 * "<hex>\n". Its length, or -ENAMETOOLONG. */
int loose_format(const struct refd_oid *oid, const char *target,
    char content[LOOSE_CONTENT_MAX]);

/* Writes CONTENT into a new file NAME in STAGE_FD with MODE (less the
 * process's umask, which is 0 in the daemon), syncs nothing. The descriptor, to be closed. -EEXIST: NAME is
 * taken; any other failure leaves no file. */
int loose_stage_open(const struct sys *sys, int stage_fd, const char *name,
    const char *content, size_t len, mode_t mode);
/* The same, and closes it: 0. */
int loose_stage(const struct sys *sys, int stage_fd, const char *name,
    const char *content, size_t len, mode_t mode);

/* Entries. Each of the three below looks at so many, all directories together,
 * and fails with -E2BIG beyond: git leaves few empty directories. */
#define LOOSE_WALK_MAX 10000

/*
 * Makes room for a file at PATH: removes the tree of empty directories there
 * (lock files do not count as empty); a file there, or nothing, is 0 too.
 * -ENOTEMPTY: something is in it, and *BLOCKER (owned by the caller) is the
 * path of one file, or NULL where it is gone again. BLOCKER may be NULL.
 */
int loose_clear_dirs(const struct sys *sys, int dirfd, const char *path,
    char **blocker);

/*
 * Finds a loose ref below PATH/, for D/F checks. 1 and *FOUND (owned, a full
 * path relative to DIRFD) when there is one, 0 when not. Names ending in
 * ".lock" or beginning with "." are not refs, nor is anything below them.
 */
int loose_find_below(const struct sys *sys, int dirfd, const char *path,
    char **found);

/* 1 when anything but directories is below PATH, if only a lock; 0 when not. */
int loose_dir_holds_file(const struct sys *sys, int dirfd, const char *path);

/* -ELOOP: a directory on the way to PATH is a link, perhaps out of the
 * repository; who may write in refs/ may have put it there. Else 0. */
int loose_stays_inside(const struct sys *sys, int dirfd, const char *path);

/* After a deletion: rmdir of PATH's parents while they are empty, but never
 * the first KEEP components ("refs/heads": keep 2). */
void loose_prune_parents(const struct sys *sys, int dirfd, const char *path,
    unsigned keep);

#endif
