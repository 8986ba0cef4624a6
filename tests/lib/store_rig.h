/*
 * A store with all its threads, on real disks, with one repository: for tests
 * of the cooperation of the threads. One thread; the state is in tmp_root
 * (tests/lib/tmp.h), which sr_setup() makes anew.
 */
#ifndef TESTS_LIB_STORE_RIG_H
#define TESTS_LIB_STORE_RIG_H

#include <semaphore.h>

#include "daemon/store/store.h"

extern struct store *sr_store;
/* The system calls of the next sr_open(); the kernel's. */
extern const struct sys *sr_sys;
extern char sr_state[4096], sr_repo[4096];
extern char sr_commit[REFD_OID_MAX_HEX + 1]; /* in the repository; of no ref */
extern int64_t sr_interval_ns; /* of checkpoints, from the next sr_open() */
/* Loose refs before a repository is packed, from the next sr_open(). */
extern uint64_t sr_pack_refs;
extern enum refd_durability sr_mode; /* from the next sr_open(): journal */
/* From the next sr_open(): a root below tmp_root; NULL: none. */
extern const char *sr_inner_root;
/* The event, its place and its reason. Called on threads of the store. */
extern void (
    *sr_event)(enum store_event event, const char *place, const char *why);
extern uint64_t sr_found_count; /* findings of recovery */

/* For sr_sys.fs_type: a type on which no record contains objects, so that new
 * objects always need the barrier. */
int sr_other_fs_type(const struct sys *sys, int fd, uint64_t *type);

void sr_setup(void);
/* The same without sr_open(). */
void sr_setup_closed(void);
/* A second repository, sr_other, below tmp_root/other. For a store with
 * sr_disk_mount_id(), this directory is a different file system. */
extern char sr_other[4200];
void sr_make_other(void); /* after sr_setup(): a copy of the first */
/* Is the directory or file FD in sr_other? Any thread. */
bool sr_is_on_other(const struct sys *sys, int fd);
int sr_disk_mount_id(const struct sys *sys, int fd, uint64_t *id);
/* Makes a commit in the repository; no ref names it. */
void sr_make_commit(const char *message, char hex[REFD_OID_MAX_HEX + 1]);
void sr_teardown(void);
void sr_open(void);              /* recovers and starts; fails if a record is
				  deferred */
uint64_t sr_open_deferred(void); /* returns the number of deferred records */
/* A reload with the other settings of the rig. Any thread. */
void sr_set(int64_t interval_ns);
void sr_close(void);
/* sr_close() after a crash: state/ is afterwards as it was at the call, without
 * the index of history, which a worker may be writing. */
void sr_close_crashed(void);

/* An update of NAME to HEX; all zeroes delete. The transaction owns its
 * content, like a transaction from the wire. */
struct txn *sr_make_txn(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex);
struct batch *sr_make_batch(struct txn *txn);
/* The next result of the store. */
struct store_done sr_wait_done(void);
/* Waits until another thread posts SEM. The test fails after 30 seconds. */
void sr_await(sem_t *sem);
/*
 * With the store closed, adds a deferred record to the journal, as after a
 * power loss: in WORKTREE ("": the main worktree) of the repository PATH, NAME
 * has the value HEX. The store must have served the repository before.
 */
void sr_park(const char *path, const char *worktree, const char *name,
    const char *hex);
/* Makes a transaction and waits for its admission. */
struct txn *sr_admit(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex);
/* Applies an admitted transaction in its own batch. */
void sr_apply(struct txn *txn);
void sr_done_with(struct txn *txn);
/* The same for an admitted transaction whose answer is the first outcome,
 * ok. */
void sr_done_with_replayed(struct txn *txn);

#endif
