/*
 * The redo of both formats of refs, and what they share. Private to recovery;
 * terms as in replay.h and ref_records.h.
 */
#ifndef STORE_REDO_H
#define STORE_REDO_H

#include "daemon/store/recovery/ref_records.h"

/* The two formats of refs (replay_files.c, replay_stacks.c), with ROWS and
 * results as in replay_repo(). rp->token exists. */
int replay_files(struct replay *rp, struct replay_row *rows);
int replay_stacks(struct replay *rp, struct replay_row *rows);
/* Mends the stacks of the repository and of its worktrees in which a power loss
 * took the footer of a table. Other damage is reported. -EEXIST: another
 * writer's lock is in the way. */
int replay_stacks_mend(struct replay *rp);
/* Is the list or a table of the repository, or of a worktree, damaged? No: also
 * after any other failure, because the batches of the stack meet the failure
 * again. Takes no lock. */
bool replay_stacks_any_damaged(const struct sys *sys, struct repo *repo);
/* Removes tables of ended batches that no list names. The names in stage/ tell
 * these tables, so the removal comes before the names go. */
int replay_stacks_sweep(struct replay *rp);

/* Notes the update of MEMBER for an abort record. TEXT is static. */
int replay_abort(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status,
    const char *text);

/* ---- redo.c ---- */

void redo_report(struct replay *rp, enum store_finding finding, const char *ref,
    const char *text);
/* The same about a log line: the ref REF has its value. */
void redo_report_line(struct replay *rp, enum store_finding finding,
    const char *ref, const char *text);
/* If memory cannot be trusted: the next read of PATH comes from the disk. */
int redo_read_disk(struct replay *rp, int dirfd, const char *path);

/* A lock of another program on PATH below DIRFD is in the way. True: it was
 * dead, and is removed, so the caller tries again. */
bool redo_clear_dead(struct replay *rp, int dirfd, const char *path);
/* The same for locks below the directory PATH. True: one was removed at
 * least. */
bool redo_clear_dead_below(struct replay *rp, int dirfd, const char *path);
/* The records of NAME are deferred, for the lock of another program; IS_LINE:
 * they are log lines alone. */
void redo_report_locked(struct replay *rp, const char *name, bool is_line);

/* The reason of an abort: another program removed the lock of the update. */
extern const char redo_unlocked_text[];

/* redo_objects.c: restores the objects of ROWS. */
int redo_objects(struct replay *rp, const struct replay_row *rows);

/* redo_delete.c: git stops at the new file of a packed-refs rewrite that did
 * not end, so this file is removed. */
int redo_sweep_packed(struct replay *rp);

#endif
