/*
 * A world (world.h) for tests of the durability modes: durable loose refs a, c
 * and d, packed refs p and keep, a transaction with updates of all kinds, and
 * checks of its result.
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
/* Description of the current attempt, for messages. */
extern char dw_context[256];
void dw_say(const char *what, int i, uint64_t seed);

/* Starts a daemon with MODE. set_disk() selects one of memfs's two modes for
 * later calls. */
void dw_fresh(enum refd_durability mode, bool state_elsewhere);
void dw_set_disk(bool strict);

#define DW_SPEC "a=2:1;b=3:0;-c:1;-p:1;x/y/z=4;d=1"
void dw_apply_ok(const char *spec, bool atomic);
bool dw_all_ok(const struct txn *txn);
void dw_power_loss(uint64_t seed);
void dw_restart(void);

/* Checks that the value of NAME is one of ALLOWED, in the notation of
 * world_ref(). */
void dw_check_at(const char *name, const char *allowed);
/* Checks that all of DW_SPEC is done, and that nothing else has changed. */
void dw_check_there(void);
void dw_no_locks(void);

#endif
