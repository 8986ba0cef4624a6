/*
 * Loose refs on disk: reading a ref under its lock, staging a new value, and
 * the directories around refs. The model is files_read_raw_ref() of git's
 * files-backend.c, but for links. A link can lead out of the repository, so no
 * link is followed, neither the last component of a path nor a parent (sys.h).
 * A link in the place of a ref is read.
 *
 * Any thread may call, every call may block, and nothing logs. 0 or negative
 * errno.
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
	LOOSE_DIR,    /* a directory with any entry, even only a lock */
	/* empty, NULs, garbage; any other symlink, which git would follow; a
	 * FIFO, a socket, a device */
	LOOSE_BROKEN
};

struct loose_value {
	enum loose_kind kind;
	struct refd_oid oid;
	/* The file has exactly the text of loose_format(). A symref ends with a
	 * line feed and has no NUL. A torn file is not exact. */
	bool exact;
	bool is_vacant; /* ABSENT, and there is no directory either */
	char *target;   /* of a symref, unchecked, may be ""; owned */
	/* Of the file, if any. */
	int64_t mtime_ns;
	int64_t written_ns; /* sys_stat_written_ns() */
	uint32_t owner;
};

void loose_value_done(struct loose_value *value);

/* -ENOTDIR from a parent that is a file reads as LOOSE_ABSENT. After ABSENT or
 * DIR the ref may still be packed. Changes nothing on disk. */
int loose_read(const struct sys *sys, int dirfd, const char *path,
    enum refd_object_format format, struct loose_value *value);

/* Parses the content of a ref file: an id of FORMAT, then NUL or white space or
 * end, or "ref:" white space target, CRLF and trailing blanks allowed. Whether
 * the target is a refname is the caller's to check. -ENOMEM. */
int loose_parse(const char *buf, size_t len, enum refd_object_format format,
    struct loose_value *value);

/* Longer than any ref file that refd writes. */
#define LOOSE_CONTENT_MAX (REFD_PATH_MAX + 16)

/* The text of a ref file: "ref: <target>\n", or "<hex>\n" if TARGET is NULL.
 * Returns the length, or -ENAMETOOLONG. */
int loose_format(const struct refd_oid *oid, enum refd_object_format format,
    const char *target, char content[LOOSE_CONTENT_MAX]);

/* Writes CONTENT into a new file NAME in STAGE_FD with MODE (less the process's
 * umask, which is 0 in the daemon), syncs nothing. Returns the descriptor, to
 * be closed. -EEXIST: NAME is taken; any other failure leaves no file. */
int loose_stage(const struct sys *sys, int stage_fd, const char *name,
    const char *content, size_t len, mode_t mode);

/* How many entries each of the four functions below looks at, in all
 * directories together, before it fails with -E2BIG. Anybody may fill a
 * directory, and git leaves only few empty directories. */
#define LOOSE_WALK_MAX 10000

/*
 * Makes room for a file at PATH: removes the tree of empty directories there (a
 * lock file makes a directory non-empty). A file or nothing at PATH is 0 too.
 * -ENOTEMPTY: there is a file inside, and *BLOCKER (owned by the caller) is its
 * path, or NULL if the file is gone again. BLOCKER may be NULL.
 */
int loose_clear_dirs(const struct sys *sys, int dirfd, const char *path,
    char **blocker);

/*
 * Finds a loose ref below PATH/, for D/F checks. 1 and *FOUND (owned, a full
 * path relative to DIRFD), or 0. Names ending in ".lock" or beginning with "."
 * are not refs, nor is anything below.
 */
int loose_find_below(const struct sys *sys, int dirfd, const char *path,
    char **found);

/* The same for anything but directories, if only a lock. */
int loose_find_file(const struct sys *sys, int dirfd, const char *path,
    char **found);

/* 1 when anything but directories is below PATH, if only a lock; 0 when not. */
int loose_dir_holds_file(const struct sys *sys, int dirfd, const char *path);

/* -ELOOP: a directory on the way to PATH is a link. The link may lead out of
 * the repository, because a user with write access to refs/ can make a link
 * there, and no call of SYS follows it. 0: there is no such link. A link in the
 * place of PATH is no failure here, because loose_read() reads such a link. */
int loose_stays_inside(const struct sys *sys, int dirfd, const char *path);

/* After a deletion: rmdir of PATH's parents while they are empty, but never
 * the first KEEP components ("refs/heads": keep 2). */
void loose_prune_parents(const struct sys *sys, int dirfd, const char *path,
    unsigned keep);

#endif
