/*
 * Ref edits: the steps that bring a ref file to the state in the commit log.
 *
 * The live path, recovery, undo, `refd verify --repair` and the tests change
 * ref files only by the functions below. The callers differ in the order of
 * their steps. The evidence tells which facts a step may rely on.
 *
 * One edit belongs to one thread at a time. Every call may block. A call
 * returns 0 or a negative errno, and nothing logs.
 */
#ifndef STORE_PUBLISH_EDIT_H
#define STORE_PUBLISH_EDIT_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/format/reflog.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/refs/token.h"

/*
 * Which facts are reliable when a row of the log is published. A row has one
 * evidence. Rows of one ref may differ.
 *
 *			LIVE	CRASHED	FAILED_	POWER_	REPAIR
 *					SYNC	LOSS
 * our lock stands	always	if the	as	means	never
 *				row is	CRASHED	nothing
 *				open
 * without our lock	a bug	done	lock it	lock it	git's lock
 * names on disk	exact	exact	exact	lost	lost
 * contents on disk	exact	exact	lost	lost	lost
 * an equal value	-	stands	written	written	stands
 *					again	again
 * an absent ref	-	lost	deleted	lost	a finding
 *					later
 * log lines		append	last	search	search	cut only
 *				line	all	all
 * take a line back	by its	under	never	never	never
 *			file	a lock
 * unlock		at once	when recovery	when	at once
 *				is recorded	looked
 *
 * FAILED_SYNC becomes POWER_LOSS for a ref that only a lost packed-refs held.
 */
enum evidence {
	EVIDENCE_LIVE,
	EVIDENCE_CRASHED,     /* the daemon ended, the page cache did not */
	EVIDENCE_FAILED_SYNC, /* as CRASHED, but a sync failed before */
	EVIDENCE_POWER_LOSS,
	EVIDENCE_REPAIR /* an administrator asks, no row needs it */
};

/*
 * How far an edit has come. edit.c has the table of transitions.
 *
 *	PLANNED		The edit has changed nothing on disk.
 *	STAGED		Its value may be in stage/, whole or in part.
 *	LOCKED		<name>.lock is ours. A staged value is whole.
 *	LINKED		As LOCKED, and <name> is a second link of the value.
 *	PUBLISHED	<name> is as the plan says. The lock stands.
 *	DONE		As PUBLISHED, without the lock. Git's lock becomes
 *			<name> itself, so its edit is DONE once it is placed.
 *	RELEASED	The edit published nothing and holds no lock.
 *	DEFERRED	Lock and value are left to recovery, which finishes.
 */
#define PROGRESS_TABLE(X)                                                      \
	X(PLANNED)                                                             \
	X(STAGED)                                                              \
	X(LOCKED)                                                              \
	X(LINKED)                                                              \
	X(PUBLISHED)                                                           \
	X(DONE)                                                                \
	X(RELEASED)                                                            \
	X(DEFERRED)

enum progress {
#define X(state) PROGRESS_##state,
	PROGRESS_TABLE(X)
#undef X
};
enum {
#define X(state) +1
	PROGRESS_STATES = PROGRESS_TABLE(X)
#undef X
};

struct edit {
	const struct sys *sys;
	/* Of a batch: attach_to() of pass.c sets it. Borrowed; NULL: the lock
	 * is git's. */
	struct token *token;
	const char *name; /* the path below DIRFD; borrowed */
	int dirfd;        /* of the git directory; borrowed */
	enum refd_object_format format;
	unsigned value_nr; /* of the staged file, in the token's batch */
	enum evidence evidence;
	enum progress progress;
	bool has_value; /* stage/ has a file of this edit */
	/* The last placing failed, and may have happened all the same. */
	bool is_doubtful;
	bool is_earlier; /* the lock is of an earlier run */
	bool has_log_fd;
	int log_fd; /* owned: wrote the line, and may take the line back */
	bool has_lock_fd;
	int lock_fd; /* owned: git's lock, still empty */
};

/* May an edit go from FROM to TO? */
bool edit_progress_may(enum progress from, enum progress to);
/* Callers name a step that no function here makes: packed-refs has, or had, the
 * ref, or the list of reftables is locked or published. */
void edit_to(struct edit *e, enum progress to);

static inline bool edit_is_locked(const struct edit *e)
{
	return e->progress == PROGRESS_LOCKED ||
	    e->progress == PROGRESS_LINKED || e->progress == PROGRESS_PUBLISHED;
}

static inline bool edit_is_published(const struct edit *e)
{
	return e->progress == PROGRESS_PUBLISHED ||
	    e->progress == PROGRESS_DONE;
}

/* ---- the value ---- */

/* Writes the file's new content into stage/, or once into git's lock, which
 * the edit must hold. TARGET is that of a symbolic ref, or NULL. Returns the
 * descriptor, which the caller syncs and closes. */
int edit_stage(struct edit *e, const struct refd_oid *oid, const char *target,
    mode_t file_mode);
/* As edit_stage(), with any content. */
int edit_stage_bytes(struct edit *e, const char *content, size_t len,
    mode_t file_mode);
/* Moves the staged value of FROM to TO. FROM keeps its lock. */
void edit_hand_over(struct edit *from, struct edit *to);
/* Removes the staged value. After a failure the value is still there. */
int edit_discard(struct edit *e);

/* ---- the lock ---- */

/* Errors as in token_lock(). Git's lock: an empty file known only to its maker;
 * -EEXIST if any lock stands, even our own. */
int edit_lock(struct edit *e, mode_t dir_mode);
/* After a failure the lock stands. The lock of an earlier run always stays.
 * Git's lock takes its value along, and directories that become empty. */
int edit_unlock(struct edit *e);

/* Reads the file as loose_read() does; the ref may also be packed. Under the
 * lock nobody else changes the file. */
int edit_read(const struct edit *e, struct loose_value *value);

/* ---- publishing ---- */

/* The staged value becomes the ref. An empty directory in the way is removed
 * once, but not under git's lock. -EISDIR, -ENOTEMPTY, -EEXIST, -ENOTDIR:
 * another writer has the name. After a failure, e->is_doubtful tells whether
 * the value may be the ref. Then git's lock may be another writer's by now: the
 * edit is DEFERRED. */
int edit_place(struct edit *e);
/* As edit_place() for a ref that does not exist yet; edit_take_back() is the
 * undo, also of a doubtful link. The staged value keeps its name. */
int edit_link(struct edit *e);
/* Removes the link of edit_link(). 0 if absent. */
int edit_take_back(struct edit *e);
/* Removes the ref's log and the directories that become empty. */
int edit_remove_log(struct edit *e);
/* The ref is gone from packed-refs; with IS_LOOSE removes its file too. */
int edit_remove(struct edit *e, bool is_loose);

/* ---- log lines ---- */

/* The log of E, as long as PATH is there: "logs/<name>". */
struct reflog_file edit_log(const struct edit *e, char path[REFD_PATH_MAX]);
/* The log line of MEMBER, malloc'd. NULL: no memory, or the committer or the
 * message would forge a line (reflog_line()). */
char *edit_line(const struct record *plan, const struct record_member *member,
    size_t *len);
/* LIVE: appends the line. The log stays open for edit_retract(). */
int edit_append(struct edit *e, const struct record *plan,
    const struct record_member *member);
/* Takes the line back: LIVE through the descriptor that wrote the line, CRASHED
 * as the log's last line. After a power loss a line proves nothing and stays.
 * Closes the log, even after a failure. */
int edit_retract(struct edit *e, const struct record *plan,
    const struct record_member *member);

#endif
