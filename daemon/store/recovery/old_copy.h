/*
 * Are the repositories an older copy than a journal whose rows other machines
 * have, too, as after a restored backup? Such a machine would tell the others
 * that it has all rows, and could lead with old refs.
 *
 * The happy path: the last rows of the journal are read, the newest first, and
 * each ref has the value of its newest row.
 *
 * A ref that differs was written by another program since, or comes from an
 * older copy:
 *	- by its time: the file, packed-refs or, without a file, the directory
 *	  of the ref is older than the lock of the row, and the row was
 *	  published in this directory, as the note of the journal tells
 *	  (repo_checkpoint.h); or
 *	- its file is younger, because the copy has new times, but the ref has
 *	  an earlier value of the journal, or none, and the note is from before
 *	  the row; or
 *	- in reftables: the largest index is below the one of the row, and the
 *	  row was published in this directory.
 * All other refs that differ are mended later (daemon/group/mend.h).
 *
 * The owner of a repository can write old values, with any times. So the older
 * repositories of one owner alone stop no node if a ref of another owner has
 * its newest value. They are reported.
 *
 * repos_check_checkpoints() notices the reverse, an older journal.
 */
#ifndef STORE_OLD_COPY_H
#define STORE_OLD_COPY_H

#include "daemon/store/repos/repo.h"
#include "daemon/store/store.h"

/*
 * Compares refs with their newest rows up to UPTO, if these rows come after
 * AFTER. All these rows must be published. A row behind UPTO may not be
 * published yet, and a deferred row is not published, so their refs are left
 * out. Reads at most 50,000 rows, and for some seconds, from the newest row on.
 * *SKIPPED: there are deferred rows with refs; unchanged if no other machine
 * has the rows of J.
 *
 * REPORT gets the first old ref of each repository. 0: there is none, or all
 * older repositories belong to one owner, or no other machine has the rows of
 * J. -ENOTRECOVERABLE: the repositories are old, and *WHY (NULL before) has the
 * reason, to be freed, or NULL. Another negative errno: J can't be read.
 */
int old_copy_look(struct repos *repos, struct journal *j,
    const struct store_report *report, uint64_t after, uint64_t upto,
    bool *skipped, char **why);

#endif
