/*
 * Publishes the committed changes of a pass, and releases the pass.
 *
 * The happy path:
 *	link the new refs of an atomic transaction with link(2)
 *	rename packed-refs.new (publish_packed.c)
 *	append the log line, rename the staged value to the ref, unlock
 *	remove the logs and loose files of deleted refs
 *
 * What fails:
 *	a foreign writer took the name	the update is aborted by a second
 *	(a directory is there), or the	record, durable before the answer; an
 *	rename fails			atomic transaction is aborted as a
 *					whole, and its links are removed under
 *					the locks
 *	a link can't be removed		`unknown`; the record and the locks
 *					stay, and recovery removes the link
 *	the abort can't be recorded	`unknown`; the record and the locks
 *					stay; recovery publishes or aborts
 *	a rename fails on the disk	`unknown`; the record and the lock stay,
 *	after siblings are published;	and recovery finishes the change
 *	a deletion can't be unlinked
 *	a log line can't be written	the ref is published, the line deferred
 *	nor can its loss be recorded	`unknown`; the record and the lock stay,
 *					and recovery writes the line
 *	a log line can't be removed	`unknown`; the record and the lock stay
 *	a lock can't be removed		the token stays and counts as ended; the
 *					next try removes both
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/backend.h"

/* Marks the committed change C as aborted, if C is the end of its chain. */
static void abort_change(struct change *c, enum refd_status status, int err)
{
	if (!change_is_committed(c) || !c->is_end)
		return;
	c->abort.status = status;
	if (status == REFD_ABORTED)
		return;
	if (asprintf(&c->abort.text,
		status == REFD_CONFLICT ?
		    "another writer took the name '%s' meanwhile: %s" :
		    status == REFD_NOREPO ?
		    "the repository of '%s' was moved meanwhile: %s" :
		    "can't write '%s': %s",
		c->edit.name, strerror(-err)) < 0)
		c->abort.text = NULL;
}

static void abort_errno(struct change *c, int err)
{
	enum refd_status status = txn_status_of(err);

	if (err == -EISDIR || err == -ENOTEMPTY || err == -EEXIST ||
	    err == -ENOTDIR)
		status = REFD_CONFLICT;
	abort_change(c, change_is_moved(c, status) ? REFD_NOREPO : status, err);
}

/* ---- one ref ---- */

/* A lock that can't be removed is tried again at the end of the pass. After a
 * second failure the token stays and identifies the lock. */
static void unlock(struct change *c)
{
	struct change *l;

	for (l = c->lines; l != NULL; l = l->next_line)
		edit_unlock(&l->edit);
	edit_unlock(&c->edit);
}

/* Keeps the record and the locks. Recovery settles C. */
static void keep_locks(struct pass *p, struct change *c)
{
	struct change *l;

	edit_to(&c->edit, PROGRESS_DEFERRED);
	for (l = c->lines; l != NULL; l = l->next_line)
		edit_to(&l->edit, PROGRESS_DEFERRED);
	change_defer(p, c);
}

/* C can't be taken back any more. Recovery finishes C. */
void change_keep(struct pass *p, struct change *c, int err)
{
	change_fail(c, REFD_UNKNOWN, "committed, but can't finish '%s' yet: %s",
	    c->edit.name, strerror(-err));
	keep_locks(p, c);
}

bool change_has_siblings(const struct change *c)
{
	return c->slice->txn->req.atomic && c->slice->txn_slice->nr > 1;
}

static void publish_write(struct pass *p, struct change *c)
{
	int r, err;

	change_append_lines(c);
	if (c->edit.progress != PROGRESS_LINKED)
		durability_placing(p, c);
	r = edit_place(&c->edit);
	if (r < 0 && change_has_siblings(c)) {
		change_close_logs(p, c);
		change_keep(p, c, r);
		return;
	}
	if (r < 0) {
		err = change_retract_lines(c);
		if (err < 0)
			change_keep(p, c, err);
		else
			change_take_back(p, c, r);
		return;
	}
	r = change_defer_lines(p, c);
	if (r < 0)
		change_keep(p, c, r);
	else
		unlock(c);
}

static void publish_packed(struct change *c)
{
	edit_is_out(&c->edit);
	unlock(c);
}

/* C confirms a value. Symbolic refs that lead to C may get a log line. */
static void publish_nothing(struct pass *p, struct change *c)
{
	int r;

	change_append_lines(c);
	r = change_defer_lines(p, c);
	if (r < 0) {
		change_keep(p, c, r);
		return;
	}
	durability_confirmed(p, c);
	unlock(c);
}

/* ---- atomic transactions ---- */

/* Removes all links of S. Negative errno: a link stays and is visible. */
static int unlink_creations(struct pass *p, const struct slice *s)
{
	struct change *c;
	int err, r = 0;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->slice != s || c->edit.progress != PROGRESS_LINKED)
			continue;
		err = edit_take_back(&c->edit);
		if (err < 0)
			r = err;
	}
	return r;
}

static void abort_slice(struct pass *p, const struct slice *s,
    const struct change *failed, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->slice == s && c == failed)
			abort_errno(c, err);
		else if (c->slice == s)
			abort_change(c, REFD_ABORTED, 0);
	}
}

/* S can be neither finished nor taken back. */
static void keep_share(struct pass *p, const struct slice *s, int err)
{
	size_t i;

	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->slice == s && p->changes[i]->is_end &&
		    change_is_committed(p->changes[i]))
			change_keep(p, p->changes[i], err);
}

void change_take_back(struct pass *p, struct change *c, int err)
{
	if (!change_has_siblings(c))
		abort_errno(c, err);
	else if (unlink_creations(p, c->slice) == 0)
		abort_slice(p, c->slice, c, err);
	else
		keep_share(p, c->slice, err);
}

/* Links the new refs of S first. Only a creation can fail because of another
 * writer, and a link can be removed while refd has the lock. */
static void link_creations(struct pass *p, struct slice *s)
{
	struct change *c, *failed = NULL;
	size_t i;
	int r = 0;

	for (i = 0; i < p->nr_changes && failed == NULL; i++) {
		c = p->changes[i];
		if (c->slice != s || !change_is_committed(c) || c->is_loose ||
		    c->action != CHANGE_WRITE || c->to_packed)
			continue;
		durability_placing(p, c);
		r = edit_link(&c->edit);
		if (r < 0)
			failed = c;
	}
	if (failed != NULL)
		change_take_back(p, failed, r);
}

/* ---- deletions ---- */

/* packed-refs no longer has the ref. */
static void publish_delete(struct pass *p, struct change *c)
{
	int r = edit_remove_log(&c->edit);

	if (r == 0)
		r = edit_remove(&c->edit, c->is_loose);
	if (r < 0) {
		change_keep(p, c, r);
		return;
	}
	change_append_lines(c);
	r = change_defer_lines(p, c);
	if (r < 0)
		change_keep(p, c, r);
}

static void publish_deletions(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (c->action == CHANGE_DELETE && change_is_committed(c))
			publish_delete(p, c);
	}
}

/* ---- aborted changes ---- */

static void end_abort(struct pass *p, struct change *c, int r)
{
	if (r == 0) {
		txn_decide(c->u, c->abort.status, c->abort.text);
		return;
	}
	txn_decide(c->u, REFD_UNKNOWN,
	    "it could not be written, nor that be recorded");
	/* The record still says that the update happened. */
	keep_locks(p, c);
}

static void record_aborts(struct pass *p)
{
	struct change **failed;
	size_t i, nr = 0;
	int r = -ENOMEM;

	failed = calloc(p->nr_changes + 1, sizeof(*failed));
	for (i = 0; i < p->nr_changes && failed != NULL; i++)
		if (p->changes[i]->abort.status != 0)
			failed[nr++] = p->changes[i];
	if (nr > 0)
		r = pass_abort(p, failed, nr);
	free(failed);
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->abort.status != 0)
			end_abort(p, p->changes[i], r);
}

void files_publish(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_slices; i++)
		if (p->slices[i].repo == g->repo && p->slices[i].lsn != 0 &&
		    p->slices[i].txn->req.atomic &&
		    p->slices[i].txn_slice->nr > 1)
			link_creations(p, &p->slices[i]);
	files_publish_packed(p, g);
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!c->is_end || !change_is_committed(c))
			continue;
		if (c->to_packed)
			publish_packed(c);
		else if (c->action == CHANGE_WRITE)
			publish_write(p, c);
		else if (c->action == CHANGE_NOTHING)
			publish_nothing(p, c);
	}
	publish_deletions(p, g);
}

void pass_publish(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->publish(p, &p->repo_slices[i]);
	record_aborts(p);
}

/* ---- the end ---- */

/* Does recovery need the locks of G? */
static bool group_is_kept(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->edit.progress == PROGRESS_DEFERRED)
			return true;
	return false;
}

static bool group_has_rest(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (edit_is_locked(&c->edit) || c->edit.has_value)
			return true;
	return false;
}

static void release_group(const struct pass *p, struct repo_slice *g)
{
	bool has_rest = group_has_rest(g);

	/* A deferred deletion keeps the lock of its ref, and recovery rewrites
	 * packed-refs. Until then packed-refs need not stay locked. */
	if (g->files.packed_changed)
		packed_rewrite_abandon(g->repo->packed);
	if (g->files.packed_locked &&
	    token_unlock(&g->token, g->repo->fd, "packed-refs") < 0)
		has_rest = true;
	files_give_turn(g);
	if (!g->has_token || group_is_kept(g))
		return;
	if (has_rest || token_done(&g->token) < 0)
		p->ap->left(p->ap->arg, g->repo, g->token.id);
}

/* Removes the log that was created for C, if C failed. */
static void unmake_log(struct pass *p, const struct change *c)
{
	char path[REFD_PATH_MAX];

	if (!c->log_made || change_is_committed(c) ||
	    c->u->status == REFD_UNKNOWN)
		return;
	edit_log_path(&c->edit, path);
	reflog_unmake(p->sys, c->edit.dirfd, path);
}

static bool leaves_no_file(const struct change *c)
{
	return c->action != CHANGE_WRITE || !edit_is_published(&c->edit) ||
	    c->to_packed;
}

/* Is the next change in the same directory, and does it leave no file? */
static bool is_before_neighbour(const struct change *c)
{
	const struct change *next = c->next_in_repo;
	size_t len;

	if (next == NULL)
		return false;
	len = strlen(c->edit.name);
	while (len > 0 && c->edit.name[len - 1] != '/')
		len--;
	return leaves_no_file(next) && next->edit.dirfd == c->edit.dirfd &&
	    strncmp(c->edit.name, next->edit.name, len) == 0 &&
	    strchr(next->edit.name + len, '/') == NULL;
}

void files_release(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (c->edit.progress == PROGRESS_DEFERRED)
			continue;
		unmake_log(p, c);
		edit_discard(&c->edit);
		edit_unlock(&c->edit);
	}
	release_group(p, g);
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
	p->unlocked_ns = SYS(p->sys, now_mono);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (leaves_no_file(c) && !is_before_neighbour(c))
			loose_prune_parents(p->sys, c->edit.dirfd, c->edit.name,
			    2);
}

void pass_release(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->release(p, &p->repo_slices[i]);
}
