/*
 * The redo of refs in files. Private to redo_*.c and replay_files.c; terms as
 * in replay.h and ref_records.h.
 */
#ifndef STORE_REDO_FILES_H
#define STORE_REDO_FILES_H

#include "daemon/store/files/format/loose.h"
#include "daemon/store/recovery/redo.h"

struct redo {
	struct ref_records *records;
	const struct ref_record *last;
	const struct ref_record *value; /* NULL: only log lines */
	/* Of the last record, by an earlier run; or NULL. */
	struct leftover_lock *held;
	struct edit edit; /* edit.dirfd is owned unless repo->fd; -1: none */
	bool in_packed;   /* to be deleted from packed-refs */
	bool deletes_loose, is_corrupt;
	bool is_gone; /* another writer deleted the ref and its log */
};

/* redo_report(), for a file about to be replaced: first saves NAME of
 * WORKTREE, below DIRFD, as evidence, if possible (saved.h). */
void redo_save_and_report(struct replay *rp, enum store_finding finding,
    int dirfd, const char *worktree, const char *name, const char *text);
/* Is the value broken: empty, garbage or torn? No writer makes such a value. */
bool redo_is_corrupt(const struct loose_value *loose);
enum store_finding redo_finding(const struct redo *redo);

/* false: RECORDS need nothing. After a crash only records with a standing lock
 * need a redo, because all others were published. */
bool redo_init(struct redo *redo, struct replay *rp,
    struct ref_records *records);

/* Locks the ref and decides. 1: go on; the ref is locked and *LOOSE has its
 * value (LOOSE_ABSENT on entry). 0: another writer changed the ref later;
 * reported. */
int redo_begin(struct replay *rp, struct redo *redo, struct loose_value *loose);
/* Locks the ref, without a decision. */
int redo_lock(struct replay *rp, struct redo *redo);
/* An edit of NAME by the evidence of ROW; the caller sets the directory. */
struct edit redo_edit(struct replay *rp, const struct replay_row *row,
    const char *name);
/* ERR of a lock: another writer holds the lock, or put a ref or a link in the
 * place of a directory on the way. */
bool redo_is_out_of_reach(int err);
/* edit_lock(), after a dead lock in the way is removed. */
int redo_lock_edit(struct replay *rp, struct edit *e, mode_t dir_mode);
/* Removes a lock of our own token. After a failure the token stays, so the next
 * start removes the lock. */
int redo_unlock_edit(struct replay *rp, struct edit *e);
int redo_unlock_own(struct replay *rp, int dirfd, const char *name);
void redo_close(struct replay *rp, const struct edit *e);
/* Ends REDO, whose steps returned R: decides about the records after an error,
 * unlocks, prunes empty directories, closes. 0, or an errno that recovery must
 * not ignore. */
int redo_end_and_prune(struct replay *rp, struct redo *redo, int r);

/* Reads packed-refs again. A writer that packs a ref and removes its file holds
 * the lock of the ref. So once refd holds the lock, a ref without a file is in
 * packed-refs or gone. */
int redo_look_again(struct replay *rp);

/* ERR of a log's path: another file stands there, or above. */
bool redo_is_no_log(int err);

/* Defers the records of REDO; ARE_LINES: only their log lines. */
void redo_defer(const struct redo *redo, bool are_lines);

/* redo_log.c: adds the missing log lines. */
int redo_log(struct replay *rp, struct redo *redo);
/* Like redo_log(), for a ref that has its value. In a strict recovery the value
 * must not wait for its log lines, so lines that cannot be written are
 * deferred. */
int redo_log_of_value(struct replay *rp, struct redo *redo);
/* Like redo_log(), for a ref that another writer has changed since: adds only
 * lines after the lines of refd, and repairs a torn end. */
int redo_log_of_left(struct replay *rp, struct redo *redo);
/* For a ref that needs only log lines; from lock to close. */
int redo_log_alone(struct replay *rp, struct redo *redo);

/* Aborts the update of MEMBER: notes the update for an abort record, passes
 * over its members from here on, and takes back log lines of a crashed run.
 * TEXT is static. */
int redo_abort(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status,
    const char *text);
/* The TEXT of the most frequent cause. */
extern const char redo_taken_text[];

/* redo_atomic.c: before any roll forward after a crash. Takes atomic
 * transactions back as a whole if another writer took one of their names. */
int redo_undo_blocked(struct replay *rp, struct replay_row *rows);
/* Takes the creations of ROW back whose locks stand, and aborts the updates of
 * these locks, with CONFLICT for update INDEX. TEXT is static. */
int redo_undo_row(struct replay *rp, const struct replay_row *row,
    uint32_t index, const char *text);
/* redo_unlocked.c: after a crash, before any roll forward. Takes the locks
 * again that somebody removed from unpublished records, or aborts their
 * updates. */
int redo_unlocked(struct replay *rp, const struct replay_row *rows);
/* After a power loss: deletes creations of aborted atomic transactions that are
 * present again. */
int redo_undo_aborted(struct replay *rp, const struct replay_row *rows);
/* After a crash: is a lock of ROW gone? Locks go only after all names were in
 * place, so then no name of ROW was another writer's. */
bool redo_is_out(struct replay *rp, const struct replay_row *row);

/* token_lock() on packed-refs, by the token of RP, without a dead lock. */
int redo_lock_packed(struct replay *rp, mode_t dir_mode);
/* From begin to close. 0, or an errno that recovery must not ignore. */
int redo_one_write(struct replay *rp, struct redo *redo);
/* Removes NAMES, refs of ROW, from packed-refs. Their locks stand. */
int redo_unpack(struct replay *rp, const struct replay_row *row,
    struct packed_edit *names, size_t nr);
/* All deletions of a repository at once. */
int redo_deletions(struct replay *rp, struct redo *redos, size_t nr);

#endif
