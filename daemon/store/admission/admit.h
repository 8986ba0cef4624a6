/*
 * The part of an admission that other parts of the store need.
 */
#ifndef STORE_ADMIT_H
#define STORE_ADMIT_H

#include "daemon/store/repos/repo.h"

/* admit.c, for the thread that has REPO alone: recovery, or an admission. Does
 * REPO have the object OID? 1, 0 or negative errno. ARG is not used. */
int admit_has_object(void *arg, struct repo *repo, const struct refd_oid *oid);

#endif
