/*
 * Shared by recover.c and recover_*.c. deferred_fs.c also uses the functions
 * that read and write the journal, and store_open.c the functions for starts.
 *
 * Rows, starts and notes have no lock, so each belongs to one owner at a time:
 * the thread that opens or recovers the store, later admission and the
 * checkpointer. recover_replay(), recover_note() and recover_clean() are for
 * one thread at a time (recover.h). These three functions may block, and so may
 * all functions that read or write the journal; the rest uses memory only.
 *
 * 0 or negative errno. After an error the lists may be filled in part, so the
 * caller must still call _done(). Nothing logs.
 */
#ifndef STORE_RECOVER_INTERNAL_H
#define STORE_RECOVER_INTERNAL_H

#include "daemon/store/recovery/recover.h"

/* ---- recover_read.c: reads the journal ---- */

struct recover_starts {
	uint64_t *same; /* is_of_memory */
	size_t nr;
	size_t nr_of_boot; /* this start, too */
};

int recover_starts_read(struct recover_starts *starts, struct journal *journal);
void recover_starts_done(struct recover_starts *starts);
/* How the run that took the locks of ROW ended. */
enum evidence recover_starts_evidence(const struct recover_starts *starts,
    const struct replay_row *row, const struct replay *rp);

/* The rows by repository, and those of one repository in the order of
 * recording, linked by `next`. Call _done() also after a failed read. */
struct recover_rows {
	struct replay_row **items;
	size_t nr, size;
};

/* Reads all rows that are not forgotten and name a repository, without aborted
 * updates, and all deferred rows; or only the deferred rows of REPO. */
int recover_rows_read(struct commit_log *log, struct recover_rows *rows,
    uint64_t *last_lsn);
int recover_rows_read_deferred(struct journal *journal, uint64_t repo,
    struct recover_rows *rows);
/* Reads the last forgotten rows of the repositories of ROWS, because the log
 * lines of these older rows may be equal to lines of ROWS: a line has its time
 * in seconds. No value of a ref depends on the older rows, so rows that cannot
 * be read are left out. */
int recover_rows_read_older(struct commit_log *log,
    const struct recover_rows *rows, struct recover_rows *older);
/* The first row of REPO; NULL: none. */
struct replay_row *recover_rows_of(const struct recover_rows *rows,
    uint64_t repo);
void recover_rows_done(struct recover_rows *rows);

/* ---- recover_note.c: writes the journal ---- */

/* Journal rows to be written, empty if zero-initialised. */
struct recover_notes {
	struct journal_row *rows;
	size_t nr, size;
	/* Rows are deferred even if recovery is strict, because the
	 * repositories are not there, or the rows were deferred before. */
	bool may_defer;
	/* A row aborts an update, or defers more than log lines without
	 * MAY_DEFER. */
	bool gives_up;
};

/* Defers all unfinished members of ROW, to be redone by the rule of MOUNT
 * (journal.h). *DEFERRED counts the members. */
int recover_notes_defer_row(struct recover_notes *notes,
    const struct replay_row *row, uint64_t mount, uint64_t *deferred);
/* Adds the result of a replay of ROW to NOTES. The members and the log lines
 * that the replay deferred get a deferred row. If ROW is itself a deferred row,
 * all other members of ROW are finished. LEFTOVER lists the locks that must
 * stand until the new row is durable. */
int recover_notes_replayed(struct recover_notes *notes,
    struct leftover_locks *leftover, const struct replay_row *row,
    uint64_t *deferred);
/* Aborts updates that were committed. */
int recover_notes_abort(struct recover_notes *notes,
    const struct replay_members *members);
/* Have ROWS more to redo than log lines? */
bool recover_rows_have_refs(const struct replay_row *rows);
/* Writes all rows in one commit, durably. The original rows are durable
 * already. -ENOTRECOVERABLE: recovery is strict and NOTES->gives_up is set, so
 * nothing was written. */
int recover_notes_write(struct recover_notes *notes, struct commit_log *log);
void recover_notes_done(struct recover_notes *notes);

/* ---- recover_findings.c: the findings of recovery ---- */

struct recover_findings {
	const struct store_report *report; /* gets the findings */
	bool is_strict;                    /* recover.h */
	bool is_retry;
	/* About the present repository: did a finding make the repository wait,
	 * and the text of the first such finding, to be freed, or NULL. */
	bool waits;
	char *why;
	struct recover_held *held; /* of a retry, for its end; a list */
};

/* store_report.found */
void recover_findings_add(void *findings, const struct store_found *found);
/* The retry ends well. Passes on the findings that were held back, the newest
 * first. */
void recover_findings_pass(struct recover_findings *findings);
/* The next finding is about another repository. */
void recover_findings_end(struct recover_findings *findings);
/* About the whole repository at the path REPO. _failed: for the errno ERR, and
 * the repository waits anyway. */
void recover_findings_repo(struct recover_findings *findings,
    enum store_finding finding, const char *repo, const char *text);
void recover_findings_failed(const struct recover_findings *findings,
    const char *repo, int err, bool lacks_refs);

/* ---- recover_repo.c: one repository ---- */

/* Replays ROWS as the repository's owner, and does not write the journal. RP
 * has the repository and an empty list of leftover locks; *UNLOCKED: how many
 * are gone. */
int recover_replay(struct store_recovery *rec, struct replay *rp,
    const struct recover_starts *starts, struct replay_row *rows,
    size_t *unlocked);
/* Records the results of a replay of ROWS, durably. *DEFERRED members. */
int recover_note(struct store_recovery *rec, const struct replay *rp,
    struct replay_row *rows, uint64_t *deferred);
/* Removes the locks that are no longer needed. */
int recover_clean(struct replay *rp, size_t *unlocked);

#endif
