/*
 * A small world for tests of the store's disk work: a model file system with
 * one repository, and a store with its journal, applier, recovery and
 * checkpoint, in one thread. The store's threads, admission and barrier are not
 * part of it.
 *
 *	struct world *w = world_new(seed file system);
 *	world_start(w)		journal, recovery
 *	world_apply(w, ...)	one transaction as one batch
 *	world_stop(w)		or memfs_crash(), memfs_power_loss(); then
 *				world_crash(w)
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
	/* Results of the last recovery. */
	uint64_t found[STORE_FINDINGS], deferred;
	char evidence[512]; /* path of the last file; "": none */
	char why[1024];     /* store_recovery.why; "": NULL */
	/* Results of the last world_retry(): the number of refs that are still
	 * deferred, and "<worktree>:<name>" of the last. */
	unsigned nr_still;
	char still[128];
	uint64_t owed; /* lines, in total */
	uint64_t kept; /* records for the next start, in total */
	/* The daemon's mode; journal unless set before world_start(). */
	enum refd_durability mode;
	/* If a transaction makes at least this number of refs, they go to
	 * packed-refs, and no ref gets a log. 0: never, and all refs get a log.
	 * Set before world_start(). */
	size_t packed_least;
	/* The mode that the next transactions request. */
	enum refd_durability asked;
	unsigned seconds; /* of the next committer */
	bool clock_stands;
	/* Of recovery; zero: recovery removes no lock of another program. */
	struct this_boot this_boot;
	char text[1024]; /* of the last finding "unlocked" or "deferred" */
	int64_t rest_ns; /* the last batch asks for such a rest of its names */
};

/* Of all ids: SHA-1, or SHA-256 with REFD_TEST_FORMAT=sha256 in the
 * environment. */
enum refd_object_format world_format(void);
/* The oid named by C: all its bytes are C; '0' is the null oid. */
struct refd_oid world_oid(char c);

/* TEXT with the hexadecimal id of C in place of each "@C", and the name of the
 * format in place of "@*"; to be freed. */
char *world_text(const char *text);
/* Writes world_text(TEXT). */
void world_write(struct memfs *fs, const char *path, const char *text);

/* Takes over FS. STATE_ELSEWHERE: the journal is on a separate mount. */
struct world *world_new(struct memfs *fs, bool state_elsewhere);
void world_free(struct world *w);

/* Opens the journal and recovers. Returns 0, or a negative errno if the world
 * is down. */
int world_start(struct world *w);
/* Tries the deferred records of WORLD_REPO again; w->deferred records are
 * left. */
int world_retry(struct world *w);
/* Makes a last checkpoint, and closes. */
int world_stop(struct world *w);
/* After memfs_crash() or memfs_power_loss(): frees the memory of the
 * process. */
void world_crash(struct world *w);
/* A checkpoint without concurrent work: syncs every file system, and forgets
 * finished records. */
int world_checkpoint(struct world *w);
/* A checkpoint beside other work: records are forgotten with the next commit,
 * followed by SQLite's own checkpoint. */
int world_tick(struct world *w);

/*
 * SPEC: updates divided by ";". "a=2" creates or updates refs/heads/a, "a=2:1"
 * with the old value 1 ("a=2:0": must not exist), "-a" deletes, "-a:1" with the
 * old value 1. "s>a" makes refs/heads/s a symbolic ref to refs/heads/a,
 * "s>a:>b" only if it points to refs/heads/b; similarly "-s:>b". A name after
 * "@" is not below refs/heads: "@HEAD=2". A "!" means the symbolic ref itself:
 * "!s=1", "!-s".
 * Returns the transaction with its answers, to be given to world_done(), or
 * NULL if the repository could not be opened or memory was short.
 */
struct txn *world_apply(struct world *w, const char *spec, bool atomic);
/* Opens the repository at GIT_DIR, which stays known. Returns a reference, or
 * NULL. */
struct repo *world_repo(struct world *w, const char *git_dir);
/* Several transactions as one batch: begin each, which may fail as above, then
 * apply all. The repository is WORLD_REPO, or that at GIT_DIR, which must
 * live until world_done(). */
struct txn *world_begin_in(struct world *w, const char *git_dir,
    const char *spec, bool atomic);
static inline struct txn *world_begin(struct world *w, const char *spec,
    bool atomic)
{
	return world_begin_in(w, WORLD_REPO, spec, atomic);
}
void world_batch(struct world *w, struct txn *const *txns, size_t nr);
/* The same for any batch, with all undecided updates. */
void world_run(struct world *w, struct txn *const *txns, size_t nr,
    enum batch_session session);
/* The same for a session: on return its locks are held, unless none of it could
 * be prepared. */
struct txn *world_session(struct world *w, const char *spec, bool atomic);
void world_session_end(struct world *w, struct txn *txn, bool commit);
/* The full refname of NAME, to be freed. */
char *world_full_name(const char *name);
/* If STOP, all transactions have the same time; otherwise each is a second
 * later than the previous transaction. */
void world_stop_clock(struct world *w, bool stop);
void world_done(struct world *w, struct txn *txn);

/* The value of refs/heads/NAME for git: its letter, '0' absent, '?' broken, '>'
 * a symbolic ref. NAME may begin with "@", here and below. */
char world_ref(struct world *w, const char *name);
/* Number of lines from OLD to NEW in NAME's log; -1: the log is malformed. */
int world_log_count(struct world *w, const char *name, char old, char new_c);
bool world_has_log(struct world *w, const char *name);
/* Finds litter in WORLD_REPO: a lock, a packed-refs.new, a staged file. Returns
 * NULL, or a name that is valid until the next call. */
const char *world_litter(struct world *w);

#endif
