/*
 * Files: publishes the committed changes of a repository. Creations of an
 * atomic transaction come first, because they alone can fail by another writer
 * and be taken back. Deletions come last, because they cannot be taken back.
 *
 * The happy path:
 *	link the new refs of an atomic transaction with link(2)
 *	rename packed-refs.new (files_publish_packed.c)
 *	append the log line, rename the staged value to the ref, close the log,
 *	or sync it in the stronger modes, unlock
 *	remove the logs and loose files of deleted refs
 *
 * What fails:
 *	a foreign writer took the name	the update is aborted (publish.c); an
 *	(a directory is there), or the	atomic transaction is aborted as a
 *	rename fails			whole, and its links are removed under
 *					the locks
 *	a link can't be removed		`unknown`; the record and the locks
 *					stay, and recovery removes the link
 *	a rename fails and may have	`unknown`; the record and the lock stay,
 *	happened, or fails after	and recovery finishes the change
 *	siblings are published; a
 *	deletion can't be unlinked
 *	a log line can't be written	the ref is published, the line deferred:
 *					the journal records its loss
 *	nor can its loss be recorded	`unknown`; the record and the lock stay,
 *					and recovery writes the line
 *	a log line can't be removed	`unknown`; the record and the lock stay
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/files/batch/files.h"

/* ---- log lines ---- */

static void append_line(struct change *c)
{
	if (c->log)
		c->lacks_line =
		    edit_append(&c->edit, &c->slice->plan, c->plan) < 0;
}

/* Appends C's line to the log of the ref and to the logs of C->lines. The logs
 * stay open until the next call of the three below. */
static void append_lines(struct change *c)
{
	struct change *l;

	append_line(c);
	for (l = c->lines; l != NULL; l = l->next_line)
		append_line(l);
}

static void close_log(struct pass *p, struct change *c)
{
	if (!c->edit.has_log_fd)
		return;
	c->edit.has_log_fd = false;
	if (durability_wants_log(c))
		durability_log(p, c, c->edit.log_fd);
	else
		c->lacks_line = SYS(p->sys, close, c->edit.log_fd) < 0;
}

static int end_line(struct pass *p, struct change *c)
{
	int r;

	close_log(p, c);
	if (!c->lacks_line)
		return 0;
	r = pass_defer_line(p, c);
	if (r == 0)
		p->ap->defer_line(p->ap->arg, c->slice->repo);
	return r == JOURNAL_UNKNOWN ? -EIO : r;
}

/* Keeps the lines, because recovery checks the logs. */
static void close_logs(struct pass *p, struct change *c)
{
	struct change *l;

	close_log(p, c);
	for (l = c->lines; l != NULL; l = l->next_line)
		close_log(p, l);
}

/* Keeps the lines, and closes or syncs the logs. Records every line that could
 * not be written, before the locks are released, because the locks tell the
 * next start about the missing line. 0, or a negative errno: a line is neither
 * written nor recorded. */
static int end_lines(struct pass *p, struct change *c)
{
	struct change *l;
	int r = end_line(p, c), err;

	for (l = c->lines; l != NULL; l = l->next_line) {
		err = end_line(p, l);
		if (r == 0)
			r = err;
	}
	return r;
}

/* Removes the line through the descriptor that wrote the line, because a
 * repository that was moved out of the roots can't be opened again. */
static int retract_line(struct change *c)
{
	return c->log ? edit_retract(&c->edit, &c->slice->plan, c->plan) : 0;
}

/* Removes the lines. 0; negative errno: a line may be left. */
static int retract_lines(struct change *c)
{
	struct change *l;
	int r = retract_line(c), err;

	for (l = c->lines; l != NULL; l = l->next_line) {
		err = retract_line(l);
		if (r == 0)
			r = err;
	}
	return r;
}

/* ---- one ref ---- */

/* A lock that can't be removed is tried again at the end of the pass. After a
 * second failure the token stays, because the token identifies the lock. */
static void unlock(struct change *c)
{
	struct change *l;

	for (l = c->lines; l != NULL; l = l->next_line)
		edit_unlock(&l->edit);
	edit_unlock(&c->edit);
}

static void publish_write(struct pass *p, struct change *c)
{
	int r, err;

	append_lines(c);
	if (c->edit.progress != PROGRESS_LINKED)
		durability_placing(p, c);
	r = edit_place(&c->edit);
	if (r < 0 && (change_has_siblings(c) || c->edit.is_doubtful)) {
		close_logs(p, c);
		change_keep(p, c, r);
		return;
	}
	if (r < 0) {
		err = retract_lines(c);
		if (err < 0)
			change_keep(p, c, err);
		else
			change_take_back(p, c, r);
		return;
	}
	if (!c->is_loose)
		atomic_fetch_add(&c->repo_slice->repo->nr_loose_made, 1);
	r = end_lines(p, c);
	if (r < 0)
		change_keep(p, c, r);
	else
		unlock(c);
}

static void publish_packed(struct change *c)
{
	edit_to(&c->edit, PROGRESS_PUBLISHED);
	unlock(c);
}

/* C confirms a value. Symbolic refs that lead to C may get a log line. */
static void publish_nothing(struct pass *p, struct change *c)
{
	int r;

	append_lines(c);
	r = end_lines(p, c);
	if (r < 0) {
		change_keep(p, c, r);
		return;
	}
	durability_confirmed(p, c);
	unlock(c);
}

/* ---- atomic transactions ---- */

/* Links the new refs of S first, because only a creation can fail by another
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
	append_lines(c);
	r = end_lines(p, c);
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

/* ---- all changes ---- */

void files_publish(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_slices; i++)
		if (p->slices[i].repo == g->repo && p->slices[i].lsn != 0 &&
		    p->slices[i].txn->req.atomic &&
		    p->slices[i].txn_slice->nr > 1)
			link_creations(p, &p->slices[i]);
	if (g->files.packed_changed)
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
