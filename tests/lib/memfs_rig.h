/*
 * For tests of the fake file system itself: a file system for each test, and
 * steps that must succeed.
 */
#ifndef TESTS_LIB_MEMFS_RIG_H
#define TESTS_LIB_MEMFS_RIG_H

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"

/* Of equal length. */
#define MR_OLD "the old value, forty bytes long or so...\n"
#define MR_NEW "and the new one, which is not the same!!\n"

/* Of the running test. */
extern struct memfs *mr_fs;
extern const struct sys *mr_sys;

/* Fixtures: /d/x holds MR_OLD. */
void mr_setup(void);
void mr_teardown(void);

/* A power loss; SEED selects the surviving changes. */
void mr_power_loss(uint64_t seed);

int mr_open(const char *path, int flags);
/* Syncs the file or the directory. */
void mr_sync(const char *path);

#endif
