/*
 * The state that the files of this folder, both backends and the replica share
 * for one pass.
 *
 * A pass covers the updates of a batch that one journal commit records. The
 * scheduler has sorted these updates by transaction (struct txn_slice). Each
 * transaction becomes a struct slice here, with one row in the journal. A
 * repository has one format and needs one token, so the changes also belong to
 * the struct repo_slice of their repository, and all steps with a backend go by
 * repository.
 *
 * A change is one ref file. The first changes are the refs that the updates
 * name. Under the locks more changes are found, namely the target of a symbolic
 * ref, and HEAD if HEAD points to the branch. All changes of an update succeed
 * or fail together. Each phase visits all changes and continues after a
 * failure, because other updates can still succeed.
 */
#ifndef STORE_PASS_H
#define STORE_PASS_H

#include <string.h>

#include "daemon/base/hash.h"
#include "daemon/base/sys_dirs.h"
#include "daemon/store/batch/apply.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/publish/edit.h"
#include "daemon/store/refs/token.h"
#include "daemon/store/tables/format/reftable_table.h"

/* The git-dir of a linked worktree, opened at the first use. */
struct worktree {
	struct repo *repo;
	int fd; /* owned */
	struct worktree *next;
	char id[];
};

/* The target of a git-dir's HEAD, read at the first use. */
struct head {
	bool is_known;
	char *target; /* owned; NULL: HEAD is not a symbolic ref */
};

/* The part of one transaction that a pass takes, from the plan of the part to
 * the row in the journal. */
struct slice {
	const struct repos *repos; /* borrowed */
	struct txn_slice *txn_slice;
	struct txn *txn;
	struct repo *repo; /* NULL: a rejection that is only recorded */
	/* The git-dir of the client: the common dir, or a linked worktree. */
	int git_fd;
	const char *worktree;  /* its id, or "" */
	int git_err;           /* opening git_fd failed: all updates fail */
	struct head head;      /* of a linked worktree */
	const char *committer; /* of log lines; never NULL */
	char *message;         /* normalised, owned; or NULL */
	bool broken;           /* an update failed; if atomic, all fail */
	bool is_taken;         /* another writer took a packed name */
	enum refd_durability mode;
	uint64_t lsn;
	struct record plan; /* the content of the log row; owns its members */
	size_t plan_bytes;  /* of the members */
	int shared_perm;
	mode_t file_mode, dir_mode;
	enum reflog_policy log_policy;
};

/* The members of a repo slice for refs in files. */
struct files_slice {
	struct packed_snapshot *snap;
	/* The first CLEAR_LEN bytes are a directory. SNAP has no ref with the
	 * name of this directory, or of a directory above. */
	const char *clear_dir;
	size_t clear_len; /* 0: no directory was checked yet */
	bool logs_looked, has_no_logs;
	bool packed_turn;    /* packed_turn_take() */
	bool packed_locked;  /* packed-refs.lock is ours */
	bool packed_changed; /* packed-refs.new is written */
	/* packed-refs.new is synced beside the journal, before the rename. */
	bool packed_flushing;
	struct flush_one packed_flush;
	int packed_err;     /* the result of this sync */
	mode_t packed_mode; /* of packed-refs.new */
};

/* The members of a repo slice for refs in reftables (tables.h). */
struct tables_slice {
	struct tables_part *parts; /* owned */
	unsigned nr_parts;         /* that were made, for names in stage/ */
	unsigned rounds;           /* that another writer has spoiled */
	struct tables_held *held;  /* names of a prepared session; owned */
	/* For all rounds together. To read more than the share of a batch, the
	 * repo slice needs a slot for much work. Without a slot the changes are
	 * given back. */
	struct reftable_budget budget;
	bool may_read_much;
	struct pass *pass; /* for the budget; borrowed */
};

/* The slice of one repository: one token. */
struct repo_slice {
	struct repo *repo;
	const struct ref_backend *backend; /* of the repository's format */
	/* Its changes, in the order of the pass; by next_in_repo. */
	struct change *changes, *last;
	struct token token;
	bool has_token;
	int64_t locked_at_ns; /* the file system's clock */
	struct head head;     /* of the common dir */
	/* The changes with in_rewrite are committed together, or fail
	 * together. */
	bool is_bound;
	/* apply_take_large(): the slot in the applier; NULL: none. */
	atomic_uint_fast64_t *large_user;
	struct files_slice files;
	struct tables_slice tables;
	/* Used by durability.c: the descriptor for syncfs, and the result. */
	int sync_fd; /* owned */
	int sync_err;
	bool has_sync_fd, flushed;
	int flush_err;
};

enum change_action {
	CHANGE_WRITE,
	CHANGE_DELETE,
	CHANGE_NOTHING, /* only checked, or already has the new value */
	CHANGE_LOG      /* only gets the log line of OF */
};

struct change_abort {
	enum refd_status status; /* 0: none */
	char *text;              /* owned */
};

struct change {
	struct txn_update *u;
	struct slice *slice;
	struct repo_slice *repo_slice;
	struct change *next_in_repo;
	const char *worktree; /* the id of EDIT's directory, or "" */
	/* Four functions set the action. change_init() goes by the request.
	 * Under the locks, find_head() sets LOG for HEAD, and extend_chain()
	 * for a symbolic ref on the way. read_value() sets NOTHING for a HEAD
	 * that has moved, and check() for a ref that has the new value
	 * already. */
	enum change_action action;
	/* Its name is the refname. In reftables the edit has only the name and
	 * the progress, because the real lock is tables_part.update.list. */
	struct edit edit;
	/* The member in the log (add_change() of commit.c). NULL before the
	 * commit, and for a change that the log does not store. */
	const struct record_member *plan;

	/* The update names this ref. Otherwise the change was found from
	 * FROM. */
	bool is_asked;
	bool is_head; /* found: HEAD, which points to FROM */
	/* The ref with the value: not a symbolic ref on the way. */
	bool is_end;
	struct change *from;  /* the symbolic ref (for HEAD: the branch) */
	struct change *of;    /* with CHANGE_LOG: the source of the line */
	struct change *lines; /* changes that get this line; by next_line */
	struct change *next_line;
	char *target; /* owned; the file is a symbolic ref to it */
	char *own_name;
	/* Found changes are hashed by name. The first change of a name lists
	 * the other changes of the same name in next_same. */
	UT_hash_handle hh;
	struct change *next_same;

	bool exists; /* under the lock; a dangling symbolic ref exists */
	bool is_loose;
	bool is_others; /* the loose file belongs to another account */
	bool is_vacant; /* the path is neither a file nor a directory */
	struct refd_oid old_oid;
	int64_t old_mtime_ns;    /* for the plan (record.h) */
	struct refd_oid new_oid; /* null: none */
	bool had_packed;
	struct refd_oid packed_oid;
	bool has_before; /* of a gate (record.h) */
	struct refd_oid before;
	/* The new value goes to packed-refs, so no file is staged. */
	bool to_packed;
	bool in_rewrite; /* seal() put this ref into the prepared file */
	bool hides_old;  /* the row has no old value (replica.permit) */
	bool takes_any;  /* no old value is compared (the same) */
	/* For the plan (record.h); 0 in files. In reftables seal() sets them
	 * when the index is known, and hold() the old one. */
	uint64_t update_index, old_index, base_index;
	int taken;       /* errno if another writer took the packed name */
	bool log;        /* a line goes to the log */
	bool log_made;   /* this change created the log file */
	bool lacks_line; /* the log line could not be written */
	/* The number of directories made for the lock, and for the log. */
	unsigned made_dirs, log_made_dirs;
	int durability_err; /* errno if the file is not durable, or 0 */
	/* Set for a change that is committed but can't be published. */
	struct change_abort abort;
};

struct pass {
	struct applier *ap;
	struct batch *batch;
	const struct sys *sys; /* points into DIRS */
	struct sys_dirs dirs;
	struct slice *slices;
	size_t nr_slices;
	struct repo_slice *repo_slices;
	size_t nr_repo_slices;
	/* First the asked changes, sorted by repository, directory and name.
	 * The found changes follow. */
	struct change **changes;
	size_t nr_changes, nr_asked, size;
	struct change *asked; /* owned, as one block */
	size_t asked_bytes;
	struct change *found;       /* hash by name of found changes */
	struct worktree *worktrees; /* owned */
	/* The log directory that the last look-up did not find: "logs/" and the
	 * first LOGLESS_LEN bytes of LOGLESS_DIR. */
	int logless_fd;
	const char *logless_dir;
	size_t logless_len;
	bool has_staged; /* seal() staged values, which need a flush */
	bool has_notes;  /* some updates were decided earlier: record them */
	enum refd_durability strongest; /* the strongest mode of the slices */
	struct flush flush;
	/* The time at which the first lock that stays was taken, and the time
	 * at which the last of these locks went. */
	int64_t locked_ns, unlocked_ns;
	int64_t in_log_ns; /* a part of it: in a log of other machines; or 0 */
	size_t nr_tables;  /* of reftables: open in all rounds */
};

/* The change is undecided and not given back, so it can still be committed. */
static inline bool change_is_live(const struct change *c)
{
	return c->u->status == REFD_PENDING && c->u->again == TXN_AGAIN_NO;
}

/* The change is in the journal and not taken back. */
static inline bool change_is_committed(const struct change *c)
{
	return change_is_live(c) && c->slice->lsn != 0 && c->abort.status == 0;
}

/* Is the record of S durable before the answer? */
static inline bool slice_lasts(const struct slice *s)
{
	return s->mode >= REFD_DURABILITY_JOURNAL;
}

static inline bool change_only_looks(const struct change *c)
{
	return c->u->ask->action == REFD_VERIFY ||
	    c->u->ask->action == REFD_SYMREF_VERIFY;
}

/* Git has written, or writes, the ref, so refd only reads and records. */
static inline bool change_is_gated(const struct change *c)
{
	return c->slice->txn->req.gate != REFD_GATE_NONE;
}

/* The target of the symbolic ref that C writes, or NULL. */
static inline const char *change_new_target(const struct change *c)
{
	return c->u->ask->action == REFD_SYMREF_UPDATE ||
		c->u->ask->action == REFD_SYMREF_CREATE ?
	    c->u->ask->target :
	    NULL;
}

/* The length of the directory of the name; 0: no directory. */
static inline size_t change_dir_len(const struct change *c)
{
	const char *slash = strrchr(c->edit.name, '/');

	return slash != NULL ? (size_t)(slash - c->edit.name) : 0;
}

/* The name for messages, and for git's rule of which refs get a log. A ref of a
 * different worktree has a prefix if the client used a prefix. */
static inline const char *change_shown_name(const struct change *c)
{
	return c->is_asked ? c->u->ask->name : c->edit.name;
}

/* ---- change.c ---- */

/* Did STATUS happen because the repository is no longer at its path? */
bool change_is_moved(const struct change *c, enum refd_status status);
/* Decides the update of C and breaks an atomic slice. The status is NOREPO in
 * place of STATUS if the repository was moved. */
void change_fail(struct change *c, enum refd_status status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* The same for a failure with a message of git: txn_decide_detail(). */
void change_fail_detail(struct change *c, enum refd_status status,
    enum refd_detail_kind kind, const char *arg0, const char *arg1,
    const char *arg2);
/* The same with git's prefix: "cannot lock ref '<name as asked>': ...". */
void change_cant_lock(struct change *c, enum refd_status status,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void change_fail_errno(struct change *c, int err, const char *doing);
/* The same for an error of packed-refs (the list is in packed.h). */
void change_fail_packed(struct change *c, int err, const char *doing);
void change_again(struct change *c, enum txn_again why);
/* Gives C back: another writer has the lock of PATH in C's directory. */
void change_locked(struct change *c, const char *path);
/* Does the update name an old value that is not null? */
bool change_needs_value(const struct change *c);
/* For a gate: C, which has a place, has VALUE now. Frees VALUE. */
void change_glanced(struct change *c, struct loose_value *value);
bool change_has_place(const struct change *c);
/* The path of file NAME in the repository or in C's worktree, for messages. */
void change_whole_path(const struct change *c, const char *name,
    const char *suffix, char path[2 * REFD_PATH_MAX]);
/* Is PATH below DIRFD a file that this account may neither replace nor remove,
 * because its directory is sticky? */
bool pass_is_kept(const struct pass *p, int dirfd, const char *path);
/* Fails C, because the file at the whole PATH is such a file. */
void change_cant_replace(const struct pass *p, struct change *c,
    const char *path);
/* C is committed, but answered `unknown`, so recovery decides the outcome. */
void change_defer(struct pass *p, const struct change *c);
/* Does recovery need the locks of G? */
bool repo_slice_is_kept(const struct repo_slice *g);

/* ---- apply.c ---- */

/* Asks for a slot for much work in G. The work may take seconds, so the batch
 * then does not count as preparing. False: the batch has other repositories, or
 * no slot is free: give the changes back as TXN_AGAIN_ALONE. G has a live
 * change. */
bool apply_take_large(struct pass *p, struct repo_slice *g);
/* Allowed without a slot. */
void apply_give_large(struct repo_slice *g);
/* Tells the store that the first pass of B has all locks it can get, or that
 * other batches must not wait for the slow preparation of B. */
void apply_is_prepared(struct applier *ap, struct batch *b);

/* ---- pass.c ---- */

/* The txn slices that one pass takes. */
enum slices { SLICES_LOOSE, SLICES_PACKED, SLICES_ALL, SLICES_APART };

/* The rule by which TXN creates logs. A linked worktree can have its own rule,
 * because it is not bare. */
enum reflog_policy pass_log_policy(const struct txn *txn, bool in_worktree);
bool pass_takes(const struct txn_slice *txn_slice, enum slices slices);
/* false: out of memory. Call pass_done() in this case too. */
bool pass_init(struct pass *p, struct applier *ap, struct batch *b,
    enum slices slices);
/* Frees P. Call pass_release() first, or pass_publish(), which calls it. */
void pass_done(struct pass *p);
/* The index of the first asked change that is not less than NAME in C's
 * directory. */
size_t pass_first_asked(const struct pass *p, const struct change *c,
    const char *name);
/* A change of C's transaction at the same place, other than C. */
struct change *pass_find_same(struct pass *p, const struct change *c);
/* Adds a found change to the update of FROM, and copies NAME. The caller sets
 * the directory and calls pass_enlist(). NULL: out of memory. */
struct change *pass_found(struct pass *p, struct change *from,
    const char *name);
/* false: out of memory. */
bool pass_enlist(struct pass *p, struct change *c);
/* Settles each broken atomic slice. If an update of the slice is decided, the
 * other updates are aborted, otherwise all updates are given back. */
void pass_settle(struct pass *p);
/* Sets the undecided changes of G up again, for a new round. */
void pass_begin_again(struct pass *p, struct repo_slice *g);
/* Gives the undecided changes of G back if the pass has several transactions
 * with undecided changes. apply_batch() then makes a pass for each of these
 * transactions. */
bool pass_go_apart(struct pass *p, struct repo_slice *g);

/* ---- place.c ---- */

/* Sets C's directory, worktree and name to the file of ref NAME, as the client
 * of S sees the name. 0; -ENOENT: no such worktree. */
int pass_place(struct pass *p, struct slice *s, const char *name,
    struct change *c);
/* The git-dir of worktree ID of REPO, open: *B; 0 or negative errno. */
int pass_worktree(struct pass *p, struct repo *repo, const char *id,
    const struct worktree **b);
void pass_close_worktrees(struct pass *p);
/* Returns false and fails C if a directory in PATH, a file of C, is a symbolic
 * link, since recovery would not find a lock behind the link. */
bool change_stays_inside(struct pass *p, struct change *c, const char *path);

/* ---- prepare.c ---- */

/* Everything up to the commit point. */
void pass_prepare(struct pass *p);
/* The client of a prepared session commits. If the session holds no locks,
 * prepares it again, and decides all changes that fail. */
void pass_resume(struct pass *p);
/* Makes the token of G, once. 0 or negative errno. */
int pass_need_token(struct pass *p, struct repo_slice *g);

/* ---- prepare_check.c: two steps of pass_prepare() ---- */

/* Old values, directory/file conflicts, after the backend's held(). */
void pass_check(struct pass *p, struct repo_slice *g);
/* Which changes get a log line? The backend prepares the logs. */
void pass_prepare_logs(struct pass *p, struct repo_slice *g);
/* For the backend's conflict(): checks for two names of one transaction that
 * can't both exist. Conflicting names of different transactions are never in
 * one pass, because the scheduler keeps them apart. */
void change_check_siblings(struct pass *p, struct change *c);
/* Fails C: the update names an old value, and the ref has no value. */
void change_cant_resolve(struct change *c);
/* Did the client ask for a log? Git passes --create-reflog on only with new
 * values. */
bool change_forces_log(const struct change *c);

/* ---- files_packed.c ---- */

/* Is a rewrite of packed-refs faster for TXN_SLICE? */
bool files_prefer_packed(const struct applier *ap,
    const struct txn_slice *txn_slice);
/* May the new ref of U be in packed-refs? */
bool files_may_pack(const struct txn_update *u, enum reflog_policy policy);

/* ---- commit.c ---- */

/* The journal record of the pass. */
void pass_commit(struct pass *p);
/* Writes an abort record for FAILED, with abort_status and abort_text of every
 * change. On success the record is durable if the mode makes rows durable. 0;
 * otherwise the outcome of FAILED is unknown. */
int pass_abort(struct pass *p, struct change **failed, size_t nr);
/* Records that the log line of C is missing. 0, or as pass_abort(). */
int pass_defer_line(struct pass *p, const struct change *c);

/* ---- publish.c ---- */

/* Publishes all committed changes, and aborts changes that can't be published.
 * Then releases P, and decides the updates. */
void pass_publish(struct pass *p);
/* Has C siblings in an atomic transaction, which may be published already? */
bool change_has_siblings(const struct change *c);
/* ERR stops C. Aborts C, or C's atomic transaction if all its published
 * changes can be taken back. */
void change_take_back(struct pass *p, struct change *c, int err);
/* C is neither published nor aborted, so the record and the locks stay for
 * recovery. */
void change_keep(struct pass *p, struct change *c, int err);
/* The same for C, or for C's whole atomic transaction, of which nothing is
 * published. */
void change_keep_all(struct pass *p, struct change *c, int err);
/* Removes all locks and staged files. */
void pass_release(struct pass *p);

/* ---- durability.c: the stronger modes make files durable without the journal
 * ---- */

void durability_init(struct pass *p);
/* Call before C's value is staged. 0 or negative errno. */
int durability_begin(struct pass *p, const struct change *c);
/* C's value was staged through FD, which this call takes over. */
void durability_staged(struct pass *p, struct change *c, int fd);
/* Makes all staged values durable: before any lock is taken, and once more if
 * seal() has staged values. */
void durability_values(struct pass *p);
/* Call before C's staged value becomes the ref. */
void durability_placing(struct pass *p, const struct change *c);
/* Does C's mode make the log durable? If so, pass the descriptor of the log to
 * durability_log(), which closes the descriptor. */
bool durability_wants_log(const struct change *c);
void durability_log(struct pass *p, struct change *c, int fd);
/* C confirms a value. The writer may not have synced the value, so the stronger
 * modes sync it. */
void durability_confirmed(struct pass *p, struct change *c);
/* Syncs the names and logs of all published changes, and then decides the
 * updates. */
void durability_finish(struct pass *p);
/* C is published but can't be made durable. The first error counts. */
void durability_failed(struct change *c, int err);

/* ---- durability_dirs.c ---- */

/* Syncs the changed directories of slices of mode fsync. */
void durability_dirs(struct pass *p);

#endif
