/*
 * A small world for tests of the store's disk work: a model file system with
 * one repository, and a store on it, its journal, applier, recovery and
 * checkpoint, in one thread. The threads around them are not in it, nor are
 * admission and barrier.
 *
 *	struct world *w = world_new(seed file system);
 *	world_start(w)		journal, recovery
 *	world_apply(w, ...)	one transaction as one window
 *	world_stop(w)		or memfs_crash(), memfs_power_loss(), then world_crash(w)
 */
#ifndef TESTS_LIB_WORLD_H
#define TESTS_LIB_WORLD_H

#include "daemon/store/pipeline/pipeline_internal.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/memfs.h"

#define WORLD_REPO "/srv/r.git"

struct sysvfs;

struct world {
	struct memfs *fs;
	const struct sys *sys;
	struct sysvfs *vfs;
	struct store store;
	bool up;
	/* Of the last recovery. */
	uint64_t found[STORE_FINDINGS], parked;
	char evidence[512]; /* the last one's path; "": none */
	/* Of the last world_retry(): how many were told of, and "<worktree>:
	 * <name>" of the last. */
	unsigned nr_still;
	char still[128];
	uint64_t owed; /* lines, ever */
	uint64_t kept; /* records that the next start needs, ever */
	/* The daemon's; journal unless set before world_start(). */
	enum refd_durability mode;
	/* So many refs made by one transaction go to packed-refs, and no ref
	 * gets a log; 0: none does, and all get one. Before world_start(). */
	size_t packed_least;
	/* What the next transactions ask for. */
	enum refd_durability asked;
	unsigned seconds; /* of the next transaction's committer */
	bool clock_stands;
};

/* The oid that C names: all its bytes are C; '0' is the null oid. */
struct refd_oid world_oid(char c);

/* Takes FS over. STATE_ELSEWHERE: the journal lies on a mount of its own. */
struct world *world_new(struct memfs *fs, bool state_elsewhere);
void world_free(struct world *w);

/* Opens the journal and recovers. 0 or negative errno, then it is down. */
int world_start(struct world *w);
/* What is parked of WORLD_REPO, once more; w->parked of it are left. */
int world_retry(struct world *w);
/* A last checkpoint; closes. */
int world_stop(struct world *w);
/* After memfs_crash() or memfs_power_loss(): lets go of what the process had. */
void world_crash(struct world *w);
/* What the checkpointer does, with nothing else at work: syncs every file
 * system, forgets what has ended. */
int world_checkpoint(struct world *w);
/* The same beside others' work: forgets with the next commit, and SQLite's
 * own checkpoint follows. */
int world_tick(struct world *w);

/*
 * SPEC: updates divided by ";": "a=2" creates or updates refs/heads/a,
 * "a=2:1" with the old value 1 ("a=2:0": must not exist), "-a" deletes,
 * "-a:1", "s>a" makes refs/heads/s a symbolic ref to refs/heads/a, and
 * "s>a:>b" does if it is one to refs/heads/b; so "-s:>b". A name with
 * "@" before it is not below refs/heads: "@HEAD=2". What has a "!" before it
 * is done to the symbolic ref itself: "!s=1", "!-s". Returns the transaction
 * with its answers, or NULL when the repository could not be opened or memory
 * was short; world_done() it.
 */
struct txn *world_apply(struct world *w, const char *spec, bool atomic);
/* The repository at GIT_DIR, open, and known for good: a reference, or NULL. */
struct repo *world_repo(struct world *w, const char *git_dir);
/* Several as one window: each is begun, which may fail as above, then all are
 * applied. */
struct txn *world_begin(struct world *w, const char *spec, bool atomic);
void world_window(struct world *w, struct txn *const *txns, size_t nr);
/* The same for a session: its locks stand when it comes back, unless nothing
 * of it could be prepared. */
struct txn *world_session(struct world *w, const char *spec, bool atomic);
void world_session_end(struct world *w, struct txn *txn, bool commit);
/* The refname that NAME stands for, to be freed. */
char *world_full_name(const char *name);
/* Every transaction is a second later than the one before, or none is. */
void world_stop_clock(struct world *w, bool stop);
void world_done(struct world *w, struct txn *txn);

/* refs/heads/NAME as git would read it: its letter, '0' absent, '?' broken,
 * '>' a symbolic ref. NAME may have an "@", here and below. */
char world_ref(struct world *w, const char *name);
/* How many lines of NAME's log go OLD to NEW; -1: the log is malformed. */
int world_log_count(struct world *w, const char *name, char old, char new_c);
bool world_has_log(struct world *w, const char *name);
/* What no window and no recovery may leave in WORLD_REPO: a lock, a
 * packed-refs.new, a staged file. NULL, or which; read it before the next
 * call. */
const char *world_litter(struct world *w);

#endif
