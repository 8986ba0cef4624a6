/*
 * Publishes the committed changes of a pass, and releases the pass. The records
 * already say that the updates happened, so a failure needs a second record, or
 * recovery.
 *
 * The happy path: the backend publishes one repository after the other, and
 * then releases one after the other. At last every update gets its `ok`
 * (durability.c), because the stronger modes first sync what was published.
 *
 * What fails:
 *	the backend takes a change back	the update is aborted by a second
 *					record, durable before the answer; an
 *					atomic transaction is aborted as a whole
 *	the abort can't be recorded	`unknown`; the record and the locks
 *					stay; recovery publishes or aborts
 *	the backend keeps a change	`unknown`; the record and the locks
 *					stay, and recovery finishes the change
 */
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

/* ---- kept changes ---- */

/* Keeps the record and the locks, so that recovery can settle C. */
static void keep_locks(struct pass *p, struct change *c)
{
	struct change *l;

	edit_to(&c->edit, PROGRESS_DEFERRED);
	for (l = c->lines; l != NULL; l = l->next_line)
		edit_to(&l->edit, PROGRESS_DEFERRED);
	change_defer(p, c);
}

/* C can't be taken back any more, so recovery finishes C. */
void change_keep(struct pass *p, struct change *c, int err)
{
	change_fail(c, REFD_UNKNOWN, "committed, but can't finish '%s' yet: %s",
	    c->edit.name, strerror(-err));
	txn_io(err); /* counts the error of the disk */
	keep_locks(p, c);
}

bool change_has_siblings(const struct change *c)
{
	return c->slice->txn->req.atomic && c->slice->txn_slice->nr > 1;
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

void change_keep_all(struct pass *p, struct change *c, int err)
{
	if (change_has_siblings(c))
		keep_share(p, c->slice, err);
	else
		change_keep(p, c, err);
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

/* ---- aborted changes ---- */

static void end_abort(struct pass *p, struct change *c, int r)
{
	if (r == 0) {
		/* After a power loss the disk could show again what was taken
		 * back. So the records are needed until the next sync. */
		atomic_store(&c->slice->repo->touched, true);
		atomic_store(&c->slice->repo->fs->touched, true);
		txn_decide(c->u, c->abort.status, c->abort.text);
		return;
	}
	txn_decide(c->u, REFD_UNKNOWN,
	    "it could not be written, nor that be recorded");
	/* The record still says that the update happened, so recovery has to
	 * settle the update. */
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

/*
 * A look (looking/) takes a value that no record explains for the change of
 * another writer. So every record is noted before the locks go: is_outdated()
 * then refuses a look that has not read this record yet. Otherwise the look
 * would record refd's own value as a foreign one.
 */
static void note_records(struct pass *p)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->slice->lsn == 0 || c->slice->repo == NULL)
			continue;
		if (c->slice->txn->req.gate == REFD_GATE_SEEN)
			repo_note_look(c->slice->repo, c->slice->lsn);
		else
			repo_note_record(c->slice->repo, c->edit.name,
			    c->slice->lsn);
	}
}

void pass_release(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->release(p, &p->repo_slices[i]);
}

void pass_publish(struct pass *p)
{
	size_t i;

	note_records(p);
	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->publish(p, &p->repo_slices[i]);
	record_aborts(p);
	pass_release(p);
	durability_finish(p);
}
