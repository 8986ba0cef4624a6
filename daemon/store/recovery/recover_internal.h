/*
 * Between recover.c, recover_repo.c, recover_read.c and recover_note.c; of what
 * reads the journal and writes to it deferred_fs.c has use too, and of the starts
 * store_open.c.
 *
 * Rows, starts and notes are their owner's, one thread's at a time; reading and
 * writing them any thread may: the one that opens or recovers the store, later
 * admission and the checkpointer. recover_replay(), recover_note() and
 * recover_clean() are for one thread at a time, as recover.h has it. What reads
 * or writes the journal, and these three, may block; the rest looks at memory.
 * 0 or negative errno, after which the lists are to be done with all the same.
 * Nothing logs.
 */
#ifndef STORE_RECOVER_INTERNAL_H
#define STORE_RECOVER_INTERNAL_H

#include "daemon/store/recovery/recover.h"

/* ---- recover_read.c: what the journal says ---- */

/* The starts of this very boot. */
struct recover_starts {
	const char *boot_id;
	uint64_t *same;
	size_t nr;
};

int recover_starts_read(struct recover_starts *starts, struct journal *journal,
    const char *boot_id);
void recover_starts_done(struct recover_starts *starts);
/* What ended the run that took ROW's locks. */
enum evidence recover_starts_evidence(const struct recover_starts *starts,
    const struct replay_row *row, const struct repo *repo);

/* By repository; each one's in the order in which they were recorded, linked
 * by their next. To be done with whether reading them failed or not. */
struct recover_rows {
	struct replay_row **items;
	size_t nr, size;
};

/* All that is not forgotten and names a repository, aborted updates taken off, and all
 * that is deferred; or what is deferred of one. */
int recover_rows_read(struct commit_log *log, struct recover_rows *rows,
    uint64_t *last_lsn);
int recover_rows_read_deferred(struct journal *journal, uint64_t repo,
    struct recover_rows *rows);
/* The first one of REPO; NULL: there is none. */
struct replay_row *recover_rows_of(const struct recover_rows *rows,
    uint64_t repo);
void recover_rows_done(struct recover_rows *rows);

/* ---- recover_note.c: what goes back ---- */

/* Journal rows in the making. Zero-initialised is empty. */
struct recover_notes {
	struct journal_row *rows;
	size_t nr, size;
};

/* Leaves all members of ROW that still have to be redone to a later retry, by
 * the rule that MOUNT says (journal.h). *DEFERRED counts the members. */
int recover_notes_defer_row(struct recover_notes *notes,
    const struct replay_row *row, uint64_t mount, uint64_t *deferred);
/* After a replay of ROW: the members that the replay deferred get a deferred
 * row. All others of a deferred row are finished. */
int recover_notes_replayed(struct recover_notes *notes,
    const struct replay_row *row, uint64_t *deferred);
/* Updates that did not happen after all. */
int recover_notes_abort(struct recover_notes *notes,
    const struct replay_members *members);
/* In one commit, durably. The rows that they were made from are durable. */
int recover_notes_write(struct recover_notes *notes, struct commit_log *log);
void recover_notes_done(struct recover_notes *notes);

/* ---- recover_repo.c: one repository ---- */

/* As the one to whom it belongs; the journal is not written. RP has the
 * repository and an empty list of leftover locks; *UNLOCKED: how many are gone. */
int recover_replay(struct store_recovery *rec, struct replay *rp,
    const struct recover_starts *starts, struct replay_row *rows,
    size_t *unlocked);
/* What that made of ROWS, durably. *DEFERRED members. */
int recover_note(struct store_recovery *rec, const struct replay *rp,
    struct replay_row *rows, uint64_t *deferred);
/* The locks that are no longer needed. */
int recover_clean(struct replay *rp, size_t *unlocked);

#endif
