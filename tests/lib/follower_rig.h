/*
 * For tests of the thread that follows the rows of a group, without the thread,
 * in a world of world_rig.h. Its repository is at the path of the rows.
 * Admission finds every object. Every failure fails the test.
 */
#ifndef TESTS_LIB_FOLLOWER_RIG_H
#define TESTS_LIB_FOLLOWER_RIG_H

#include "daemon/group/follower_internal.h"
#include "daemon/group/group_internal.h"
#include "tests/lib/world_rig.h"

extern struct follower flw;
extern struct group *flw_group;
/* The time of an admission, which is zero unless a test sets it: of a row, and
 * of a change of this node alone. */
extern int64_t flw_row_ns, flw_node_ns;

/* Fixtures. */
void flw_setup(void);
void flw_teardown(void);

/* Makes IN the row LSN, which gives the NR refs NAMES the value NEW_C, from OLD
 * ('0': none). To be given to flw_free_row(). */
void flw_make_row(struct group_input *in, uint64_t lsn,
    const char *const *names, size_t nr, char old, char new_c);
void flw_free_row(struct group_input *in);

#endif
