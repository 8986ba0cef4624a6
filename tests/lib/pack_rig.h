/*
 * Rounds of packing in a struct world: object 'T' is a tag that leads to 'P',
 * object 'p' is missing.
 */
#ifndef TESTS_LIB_PACK_RIG_H
#define TESTS_LIB_PACK_RIG_H

#include "daemon/store/packing/pack_round.h"
#include "tests/lib/world.h"

/* The result of pack_round(). -EIO: the repository could not be opened. */
int pack_rig_round(struct world *w, struct pack_round *round);

#endif
