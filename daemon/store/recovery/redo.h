/*
 * One file being redone. Private to replay.c and redo*.c; the terms are
 * replay.h's and ref_records.h's.
 */
#ifndef STORE_REDO_H
#define STORE_REDO_H

#include "daemon/store/recovery/ref_records.h"
#include "daemon/store/refs/loose.h"

struct redo {
	struct ref_records *records;
	const struct ref_record *last;
	const struct ref_record *value; /* NULL: its log alone */
	struct leftover_lock *held; /* the last one's, from before; or NULL */
	struct edit edit; /* its dirfd is owned when not repo->fd; -1: none */
	bool in_packed;   /* to be deleted from there */
	bool deletes_loose, is_corrupt;
	bool is_gone; /* another deleted it, and took its log along */
};

void redo_report(struct replay *rp, enum store_finding finding, const char *ref,
    const char *text);
/* As above, of what is about to be replaced: NAME of WORKTREE, below DIRFD, is
 * kept aside first, if it can be (lost.h). */
void redo_report_lost(struct replay *rp, enum store_finding finding, int dirfd,
    const char *worktree, const char *name, const char *text);
/* Is it what nobody writes: empty, garbage, torn? */
bool redo_is_corrupt(const struct loose_value *loose);
enum store_finding redo_finding(const struct redo *redo);

/* false: RECORDS need nothing; a kill leaves only what still has its lock. */
bool redo_init(struct redo *redo, struct replay *rp,
    struct ref_records *records);

/* Locks the ref and finds out what to do. 1: go on, the ref is locked and
 * *LOOSE is what it is at; it is absent as it comes. 0: it is another's by
 * now, and was reported. */
int redo_begin(struct replay *rp, struct redo *redo, struct loose_value *loose);
/* Locks it, without a question. */
int redo_lock(struct replay *rp, struct redo *redo);
int redo_unlock(struct replay *rp, struct redo *redo);
/* An edit of NAME by the evidence of ROW; its directory is the caller's. */
struct edit redo_edit(struct replay *rp, const struct replay_row *row,
    const char *name);
/* A lock by our own token. On failure it is left to the next start. */
int redo_unlock_edit(struct replay *rp, struct edit *e);
int redo_unlock_own(struct replay *rp, int dirfd, const char *name);
void redo_close(struct replay *rp, struct redo *redo);
/* Decides after ERR stopped REDO: deferred, aborted, left (0), or ERR. */
int redo_failed(struct replay *rp, struct redo *redo, int err);

/* Who packs a ref and removes its file does so with its lock: once that is
 * ours, packed-refs as it is now has whatever the file lacks. */
int redo_look_again(struct replay *rp);

/* Where memory is not to be believed: what is read of PATH next is the
 * disk's. */
int redo_read_disk(struct replay *rp, int dirfd, const char *path);

/* ERR of a log's path: something else stands there, or above it. */
bool redo_is_no_log(int err);

/* To be redone later. */
void redo_defer(const struct redo *redo);

/* redo_log.c: adds the log lines that are missing. */
int redo_log(struct replay *rp, struct redo *redo);
/* The same for a ref that another writer has changed since: adds only the lines
 * that follow the lines of refd, and repairs a torn end. */
int redo_log_of_left(struct replay *rp, struct redo *redo);
/* For a ref that needs log lines alone; from lock to close. */
int redo_log_alone(struct replay *rp, struct redo *redo);

/* The update that MEMBER is of did not happen: it is noted, its members are
 * passed over from here on, and lines of a killed run are taken back. */
int redo_abort(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status);

/* redo_atomic.c: before anything is rolled forward after a kill. Atomic
 * transactions of which a name was taken by another are taken back whole. */
int redo_undo_blocked(struct replay *rp, struct replay_row *rows);
/* After a cut: creations of atomic transactions that the journal says were
 * taken back, and that are there all the same. */
int redo_undo_aborted(struct replay *rp, const struct replay_row *rows);
/* After a kill: the first of ROW's locks went, and so not before all its names
 * were in place, and no other's. */
bool redo_is_out(struct replay *rp, const struct replay_row *row);

/* From begin to close. 0, or an errno that recovery must not pass over. */
int redo_one_write(struct replay *rp, struct redo *redo);
/* redo_delete.c: what a rewrite of packed-refs left that did not come to its
 * end, and over which git stumbles. */
int redo_sweep_packed(struct replay *rp);
/* Takes those of NAMES, which are ROW's, out of packed-refs: their locks
 * stand. */
int redo_unpack(struct replay *rp, const struct replay_row *row,
    struct packed_edit *names, size_t nr);
/* All deletions of a repository at once. */
int redo_deletions(struct replay *rp, struct redo *redos, size_t nr);

#endif
