/*
 * One repository's refs looked at: what git would stumble over, what is left
 * behind, and where journal, refs and logs disagree; and mended.
 *
 * Made to run beside a daemon and beside git: nothing is written but by
 * repairing, and what looks wrong is looked at again after PATIENCE_NS, so
 * that nobody who is at work is accused. One thread, blocks. Memory: that of
 * packed-refs, as the daemon has it, and of ledger_max refs, however
 * many the journal knows.
 */
#ifndef ADMIN_VERIFY_H
#define ADMIN_VERIFY_H

#include "daemon/base/sys.h"

#define VERIFY_SEVERITY_TABLE(X)                                               \
	X(NOTE, "note")       /* may be as somebody wanted it */               \
	X(WARNING, "warning") /* will be in somebody's way */                  \
	X(ERROR, "error")     /* git stumbles, or something is lost */

enum verify_severity {
#define X(symbol, word) VERIFY_##symbol,
	VERIFY_SEVERITY_TABLE(X)
#undef X
};

/* What may be found: its name for programs, which stays; how bad it is; what
 * to do. */
#define VERIFY_TABLE(X)                                                        \
	X(REF_BROKEN, ERROR, "ref-broken",                                     \
	    "'refd verify --repair' restores it where journal or log know it") \
	X(REF_UNREADABLE, ERROR, "ref-unreadable",                             \
	    "look at its owner, its mode and the disk")                        \
	X(REF_NAME, ERROR, "ref-name",                                         \
	    "git passes over it: give the file another name, or remove it")    \
	X(REF_CONFLICT, ERROR, "ref-conflict", "delete one of the two")        \
	X(REF_LOST, ERROR, "ref-lost",                                         \
	    "'refd update <ref> <that value>' puts it back")                   \
	X(REF_GONE, NOTE, "ref-gone",                                          \
	    "if nobody deleted it: 'refd update <ref> <that value>'")          \
	X(OBJECT_MISSING, ERROR, "object-missing",                             \
	    "fetch the object, or move the ref to one that is there")          \
	X(OBJECT_UNREADABLE, ERROR, "object-unreadable", "run git fsck")       \
	X(OBJECT_NOT_COMMIT, ERROR, "object-not-commit",                       \
	    "move the branch to a commit")                                     \
	X(PACKED_MALFORMED, ERROR, "packed-malformed",                         \
	    "git dies of it: mend that line")                                  \
	X(PACKED_UNSORTED, ERROR, "packed-unsorted",                           \
	    "remove its first line and those that begin with '^', then run "   \
	    "git pack-refs --all")                                             \
	X(PACKED_DUPLICATE, ERROR, "packed-duplicate",                         \
	    "remove one of the two lines")                                     \
	X(PACKED_PEELED, ERROR, "packed-peeled",                               \
	    "remove its first line and those that begin with '^', then run "   \
	    "git pack-refs --all")                                             \
	X(PACKED_NEW_LEFT, ERROR, "packed-new-left",                           \
	    "git can't pack refs, nor delete packed ones: 'refd verify "       \
	    "--repair' moves it aside")                                        \
	X(LOCK_OURS, ERROR, "lock-ours",                                       \
	    "'refd recover', or the daemon's next start, sees to it")          \
	X(LOCK_STALE, WARNING, "lock-stale",                                   \
	    "remove it if nobody is at work there any more")                   \
	X(LOCK_HELD, NOTE, "lock-held", "wait, or end that process")           \
	X(LOG_TORN, ERROR, "log-torn",                                         \
	    "'refd verify --repair' cuts off what is torn")                    \
	X(LOG_MALFORMED, WARNING, "log-malformed", "remove that line")         \
	X(LOG_UNREADABLE, ERROR, "log-unreadable",                             \
	    "look at its owner, its mode and the disk")                        \
	X(LOG_DISAGREES, WARNING, "log-disagrees",                             \
	    "see which of the two is meant")                                   \
	X(LOG_ORPHAN, WARNING, "log-orphan",                                   \
	    "put the ref back, or remove its log")                             \
	X(LOG_EMPTY, WARNING, "log-empty",                                     \
	    "'refd verify --repair' removes it")                               \
	X(LOG_BLOCKED, ERROR, "log-blocked",                                   \
	    "move what is below that directory out of the way")                \
	X(JOURNAL_DISAGREES, ERROR, "journal-disagrees",                       \
	    "'refd update <ref> <that value>' makes it as recorded")           \
	X(JOURNAL_OTHER, WARNING, "journal-other",                             \
	    "name that one's directory by --state")                            \
	X(JOURNAL_UNKNOWN, WARNING, "journal-unknown",                         \
	    "the daemon's next request there makes it known")                  \
	X(JOURNAL_OLDER, ERROR, "journal-older",                               \
	    "put the newer journal back; without one see refd-daemon(8)")      \
	X(JOURNAL_UNREADABLE, NOTE, "journal-unreadable",                      \
	    "name the daemon's state directory by --state")                    \
	X(ID_BROKEN, ERROR, "id-broken", "restore it, or 'refd disown'")       \
	X(AWAITS_RECOVERY, ERROR, "awaits-recovery",                           \
	    "start the daemon, or run 'refd recover'")                         \
	X(PARKED, WARNING, "parked",                                           \
	    "the daemon redoes it once nothing is in its way")                 \
	X(NOT_OPENED, ERROR, "not-opened", "git does not open it either")

enum verify_id {
#define X(id, severity, word, remedy) VERIFY_##id,
	VERIFY_TABLE(X)
#undef X
	    VERIFY_IDS
};

/* Strings are borrowed for the call. */
struct verify_finding {
	enum verify_id id;
	enum verify_severity severity;
	const char *word, *remedy;
	const char *repo; /* the common dir */
	const char *ref;  /* "" if the finding is about no ref */
	const char *file; /* a path; "" if the finding is about no file */
	const char *text;
	/* The repair and the place of the evidence, or why there was no repair.
	 */
	const char *repair;
	bool is_repaired;
	/* For a restored ref: the object id, and the source of the id. */
	const char *value, *from;
};

struct verify_options {
	const struct sys *sys;
	const char *state; /* the daemon's state directory */
	bool repair;
	size_t ledger_max;   /* refs of the journal's to hold at once */
	int64_t patience_ns; /* between two looks */
	void (*found)(void *arg, const struct verify_finding *finding);
	void *arg;
};

/* PATH: a git-dir, a common dir, or a work tree with .git. 0; -1: PATH can't be
 * opened, and *WHY is the reason. The caller frees *WHY. */
int verify_repo(const struct verify_options *opt, const char *path, char **why);

#endif
