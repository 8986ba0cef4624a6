/*
 * What prepare.c, commit.c and publish.c of one window share. Private to
 * them and apply.c.
 *
 * A batch is the share of a window that one journal commit covers. Its
 * changes are sorted by repository, then name; each knows its part (the
 * transaction) and its group (the repository). Phases go over all changes
 * and never stop at one that fails.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "daemon/store/apply.h"
#include "daemon/store/lockfile.h"
#include "daemon/store/loose.h"
#include "daemon/store/record.h"

/* A transaction's share: one journal row. */
struct share {
	struct txn_part *part;
	struct txn *txn;
	struct repo *repo; /* NULL: refused before one was opened */
	int git_fd;        /* of the client's own git-dir: repo->fd, or
				   owned where that is a linked worktree */
	int git_err;       /* why it can't be had, then nothing can */
	char git_dir[REFD_PATH_MAX]; /* as recovery finds it */
	char *head;                  /* the branch git_fd's HEAD points to, once
				   looked at; owned */
	bool head_looked;
	const char *committer; /* of log lines; never NULL */
	char *message;         /* normalised, owned; or NULL */
	bool broken;           /* an atomic one that can't be had */
	uint64_t lsn;
	mode_t file_mode, dir_mode;
	enum reflog_policy log_policy;
};

/* A repository's share: one token. */
struct group {
	struct repo *repo;
	struct token token;
	bool has_token;
	int64_t locked_at_ns; /* the file system's clock */
	struct packed_snapshot *snap;
	bool packed_locked;  /* packed-refs.lock is ours */
	bool packed_changed; /* packed-refs.new is written and synced */
};

enum change_action { CHANGE_WRITE, CHANGE_DELETE, CHANGE_NOTHING };

struct change {
	struct txn_update *u;
	struct share *share;
	struct group *group;
	const char *name; /* the refname, and the path below dirfd */
	int dirfd;
	enum change_action action;
	unsigned value_nr; /* of the staged file */

	bool staged, locked, head_locked, linked, published;
	bool exists; /* under the lock */
	struct refd_oid old_oid;
	bool had_packed;
	struct refd_oid packed_oid;
	bool log, log_head; /* a line goes to its log, to HEAD's */
	bool is_loose;
	/* What stands on disk is all that tells how this ended, or all that
	 * can end it: lock and staged value are left to recovery. */
	bool keep;
	/* Committed, but it can't be published. */
	enum refd_status void_status;
	char *void_text; /* owned */
};

struct batch {
	struct applier *ap;
	const struct sys *sys;
	struct share *shares;
	size_t nr_shares;
	struct group *groups;
	size_t nr_groups;
	struct change *changes;
	size_t nr_changes;
	bool has_notes; /* updates decided before: to be recorded */
	int64_t locked_ns, unlocked_ns;
};

/* Undecided and not given back: still on its way to the commit point. */
static inline bool change_is_live(const struct change *c)
{
	return c->u->status == REFD_PENDING && c->u->again == TXN_AGAIN_NO;
}

/* Decides it, or gives it back; an atomic share is then broken. */
void change_fail(struct change *c, enum refd_status status, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
void change_fail_errno(struct change *c, int err, const char *doing);
void change_again(struct change *c, enum txn_again why);
/* The same for a lock that could not be taken, by its errno. */
void change_lock_failed(struct batch *b, struct change *c, int err);
/* Every live member of a broken atomic share is aborted, or given back
 * where one of them was. */
void batch_settle(struct batch *b);

/* prepare.c: all that publishing needs, up to the commit point. */
void batch_prepare(struct batch *b);
/* prepare_logs.c: a step of it. */
void batch_prepare_logs(struct batch *b);
/* commit.c: the journal record of the batch. */
void batch_commit(struct batch *b);
/* Records, durably, that members of committed shares did not happen after
 * all: void_status and void_text. 0, or they are now of unknown outcome. */
int batch_void(struct batch *b, struct change **failed, size_t nr);
/* publish.c: everything committed becomes visible; voids what can't. */
void batch_publish(struct batch *b);
/* Unlocks and removes what is staged, however far it came. */
void batch_release(struct batch *b);

/* The client's linked worktree, or "": record.h's; and of a ref. */
const char *share_worktree(const struct share *s);
const char *change_worktree(const struct change *c);

/* The path of a ref's log below its dirfd; LEN as REFD_PATH_MAX. */
void change_log_path(const struct change *c, char path[REFD_PATH_MAX]);
/* The line for it, malloc'd. */
char *change_log_line(const struct change *c, size_t *len);

#endif
