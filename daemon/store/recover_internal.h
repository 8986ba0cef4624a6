/*
 * Between recover.c, recover_read.c and recover_note.c.
 */
#ifndef STORE_RECOVER_INTERNAL_H
#define STORE_RECOVER_INTERNAL_H

#include "daemon/store/recover.h"

/* ---- recover_read.c: what the journal says ---- */

/* The starts of this very boot. */
struct starts {
	const char *boot_id;
	uint64_t *same;
	size_t nr;
};

int starts_read(struct starts *starts, struct journal *journal,
    const char *boot_id);
void starts_done(struct starts *starts);
/* What ended the run that took ROW's locks. */
enum replay_rule starts_rule(const struct starts *starts,
    const struct replay_row *row, const struct repo *repo);

/* All that is not forgotten and names a repository, voids taken off; or only
 * what is parked of one. In LSN order. */
int rows_read(struct journal *journal, uint64_t parked_only_of,
    struct replay_row **rows, uint64_t *last_lsn);
/* Takes the rows of REPO out of the list, in order. */
struct replay_row *rows_take(struct replay_row **rows, uint64_t repo);
void rows_free(struct replay_row *rows);

/* ---- recover_note.c: what goes back ---- */

/* Journal rows in the making. Zero-initialised is empty. */
struct notes {
	struct journal_row *rows;
	size_t nr, size;
};

/* What becomes of all that ROW owes is for a later try to say. *PARKED counts
 * its members. */
int notes_park_row(struct notes *notes, const struct replay_row *row,
    uint64_t *parked);
/* Single members, for which a foreign lock stands. */
int notes_park(struct notes *notes, const struct replay_members *members,
    uint64_t *parked);
/* Updates that did not happen after all. */
int notes_void(struct notes *notes, const struct replay_members *members);
/* Of ROW, a parked one, what RP has no further try for. *PARKED counts the
 * others, and REC is told of them. */
int notes_finish(struct notes *notes, const struct recovery *rec,
    const struct replay *rp, const struct replay_row *row, uint64_t *parked);
/* One commit; parked rows are announced. */
int notes_write(struct notes *notes, const struct recovery *rec);
void notes_done(struct notes *notes);

#endif
