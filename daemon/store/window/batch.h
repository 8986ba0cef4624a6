/*
 * What prepare*.c, commit.c and publish.c of one window share. Private to
 * them and apply.c.
 *
 * A batch is the share of a window that one journal commit covers. Each of
 * its changes is one file: what an update asked for, then, found under the
 * locks, what a symbolic ref led to, and HEAD where it points to the branch.
 * An update lives or dies with all of its changes. Phases go over all changes
 * and never stop at one that fails.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/base/sys_dirs.h"
#include "daemon/store/publish/edit.h"
#include "daemon/store/window/apply.h"
#include "daemon/store/refs/lockfile.h"
#include "daemon/store/refs/loose.h"
#include "daemon/store/journal/record.h"

/* A linked worktree's git-dir, once somebody needs it. */
struct worktree {
	struct repo *repo;
	int fd; /* owned */
	struct worktree *next;
	char id[];
};

/* What the HEAD of a git-dir points to, once looked at. */
struct head {
	bool is_known;
	char *target; /* owned; NULL: to nothing */
};

/* A transaction's share: one journal row. */
struct share {
	const struct repos *repos; /* borrowed */
	struct txn_part *part;
	struct txn *txn;
	struct repo *repo; /* NULL: a rejection that only wants its record */
	/* The client's own git-dir: the repository's, or that of a linked
	 * worktree. */
	int git_fd;
	const char *worktree;  /* its id, or "" */
	int git_err;           /* why it can't be had, then nothing can */
	struct head head;      /* of a linked worktree */
	const char *committer; /* of log lines; never NULL */
	char *message;         /* normalised, owned; or NULL */
	bool broken;           /* an atomic one that can't be had */
	bool is_taken;         /* by another, a name of it that is packed */
	enum refd_durability mode;
	uint64_t lsn;
	struct record plan; /* as the log has it; its members are owned */
	int shared_perm;
	mode_t file_mode, dir_mode;
	enum reflog_policy log_policy;
};

/* A repository's share: one token. */
struct group {
	struct repo *repo;
	struct token token;
	bool has_token;
	int64_t locked_at_ns; /* the file system's clock */
	struct head head;     /* of the common dir */
	struct packed_snapshot *snap;
	/* No ref in SNAP has this directory's name, or that of one above it:
	 * the first CLEAR_LEN bytes of a change's name. */
	const char *clear_dir;
	size_t clear_len; /* 0: none was looked for yet */
	bool logs_looked, has_no_logs;
	bool packed_turn; /* packed_turn_take() */
	/* Of the applier's, with this user in it: it rewrites a large file. */
	atomic_uint_fast64_t *large_user;
	bool packed_locked;  /* packed-refs.lock is ours */
	bool packed_changed; /* packed-refs.new is written */
	/* It is synced beside the journal, and before its rename. */
	bool packed_flushing;
	struct flush_one packed_flush;
	int packed_err;     /* of that */
	mode_t packed_mode; /* of packed-refs.new */
	/* stand.c's: what syncfs is called on, and whether it was. */
	int sync_fd; /* owned */
	int sync_err;
	bool has_sync_fd, flushed;
	int flush_err;
};

enum change_action {
	CHANGE_WRITE,
	CHANGE_DELETE,
	CHANGE_NOTHING, /* looked at, or at its value already */
	CHANGE_LOG      /* gets OF's log line, and nothing else */
};

struct change {
	struct txn_update *u;
	struct share *share;
	struct group *group;
	const char *worktree; /* the id of EDIT's directory, or "" */
	enum change_action action;
	struct edit edit; /* its name is the refname */
	/* What the log has of it; NULL before the commit, and where the log has
	 * nothing. */
	const struct record_member *plan;

	/* What was asked for; else it was found, and FROM led here. */
	bool is_asked;
	bool is_head; /* found: it points to FROM */
	/* Not passed through: the ref whose value counts. */
	bool is_end;
	struct change *from;  /* the symbolic ref (of HEAD: the branch) */
	struct change *of;    /* with CHANGE_LOG: whose line it gets */
	struct change *lines; /* those that get its line; by next_line */
	struct change *next_line;
	char *target; /* owned; the file is a symbolic ref to it */
	char *own_name;
	/* Found ones by their names; of one name the first has the others. */
	UT_hash_handle hh;
	struct change *next_same;

	bool exists; /* under the lock; of a symbolic ref: what it leads to */
	bool is_loose;
	bool is_vacant; /* neither file nor directory is at its name */
	struct refd_oid old_oid;
	struct refd_oid new_oid; /* null: none */
	bool had_packed;
	struct refd_oid packed_oid;
	/* Its new value goes to packed-refs, and no file is staged. */
	bool to_packed;
	bool in_rewrite; /* packed-refs.new has it, or does without it */
	int taken;       /* its name, though it is packed: why; or 0 */
	bool log;        /* a line goes to its log */
	bool log_made;   /* which was not there before */
	bool owed;       /* it could not be written */
	/* How many directories were made for its lock, and for its log. */
	unsigned made_dirs, log_made_dirs;
	int stand_err; /* why it can't last by itself, or 0 */
	/* Committed, but it can't be published. */
	enum refd_status void_status;
	char *void_text; /* owned */
};

struct batch {
	struct applier *ap;
	struct window *window;
	const struct sys *sys; /* DIRS, on the applier's */
	struct sys_dirs dirs;
	struct share *shares;
	size_t nr_shares;
	struct group *groups;
	size_t nr_groups;
	/* Those that were asked for, sorted by repository, directory and
	 * name; behind them those that were found. */
	struct change **changes;
	size_t nr_changes, nr_asked, size;
	struct change *asked;       /* owned, as one block */
	struct change *found;       /* a hash, of first ones by name */
	struct worktree *worktrees; /* owned */
	/* The directory of logs that was looked for last, and was not there:
	 * "logs/" and the first LOGLESS_LEN bytes of a change's name. */
	int logless_fd;
	const char *logless_dir;
	size_t logless_len;
	bool has_notes; /* updates decided before: to be recorded */
	enum refd_durability strongest; /* of its shares */
	struct flush flush;
	int64_t locked_ns, unlocked_ns;
};

/* Undecided and not given back: still on its way to the commit point. */
static inline bool change_is_live(const struct change *c)
{
	return c->u->status == REFD_PENDING && c->u->again == TXN_AGAIN_NO;
}

/* In the journal, and not taken back. */
static inline bool change_is_committed(const struct change *c)
{
	return change_is_live(c) && c->share->lsn != 0 && c->void_status == 0;
}

/* The record is on disk before the answer. */
static inline bool share_lasts(const struct share *s)
{
	return s->mode >= REFD_DURABILITY_JOURNAL;
}

static inline bool change_only_looks(const struct change *c)
{
	return c->u->ask->action == REFD_VERIFY ||
	    c->u->ask->action == REFD_SYMREF_VERIFY;
}

/* The target of a symbolic ref that is to be written, or NULL. */
static inline const char *change_new_target(const struct change *c)
{
	return c->u->ask->action == REFD_SYMREF_UPDATE ||
		c->u->ask->action == REFD_SYMREF_CREATE ?
	    c->u->ask->target :
	    NULL;
}

/* The length of the directory in its name; 0: the name has none. */
static inline size_t change_dir_len(const struct change *c)
{
	const char *slash = strrchr(c->edit.name, '/');

	return slash != NULL ? (size_t)(slash - c->edit.name) : 0;
}

/* As messages have it, and git's rule of which refs get a log by themselves:
 * that of another worktree with its prefix, if it was asked for so. */
static inline const char *change_shown_name(const struct change *c)
{
	return c->is_asked ? c->u->ask->name : c->edit.name;
}

/* Is STATUS due to a repository that is not at its path any more? */
bool change_is_moved(const struct change *c, enum refd_status status);
/* Decides it, or gives it back; an atomic share is then broken. NOREPO instead
 * of STATUS where that is so. */
void change_fail(struct change *c, enum refd_status status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* The same of what git has words for, as txn_decide_detail() has it. */
void change_fail_detail(struct change *c, enum refd_status status,
    enum refd_detail_kind kind, const char *arg0, const char *arg1,
    const char *arg2);
/* The same in the manner of git: "cannot lock ref '<as asked>': ...". */
void change_cant_lock(struct change *c, enum refd_status status,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void change_fail_errno(struct change *c, int err, const char *doing);
/* The same of packed-refs, whose errors are its file's, as packed.h has them. */
void change_fail_packed(struct change *c, int err, const char *doing);
void change_again(struct change *c, enum txn_again why);
/* Given back, since PATH below C's directory is locked. */
void change_locked(struct change *c, const char *path);
/* Does the update want a value that C's ref must have? */
bool change_needs_value(const struct change *c);
/* It has none. */
void change_cant_resolve(struct change *c);
/* Committed, and only recovery knows how it ends. */
void change_unfinished(struct batch *b, const struct change *c);
/* Every live member of a broken atomic share is aborted, or given back
 * where one of them was. */
void batch_settle(struct batch *b);

/* ---- batch.c ---- */

/* Which of a window's parts go together. */
enum parts { PARTS_LOOSE, PARTS_PACKED, PARTS_ALL };

/* What its logs are made by; of a linked worktree another. */
enum reflog_policy txn_log_policy(const struct txn *txn, bool in_worktree);
bool batch_takes(const struct txn_part *part, enum parts parts);
/* false: out of memory; batch_done() it all the same. */
bool batch_init(struct batch *b, struct applier *ap, struct window *w,
    enum parts parts);
/* Released before. */
void batch_done(struct batch *b);
/* The first of what was asked for that is not less than NAME in C's
 * directory. */
size_t batch_first_asked(const struct batch *b, const struct change *c,
    const char *name);
/* A change of C's transaction at the same place, other than C. */
struct change *batch_find_same(struct batch *b, const struct change *c);

/* place.c: where a name's file is, as the client of S sees it; C gets
 * directory, worktree and name. 0, -ENOENT: no such worktree. */
int batch_place(struct batch *b, struct share *s, const char *name,
    struct change *c);
/* The git-dir of worktree ID of REPO, open: *W; 0 or negative errno. */
int batch_worktree(struct batch *b, struct repo *repo, const char *id,
    const struct worktree **w);
void batch_close_worktrees(struct batch *b);

/* Does a link to a directory lead from PATH, a file of C's, out of the
 * repository? Then C fails, and this is false. */
bool change_stays_inside(struct batch *b, struct change *c, const char *path);

/* A change that was found, of the same update as FROM; NULL: no memory. Its
 * name is copied, its place is the caller's to fill in; batch_enlist() it
 * then. */
struct change *batch_found(struct batch *b, struct change *from,
    const char *name);
/* false: no memory. */
bool batch_enlist(struct batch *b, struct change *c);

/* apply.c: W has the locks it can get, or prepares for so long that others are
 * not to wait for it. */
void apply_is_prepared(struct applier *ap, struct window *w);

/* prepare.c: all that publishing needs, up to the commit point. */
void batch_prepare(struct batch *b);
/* Steps of it. prepare_lock.c: locks, what stands under them, and what that
 * leads to. */
void batch_lock(struct batch *b);
/* prepare_check.c: old values, directory/file conflicts. */
void batch_check(struct batch *b);
/* prepare_logs.c */
void batch_prepare_logs(struct batch *b);
/* prepare.c: its value beside the locks. 0 or negative errno. */
int batch_stage_value(struct batch *b, struct change *c);
/* prepare_packed.c: which new refs are worth a packed-refs, and may be in
 * it. */
bool part_goes_packed(const struct applier *ap, const struct txn_part *part);
bool update_may_be_packed(const struct txn_update *u,
    enum reflog_policy policy);
/* packed-refs.lock, packed-refs.new. Waits for another window's. */
void batch_prepare_packed(struct batch *b);
/* Others may try for packed-refs.lock, and for a large file. */
void batch_give_turn(struct group *g);
/* packed-refs.new made durable: begun before the commit, and over. */
void batch_sync_packed(struct batch *b);
void batch_synced_packed(struct batch *b);
/* packed-refs.new once more, where something in it came to nothing since. 0
 * or negative errno: then there is none. */
int batch_refit_packed(struct batch *b, struct group *g);

/* commit.c: the journal record of the batch. */
void batch_commit(struct batch *b);
/* Records, durably, that members of committed shares did not happen after
 * all: void_status and void_text. 0, or they are now of unknown outcome. */
int batch_void(struct batch *b, struct change **failed, size_t nr);
/* Records that C's log lacks its line. 0, or as batch_void(). */
int batch_park_line(struct batch *b, const struct change *c);
/* publish.c: everything committed becomes visible; voids what can't. */
void batch_publish(struct batch *b);
/* Steps of it. publish_packed.c: packed-refs. */
void batch_publish_packed(struct batch *b, struct group *g);
/* publish_lines.c: C's line, to the ref's own log and to those of what led to
 * it or points to it. The logs stay open until one of the three below. */
void change_append_lines(struct change *c);
/* They stay; before the locks go, which would tell a next start of them. What
 * could not be written is owed. */
void change_park_lines(struct batch *b, struct change *c);
/* They stay, and recovery looks at them. */
void change_close_logs(struct batch *b, struct change *c);
/* 0 or negative errno: then one of them may be there. */
int change_retract_lines(struct change *c);
/* ERR is in the way of C: it is voided, or its atomic transaction, of which
 * nothing is out yet but what can be taken back. */
void change_take_back(struct batch *b, struct change *c, int err);
/* Neither finished nor taken back: record and locks are recovery's. */
void change_keep(struct batch *b, struct change *c, int err);
/* Unlocks and removes what is staged, however far it came. */
void batch_release(struct batch *b);

/*
 * stand.c: what the stronger modes do so that files last without the journal.
 */
void batch_stand_init(struct batch *b);
/* Before C's value is staged. 0 or negative errno. */
int batch_stand_begin(struct batch *b, const struct change *c);
/* It was, through FD, which is taken over. */
void batch_stand_staged(struct batch *b, struct change *c, int fd);
/* All of them, before any lock is taken. */
void batch_stand_values(struct batch *b);
/* Before C's staged value becomes the ref. */
void batch_stand_placing(struct batch *b, const struct change *c);
/* Does C's mode make its log last? Then it gets the descriptor that the line
 * was written through, and closes it. */
bool batch_stand_wants_log(const struct change *c);
void batch_stand_log(struct batch *b, struct change *c, int fd);
/* What C confirms was perhaps never synced. */
void batch_stand_confirmed(struct batch *b, struct change *c);
/* Names and logs of all that was published; then it is decided. */
void batch_stand(struct batch *b);
/* Is there, and can't be made to last; of several reasons the first counts. */
void change_cant_stand(struct change *c, int err);
/* stand_dirs.c: the directories of what shares of mode fsync published. */
void batch_stand_dirs(struct batch *b);

/* --create-reflog, which git passes on with new values alone. */
bool change_forces_log(const struct change *c);
/* Of the file NAME, in the repository or C's worktree; for people. */
void change_whole_path(const struct change *c, const char *name,
    const char *suffix, char path[2 * REFD_PATH_MAX]);

#endif
