/*
 * A world (world.h) for tests of the modes of durability: refs a, c and d that
 * last, p and keep packed, a transaction that does a bit of everything, and
 * what is to be there after it.
 */
#ifndef TESTS_LIB_DURABILITY_WORLD_H
#define TESTS_LIB_DURABILITY_WORLD_H

#include "tests/lib/world.h"

#define NONE     REFD_DURABILITY_NONE
#define PERIODIC REFD_DURABILITY_PERIODIC
#define JOURNAL  REFD_DURABILITY_JOURNAL
#define BATCH    REFD_DURABILITY_BATCH
#define FSYNC    REFD_DURABILITY_FSYNC

extern struct world *dw;
/* What is being tried, for messages. */
extern char dw_context[256];
void dw_say(const char *what, int i, uint64_t seed);

/* A daemon of MODE. Its disk is one of memfs's two kinds, from then on. */
void dw_fresh(enum refd_durability mode, bool state_elsewhere);
void dw_set_disk(bool strict);

#define DW_SPEC "a=2:1;b=3:0;-c:1;-p:1;x/y/z=4;d=1"
void dw_apply_ok(const char *spec, bool atomic);
bool dw_all_ok(const struct txn *txn);
void dw_power_loss(uint64_t seed);
void dw_restart(void);

/* Is NAME at one of the values in ALLOWED, as world_ref() has them? */
void dw_check_at(const char *name, const char *allowed);
/* Is all of DW_SPEC there, and nothing else changed? */
void dw_check_there(void);
void dw_no_locks(void);

#endif
