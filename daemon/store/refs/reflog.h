/*
 * Reflogs: one line per change, "old SP new SP committer [TAB message] LF",
 * appended with a single write(2) by the holder of the ref's lock. Never
 * cached: `git reflog expire` replaces the file under the same lock.
 *
 * Any thread; every call may block. 0 or negative errno; nothing logs.
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

/* Unset (NULL) means NORMAL unless BARE; "always", or what git takes for a
 * boolean, numbers among it. -1 for a word git would not take. */
int reflog_policy_parse(const char *value, bool bare,
    enum reflog_policy *policy);
/* Would git create a log for NAME (should_autocreate_reflog)? */
bool reflog_policy_creates(enum reflog_policy policy, const char *name);

/* Runs of white space become one blank, none at the ends (git's
 * copy_reflog_msg). Returns a malloc'd string, NULL when out of memory. */
char *reflog_normalise(const char *message);

/* The whole line with its LF, malloc'd. MESSAGE is normalised or NULL; an
 * empty one counts as none. NULL: out of memory, or there is a line feed in
 * COMMITTER or MESSAGE, which would forge a line. */
char *reflog_line(const struct refd_oid *old, const struct refd_oid *new_oid,
    const char *committer, const char *message, size_t *len);

/*
 * Before the commit point: makes the log's directories (mode DIR_MODE) and,
 * when CREATE, the empty file (exactly FILE_MODE). *WILL_LOG: there is a file
 * to append to, and it can be opened for that; *MADE: by this call, with
 * *MADE_DIRS directories above it. Without CREATE nothing is made, and a directory at LOG_PATH is no log, as in git.
 *
 * -EISDIR: a non-empty directory is in the way (empty ones are removed, as
 * git does). -ENOTDIR: a parent is a file. -ELOOP, -EINVAL: LOG_PATH is a
 * link, or no file; git would write through a link, and so out of the
 * repository. -EMLINK: the file has another name too (a hard link), which may
 * be out of the repository.
 */
int reflog_prepare(const struct sys *sys, int dirfd, const char *log_path,
    bool create, mode_t file_mode, mode_t dir_mode, bool *will_log, bool *made,
    unsigned *made_dirs);
/* Takes back an empty log that was MADE, and its directories. */
int reflog_unmake(const struct sys *sys, int dirfd, const char *log_path);

/* Appends; the file exists (a foreign expire may have replaced it). The
 * descriptor, to be closed. On failure nothing of the line is left, unless
 * taking it back fails as well. -ENOENT: gone. -EMLINK as above. */
int reflog_append(const struct sys *sys, int dirfd, const char *log_path,
    const char *line, size_t len);

/* Takes back the last line if it is LINE (of a publish that is aborted). 0 as
 * well where it is not, or the log is gone or has another name too. -ELOOP,
 * -EINVAL: no log stands there. */
int reflog_retract(const struct sys *sys, int dirfd, const char *log_path,
    const char *line, size_t len);
/* The same through a descriptor of reflog_append(), which stays open. */
int reflog_retract_open(const struct sys *sys, int fd, const char *line,
    size_t len);

/* Bytes. Of a log no more is mended, from its end on: a cut spoils what was
 * written last. */
#define REFLOG_TAIL_MAX ((size_t)4 << 20)
/* Bytes before these that are searched for a line which the end lacks: others
 * may have appended much behind it. One that is farther back is added twice
 * rather than lost. */
#define REFLOG_SEARCH_MAX ((size_t)64 << 20)

/*
 * Recovery: cuts off what a power cut leaves (an unterminated last line, NULs
 * and what is torn around them: a whole line that somebody appended behind
 * NULs is kept), then appends those of the NR lines, each with its LF, that
 * the log does not hold yet, in order; a line that is there as often as in
 * LINES is not added. Of a log beyond REFLOG_TAIL_MAX only that much of its
 * end is mended, and REFLOG_SEARCH_MAX before it searched for lines that the
 * end lacks. Creates the file when CREATE; without, an absent log is left so.
 * *ADDED counts lines, *CUT_BYTES bytes. Under the ref's lock.
 */
int reflog_repair(const struct sys *sys, int dirfd, const char *log_path,
    const char *const *lines, size_t nr, bool create, mode_t file_mode,
    mode_t dir_mode, size_t *added, size_t *cut_bytes);

/* 1 and both values of the last sound line; 0: there is none. -ENOENT. */
int reflog_last(const struct sys *sys, int dirfd, const char *log_path,
    struct refd_oid *old_oid, struct refd_oid *new_oid);

/*
 * Recovery after a kill, while the lock of the one who wrote LINE, or was
 * about to, still stands: nobody has appended since, so the line is there
 * exactly if the log ends with it. Appends it otherwise, a torn tail cut off
 * first. *ADDED says so.
 */
int reflog_complete(const struct sys *sys, int dirfd, const char *log_path,
    const char *line, size_t len, bool create, mode_t file_mode,
    mode_t dir_mode, bool *added);

/* Deletes the log and prunes its empty parent directories down to
 * logs/refs/<x>/. 0 when absent, or a directory. */
int reflog_delete(const struct sys *sys, int dirfd, const char *log_path);

#endif
