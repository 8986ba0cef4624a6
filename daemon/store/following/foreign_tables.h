/* foreign_ref.h, for a repository with refs in reftables. Any thread; every
 * call blocks. Errors as in stack.h. */
#ifndef STORE_FOREIGN_TABLES_H
#define STORE_FOREIGN_TABLES_H

#include "daemon/store/following/foreign_ref.h"

/* Fills REF, which has its name, and is BROKEN. 0 or negative errno. */
int foreign_tables_read(const struct repo *repo, struct foreign_ref *ref);
/* 1, and the name of a ref without which NAME could exist; 0: none; negative
 * errno. */
int foreign_tables_find_blocker(const struct repo *repo, const char *name,
    char found[REFD_PATH_MAX]);

#endif
