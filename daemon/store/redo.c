/*
 * Redoing one ref: its lock, the question whether somebody wrote it later,
 * the value, the log lines. replay.c says in which order and why.
 *
 * What fails: a foreign lock parks the record; a name that another took voids
 * it; a worktree that is gone is never made again; anything else is reported
 * and ends the recovery with its errno once the others were tried.
 */
#include "daemon/store/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/loose.h"

void redo_report(struct replay *rp, enum store_finding finding, const char *ref,
    const char *text)
{
	rp->report->found(rp->report->arg, finding, rp->repo->path, ref, text);
}

int redo_keep(struct replay_members *list, const struct replay_row *row,
    const struct record_member *member, enum refd_status status)
{
	struct replay_member *grown;
	size_t size;

	if (list->nr == list->size) {
		size = list->size == 0 ? 8 : 2 * list->size;
		grown = realloc(list->items, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		list->items = grown;
		list->size = size;
	}
	list->items[list->nr].row = row;
	list->items[list->nr].member = member;
	list->items[list->nr++].status = status;
	return 0;
}

/* ---- one ref ---- */

/* 0; -ENOENT: the worktree is gone. */
static int open_place(struct replay *rp, struct redo *redo)
{
	redo->dirfd =
	    repo_open_worktree(rp->sys, rp->repo, redo->chain->worktree);
	return redo->dirfd < 0 ? redo->dirfd : 0;
}

void redo_close(struct replay *rp, struct redo *redo)
{
	if (redo->dirfd >= 0 && redo->dirfd != rp->repo->fd)
		SYS(rp->sys, close, redo->dirfd);
}

static int lock_ref(struct replay *rp, struct redo *redo)
{
	int r;

	redo->held = stale_lookup(rp->stale, redo->last->row->row.token,
	    redo->chain->name);
	if (redo->held != NULL)
		return 0;
	r = token_lock(&rp->token, redo->dirfd, redo->chain->name,
	    redo->last->row->rec.dir_mode);
	redo->locked = r == 0;
	return r;
}

/* ERR: how it went. The lock that a killed run left is all that says that
 * the ref is unfinished, and stays while it is. */
/* Locks from before stay until all is done and recorded (stale_clean): they
 * are what says to the next start that it is not. */
int redo_unlock(struct replay *rp, struct redo *redo)
{
	int r = 0;

	if (redo->locked)
		r = token_unlock(&rp->token, redo->dirfd, redo->chain->name);
	redo->held = NULL;
	redo->locked = false;
	return r;
}

/* Did somebody write the ref after our lock was taken? */
static bool is_later(const struct replay *rp, const struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->last->member;
	struct refd_oid packed;

	if (redo->last->row->rule == REPLAY_KILL)
		return false;
	switch (loose->kind) {
	case LOOSE_OID:
		/* Perhaps an earlier recovery's, which the power ended. */
		if (m->action == RECORD_WRITE &&
		    refd_oid_eq(&loose->oid, &m->new_oid))
			return false;
		/* fallthrough */
	case LOOSE_SYMREF:
		return loose->mtime_ns > redo->last->row->row.locked_at_ns;
	case LOOSE_BROKEN:
		return false;
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		break;
	}
	return redo->dirfd == rp->repo->fd &&
	    packed_lookup(rp->snap, redo->chain->name, &packed) &&
	    !chain_knows(redo->chain, &packed) &&
	    !(m->action == RECORD_WRITE && refd_oid_eq(&packed, &m->new_oid));
}

static int write_value(struct replay *rp, struct redo *redo)
{
	const struct chain_link *last = redo->last;
	char value[TOKEN_NAME_MAX], content[LOOSE_CONTENT_MAX];
	int r, len;

	len =
	    loose_format(&last->member->new_oid, last->member->target, content);
	if (len < 0)
		return len;
	token_value_name(value, rp->token.id, 0);
	r = loose_stage(rp->sys, rp->repo->stage_fd, value, content,
	    (size_t)len, last->row->rec.file_mode);
	if (r == 0)
		r = loose_clear_dirs(rp->sys, redo->dirfd, redo->chain->name,
		    NULL);
	if (r == 0)
		r = SYS(rp->sys, renameat, rp->repo->stage_fd, value,
		    redo->dirfd, redo->chain->name);
	if (r < 0)
		SYS(rp->sys, unlinkat, rp->repo->stage_fd, value);
	return r;
}

static const char *state_text(const struct loose_value *loose)
{
	switch (loose->kind) {
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		return "it was absent";
	case LOOSE_OID:
		return "it was at an older value";
	case LOOSE_SYMREF:
		return "it was a symbolic reference";
	case LOOSE_BROKEN:
		return "it was empty or broken";
	}
	return "";
}

enum store_finding redo_finding(const struct redo *redo)
{
	return redo->held != NULL ? STORE_ROLLED_FORWARD : STORE_REDONE;
}

static int redo_write(struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct refd_oid *want = &redo->last->member->new_oid;
	struct refd_oid packed;
	bool is_there;
	int r;

	/* A torn tail may read as the value and is written again. */
	is_there = loose->kind == LOOSE_OID && loose->exact &&
	    refd_oid_eq(&loose->oid, want);
	if ((loose->kind == LOOSE_ABSENT || loose->kind == LOOSE_DIR) &&
	    redo->dirfd == rp->repo->fd &&
	    packed_lookup(rp->snap, redo->chain->name, &packed))
		is_there = refd_oid_eq(&packed, want);
	if (is_there)
		return 0;
	r = write_value(rp, redo);
	if (r == 0)
		redo_report(rp, redo_finding(redo), redo->chain->name,
		    state_text(loose));
	return r;
}

/* After a kill there is one line, and our lock says whether it is there; after
 * a cut the bytes have to. */
static int restore_lines(struct replay *rp, enum replay_rule rule, int dirfd,
    const char *path, char **lines, size_t nr, const struct record *rec)
{
	size_t added = 0, cut = 0;
	char text[64];
	bool one;
	int r;

	if (rule == REPLAY_KILL && nr == 1) {
		r = reflog_complete(rp->sys, dirfd, path, lines[0],
		    strlen(lines[0]), true, rec->file_mode, rec->dir_mode,
		    &one);
		added = r == 0 && one;
	} else {
		r = reflog_repair(rp->sys, dirfd, path,
		    (const char *const *)lines, nr, true, rec->file_mode,
		    rec->dir_mode, &added, &cut);
	}
	if (r == 0 && (added > 0 || cut > 0)) {
		snprintf(text, sizeof(text),
		    "%zu lines added, %zu bytes cut off", added, cut);
		redo_report(rp, STORE_LOG_REPAIRED, path + strlen("logs/"),
		    text);
	}
	return r;
}

int redo_logs(struct replay *rp, struct redo *redo)
{
	const struct replay_row *row = redo->last->row;
	char path[REFD_PATH_MAX];
	bool deletes;
	char **lines;
	size_t nr;
	int r;

	r = chain_log_lines(redo->chain, &lines, &nr, &deletes);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "logs/%s", redo->chain->name);
	if (deletes)
		r = reflog_delete(rp->sys, redo->dirfd, path);
	if (r == 0 && nr > 0)
		r = restore_lines(rp, row->rule, redo->dirfd, path, lines, nr,
		    &row->rec);
	chain_lines_free(lines, nr);
	return r;
}

/* What becomes of it when it can't be redone. */
int redo_failed(struct replay *rp, struct redo *redo, int err)
{
	const char *name = redo->chain->name;

	switch (err) {
	case -EEXIST:
		redo_report(rp, STORE_PARKED, name,
		    "another writer's lock stands; tried again later");
		return redo_keep(&rp->parked, redo->last->row,
		    redo->last->member, REFD_LOCKED);
	case -ENOTDIR:
	case -EISDIR:
	case -ENOTEMPTY:
		redo_report(rp, STORE_LEFT, name,
		    "another reference stands where its name must go");
		return redo_keep(&rp->voided, redo->last->row,
		    redo->last->member, REFD_CONFLICT);
	case -ENOENT:
		redo_report(rp, STORE_LEFT, name, "its worktree is gone");
		return 0;
	}
	redo_report(rp, STORE_FAILED, name, strerror(-err));
	return err;
}

/* Locks the ref and finds out what to do. 1: go on, the ref is locked. */
int redo_begin(struct replay *rp, struct redo *redo, struct loose_value *loose)
{
	int r;

	r = open_place(rp, redo);
	if (r == 0)
		r = lock_ref(rp, redo);
	if (r == 0)
		r = loose_read(rp->sys, redo->dirfd, redo->chain->name, loose);
	if (r < 0)
		return r;
	if (!is_later(rp, redo, loose))
		return 1;
	redo_report(rp, STORE_LEFT, redo->chain->name,
	    "another writer changed it later");
	return 0;
}

/* The ref is another's by now and so are the newest lines; but what the cut
 * did to the log's end would hide every line to come. */
static int mend_log(struct replay *rp, struct redo *redo)
{
	const struct record *rec = &redo->last->row->rec;
	char path[REFD_PATH_MAX];
	size_t added, cut;
	int r;

	snprintf(path, sizeof(path), "logs/%s", redo->chain->name);
	r = reflog_repair(rp->sys, redo->dirfd, path, NULL, 0, false,
	    rec->file_mode, rec->dir_mode, &added, &cut);
	return r == -ENOENT ? 0 : r;
}

int redo_one_write(struct replay *rp, struct redo *redo)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	int r;

	r = redo_begin(rp, redo, &loose);
	if (r == 0) {
		r = mend_log(rp, redo);
	} else if (r > 0) {
		r = redo_logs(rp, redo);
		if (r == 0)
			r = redo_write(rp, redo, &loose);
	}
	loose_value_done(&loose);
	if (r < 0)
		r = redo_failed(rp, redo, r);
	if (redo_unlock(rp, redo) < 0 && r == 0)
		r = -EIO;
	redo_close(rp, redo);
	return r;
}

/* ---- HEAD's log ---- */

int redo_head(struct replay *rp, const struct replay_row *rows,
    const char *worktree, int dirfd)
{
	struct stale_lock *held = NULL;
	const struct replay_row *row;
	bool locked = false;
	size_t nr;
	char **lines;
	int r;

	r = chain_head_lines(rows, rp->stale, worktree, &lines, &nr);
	if (r < 0 || nr == 0)
		return r;
	for (row = rows; row != NULL && held == NULL; row = row->next)
		held = stale_lookup(rp->stale, row->row.token, "HEAD");
	if (held == NULL) {
		r = token_lock(&rp->token, dirfd, "HEAD", 0777);
		locked = r == 0;
	}
	if (r == 0)
		r = restore_lines(rp, held != NULL ? REPLAY_KILL : REPLAY_CUT,
		    dirfd, "logs/HEAD", lines, nr, &rows->rec);
	if (held != NULL && r == 0)
		r = stale_unlock(rp->stale, held);
	if (locked)
		token_unlock(&rp->token, dirfd, "HEAD");
	chain_lines_free(lines, nr);
	if (r == -EEXIST || r == -ENOENT) {
		redo_report(rp, STORE_LEFT, "HEAD",
		    "its log could not be checked: "
		    "another writer holds HEAD.lock, or it is gone");
		return 0;
	}
	return r;
}
