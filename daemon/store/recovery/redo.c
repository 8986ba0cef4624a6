/*
 * Redoing what is in one file: its lock, the question whether somebody wrote
 * it later, the value. replay.c says in which order and why.
 *
 * The happy path: locked, compared, written where it differs, then its log.
 *
 * What fails: a foreign lock parks the records; a name that another took
 * voids the update, and no line of it stays; a worktree that is gone is never
 * made again; anything else is reported and ends the repository's recovery
 * with its errno once the others were tried.
 */
#include "daemon/store/recovery/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/judge.h"
#include "daemon/store/refs/loose.h"
#include "daemon/store/refs/reflog.h"

void redo_report(struct replay *rp, enum store_finding finding, const char *ref,
    const char *text)
{
	const struct store_found found = { .finding = finding,
		.repo = rp->repo->path,
		.ref = ref,
		.text = text };

	rp->report->found(rp->report->arg, &found);
}

void redo_report_lost(struct replay *rp, enum store_finding finding, int dirfd,
    const char *worktree, const char *name, const char *text)
{
	char kept[LOST_PATH_MAX];
	struct store_found found = { .finding = finding,
		.repo = rp->repo->path,
		.ref = name,
		.text = text };

	if (lost_keep(&rp->lost, rp->sys, rp->repo, dirfd, worktree, name,
		kept) == 0)
		found.evidence = kept;
	rp->report->found(rp->report->arg, &found);
}

static int keep(struct replay_members *list, const struct replay_row *row,
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
	list->items[list->nr++] = (struct replay_member){ row, member, status };
	return 0;
}

int redo_read_disk(struct replay *rp, int dirfd, const char *path)
{
	int fd, r;

	if (!rp->is_memory_lost)
		return 0;
	fd = SYS(rp->sys, openat, dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	/* A link has no pages. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	r = SYS(rp->sys, drop_cache, fd);
	SYS(rp->sys, close, fd);
	return r;
}

int redo_unlock_own(struct replay *rp, int dirfd, const char *name)
{
	int r;

	r = token_unlock(&rp->token, dirfd, name);
	rp->token_stays = rp->token_stays || r < 0;
	return r;
}

/* ---- what can't be ---- */

static int retract(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, int dirfd)
{
	char path[REFD_PATH_MAX], *line;
	size_t len;
	int r;

	line = chain_line(row, member, &len);
	if (line == NULL)
		return -ENOMEM;
	snprintf(path, sizeof(path), "logs/%s", member->name);
	r = reflog_retract(rp->sys, dirfd, path, line, len);
	free(line);
	/* A log that was made for it would be in the way of whoever took the
	 * name. */
	if (r == 0 && member->action == RECORD_WRITE && !member->had_old)
		r = reflog_unmake(rp->sys, dirfd, path);
	return redo_is_no_log(r) ? 0 : r;
}

/* A line that a killed run wrote, or did not: it is the log's last one, unless
 * its lock was gone by then and somebody wrote another. */
static int retract_line(struct replay *rp, const struct replay_row *row,
    const struct record_member *member)
{
	struct stale_lock *lock;
	int fd, r;

	if (row->rule != REPLAY_KILL || !member->log)
		return 0;
	lock = stale_lookup(rp->stale, row->row.token, member->worktree,
	    member->name);
	if (lock != NULL)
		return retract(rp, row, member, lock->dirfd);
	fd = repo_open_worktree(rp->sys, rp->repo, member->worktree);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = token_lock(&rp->token, fd, member->name, row->rec.dir_mode);
	if (r == 0) {
		r = retract(rp, row, member, fd);
		redo_unlock_own(rp, fd, member->name);
		loose_prune_parents(rp->sys, fd, member->name, 2);
	}
	if (fd != rp->repo->fd)
		SYS(rp->sys, close, fd);
	return r == -EEXIST || r == -ENOTDIR ? 0 : r;
}

int redo_void(struct replay *rp, const struct replay_row *row,
    const struct record_member *member, enum refd_status status)
{
	const struct record_member *m;
	size_t i;
	int r;

	r = keep(&rp->voided, row, member, status);
	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		m = &row->rec.members[i];
		if (m->index != member->index || m->status != REFD_OK)
			continue;
		row->passed[i] = true;
		r = retract_line(rp, row, m);
	}
	return r;
}

/* Every link that nobody else finishes: later ones may owe lines of their
 * own. */
void redo_park(const struct redo *redo)
{
	const struct chain *chain = redo->chain;
	const struct chain_link *link;
	size_t i, k;

	for (i = 0; i < chain->nr; i++) {
		link = &chain->links[i];
		k = (size_t)(link->member - link->row->rec.members);
		if (!link->row->passed[k] &&
		    (link->row->rule == REPLAY_CUT ||
			(link == redo->last && redo->held != NULL)))
			link->row->parked[k] = true;
	}
}

int redo_failed(struct replay *rp, struct redo *redo, int err)
{
	const char *name = redo->chain->name;

	switch (err) {
	case -EEXIST:
		redo_report(rp, STORE_PARKED, name,
		    "another writer's lock stands; tried again later");
		redo_park(redo);
		return 0;
	case -ELOOP:
		redo_report(rp, STORE_PARKED, name,
		    "a directory on the way is a symbolic link by now; tried "
		    "again later");
		redo_park(redo);
		return 0;
	case -ENOTDIR:
	case -EISDIR:
	case -ENOTEMPTY:
		redo_report(rp,
		    redo->value != NULL ? STORE_DROPPED : STORE_LEFT, name,
		    "another reference stands where its name must go");
		return redo->value == NULL ?
		    0 :
		    redo_void(rp, redo->value->row, redo->value->member,
			REFD_CONFLICT);
	case -ENOENT:
		if (redo->dirfd >= 0)
			break;
		redo_report(rp, STORE_DROPPED, name, "its worktree is gone");
		return 0;
	}
	redo_report(rp, STORE_FAILED, name, strerror(-err));
	return err;
}

/* ---- one file ---- */

/* A kill leaves only what still has its lock, and a lock that stands is the
 * last one's. */
bool redo_init(struct redo *redo, struct replay *rp, struct chain *chain)
{
	size_t i;

	memset(redo, 0, sizeof(*redo));
	redo->chain = chain;
	redo->dirfd = -1;
	redo->last = chain_last(chain);
	if (redo->last == NULL)
		return false;
	redo->held = stale_lookup(rp->stale, redo->last->row->row.token,
	    chain->worktree, chain->name);
	redo->value = chain_value(chain);
	if (redo->value != NULL && redo->value->row->rule == REPLAY_KILL &&
	    (redo->value != redo->last || redo->held == NULL))
		redo->value = NULL;
	if (redo->value != NULL || redo->held != NULL)
		return true;
	for (i = 0; i < chain->nr; i++)
		if (chain->links[i].row->rule == REPLAY_CUT)
			return true;
	return false;
}

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

int redo_lock(struct replay *rp, struct redo *redo)
{
	int r;

	r = open_place(rp, redo);
	if (r == 0)
		r = loose_stays_inside(rp->sys, redo->dirfd, redo->chain->name);
	if (r < 0 || redo->held != NULL)
		return r;
	r = token_lock(&rp->token, redo->dirfd, redo->chain->name,
	    redo->last->row->rec.dir_mode);
	redo->locked = r == 0;
	return r;
}

/* Locks from before stay until all is done and recorded (stale_clean): they
 * are what says to the next start that it is not. */
int redo_unlock(struct replay *rp, struct redo *redo)
{
	int r = 0;

	if (redo->locked)
		r = redo_unlock_own(rp, redo->dirfd, redo->chain->name);
	redo->held = NULL;
	redo->locked = false;
	return r;
}

/* Did somebody write the ref after our lock was taken? Where names hold all that
 * differs is later, and nothing, unless packed-refs had it and was lost. 1, 0,
 * or negative errno: packed-refs can't be read. */
static int is_later(const struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	const struct replay_row *row = redo->value->row;
	bool holds = row->names_hold;
	struct refd_oid packed;
	int is_packed = 0;

	if (row->rule == REPLAY_KILL || (holds && redo->held != NULL))
		return false;
	holds = holds && rp->packed_lost_ns < row->row.locked_at_ns;
	if (redo->dirfd == rp->repo->fd)
		is_packed = packed_lookup(rp->snap, redo->chain->name, &packed);
	if (is_packed < 0)
		return is_packed;
	redo->is_gone = holds && !is_packed && m->action == RECORD_WRITE &&
	    (loose->kind == LOOSE_ABSENT || loose->kind == LOOSE_DIR);
	return redo->is_gone ||
	    judge(m, holds ? INT64_MIN : row->row.locked_at_ns, loose,
		is_packed ? &packed : NULL,
		!holds && is_packed && chain_knows(redo->chain, &packed)) ==
	    JUDGE_LATER;
}

static int write_value(struct replay *rp, struct redo *redo)
{
	const struct chain_link *link = redo->value;
	char value[TOKEN_NAME_MAX], content[LOOSE_CONTENT_MAX];
	int r, len;

	len =
	    loose_format(&link->member->new_oid, link->member->target, content);
	if (len < 0)
		return len;
	token_value_name(value, rp->token.id, 0);
	r = loose_stage(rp->sys, rp->repo->stage_fd, value, content,
	    (size_t)len, link->row->rec.file_mode);
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

bool redo_is_corrupt(const struct loose_value *loose)
{
	return loose->kind == LOOSE_BROKEN ||
	    (loose->kind == LOOSE_SYMREF && !loose->exact);
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
		return loose->exact ? "it was a symbolic reference" :
				      "it was empty or broken";
	case LOOSE_BROKEN:
		return "it was empty or broken";
	}
	return "";
}

enum store_finding redo_finding(const struct redo *redo)
{
	return redo->held != NULL ? STORE_ROLLED_FORWARD : STORE_REDONE;
}

/* Its value is in packed-refs, and no file hides that. As is_later(). */
static int is_packed_value(const struct replay *rp, const struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	struct refd_oid packed;
	int r;

	if ((loose->kind != LOOSE_ABSENT && loose->kind != LOOSE_DIR) ||
	    m->target != NULL || redo->dirfd != rp->repo->fd)
		return 0;
	r = packed_lookup(rp->snap, redo->chain->name, &packed);
	return r > 0 ? refd_oid_eq(&packed, &m->new_oid) : r;
}

/* Another made a ref below what is packed: no file was in his way. One who
 * only has a lock there may still do so, unless he came after our lock had
 * gone. */
static int leave_name(struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct packed_edit name = { .name = redo->chain->name };
	char *below = NULL;
	int r;

	if (loose->kind != LOOSE_DIR ||
	    (redo->held != NULL && redo_is_out(rp, redo->value->row)))
		return 0;
	if (redo->held == NULL) {
		r = loose_find_below(rp->sys, redo->dirfd, redo->chain->name,
		    &below);
		free(below);
		if (r <= 0)
			return r;
	}
	r = redo_unpack(rp, redo->value->row, &name, 1);
	return r < 0 ? r : -ENOTEMPTY;
}

static int redo_write(struct replay *rp, struct redo *redo,
    const struct loose_value *loose)
{
	const struct record_member *m = redo->value->member;
	int r;

	if (judge_is_value(m, loose) && !rp->is_memory_lost)
		return 0;
	r = is_packed_value(rp, redo, loose);
	if (r > 0) {
		r = leave_name(rp, redo, loose);
		if (r == 0 && !rp->is_memory_lost)
			return 0;
	}
	if (r < 0)
		return r;
	/* What is no ref goes aside before it goes. */
	if (redo_is_corrupt(loose))
		redo_report_lost(rp, redo_finding(redo), redo->dirfd,
		    redo->chain->worktree, redo->chain->name,
		    state_text(loose));
	r = write_value(rp, redo);
	if (r == 0 && !judge_is_value(m, loose) && !redo_is_corrupt(loose))
		redo_report(rp, redo_finding(redo), redo->chain->name,
		    state_text(loose));
	return r;
}

int redo_look_again(struct replay *rp)
{
	struct packed_snapshot *snap;
	int r;

	r = packed_snapshot(rp->repo->packed, &snap);
	if (r < 0)
		return r;
	packed_snapshot_put(rp->snap);
	rp->snap = snap;
	return 0;
}

int redo_begin(struct replay *rp, struct redo *redo, struct loose_value *loose)
{
	int r;

	r = redo_lock(rp, redo);
	if (r == 0)
		r = redo_read_disk(rp, redo->dirfd, redo->chain->name);
	if (r == 0)
		r = loose_read(rp->sys, redo->dirfd, redo->chain->name, loose);
	/* Nothing is loose below a file. */
	else if (r == -ENOTDIR && redo->dirfd >= 0 &&
	    redo->value->member->action == RECORD_DELETE)
		r = 0;
	if (r == 0)
		r = redo_look_again(rp);
	if (r < 0)
		return r;
	r = is_later(rp, redo, loose);
	if (r <= 0)
		return r == 0 ? 1 : r;
	redo_report(rp, STORE_LEFT, redo->chain->name,
	    redo->is_gone ? "another writer deleted it later" :
			    "another writer changed it later");
	return 0;
}

/* The value first: where its name is taken no line of it is to stay. */
int redo_one_write(struct replay *rp, struct redo *redo)
{
	struct loose_value loose = { .kind = LOOSE_ABSENT };
	int r;

	r = redo_begin(rp, redo, &loose);
	if (r == 0 && !redo->is_gone) {
		r = redo_log_of_left(rp, redo);
	} else if (r > 0) {
		r = redo_write(rp, redo, &loose);
		if (r == 0)
			r = redo_log(rp, redo);
	}
	loose_value_done(&loose);
	if (r < 0)
		r = redo_failed(rp, redo, r);
	if (redo_unlock(rp, redo) < 0 && r == 0)
		r = -EIO;
	redo_close(rp, redo);
	return r;
}
