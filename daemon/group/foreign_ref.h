/*
 * A ref of this node as it is on disk. The values are read without a lock,
 * since another program may write the ref at any moment. So the caller compares
 * the value again under the lock.
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
/* Finds a ref that is in the way of NAME: NAME is below the ref, or the ref is
 * below NAME. 1 (the ref can be BROKEN); 0: none; negative errno. Fills REF in
 * all cases. */
int foreign_ref_find_blocker(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref);
void foreign_ref_done(struct foreign_ref *ref);

#endif
