/*
 * The open repositories, whose file systems are in fs.h.
 *
 * The file <common-dir>/refd/id has the uuid of the repository and of its
 * journal. While a repository is open, the daemon holds a flock on
 * <common-dir>/refd/lock, so a repository has only one daemon. After the
 * opening, all files are reached through descriptors, so no write goes
 * elsewhere if the path is moved away. repo_is_same() checks whether the path
 * still leads to the repository.
 *
 * struct repos has its own lock. An open struct repo is immutable and needs no
 * lock, except for fields with a comment that names a lock or an owner.
 * References keep a repository open, and a repository without references is
 * closed when it was idle for a while, or when room is needed. Every call may
 * block on the disk, but repo_put() blocks only for the mutex of the table.
 */
#ifndef STORE_REPO_H
#define STORE_REPO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/fs_type.h"
#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"
#include "daemon/store/files/format/packed.h"
#include "daemon/store/files/format/reflog.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/objects/objects.h"
#include "daemon/store/objects/odb.h"
#include "daemon/store/repos/fs.h"
#include "daemon/store/sync_failures/sync_failures.h"
#include "daemon/store/txn.h"

struct replica;
struct repo_id;
struct stack_set;

/* The storage of the refs (extensions.refStorage). */
enum repo_format { REPO_FILES, REPO_REFTABLE };
#define REPO_FORMATS (REPO_REFTABLE + 1)

/* The refs of a repository, in classes. */
#define REPO_REF_CLASSES 256

struct repo {
	char *path; /* of the common dir, resolved */
	int fd;     /* of the common dir */
	int refd_fd, stage_fd;
	struct repo_lock *lock; /* shared by successive openings */
	uint64_t dev, ino;      /* of the common dir */
	struct fs *fs;
	uint8_t uuid[16];
	uint64_t id; /* in the journal */
	struct sys_stat config_stat;
	/* Of the configuration. Recovery opens a repository without the
	 * configuration, which a power loss may have emptied, so it uses the
	 * format of the records. */
	enum refd_object_format object_format;
	bool has_format; /* the configuration was read */
	bool is_partial; /* git can fetch absent objects */
	enum repo_format format;
	bool is_new; /* the uuid was made at this opening */
	bool bare;
	int shared_perm;
	enum reflog_policy log_policy; /* if the client names none */
	bool log_unset;                /* the repository names none either */
	/* The configuration includes a file that was not read and may set
	 * core.logAllRefUpdates or core.sharedRepository, so the client must
	 * send the value. */
	bool is_log_unsure, is_shared_unsure;
	uint32_t owner, group, mode; /* of refs/ */
	struct packed *packed;
	struct stack_set *stacks; /* refs in reftables; opened at first use */
	atomic_bool touched;      /* published to since its last checkpoint */
	/* New loose refs since the last packing, and the earliest time of the
	 * next (monotonic). */
	atomic_uint_fast64_t nr_loose_made;
	atomic_int_fast64_t pack_after_ns;
	/* The last record of each class of refs since the repository was
	 * opened, from before the refs are unlocked. */
	atomic_uint_fast64_t last_lsn[REPO_REF_CLASSES];
	/* The records of looks, and the records from before the repository was
	 * opened, have at most this LSN. 0: not known. */
	atomic_uint_fast64_t look_lsn;
	/* The id and the row in the journal are durable. No batch writes refs
	 * before, because recovery finds the repository by both. */
	atomic_bool settled;
	uint64_t journal_epoch; /* of the row */

	/* Only for the admission worker that is in the repository. */
	bool is_looked_at; /* deferred_fs_check() */
	struct odb *odb;
	struct objects_fanouts fanouts;
	/* Bytes of objects copied for records since the limit of the copies
	 * (barrier_copy.c) moved to this time. */
	size_t copied_bytes;
	int64_t copied_since_ns;
	/* One block of the replica (replica.h), freed with the repository, or
	 * NULL. */
	void *replica;

	/* The number of transactions at the barrier, under the mutex of struct
	 * barriers. */
	unsigned waiting_barrier;

	/* Under repos->mutex. */
	unsigned refs;
	bool doomed; /* not to be handed out again */
	/* Packed-refs of another program will be compared with the records
	 * (packer.h), not before this time (monotonic); 0: no need. */
	int64_t compare_at_ns;
	int64_t last_used_ns;
	struct repo *next;
};

struct repos;
/* Fills in the settings bare, shared_perm and log_policy from git's
 * configuration. The default function reads the files, and a test without files
 * replaces it. */
typedef enum refd_status repo_configure_fn(const struct repos *repos,
    struct repo *repo, char **why);

/* The thread with the failure calls the functions without a lock, and a
 * function may be NULL. */
struct repos_report {
	/* The file system of PLACE failed to sync: the first failure. */
	void (*fs_failed)(void *arg, const char *place, int err);
	/* Syncs cannot be marked (ERR), so none may begin. 0: they can be
	 * marked again. */
	void (*unmarked)(void *arg, int err);
	/* A different directory than before has the id of a repository, for
	 * example an older copy, and the journal has records that await a
	 * checkpoint. A power loss would bring the values of these records to
	 * the new directory. */
	void (*replaced)(void *arg, const char *place);
	void *arg;
};

struct repos {
	const struct sys *sys;
	struct journal *journal;
	const char *const *roots; /* borrowed */
	size_t nr_roots;
	size_t max_open;
	/* Of the store; borrowed. Set before the first opening, because the
	 * replica decides about uuids: if machines share rows, a repository may
	 * be a copy of another machine's repository, and keeps its uuid. */
	struct replica *replica;
	repo_configure_fn *configure;

	struct mutex mutex;
	/* Repositories being opened or closed, so that other threads wait. */
	struct repo_busy *busy;
	pthread_cond_t not_busy;
	struct repo *open;
	size_t nr_open;
	struct repo_loose *loose; /* by id; of closed repositories */
	struct fs *fs;            /* grows at its head; nothing is removed */
	atomic_bool has_failed;   /* a file system has failed to sync, ever */
	struct sync_failures *sync_failures; /* borrowed; or NULL */
	struct repos_report report;
};

/* On the stack of the thread. */
struct repo_busy {
	uint64_t dev, ino; /* of a common dir */
	struct repo_busy *next;
};

void repos_init(struct repos *repos, const struct sys *sys,
    struct journal *journal, const char *const *roots, size_t nr_roots,
    size_t max_open);
/* Closes everything, when no reference is left. */
void repos_done(struct repos *repos);

/* Once refd/ exists in a repository, the clients leave no push to git alone. A
 * request that is refused must not cause this, so MAY is asked before refd/ is
 * made. At this moment REPO is open, but has no id and no file system yet. */
struct repo_first {
	/* OK, or the status for the client and *WHY (to be freed). */
	enum refd_status (*may)(void *arg, const struct repo *repo, char **why);
	void *arg;
};

/*
 * Returns the repository with the common dir of GIT_DIR (absolute), with a
 * reference, and opens the repository if needed. FIRST: may it be served, if no
 * refd has served it; NULL: yes. After a failure *STATUS and *WHY (to be freed)
 * have the reason for the client: outside the roots, missing, unsupported, of a
 * different journal, in use by a different daemon, of a different owner.
 * Several threads may call, and threads that open the same repository wait for
 * each other.
 */
struct repo *repos_get(struct repos *repos, const char *git_dir,
    const struct repo_first *first, enum refd_status *status, char **why);
/* Opens a repository for recovery, by path and id from the journal. The
 * configuration is not read, because a power loss may have emptied its file.
 * -ENOENT: the repository is gone. -ESTALE: the path has a different
 * repository. */
int repos_get_known(struct repos *repos, const struct journal_repo *known,
    struct repo **repo);
/* Has this machine lost the refs of a repository that other machines have? 1:
 * the directory was made anew with ID, but the journal knows the uuid of ID,
 * and so an earlier directory. 0: not so. */
int repo_is_lost(const struct repos *repos, const struct repo_id *id);
/* The file system of the open repository with the common dir GIT_DIR. NULL: no
 * such repository is open. The result is only for comparison, because nothing
 * keeps the repository open. */
const struct fs *repos_place(struct repos *repos, const char *git_dir);
/* Adds a reference for a caller that has a reference already. */
void repo_hold(struct repos *repos, struct repo *repo);
void repo_put(struct repos *repos, struct repo *repo);
/* Has a known repository seen a later record than the journal has? Then the
 * journal is an older copy, or damaged: -ESTALE and *WHY. */
int repos_check_checkpoints(struct repos *repos, const char *state_dir,
    char **why);
/* Removes <common-dir>/refd/NAME, durably, if it is there, and returns 0 or a
 * negative errno. */
int repo_unmark(const struct sys *sys, const struct repo *repo,
    const char *name);
/* Closes repositories that were not used for IDLE_NS. */
void repos_trim(struct repos *repos, int64_t idle_ns);

/* Opens the directory at PATH for reading, to be closed by the caller. Follows
 * links as long as they stay below the root that PATH begins with. -EXDEV:
 * below no root. */
int repo_open_below_root(const struct repos *repos, const char *path);

/* Has the git directory FD a directory ref_migration.XXXXXX? Then git refs
 * migrate is at work, without any lock, or was killed. The refs of the
 * repository may be in this directory, whose name is put into NAME. Blocks. */
#define REPO_MIGRATION_MAX 32
bool repo_has_migration(const struct sys *sys, int fd,
    char name[REPO_MIGRATION_MAX]);

/* Does the path still lead to this directory, and, for repo_is_same(), is the
 * config unchanged? */
bool repo_is_there(const struct repos *repos, const struct repo *repo);
bool repo_is_same(const struct repos *repos, const struct repo *repo);
/* Does the path lead to nothing, or to a different directory? False if the disk
 * gives no answer. */
bool repo_is_moved(const struct repos *repos, const struct repo *repo);
/* Can STATUS be the result of missing or unreadable files, so that the answer
 * is norepo instead if the repository was moved? */
bool repo_move_may_cause(enum refd_status status);
/* The path leads elsewhere, so no further transaction gets this struct repo. */
void repo_doom(struct repos *repos, struct repo *repo);
/* Does the repository use a reftable by now, so that the files below refs/ do
 * not count? Does not read the config, because a power loss may have emptied
 * the file. */
bool repo_has_reftable(const struct sys *sys, const struct repo *repo);

/* Has PEER the rights BITS (of 07) to the file with the attributes ST? */
bool repo_peer_has(const struct sys_stat *st, const struct txn_peer *peer,
    uint32_t bits);
/* May PEER pass through every directory of PATH (absolute and resolved), and
 * does PATH lead to DEV and INO? Every directory counts, because many
 * repositories are closed by a directory far above. */
bool repo_peer_may_reach(const struct sys *sys, const char *path, uint64_t dev,
    uint64_t ino, const struct txn_peer *peer);
/* Does this process use repositories and state of UID? Root uses only files of
 * root, so that root parses no file of a different account. Any thread. */
bool repo_owner_is_served(uint32_t uid);

/* Could PEER find out without refd why refd does not serve GIT_DIR? Otherwise
 * the reason would tell PEER about closed directories. Root and the account of
 * the daemon may always know. Other users must be able to pass through every
 * directory of the path, and of the path to the common dir. OK: yes. NOREPO:
 * no. BUSY, IO: unknown for now. */
enum refd_status repo_peer_may_see(const struct repos *repos,
    const char *git_dir, const struct txn_peer *peer);
/* The same answers: may PEER change refs here without refd? Checks the owner
 * and the mode of refs/ and of every directory on the way to refs/. */
enum refd_status repo_peer_may_write(const struct sys *sys,
    const struct repo *repo, const struct txn_peer *peer);

/* The mode of a new file or directory for a client with UMASK: 0666 (0777) &
 * ~umask, then core.sharedRepository (git's calc_shared_perm). The owner is the
 * daemon, which must read the file for recovery, so the owner keeps all
 * rights. */
mode_t repo_file_mode(int shared_perm, uint32_t umask_bits);
mode_t repo_dir_mode(int shared_perm, uint32_t umask_bits);
/* The mode of an existing file. */
mode_t repo_shared_mode(int shared_perm, mode_t mode);

/* Opens the directory for the per-worktree names of the linked worktree ID. For
 * "" returns repo->fd, and the caller closes all other descriptors. -ENOENT: no
 * such worktree (any more). */
int repo_open_worktree(const struct sys *sys, const struct repo *repo,
    const char *id);

/* Is the directory FD, with path PATH, a repository by git's rule
 * (is_git_directory()), and not a linked worktree? *WHY, to be freed, is the
 * reason if not. Does not check refs/. */
enum refd_status repo_check_git_dir(const struct sys *sys, int fd,
    const char *path, char **why);

/* A record LSN has the ref NAME; the last such record, or a later record of a
 * different ref. 0: none since the repository was opened. */
void repo_note_record(struct repo *repo, const char *name, uint64_t lsn);
uint64_t repo_last_record(struct repo *repo, const char *name);
/* A look has made the record LSN. */
void repo_note_look(struct repo *repo, uint64_t lsn);

/* Returns a malloc'd sentence, or NULL when out of memory. */
char *repo_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *repo_why_moved(const char *git_dir);

#endif
