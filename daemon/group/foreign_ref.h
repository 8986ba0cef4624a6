/*
 * A ref of this node as it is on disk. Another program may have written the
 * ref, and may write it at any moment: the values are read without a lock.
 *
 * Any thread; every call blocks.
 */
#ifndef GROUP_FOREIGN_REF_H
#define GROUP_FOREIGN_REF_H

#include "daemon/store/files/format/loose.h"
#include "daemon/store/repos/repo.h"

struct foreign_ref {
	char name[REFD_REFNAME_MAX + 1];
	enum loose_kind kind; /* ABSENT, OID, SYMREF, BROKEN */
	struct refd_oid oid;  /* of OID */
	char *target;         /* of SYMREF; owned */
};

/* 0; -ELOOP: a directory on the way is a link; another negative errno. Fills
 * REF in all cases. */
int foreign_ref_read(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref);
/* Finds a ref without which NAME could exist: NAME is below it, or it is below
 * NAME. 1 (the ref can be BROKEN); 0: none; negative errno. Fills REF in all
 * cases. */
int foreign_ref_find_blocker(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref);
void foreign_ref_done(struct foreign_ref *ref);

#endif
