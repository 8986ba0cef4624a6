/*
 * Applying a window.
 *
 * The happy path, once for the updates and once more for the deletions, so
 * that nobody's lock is held through the rewriting of a large packed-refs:
 *
 *	prepare	stage new values; lock; read; check; log files; packed-refs
 *	commit	one journal record for all of it, one flush
 *	publish	log lines, rename, unlock
 *	release	what is left of locks and staged files
 *
 * What fails before the commit costs its own update, or the atomic
 * transaction it is of. A commit that fails definitely is tried again
 * transaction by transaction (commit.c). What can't be published after it is
 * taken back by a second record (publish.c).
 */
#include "daemon/store/apply.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch.h"
#include "proto/refname.h"

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
	txn_decide(c->u, status, text);
	c->share->broken = true;
}

void change_fail_errno(struct change *c, int err, const char *doing)
{
	enum refd_status status = REFD_IO;

	if (err == -ENOSPC || err == -EDQUOT)
		status = REFD_NOSPACE;
	else if (err == -EACCES || err == -EPERM)
		status = REFD_DENIED;
	else if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		status = REFD_BUSY;
	change_fail(c, status, "%s: %s", doing, strerror(-err));
}

void change_again(struct change *c, enum txn_again why)
{
	if (!change_is_live(c))
		return;
	c->u->again = why;
	c->share->broken = true;
}

void batch_settle(struct batch *b)
{
	enum txn_again again;
	struct share *s;
	size_t i, k;

	for (i = 0; i < b->nr_shares; i++) {
		s = &b->shares[i];
		if (!s->broken || !s->txn->req.atomic)
			continue;
		/* Something decided: the rest is aborted. Nothing decided,
		 * but one given back: all go back together. */
		again = TXN_AGAIN_NO;
		for (k = 0; k < s->part->nr; k++) {
			struct txn_update *u = s->part->updates[k];

			if (u->status != REFD_PENDING) {
				again = TXN_AGAIN_NO;
				break;
			}
			if (u->again > again)
				again = u->again;
		}
		for (k = 0; k < s->part->nr; k++) {
			struct txn_update *u = s->part->updates[k];

			if (u->status != REFD_PENDING)
				continue;
			u->again = again;
			if (again == TXN_AGAIN_NO)
				txn_decide(u, REFD_ABORTED, NULL);
		}
	}
}

/* ---- setting a batch up ---- */

static bool is_deletion(const struct refd_update *ask)
{
	return ask->action == REFD_DELETE ||
	    (ask->action == REFD_UPDATE && refd_oid_is_null(&ask->new_oid));
}

static bool has_deletion(const struct txn_part *part)
{
	size_t i;

	for (i = 0; i < part->nr; i++)
		if (part->updates[i]->status == REFD_PENDING &&
		    is_deletion(part->updates[i]->ask))
			return true;
	return false;
}

static int by_repo_and_name(const void *va, const void *vb)
{
	const struct change *a = va, *b = vb;

	if (a->share->repo != b->share->repo)
		return a->share->repo < b->share->repo ? -1 : 1;
	if (a->dirfd != b->dirfd)
		return a->dirfd < b->dirfd ? -1 : 1;
	return strcmp(a->name, b->name);
}

/*
 * The client's own git-dir, where that is a linked worktree. The path is the
 * client's, and may lead elsewhere than it did at admission: what is opened
 * has to lie where recovery will look for it. Its name is recorded, that of
 * the repository itself with a slash behind, so that one in a directory
 * called "worktrees" is not taken for a worktree.
 */
static int open_git_dir(struct batch *b, struct share *s)
{
	char path[REFD_PATH_MAX];
	size_t len = strlen(s->repo->path);
	int fd, r;

	s->git_fd = s->repo->fd;
	snprintf(s->git_dir, sizeof(s->git_dir), "%s/", s->repo->path);
	if (strcmp(s->txn->req.git_dir, s->repo->path) == 0)
		return 0;
	fd = SYS(b->sys, openat, AT_FDCWD, s->txn->req.git_dir,
	    O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = SYS(b->sys, fd_path, fd, path, sizeof(path));
	if (r == 0 && strcmp(path, s->repo->path) != 0) {
		if (strncmp(path, s->repo->path, len) != 0 ||
		    strncmp(path + len, "/worktrees/", 11) != 0 ||
		    strchr(path + len + 11, '/') != NULL)
			r = -ENOENT;
		else
			s->git_fd = fd;
	}
	if (s->git_fd != fd)
		SYS(b->sys, close, fd);
	else
		strcpy(s->git_dir, path);
	return r;
}

static bool share_init(struct batch *b, struct share *s, struct txn_part *part)
{
	const struct refd_request *req = &part->txn->req;

	memset(s, 0, sizeof(*s));
	s->part = part;
	s->txn = part->txn;
	s->repo = part->txn->repo;
	s->git_fd = -1;
	s->committer = req->committer != NULL ? req->committer :
						"unknown <unknown> 0 +0000";
	if (s->repo == NULL)
		return true;
	s->file_mode = repo_file_mode(s->repo, req->umask);
	s->dir_mode = repo_dir_mode(s->repo, req->umask);
	s->log_policy = s->repo->log_policy;
	if (req->log_all_ref_updates != NULL)
		reflog_policy_parse(req->log_all_ref_updates, s->repo->bare,
		    &s->log_policy);
	s->message = reflog_normalise(req->message != NULL ? req->message : "");
	s->git_err = open_git_dir(b, s);
	return s->message != NULL;
}

static void change_init(struct change *c, struct share *s, struct txn_update *u)
{
	memset(c, 0, sizeof(*c));
	c->u = u;
	c->share = s;
	c->name = u->ask->name;
	c->dirfd =
	    refd_refname_is_per_worktree(c->name) ? s->git_fd : s->repo->fd;
	u->again = TXN_AGAIN_NO;
	c->action = CHANGE_WRITE;
	if (u->ask->action == REFD_VERIFY)
		c->action = CHANGE_NOTHING;
	else if (is_deletion(u->ask))
		c->action = CHANGE_DELETE;
}

static void attach_groups(struct batch *b)
{
	struct group *g = NULL;
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		c->value_nr = (unsigned)i;
		if (g == NULL || g->repo != c->share->repo) {
			g = &b->groups[b->nr_groups++];
			g->repo = c->share->repo;
		}
		c->group = g;
	}
}

/* The parts of W with (or without) deletions. false: out of memory. */
static bool batch_init(struct batch *b, struct applier *ap, struct window *w,
    bool deletions)
{
	size_t i, k, nr = 0;

	memset(b, 0, sizeof(*b));
	b->ap = ap;
	b->sys = ap->sys;
	for (i = 0; i < w->nr_parts; i++)
		nr += w->parts[i].nr;
	b->shares = calloc(w->nr_parts + 1, sizeof(*b->shares));
	b->groups = calloc(w->nr_parts + 1, sizeof(*b->groups));
	b->changes = calloc(nr + 1, sizeof(*b->changes));
	if (b->shares == NULL || b->groups == NULL || b->changes == NULL)
		return false;
	for (i = 0; i < w->nr_parts; i++) {
		struct txn_part *part = &w->parts[i];
		struct share *s = &b->shares[b->nr_shares];

		if (has_deletion(part) != deletions)
			continue;
		b->nr_shares++;
		if (!share_init(b, s, part))
			return false;
		for (k = 0; k < part->nr; k++) {
			if (part->updates[k]->status == REFD_PENDING)
				change_init(&b->changes[b->nr_changes++], s,
				    part->updates[k]);
			else
				b->has_notes = true;
		}
	}
	qsort(b->changes, b->nr_changes, sizeof(*b->changes), by_repo_and_name);
	attach_groups(b);
	return true;
}

static void batch_done(struct batch *b)
{
	struct share *s;
	size_t i;

	for (i = 0; i < b->nr_shares && b->shares != NULL; i++) {
		s = &b->shares[i];
		if (s->git_fd >= 0 && s->git_fd != s->repo->fd)
			SYS(b->sys, close, s->git_fd);
		free(s->head);
		free(s->message);
	}
	for (i = 0; i < b->nr_changes && b->changes != NULL; i++)
		free(b->changes[i].void_text);
	for (i = 0; i < b->nr_groups && b->groups != NULL; i++)
		packed_snapshot_put(b->groups[i].snap);
	free(b->shares);
	free(b->groups);
	free(b->changes);
}

static void fail_all(struct window *w, bool deletions)
{
	size_t i, k;

	for (i = 0; i < w->nr_parts; i++) {
		if (has_deletion(&w->parts[i]) != deletions)
			continue;
		for (k = 0; k < w->parts[i].nr; k++)
			if (w->parts[i].updates[k]->status == REFD_PENDING)
				txn_decide(w->parts[i].updates[k], REFD_BUSY,
				    "out of memory");
	}
}

static void apply_some(struct applier *ap, struct window *w, bool deletions)
{
	struct batch b;

	if (!batch_init(&b, ap, w, deletions)) {
		batch_done(&b);
		fail_all(w, deletions);
		return;
	}
	if (b.nr_shares > 0) {
		batch_prepare(&b);
		batch_commit(&b);
		batch_publish(&b);
		batch_release(&b);
	}
	if (b.locked_ns != 0 && w->locked_ns == 0)
		w->locked_ns = b.locked_ns;
	if (b.unlocked_ns > w->unlocked_ns)
		w->unlocked_ns = b.unlocked_ns;
	batch_done(&b);
}

void apply_window(struct applier *ap, struct window *w)
{
	bool deletions = false;
	size_t i;

	for (i = 0; i < w->nr_parts; i++)
		deletions = deletions || has_deletion(&w->parts[i]);
	apply_some(ap, w, false);
	if (deletions)
		apply_some(ap, w, true);
}
