/*
 * The repositories that are open. fs.h has the file systems they lie on.
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
#include "daemon/store/repos/fs.h"
#include "daemon/store/sync_failures/sync_failures.h"
#include "daemon/store/txn.h"

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

	/* Only for the admission worker that is in the repository. */
	bool is_looked_at; /* deferred_fs_check() */
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

/* Called by the thread that failed, without a lock. Any may be NULL. */
struct repos_report {
	/* The file system of PLACE failed to sync: the first failure. */
	void (*fs_failed)(void *arg, const char *place, int err);
	/* Syncs cannot be marked, so none may begin; 0: they can again. */
	void (*unmarked)(void *arg, int err);
	void *arg;
};

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
	struct fs *fs;          /* grows at its head; what is in it stays */
	atomic_bool has_failed; /* a file system has failed to sync, ever */
	struct sync_failures *sync_failures; /* borrowed; or NULL */
	struct repos_report report;
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
/* Has none of those that the journal knows seen more of it than there is?
 * -ESTALE and *WHY: one has, so the journal is an older copy, or damaged. */
int repos_check_seen(struct repos *repos, const char *state_dir, char **why);
/* Closes those that nobody used for IDLE_NS. */
void repos_trim(struct repos *repos, int64_t idle_ns);

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
