/*
 * The repositories that are open, and the file systems they lie on.
 *
 * A repository is known by the uuid in <common-dir>/refd/id, which names the
 * journal it belongs to as well; <common-dir>/refd/lock is held by flock
 * while it is open (one daemon per repository). Everything in it is reached
 * through descriptors from then on, so a path that is moved away can't
 * redirect a write; repo_is_same() says whether the path still leads there.
 *
 * struct repos locks itself. A struct repo is immutable once opened, but for
 * the fields that say whose they are. References keep it open; one that
 * nobody refers to is closed when it was idle for a while or room is needed.
 * Every call may block, but repo_put() only for the table's mutex.
 */
#ifndef STORE_REPO_H
#define STORE_REPO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/fs_type.h"
#include "daemon/base/sys.h"
#include "daemon/store/journal/journal.h"
#include "daemon/store/objects/objects.h"
#include "daemon/store/objects/odb.h"
#include "daemon/store/refs/packed.h"
#include "daemon/store/refs/reflog.h"
#include "daemon/store/sync_failures/doubts.h"
#include "daemon/store/txn.h"

/* A mounted file system with a repository of ours on it, or the objects of
 * one. */
struct fs {
	uint64_t dev, mount;
	int fd;         /* a directory, open since before the first
				   rename there: what syncfs is called on */
	int objects_fd; /* the same for the barrier: an error is told to each
			   descriptor once, and neither is to miss it */
	/* A small file, for its clock and its fsync; -1 as long as there are
	 * only objects. */
	atomic_int marker_fd;
	/* When the last completed syncfs began, by the clock of its ctimes; 0:
	 * none since the start, or a clock that nobody knows. Under
	 * repos->mutex. */
	int64_t synced_ns;
	int64_t synced_offset_ns;   /* wall clock less monotonic then */
	int64_t syncfs_took_ns;     /* the last; with what others had written */
	int64_t fsync_took_ns;      /* of a pack's file; under repos->mutex */
	atomic_bool touched;        /* published to since its last checkpoint */
	atomic_bool promised;       /* and somebody was promised something */
	bool carries;               /* sys->fsync_carries */
	pthread_mutex_t checkpoint; /* held through one */
	/* Held through a sync of objects, until its failure is noted: the
	 * kernel tells a second thread nothing of it. */
	pthread_mutex_t objects_sync;
	/* It failed to sync, so what is in memory need not be on disk: never
	 * to be asked again. */
	atomic_bool failed;
	unsigned nr_syncing; /* threads; under repos->mutex */
	atomic_bool gone;    /* closed; set under repos->mutex and the mutex
			     `rows` of deferred.h */
	/* Of the windows that may have locks there the first one; 0: nobody
	 * has asked. Under repos->mutex. */
	uint64_t first_window;
	struct fs *next;
};

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
	bool bare;
	int shared_perm;
	enum reflog_policy log_policy; /* where the client names none */
	bool log_unset;                /* nor does the repository */
	/* Its configuration includes a file that was not read and may set
	 * core.logAllRefUpdates, core.sharedRepository: the client must say. */
	bool is_log_unsure, is_shared_unsure;
	uint32_t owner, group, mode; /* of refs/ */
	struct packed *packed;
	atomic_bool touched; /* published to since its last checkpoint */
	/* Its id and its row in the journal last: not before is it written. */
	atomic_bool settled;
	uint64_t journal_epoch; /* of the row */

	/* Of the one lane thread that is in it. */
	bool is_looked_at; /* failed_look() */
	struct odb *odb;
	struct objects_fanouts fanouts;

	/* Under the mutex of struct barriers: transactions there. */
	unsigned waiting_barrier;

	/* Under repos->mutex. */
	unsigned refs;
	bool doomed; /* not to be handed out again */
	int64_t last_used_ns;
	struct repo *next;
};

struct repos;
/* Fills in what git's own configuration decides: bare, shared_perm,
 * log_policy. The default reads it; a model disk has none. */
typedef enum refd_status repo_configure_fn(const struct repos *repos,
    struct repo *repo, char **why);

struct repos {
	const struct sys *sys;
	struct journal *journal;
	const char *const *roots; /* borrowed */
	size_t nr_roots;
	size_t max_open;
	repo_configure_fn *configure;

	pthread_mutex_t mutex;
	/* Being opened or closed: nobody else does either meanwhile. */
	struct repo_busy *busy;
	pthread_cond_t not_busy;
	struct repo *open;
	size_t nr_open;
	struct fs *fs;         /* grows at its head; what is in it stays */
	bool has_failed;       /* one of them has, ever */
	struct doubts *doubts; /* borrowed; or NULL */
};

/* On its thread's stack. */
struct repo_busy {
	uint64_t dev, ino; /* of a common dir */
	struct repo_busy *next;
};

void repos_init(struct repos *repos, const struct sys *sys,
    struct journal *journal, const char *const *roots, size_t nr_roots,
    size_t max_open);
/* Closes everything; nothing may be referred to. */
void repos_done(struct repos *repos);

/*
 * The repository whose common dir is that of GIT_DIR (absolute), opened if
 * need be, with a reference. On failure *STATUS and *WHY (to be freed) say
 * why, in words for the client: outside the roots, missing, unsupported,
 * of another journal, in use by another daemon, of another owner. Several
 * threads may; those that want the same one wait for each other.
 */
struct repo *repos_get(struct repos *repos, const char *git_dir,
    enum refd_status *status, char **why);
/* Recovery: by the journal's own words; opens by path and id and asks
 * the configuration nothing, since a cut may have emptied it. -ENOENT: gone.
 * -ESTALE: another repository is there. */
int repos_get_known(struct repos *repos, const struct journal_repo *known,
    struct repo **repo);
/* The file system of the one that is open at GIT_DIR, its common dir; NULL: none
 * is. To be compared. */
const struct fs *repos_place(struct repos *repos, const char *git_dir);
/* One more reference, for who has one. */
void repo_hold(struct repos *repos, struct repo *repo);
void repo_put(struct repos *repos, struct repo *repo);
/* The file system that FD is on, for what else lies there than repositories:
 * barrier thread. Negative errno; -EIO: it failed to sync. */
int repos_fs_of(struct repos *repos, int fd, struct fs **fs);
/* Has none of those that the journal knows seen more of it than there is?
 * -ESTALE and *WHY: one has, so the journal is an older copy, or damaged. */
int repos_check_seen(struct repos *repos, const char *state_dir, char **why);
/* Closes those that nobody used for IDLE_NS. */
void repos_trim(struct repos *repos, int64_t idle_ns);

/* By how much the wall clock, which is the file systems', is ahead of the one
 * that is never set. */
int64_t fs_clock_offset(const struct sys *sys);
/* Less FS_SLACK_NS, what is on DEV and changed before is durable. 0: nothing
 * is known to be, nor where the clock was set back. */
int64_t fs_synced_ns(struct repos *repos, uint64_t dev);

/* It failed to sync. Its repositories are for nobody new. false: it had failed
 * before. */
bool fs_fail(struct repos *repos, struct fs *fs);
/* Around every sync of it: as long its descriptors stay open, and a kill will
 * not hide what came of it. -EIO: it failed, and nobody begins any more. */
int fs_enter(struct repos *repos, struct fs *fs);
void fs_leave(struct repos *repos, struct fs *fs);
/* Has anybody a repository on it, or syncs it? */
bool fs_is_in_use(struct repos *repos, const struct fs *fs);
/* Its descriptors go. It is in nobody's use. */
void fs_let_go(struct repos *repos, struct fs *fs);

/* The directory at PATH, to be read and closed; links are followed as long as
 * they stay below the root that PATH begins with. -EXDEV: below none. */
int repo_open_below_root(const struct repos *repos, const char *path);

/* Does the path still lead to this directory? And with the same config? */
bool repo_is_there(const struct repos *repos, const struct repo *repo);
bool repo_is_same(const struct repos *repos, const struct repo *repo);
/* Does the path lead to nothing, or to another directory? False where the disk
 * does not tell. */
bool repo_is_moved(const struct repos *repos, const struct repo *repo);
/* Can files that are closed or gone be behind STATUS? Where the repository was
 * moved the answer is norepo instead. */
bool repo_move_may_cause(enum refd_status status);
/* It does not: no further transaction gets this one. */
void repo_doom(struct repos *repos, struct repo *repo);
/* Are its refs kept in a reftable by now, whatever it had when it was opened?
 * What is written below refs/ then is nobody's. Does not
 * ask the config, which a cut may have emptied. */
bool repo_has_reftable(const struct sys *sys, const struct repo *repo);

/* Has PEER the rights BITS (of 07) to what ST is of? */
bool repo_peer_has(const struct sys_stat *st, const struct txn_peer *peer,
    uint32_t bits);
/* May PEER pass through every directory of PATH, which is absolute and
 * resolved, to the one that DEV and INO say? Many are closed by one far
 * above. */
bool repo_peer_may_reach(const struct sys *sys, const char *path, uint64_t dev,
    uint64_t ino, const struct txn_peer *peer);
/* Does this process use repositories and state of UID? Root uses root's only,
 * so that it parses no file of another account. Any thread. */
bool repo_owner_is_served(uint32_t uid);

/* Could PEER find out by itself, without refd, why GIT_DIR is no repository
 * that refd serves? Root and the daemon's own account may always know. Another
 * must be able to pass through every directory of the path, and of the path to
 * the common dir. OK: yes. NOREPO: no. BUSY, IO: that can't be found
 * out now. */
enum refd_status repo_peer_may_see(const struct repos *repos,
    const char *git_dir, const struct txn_peer *peer);
/* The same answers: may PEER change refs here without refd? Checks the owner
 * and the mode of refs/ and of every directory on the way to refs/. */
enum refd_status repo_peer_may_write(const struct sys *sys,
    const struct repo *repo, const struct txn_peer *peer);

/* The mode of a new file or directory for a client with UMASK: 0666 (0777)
 * & ~umask, then core.sharedRepository (git's calc_shared_perm). The owner
 * keeps his rights whatever the umask: that is the daemon. */
mode_t repo_file_mode(int shared_perm, uint32_t umask_bits);
mode_t repo_dir_mode(int shared_perm, uint32_t umask_bits);
/* That of a file that is there. */
mode_t repo_shared_mode(int shared_perm, mode_t mode);

/* The directory that the per-worktree names of the linked worktree ID are in;
 * the common dir (repo->fd itself) for "". To be closed where it is another
 * than repo->fd. -ENOENT: there is no such worktree (any more). */
int repo_open_worktree(const struct sys *sys, const struct repo *repo,
    const char *id);

/* Is the directory FD, whose path is PATH, a repository by git's rule
 * (is_git_directory()), and not a linked worktree's? *WHY, to be freed, says
 * why not. refs/ is the caller's to look at. */
enum refd_status repo_check_git_dir(const struct sys *sys, int fd,
    const char *path, char **why);

/* malloc'd sentence, or NULL when out of memory. */
char *repo_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *repo_why_moved(const char *git_dir);

#endif
