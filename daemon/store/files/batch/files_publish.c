/*
 * Files: publishes the committed changes of a repository.
 *
 * The happy path:
 *	link the new refs of an atomic transaction with link(2)
 *	rename packed-refs.new (files_publish_packed.c)
 *	append the log line, rename the staged value to the ref, unlock
 *	remove the logs and loose files of deleted refs
 *
 * What fails:
 *	a foreign writer took the name	the update is aborted (publish.c); an
 *	(a directory is there), or the	atomic transaction is aborted as a
 *	rename fails			whole, and its links are removed under
 *					the locks
 *	a link can't be removed		`unknown`; the record and the locks
 *					stay, and recovery removes the link
 *	a rename fails on the disk	`unknown`; the record and the lock stay,
 *	after siblings are published;	and recovery finishes the change
 *	a deletion can't be unlinked
 *	a log line can't be written	the ref is published, the line deferred
 *	nor can its loss be recorded	`unknown`; the record and the lock stay,
 *					and recovery writes the line
 *	a log line can't be removed	`unknown`; the record and the lock stay
 */
#include "daemon/store/files/batch/files.h"

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
	if (!c->is_loose)
		atomic_fetch_add(&c->repo_slice->repo->nr_loose_made, 1);
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
