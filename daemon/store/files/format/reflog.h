/*
 * Reflogs: one line per change, "old SP new SP committer [TAB message] LF",
 * appended with a single write(2) by the holder of the ref's lock. Never
 * cached, because `git reflog expire` replaces the file under the same lock.
 *
 * Any thread may call, every call may block, and nothing logs. 0 or negative
 * errno.
 */
#ifndef STORE_REFLOG_H
#define STORE_REFLOG_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/oid.h"

enum reflog_policy { /* core.logAllRefUpdates */
	REFLOG_NEVER,
	REFLOG_NORMAL, /* HEAD, refs/heads, refs/remotes, refs/notes */
	REFLOG_ALWAYS
};

/* A log: PATH below DIRFD, with ids of FORMAT. With CREATE a call makes a
 * missing log with exactly FILE_MODE, and directories with DIR_MODE. All
 * borrowed. */
struct reflog_file {
	const struct sys *sys;
	int dirfd;
	const char *path;
	enum refd_object_format format;
	bool create;
	mode_t file_mode, dir_mode;
};

/* Unset (NULL) means NORMAL unless BARE; "always", or a boolean as in git,
 * including numbers. -1: a word that git refuses. */
int reflog_policy_parse(const char *value, bool bare,
    enum reflog_policy *policy);
/* Would git create a log for NAME (should_autocreate_reflog)? */
bool reflog_policy_creates(enum reflog_policy policy, const char *name);

/* Runs of white space become one blank, none at the ends (git's
 * copy_reflog_msg). Returns a malloc'd string, NULL when out of memory. */
char *reflog_normalise(const char *message);

/* The whole line with its LF, malloc'd. MESSAGE is normalised or NULL; an empty
 * message counts as none. NULL: out of memory, or a line feed in COMMITTER or
 * MESSAGE, which would forge a line. */
char *reflog_line(const struct refd_oid *old, const struct refd_oid *new_oid,
    enum refd_object_format format, const char *committer, const char *message,
    size_t *len);

/*
 * Before the commit point: makes the log, if wanted. *WILL_LOG: the file exists
 * and can be opened for appending. *MADE: this call made the file, and
 * *MADE_DIRS directories above the file. Without CREATE nothing is made, and a
 * directory at the path is no log, as in git.
 *
 * -EISDIR: a non-empty directory is in the way (empty directories are removed,
 * as in git). -ENOTDIR: a parent is a file. -ELOOP, -EINVAL: the path is a
 * link, or no file; git would write through a link, and so out of the
 * repository. -EMLINK: the file has a second name (a hard link), perhaps out of
 * the repository.
 */
int reflog_prepare(const struct reflog_file *log, bool *will_log, bool *made,
    unsigned *made_dirs);
/* Removes an empty log that was MADE, and its directories. */
int reflog_unmake(const struct reflog_file *log);

/* Appends. A foreign expire may have replaced the file since reflog_prepare(),
 * so the file is opened by name. Returns the descriptor, to be closed. A
 * failure takes back the part of the line that was written, unless taking back
 * fails as well. -ENOENT: the file is gone. -EMLINK as above. */
int reflog_append(const struct reflog_file *log, const char *line, size_t len);

/* Takes back a line of a publish that is aborted: removes the last line if it
 * is equal to LINE. 0 also if the last line differs, or if the log is gone or
 * has a second name. -ELOOP, -EINVAL: no log stands there. */
int reflog_retract(const struct reflog_file *log, const char *line, size_t len);
/* The same through a descriptor of reflog_append(), which stays open. */
int reflog_retract_open(const struct sys *sys, int fd, const char *line,
    size_t len);

/* How many bytes at the end of a log are repaired and searched for missing
 * lines. A power loss damages the latest writes, but other writers may have
 * appended since. If they have appended almost as much as this, a line is added
 * twice rather than lost. */
#define REFLOG_TAIL_MAX ((size_t)16 << 20)

/*
 * Recovery, under the ref's lock. First cuts off the damage of a power loss: an
 * unterminated last line, or NULs and torn text around them (a whole line
 * appended after NULs is kept). Then appends the NR lines, each with its LF, in
 * order, except for the lines that the log has already.
 *
 * LINES may contain equal lines, so a line is added only as often as the log
 * lacks it. The first KNOWN lines were durable, so they only count, and are
 * never added. Without CREATE an absent log stays absent. *ADDED counts lines,
 * *CUT_BYTES bytes.
 */
int reflog_repair(const struct reflog_file *log, const char *const *lines,
    size_t nr, size_t known, size_t *added, size_t *cut_bytes);

/* 1 and both values of the last sound line; 0: there is none in the last
 * MiB. -ENOENT. */
int reflog_last(const struct reflog_file *log, struct refd_oid *old_oid,
    struct refd_oid *new_oid);

/*
 * Recovery after a crash, while the lock still stands under which LINE was, or
 * was about to be, written. Nobody has appended since, so the log holds LINE
 * exactly if LINE is the last line. Otherwise cuts off a torn tail, and appends
 * LINE. *ADDED: was LINE appended?
 */
int reflog_complete(const struct reflog_file *log, const char *line, size_t len,
    bool *added);

/* Deletes the log and prunes its empty parent directories down to
 * logs/refs/<x>/. 0 also if absent, or a directory. */
int reflog_delete(const struct reflog_file *log);

#endif
