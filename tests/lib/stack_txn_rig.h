/*
 * For tests of recovery with reftables: a world for each test (world_rig.h), a
 * scripted transaction, accidents, and looks. Every failure fails the test.
 */
#ifndef TESTS_LIB_STACK_TXN_RIG_H
#define TESTS_LIB_STACK_TXN_RIG_H

#include "tests/lib/stack_txn.h"
#include "tests/lib/world_rig.h"

#define STX_LIST STACK_DIR "/tables.list"

extern struct stack_txn stx; /* the last transaction */
extern uint64_t stx_at;      /* the index found by the last stx_expect() */

/* With wr_teardown(). */
void stx_setup(void);

/* A transaction of one update, which must succeed. */
void stx_change(const char *name, char new_c);

/* The world is down afterwards. A power loss takes the changes of names after
 * the last sync of the directory: the rename of the last list. */
void stx_lose_power(void);
/* The lock of refd survives a power loss, and git cannot write until recovery.
 * Here somebody removes the lock, and git works before recovery. */
void stx_lose_power_and_lock(void);
void stx_crash(void);

void stx_expect(const char *name, char value);
void stx_expect_log(const char *name, const char *log);
/* Of the first update of the last transaction. */
void stx_expect_status(enum refd_status status);
/* A later start finds nothing to do. */
void stx_expect_rest(void);

#endif
