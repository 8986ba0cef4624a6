/*
 * For tests of recovery and of the store's other disk work: a world for each
 * test, updates that must succeed, and accidents of the disks. Every failure
 * fails the test.
 */
#ifndef TESTS_LIB_WORLD_RIG_H
#define TESTS_LIB_WORLD_RIG_H

#include "tests/lib/world.h"

/* Of the running test. */
extern struct world *w;
/* The mount of WORLD_REPO, for memfs_remount() and similar calls. */
extern unsigned wr_home;

/* Fixtures: a world that has started. The journal shares the disk of the
 * repository; or has a separate disk; or both have a separate disk (mounts 1
 * and 2) in addition to the root's disk. */
void wr_setup(void);
void wr_setup_apart(void);
void wr_setup_mounted(void);
void wr_teardown(void);

/* Applies SPEC. All updates must be ok. */
void wr_ok(const char *spec);
/* Compares with memfs_list_locks() of the repository. */
void wr_expect_locks(const char *want);
void wr_expect_file(const char *path, const char *text);

/* A power loss. The repository's disk keeps KEEP changes of names and DATA; the
 * other disks keep only synced changes. The world is down. */
void wr_power_loss(enum memfs_data data, long keep);
void wr_start(void);
/* After a power loss: nobody has set the clock, and no machine shares files. So
 * recovery removes dead locks of other programs. */
void wr_know_boot(void);
void wr_power_loss_and_start(enum memfs_data data, long keep);
/* The repository's disk loses all unsynced changes, and comes back as a new
 * mount. Nobody uses the repository meanwhile. */
void wr_remount(void);
/* Applies SPEC while its N-th write fails with ERR. w->owed is the number of
 * its owed log lines; if there is any, the first update is ok. Returns false if
 * there is no N-th write. */
bool wr_fail_write(const char *spec, bool atomic, unsigned long n, int err);

/* Changes by a foreign process. */
void wr_rename(const char *from, const char *to);
void wr_unlink(const char *path);
/* All locks of the repository. */
void wr_remove_locks(void);

#endif
