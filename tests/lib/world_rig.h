/*
 * For tests of what recovery and the rest of the store's disk work do: a world
 * for each test, updates that are expected to be fine, and what befalls the
 * disks. Whatever of it fails fails the test.
 */
#ifndef TESTS_LIB_WORLD_RIG_H
#define TESTS_LIB_WORLD_RIG_H

#include "tests/lib/world.h"

/* The running test's. */
extern struct world *w;
/* The mount of WORLD_REPO, for memfs_remount() and the like. */
extern unsigned wr_home;

/* Fixtures: a world that has started. Its journal shares the repository's
 * disk; or has one of its own; or each has its own (mount 1, and 2), beside the
 * root's. */
void wr_setup(void);
void wr_setup_apart(void);
void wr_setup_mounted(void);
void wr_teardown(void);

/* Applies SPEC; every update of it is ok. */
void wr_ok(const char *spec);
/* What memfs_list_locks() says of the repository. */
void wr_expect_locks(const char *want);
void wr_expect_file(const char *path, const char *text);

/* The power goes: KEEP changes of names and DATA are left of the repository's
 * disk, and of the others what was synced. The world is down. */
void wr_power_loss(enum memfs_data data, long keep);
void wr_start(void);
void wr_power_loss_and_start(enum memfs_data data, long keep);
/* The repository's disk dies with all that was not synced, and comes back as
 * another mount; nobody uses the repository meanwhile. */
void wr_remount(void);
/* Applies SPEC while its N-th write fails with ERR; w->owed says how many of
 * its lines are owed, and where one is its first update is ok. False: it has
 * no N-th write. */
bool wr_fail_write(const char *spec, bool atomic, unsigned long n, int err);

/* Somebody else does. */
void wr_rename(const char *from, const char *to);
void wr_unlink(const char *path);

#endif
