/*
 * A store with all its threads, on real disks, with one repository in it: for
 * tests of what the threads do for each other. One thread; the state lies in
 * tmp_root (tests/lib/tmp.h), of which sr_setup() makes a new one.
 */
#ifndef TESTS_LIB_STORE_RIG_H
#define TESTS_LIB_STORE_RIG_H

#include <semaphore.h>

#include "daemon/store/store.h"

extern struct store *sr_store;
/* The system calls of the next sr_open(); the kernel's. */
extern const struct sys *sr_sys;
extern char sr_state[4096], sr_repo[4096];
extern char sr_commit[REFD_OID_HEX + 1]; /* in the repository; no ref's */
extern int64_t sr_interval_ns; /* of checkpoints, from the next sr_open() */
extern enum refd_durability sr_mode; /* from the next sr_open(): journal */
/* What happened, and why; of the store's threads. */
extern void (
    *sr_event)(enum store_event event, const char *place, const char *why);
extern uint64_t sr_found_count; /* what recovery had to say */

void sr_setup(void);
/* The same without sr_open(). */
void sr_setup_closed(void);
/* A second repository, sr_other, below tmp_root/other. To a store whose system
 * calls have sr_disk_mount_id() the directory is another file system. */
extern char sr_other[4200];
void sr_make_other(void); /* after sr_setup(): a copy of the first */
/* Is the directory or file FD there? Any thread. */
bool sr_is_on_other(const struct sys *sys, int fd);
int sr_disk_mount_id(const struct sys *sys, int fd, uint64_t *id);
/* In the repository; no ref's. */
void sr_make_commit(const char *message, char hex[REFD_OID_HEX + 1]);
void sr_teardown(void);
void sr_open(void);            /* recovers, and starts; nothing may be parked */
uint64_t sr_open_parked(void); /* how much is parked */
void sr_close(void);

/* An update of NAME to HEX, which owns what it holds, as one that came by the
 * wire; all zeroes deletes. */
struct txn *sr_make_txn(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex);
struct window *sr_make_window(struct txn *txn);
/* The next thing that comes back. */
struct store_done sr_wait_done(void);
/* Waits until another thread posts SEM. The test fails after 30 seconds. */
void sr_await(sem_t *sem);
/*
 * With the store closed, adds a deferred record to the journal, as a power loss
 * leaves one: in WORKTREE ("" is the main one) of the repository PATH, NAME has
 * the value HEX. The store must have served the repository before.
 */
void sr_park(const char *path, const char *worktree, const char *name,
    const char *hex);
/* Through admission, and back. */
struct txn *sr_admit(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex);
/* One that was admitted, as a window of its own. */
void sr_apply(struct txn *txn);
void sr_done_with(struct txn *txn);
/* The same for one that was admitted: its answer is the first outcome, ok. */
void sr_done_with_replayed(struct txn *txn);

#endif
