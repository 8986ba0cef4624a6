/*
 * Tables: publishes the committed changes of a repository.
 *
 * The happy path: a rename of each list, first of the list of the common dir;
 * then the locks go. No lock goes before the last rename, because after a crash
 * in between the locks tell recovery that the row is open.
 *
 * What fails:
 *	the flush of a table, a list or	no rename, and no second flush: the
 *	a directory			updates are aborted (publish.c)
 *	a rename			`unknown` for all refs; the record and
 *					the locks stay, and recovery finishes
 *	the directory, after the rename	`unknown` in the modes batch and fsync,
 *					which promise names without the journal
 */
#include <errno.h>

#include "daemon/store/tables/batch/tables.h"

static bool has_committed(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_committed(c))
			return true;
	return false;
}

/* Why the tables must not be published: the first failure of a flush, or a
 * transaction in a table without a row, because this transaction is not
 * committed. 0: no reason. */
static int failure_of(const struct repo_slice *g)
{
	const struct change *c;
	int r = tables_sync_error(g);

	if (r < 0)
		return r;
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->in_rewrite && !change_is_committed(c))
			return -ENOMEM;
	return 0;
}

static void take_back(struct pass *p, struct repo_slice *g, int err)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->is_end && change_is_committed(c))
			change_take_back(p, c, err);
}

static void keep(struct pass *p, struct repo_slice *g, int err)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->is_end && change_is_committed(c))
			change_keep(p, c, err);
}

static int place(struct repo_slice *g)
{
	struct tables_part *part;
	int r = 0;

	for (part = g->tables.parts; r == 0 && part != NULL; part = part->next)
		if (part->nr_records > 0)
			r = stack_update_place(&part->update);
	return r;
}

/* The names become durable without the journal, if a mode promises so. */
static void sync_names(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;
	int r = 0;

	if (p->strongest < REFD_DURABILITY_BATCH)
		return;
	for (part = g->tables.parts; r == 0 && part != NULL; part = part->next)
		if (part->nr_records > 0)
			r = SYS(p->sys, fsync, part->update.stack->dirfd);
	if (r < 0)
		fs_fail(p->ap->repos, g->repo->fs, r);
	for (c = g->changes; r < 0 && c != NULL; c = c->next_in_repo)
		if (c->slice->mode >= REFD_DURABILITY_BATCH)
			durability_failed(c, r);
}

/* After a failure release() tries again. */
static void unlock(struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;

	for (part = g->tables.parts; part != NULL; part = part->next)
		if (edit_is_locked(&part->update.list))
			stack_update_unlock(&part->update);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (edit_is_published(&c->edit))
			edit_to(&c->edit, PROGRESS_DONE);
}

void tables_publish(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	int r;

	if (!has_committed(g))
		return;
	r = failure_of(g);
	if (r < 0) {
		take_back(p, g, r);
		return;
	}
	r = place(g);
	if (r < 0) {
		keep(p, g, r);
		return;
	}
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_committed(c))
			edit_to(&c->edit, PROGRESS_PUBLISHED);
	unlock(g);
	p->unlocked_ns = SYS(p->sys, now_mono);
	sync_names(p, g);
}
