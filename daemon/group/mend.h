/*
 * Gives refs of this node, which other programs have changed, the values of the
 * group back. A follower, the leader and the scan use this one mechanism, so
 * that the same rules decide everywhere which value is kept.
 *
 * For the thread of the follower; every call blocks.
 */
#ifndef GROUP_MEND_H
#define GROUP_MEND_H

#include "daemon/group/follower_internal.h"
#include "daemon/group/foreign_ref.h"

/*
 * NAME of REPO gets the value WANT. A is the attempt, with the LSN for the name
 * of a kept value. If A has a row, the row replaces WANT at once, so nobody
 * looks for the objects of WANT. NEXT: the value that the ref gets after WANT,
 * or NULL; a value NEXT that the ref has already is not kept. AGAIN: mended,
 * or, with A->is_part, only a part of the refs in the way is gone, because many
 * would take too long; DIFFERS: the ref has the value; WAITS: A has the reason.
 */
enum result mend_ref(struct follower *f, struct attempt *a,
    const struct repo *repo, const char *name, const struct journal_value *want,
    const struct refd_oid *next);

bool mend_is_as_wanted(const struct foreign_ref *ref,
    const struct journal_value *want);

/* The updates of RT have failed: mends their refs, or a part of them, because
 * many would take too long. Results as above. */
enum result mend_row(struct follower *f, struct attempt *a,
    const struct own_txn *rt);

#endif
