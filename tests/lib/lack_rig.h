/*
 * For tests of recovery on a node of a group, in a world of world_rig.h: a
 * repository that recovery cannot redo waits, and the node counts as lacking
 * its updates. Every failure fails the test.
 */
#ifndef TESTS_LIB_LACK_RIG_H
#define TESTS_LIB_LACK_RIG_H

#include "tests/lib/world_rig.h"

/* A fixture, with wr_teardown(). */
void lack_setup(void);
/* From now on the journal is a group's. */
void lack_join(void);
/* Makes a second repository at PATH. */
void lack_make_repo(const char *path);
/* The daemon is killed. */
void lack_end(void);

/* How many repositories are there, and lack refs? */
size_t lack_nr(void);
/* The start goes on, and WORLD_REPO waits because of FINDING about REF, also in
 * retries, and at the next start. The world is down then. */
void lack_waits(enum store_finding finding, const char *ref);
/* The start redoes everything: x is '1'. */
void lack_starts(void);

#endif
