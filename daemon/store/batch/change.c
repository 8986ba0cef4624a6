/*
 * Decides the changes of a pass: fails them, gives them back, or leaves them to
 * recovery.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/batch/pass.h"

void change_whole_path(const struct change *c, const char *name,
    const char *suffix, char path[2 * REFD_PATH_MAX])
{
	snprintf(path, 2 * REFD_PATH_MAX, "%s/%s%s%s%s%s",
	    c->repo_slice->repo->path, *c->worktree ? "worktrees/" : "",
	    c->worktree, *c->worktree ? "/" : "", name, suffix);
}

bool change_is_moved(const struct change *c, enum refd_status status)
{
	return repo_move_may_cause(status) &&
	    repo_is_moved(c->slice->repos, c->slice->repo);
}

void change_fail(struct change *c, enum refd_status status, const char *fmt,
    ...)
{
	char text[2 * REFD_PATH_MAX];
	va_list ap;

	if (!change_is_live(c))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (change_is_moved(c, status)) {
		status = REFD_NOREPO;
		snprintf(text, sizeof(text),
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    c->u->ask->name, c->slice->repo->path);
	}
	txn_decide(c->u, status, text);
	c->slice->broken = true;
}

void change_fail_detail(struct change *c, enum refd_status status,
    enum refd_detail_kind kind, const char *arg0, const char *arg1,
    const char *arg2)
{
	if (!change_is_live(c))
		return;
	txn_decide_detail(c->u, status, kind, arg0, arg1, arg2);
	c->slice->broken = true;
}

void change_cant_lock(struct change *c, enum refd_status status,
    const char *fmt, ...)
{
	char text[2 * REFD_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	change_fail(c, status, "cannot lock ref '%s': %s", c->u->ask->name,
	    text);
}

void change_fail_errno(struct change *c, int err, const char *doing)
{
	change_fail(c, txn_status_of(err), "cannot update ref '%s': %s: %s",
	    c->u->ask->name, doing, strerror(-err));
}

void change_fail_packed(struct change *c, int err, const char *doing)
{
	switch (err) {
	case -EBADMSG:
		change_fail(c, REFD_IO, "packed-refs has a malformed line");
		break;
	case -EILSEQ:
		change_fail(c, REFD_IO,
		    "packed-refs is not sorted, though its header says so; "
		    "refd verify finds the line");
		break;
	case -EFBIG:
		change_fail(c, REFD_UNSUPPORTED,
		    "packed-refs is larger than refd reads it (%zu MiB, or %zu "
		    "MiB where it is not sorted: git pack-refs --all sorts it)",
		    PACKED_STREAM_MAX >> 20, PACKED_UNSORTED_MAX >> 20);
		break;
	case -ETIMEDOUT:
		change_fail(c, REFD_DEADLINE,
		    "packed-refs could not be rewritten in time");
		break;
	default:
		change_fail_errno(c, err, doing);
	}
}

/* ---- files of other accounts ---- */

/* In a sticky directory, the kernel refuses to replace or remove a file of
 * another account, unless the directory belongs to this account. Locks and
 * staged files belong to this account, so they can come and go. But a ref file
 * may be of another account, and after the commit it would be too late, so this
 * is checked before. */
bool pass_is_kept(const struct pass *p, int dirfd, const char *path)
{
	const uint32_t euid = (uint32_t)geteuid();
	char dir[REFD_PATH_MAX];
	struct sys_stat st;
	char *slash;
	int r;

	if (euid == 0 || SYS(p->sys, lstatat, dirfd, path, &st) < 0 ||
	    S_ISDIR(st.mode) || st.uid == euid)
		return false;
	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (slash != NULL)
		*slash = '\0';
	r = slash != NULL ? SYS(p->sys, lstatat, dirfd, dir, &st) :
			    SYS(p->sys, fstat, dirfd, &st);
	return r == 0 && (st.mode & S_ISVTX) != 0 && st.uid != euid;
}

/* A shared row that this machine cannot do can be done by other machines. So
 * the status is `io` then, and this machine waits. With `denied`, this machine
 * would take the row for a different one. */
void change_cant_replace(const struct pass *p, struct change *c,
    const char *path)
{
	change_fail(c, p->ap->replica->ops->shares_rows ? REFD_IO : REFD_DENIED,
	    "cannot update ref '%s': '%s' belongs to another account, and so "
	    "does its directory, which is sticky: chmod -t lets this account "
	    "replace the file",
	    c->u->ask->name, path);
}

/* ---- left to recovery, and given back ---- */

bool repo_slice_is_kept(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->edit.progress == PROGRESS_DEFERRED)
			return true;
	return false;
}

void change_defer(struct pass *p, const struct change *c)
{
	const struct txn_update *u = c->u;

	if (p->ap->defer_update != NULL)
		p->ap->defer_update(p->ap->arg, c->slice->lsn,
		    (uint32_t)(u - u->txn->updates));
}

void change_again(struct change *c, enum txn_again why)
{
	if (!change_is_live(c))
		return;
	c->u->again = why;
	c->slice->broken = true;
}

void change_locked(struct change *c, const char *path)
{
	if (!change_is_live(c))
		return;
	free(c->u->locked_path);
	if (asprintf(&c->u->locked_path, "%s%s%s%s",
		*c->worktree ? "worktrees/" : "", c->worktree,
		*c->worktree ? "/" : "", path) < 0)
		c->u->locked_path = NULL;
	change_again(c, TXN_AGAIN_LOCKED);
}

bool change_needs_value(const struct change *c)
{
	const struct refd_update *ask = c->u->ask;

	return ask->has_old && ask->old_target == NULL &&
	    !refd_oid_is_null(&ask->old_oid);
}

void change_glanced(struct change *c, struct loose_value *value)
{
	if (value->kind == LOOSE_OID)
		c->u->found = value->oid;
	c->u->has_found = value->kind == LOOSE_OID ||
	    value->kind == LOOSE_ABSENT || value->kind == LOOSE_DIR;
	loose_value_done(value);
}

bool change_has_place(const struct change *c)
{
	return c->slice->git_err == 0 && c->edit.dirfd >= 0;
}
