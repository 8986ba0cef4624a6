/*
 * Ref edits: the steps that bring a ref file to the state in the commit log.
 *
 * The live path, recovery, undo, `refd verify --repair` and the tests change
 * ref files only by the functions below. So a new step or a new kind of
 * evidence has a single place (docs/decisions/006-ref-edits.md). The callers
 * differ in the order of their steps. They also know different facts, so the
 * evidence tells which facts a step may rely on.
 *
 * One edit belongs to one thread at a time, every call may block, and nothing
 * logs. A call returns 0 or a negative errno.
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
 * evidence, but rows of one ref may differ, because a start redoes deferred
 * rows of a power loss beside rows of a crash.
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
 * FAILED_SYNC becomes POWER_LOSS for a ref that only a lost packed-refs held,
 * because the absence of such a ref proves no deletion.
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
 * After a kill or a power loss the states in memory are gone, so recovery works
 * with the disk alone. Therefore each state says what the disk has for a ref in
 * files, on the live path. A list of reftables is an edit of this kind, too. A
 * ref in a table only counts the states: it has no files of its own.
 *
 *	value	stage/<batch>-<n>, the future content of <name>. In the modes
 *		batch and fsync the content is durable before the commit, since
 *		git shall never read a torn <name>. Mode periodic writes the
 *		content out before the rename, other modes rely on the row.
 *	lock	<name>.lock, a second link of the batch's token in stage/. No
 *		mode syncs a lock, because locks mean nothing after a power
 *		loss.
 *	row	the update in the commit log: durable from the commit on, before
 *		<name>, packed-refs or a line of a log changes. In the modes
 *		none and periodic a power loss can take the row.
 *	cached	in the page cache, so a kill takes nothing and a power loss may
 *		take any part. The modes batch and fsync sync after the unlock
 *		(durability_finish()), other modes leave the sync to the
 *		checkpoint.
 *
 * PLANNED	The disk has at most the token, and empty directories. A gate's
 *		edit can have a row and stay PLANNED, because git has the lock.
 *	kill, power loss	The start removes the token.
 *
 * STAGED	The value may be there, whole or in part. No row, no lock.
 *	kill, power loss	The start removes the value: without a row the
 *			update never happened.
 *
 * LOCKED, no row	The lock stands, and a value is whole, unless staging
 *		under the lock has failed or is at work. An empty log may have
 *		been made (cached), and packed-refs.new written (not synced).
 *		<name> and packed-refs are as before.
 *	kill		The start removes lock, value, empty log and
 *			packed-refs.new, because the lock belongs to no row.
 *	power loss	The same with as much as the disk kept.
 *
 * LOCKED, with the row	Changed in this order, all cached, except that the
 *		content of packed-refs is durable before its rename:
 *		to be written	the log has the line
 *		to be packed	packed-refs has the ref
 *		to be deleted	packed-refs lacks the ref; then the log is gone
 *		only logged	the log has the line of another ref's update
 *		After take-back <name> and its line in the log are gone again.
 *	kill		The lock shows that the row is open, so recovery rolls
 *			forward. After take-back with an abort record only the
 *			lock goes.
 *	power loss	The lock proves nothing, so recovery removes it. <name>
 *			gets the value of the row, unless another writer's is
 *			younger (rule.h). Missing lines of the log are added.
 *
 * LINKED	As LOCKED with the row, for a creation in an atomic transaction:
 *		<name> is a second link of the value (cached), and readers see
 *		it. After a doubtful link <name> may be absent.
 *	kill		Recovery publishes the other refs, too. If a name is
 *			taken, recovery unlinks <name> instead, since the inode
 *			of the value proves that the link is refd's.
 *	power loss	As LOCKED with the row. A link that was taken back can
 *			be there again, so recovery deletes <name> if there is
 *			an abort record.
 *
 * PUBLISHED	Lock and row as before; all else cached. The line is in the log,
 *		or its loss is about to be recorded.
 *		written	<name> is the value. A linked value keeps the name in
 *			stage/ until the end of the pass, a renamed value has
 *			none.
 *		packed	packed-refs has the ref, and no file is at <name>.
 *		deleted	<name>, its line in packed-refs and its log are gone.
 *			The lock stays until files_release().
 *	kill		Recovery finds the value, and adds a line that the log
 *			lacks.
 *	power loss	As LOCKED with the row.
 *
 * DONE		As PUBLISHED, without the lock. The log has the line, or a row
 *		in the commit log says that the line is missing.
 *	kill		Nothing is to be done, because without the lock a row
 *			counts as published. While the token stands, recovery
 *			looks all the same, because somebody may have removed
 *			the lock.
 *	power loss	As LOCKED with the row, until the checkpoint has synced.
 *
 * RELEASED	No lock, and <name> is as before, for one of four reasons:
 *		there is no row; the row confirms the value that <name> has; the
 *		log alone has got a line (cached); an abort record takes the row
 *		back. The abort record comes before the unlock, because without
 *		the lock the row would count as published. The value may be in
 *		stage/ until the end of the pass.
 *	kill		Only the value is to be removed.
 *	power loss	A confirmed value is written again if the disk lost the
 *			value. As LINKED for a creation that was taken back.
 *
 * DEFERRED	The edit can neither be finished nor taken back. Disk as in the
 *		state before; lock, value and token stay, and the checkpoint
 *		keeps the row. If the log failed to sync, nobody knows whether
 *		there is a row.
 *	kill, power loss	As the state before. A retry in this run, or the
 *			next start, treats the edit as after a kill.
 *
 * Git's lock, only for `--repair`, has no row and no token. So after a kill the
 * lock stays, as the lock of a killed git, until a proof shows that the holder
 * is dead (refs/dead_lock.h):
 *	LOCKED		<name>.lock is empty, or has the value, which the caller
 *			syncs
 *	DONE		<name>.lock was renamed to <name>; the caller then syncs
 *			the directory
 *	RELEASED	<name>.lock is gone
 *	DEFERRED	the rename may have happened, so neither file is touched
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
/* For a caller whose step is no function here, because packed-refs has, or had,
 * the ref, or the list of reftables is locked or published. */
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

/* Writes the file's new content into stage/, or once into git's lock, which the
 * edit must hold. TARGET is the target of a symbolic ref, or NULL. Returns the
 * descriptor, which the caller syncs and closes. */
int edit_stage(struct edit *e, const struct refd_oid *oid, const char *target,
    mode_t file_mode);
/* As edit_stage(), with any content. */
int edit_stage_bytes(struct edit *e, const char *content, size_t len,
    mode_t file_mode);
/* Moves the staged value of FROM to TO, but FROM keeps its lock. */
void edit_hand_over(struct edit *from, struct edit *to);
/* Removes the staged value, which is still there after a failure. */
int edit_discard(struct edit *e);

/* ---- the lock ---- */

/* Errors as in token_lock(). Git's lock: an empty file known only to its maker;
 * -EEXIST if any lock stands, even our own. */
int edit_lock(struct edit *e, mode_t dir_mode);
/* Removes the lock. After a failure the lock stands. The lock of an earlier run
 * always stays, because the lock shows the next start that work is left. With
 * git's lock goes its value, and so do directories that become empty. */
int edit_unlock(struct edit *e);

/* Reads the file as loose_read() does. The ref may also be packed. The value
 * stays right as long as the lock stands, because nobody else changes the
 * file. */
int edit_read(const struct edit *e, struct loose_value *value);

/* ---- publishing ---- */

/* The staged value becomes the ref. An empty directory in the way is removed
 * once, but not under git's lock. -EISDIR, -ENOTEMPTY, -EEXIST, -ENOTDIR:
 * another writer has the name. After a failure, e->is_doubtful tells whether
 * the value may be the ref. A doubtful git's lock may belong to another writer
 * by now, so the edit is DEFERRED and the lock stays. */
int edit_place(struct edit *e);
/* As edit_place() for a ref that does not exist yet; edit_take_back() is the
 * undo, also of a doubtful link. The staged value keeps its name. */
int edit_link(struct edit *e);
/* Removes the link of edit_link(). 0 if absent. */
int edit_take_back(struct edit *e);
/* Removes the ref's log and the directories that become empty. A log that this
 * account may not remove stays, because git only warns, and deletes the ref. */
int edit_remove_log(struct edit *e);
/* The ref is gone from packed-refs; with IS_LOOSE removes its file too. */
int edit_remove(struct edit *e, bool is_loose);

/* ---- log lines ---- */

/* The log of E, as long as PATH is there: "logs/<name>". */
struct reflog_file edit_log(const struct edit *e, char path[REFD_PATH_MAX]);
/* The log line of MEMBER, malloc'd. NULL: no memory, or the committer or the
 * message would forge a line, since it has a line feed (reflog_line()). */
char *edit_line(const struct record *plan, const struct record_member *member,
    size_t *len);
/* LIVE: appends the line. The log stays open for edit_retract(), because a
 * repository that was moved out of the roots can't be opened again. */
int edit_append(struct edit *e, const struct record *plan,
    const struct record_member *member);
/* Takes the line back: LIVE through the descriptor that wrote the line, CRASHED
 * as the log's last line. After a power loss the line stays, because an equal
 * line may be of another transaction. Closes the log, even after a failure. */
int edit_retract(struct edit *e, const struct record *plan,
    const struct record_member *member);

#endif
