/*
 * Tables: seals the tables, which ends a round. Only a rename of each list is
 * left, and publishes.
 *
 * The happy path, up to the lock for all repositories of the pass:
 *	table	one new table per changed stack, under its final name
 *	base	tables and a list by other writers become durable
 *	large	a large new table becomes durable
 *	lock	the lists to change, that of the common dir first
 *	check	the lists are those of the round
 *	list	the next lists, staged
 *	sync	tables, lists and directories are flushed beside the log
 *
 * A batch that only confirms values, or the absence of refs, changes no list.
 * So it takes no lock, and only flushes the tables and lists that it has read.
 *
 * What fails:
 *	another writer changed a list	a new round, under the locks. If a table
 *					of refd or of the other writer is large,
 *					the locks go before the new round, twice
 *					at most. If other repositories then wait
 *					in the pass, every transaction gets a
 *					pass of its own
 *	a lock is held			the changes are given back
 *	no room, a failed write, or	every transaction gets a pass of its
 *	a list that a sticky directory	own; alone, it fails
 *	keeps
 *	a foreign file can't be synced	the updates fail, also those that wait
 *					for the turn; nobody gets a repository
 *					on the file system any more
 */
#include <errno.h>

#include "daemon/store/tables/batch/tables.h"

/* A large table may be written again so many times without a lock. Then the
 * lock stays, because another writer could be first each time. */
#define UNLOCKED_MAX 2
/* From the third round on, if no table is large, all lists are locked when they
 * are read, so only a writer that ignores locks can change a list. */
#define ROUNDS_MAX 10

enum step { STEP_ON, STEP_AGAIN, STEP_FAILED };

static bool has_live(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_live(c))
			return true;
	return false;
}

static enum step failed(struct pass *p, struct repo_slice *g,
    const struct tables_part *part, int r, const char *doing)
{
	switch (r) {
	case -EBUSY:
	case -ESTALE:
	case -EBADMSG:
	case -ENOENT:
	case -EOVERFLOW:
		break;
	default:
		if (pass_go_apart(p, g))
			return STEP_FAILED;
	}
	tables_fail_all(g, part, r, doing);
	return STEP_FAILED;
}

/* ---- before the lock ---- */

static enum step make_tables(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	int r;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (part->nr_records == 0)
			continue;
		r = stack_table_make(&part->update, part->nr_records,
		    tables_record_of, part);
		if (r < 0)
			return failed(p, g, part, r, "can't write a table");
	}
	return STEP_ON;
}

static bool is_used(const struct tables_part *part)
{
	return part->has_base && (part->nr_records > 0 || part->confirms);
}

/* Everything on the file system that is older is durable. */
static int64_t durable_before(struct pass *p, const struct repo_slice *g)
{
	int64_t ns = fs_synced_ns(p->ap->repos, g->repo->dev);

	return ns != 0 ? ns - FS_SLACK_NS : INT64_MIN;
}

static enum step sync_bases(struct pass *p, struct repo_slice *g)
{
	const int64_t before_ns = durable_before(p, g);
	struct tables_part *part;
	int r;

	/* After a failed sync on the file system, a further sync without an
	 * error proves nothing. The kernel reports an error only once, and the
	 * batch that had the turn before may have got the error of a file of
	 * the base. */
	if (g->repo->fs->state != FS_OPEN) {
		tables_fail_all(g, NULL, -EIO, "can't sync the reftables");
		return STEP_FAILED;
	}
	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (!is_used(part))
			continue;
		r = stack_sync_base(&part->update, before_ns,
		    g->repo->fs->fsync_covers_all);
		if (r == -ESTALE)
			return STEP_AGAIN;
		if (r == 0)
			continue;
		/* The kernel may have dropped data of the other writer, so
		 * nobody may rely on the file system. */
		if (part->update.is_fs_lost)
			fs_fail(p->ap->repos, g->repo->fs, r);
		tables_fail_all(g, part, r, "can't sync the reftables");
		return STEP_FAILED;
	}
	return STEP_ON;
}

/* 0 or negative errno. */
static int sync_end(struct pass *p, struct repo_slice *g,
    struct tables_part *part)
{
	int r = stack_sync_end(&part->update);

	if (part->update.is_fs_lost)
		fs_fail(p->ap->repos, g->repo->fs, r);
	return r;
}

static enum step sync_large(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	int r;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (part->nr_records == 0 ||
		    part->update.table_stat.size <= STACK_SYNC_EARLY)
			continue;
		r = stack_sync_table(&part->update);
		if (r < 0)
			return failed(p, g, part, r, "can't sync a table");
	}
	return STEP_ON;
}

/* ---- under the lock ---- */

/* With ONLY_READ, the lists of the stacks that do not change. */
static void unlock_lists(struct repo_slice *g, bool only_read)
{
	struct tables_part *part;

	/* A failure does not matter, because release() tries again. */
	for (part = g->tables.parts; part != NULL; part = part->next)
		if (edit_is_locked(&part->update.list) &&
		    !(only_read && part->has_changes))
			stack_update_unlock(&part->update);
}

/* Needs the list of PART a lock? A list that was only read is compared without
 * a lock in the first round. Another writer could change the list in every
 * round, so later rounds lock the list, too. */
static bool needs_lock(const struct repo_slice *g,
    const struct tables_part *part)
{
	return part->has_changes || (g->tables.rounds > 0 && part->has_base);
}

static enum step lock_lists(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;
	int r = 0;

	if (p->locked_ns == 0 ||
	    (p->nr_repo_slices == 1 &&
		!edit_is_locked(&g->tables.parts->update.list)))
		p->locked_ns = SYS(p->sys, now_mono);
	for (part = g->tables.parts; r == 0 && part != NULL; part = part->next)
		if (needs_lock(g, part) && !edit_is_locked(&part->update.list))
			r = stack_update_lock(&part->update);
	if (r == 0)
		return STEP_ON;
	unlock_lists(g, false);
	if (r != -EEXIST)
		return failed(p, g, NULL, r, "can't lock the reftables");
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		change_locked(c, STACK_DIRECTORY "/" REFTABLE_LIST);
	return STEP_FAILED;
}

static enum step check_bases(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	int r;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (!part->has_base)
			continue;
		r = stack_base_check(&part->update);
		if (r < 0)
			return failed(p, g, part, r,
			    "can't read the reftables");
		if (r == 0)
			return STEP_AGAIN;
	}
	return STEP_ON;
}

/* A rename replaces the list, which can be another account's. */
static enum step check_sticky(struct pass *p, struct repo_slice *g)
{
	const struct tables_part *part = g->tables.parts;
	struct change at = { .repo_slice = g }, *c;
	char path[2 * REFD_PATH_MAX];

	while (part != NULL &&
	    (part->nr_records == 0 ||
		!pass_is_kept(p, part->update.stack->dirfd, REFTABLE_LIST)))
		part = part->next;
	if (part == NULL)
		return STEP_ON;
	if (pass_go_apart(p, g))
		return STEP_FAILED;
	at.worktree = part->worktree;
	change_whole_path(&at, STACK_DIRECTORY "/" REFTABLE_LIST, "", path);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		change_cant_replace(p, c, path);
	return STEP_FAILED;
}

static enum step stage_lists(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	int r;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (part->nr_records == 0)
			continue;
		r = stack_update_list(&part->update);
		if (r < 0)
			return failed(p, g, part, r, "can't write a list");
	}
	return STEP_ON;
}

/* ---- the end of the round ---- */

/* Have other writers added large tables that are not durable? */
static bool has_foreign(struct pass *p, const struct repo_slice *g,
    const struct tables_part *part)
{
	struct stack_snapshot *snap;
	struct reftable_fault fault;
	bool is_large;

	if (!is_used(part) ||
	    stack_snapshot(part->update.stack, &snap, &fault) < 0)
		return false;
	is_large =
	    stack_snapshot_unsynced(snap, durable_before(p, g)) > STACK_LARGE;
	stack_snapshot_put(snap);
	return is_large;
}

/* Does the next round flush much? */
static bool is_large(struct pass *p, const struct repo_slice *g)
{
	const struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next)
		if (part->update.is_large || has_foreign(p, g, part))
			return true;
	return false;
}

static bool has_records(const struct repo_slice *g)
{
	const struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next)
		if (part->nr_records > 0)
			return true;
	return false;
}

static enum step lock_and_check(struct pass *p, struct repo_slice *g)
{
	enum step step = lock_lists(p, g);

	if (step == STEP_ON)
		step = check_bases(p, g);
	if (step == STEP_ON)
		step = sync_bases(p, g);
	if (step == STEP_ON)
		step = check_sticky(p, g);
	if (step == STEP_ON)
		step = stage_lists(p, g);
	return step;
}

/* True if all undecided changes begin a new round. The caller (prepare.c) then
 * goes on at hold(), and does not repeat stage(). */
static bool begins_again(struct pass *p, struct repo_slice *g)
{
	if (++g->tables.rounds > ROUNDS_MAX) {
		tables_fail_all(g, NULL, -EBUSY, "");
		return false;
	}
	if (is_large(p, g) && g->tables.rounds <= UNLOCKED_MAX) {
		unlock_lists(g, false);
		/* The pass has locks of other repositories, which must not wait
		 * for a large table. */
		if (p->nr_repo_slices > 1 && pass_go_apart(p, g))
			return false;
	}
	tables_end_round(p, g);
	return true;
}

static bool only_holds(const struct pass *p)
{
	return p->batch != NULL && p->batch->session == BATCH_PREPARE;
}

bool tables_make(struct pass *p, struct repo_slice *g)
{
	enum step step;
	int r;

	if (!has_live(g) || only_holds(p))
		return false;
	r = tables_list_records(p, g);
	step = r < 0 ? failed(p, g, NULL, r, "can't prepare the records") :
		       make_tables(p, g);
	if (step == STEP_ON)
		step = sync_bases(p, g);
	/* Another writer has changed the list since. A new round without the
	 * lock could lose to git each time, so the batch goes on and takes the
	 * lock. The check under the lock repeats the flush. */
	if (step == STEP_AGAIN && has_records(g))
		step = STEP_ON;
	if (step == STEP_ON)
		step = sync_large(p, g);
	return step == STEP_AGAIN && begins_again(p, g);
}

/* The plan gets the numbers of C. */
static void mark_sealed(struct pass *p, struct change *c)
{
	struct tables_part *part;

	if (!change_is_live(c) || tables_part(p, c, &part) < 0)
		return;
	c->in_rewrite = true;
	c->base_index = part->update.base->max_index;
	c->update_index = part->update.index;
	if (tables_writes_nothing(c))
		c->update_index = c->old_index;
	/* The lock of the list is the lock of all its refs, so C counts as
	 * locked. */
	edit_to(&c->edit, PROGRESS_LOCKED);
}

bool tables_seal(struct pass *p, struct repo_slice *g)
{
	enum step step = STEP_ON;
	struct change *c;

	if (!has_live(g))
		return false;
	if (only_holds(p)) {
		tables_hold_names(p, g);
		return false;
	}
	if (has_records(g))
		step = lock_and_check(p, g);
	g->is_bound = step == STEP_ON;
	if (step == STEP_ON) {
		unlock_lists(g, true);
		for (c = g->changes; c != NULL; c = c->next_in_repo)
			mark_sealed(p, c);
	}
	return step == STEP_AGAIN && begins_again(p, g);
}

/* ---- beside the flush of the log ---- */

void tables_sync(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;

	if (!has_live(g))
		return;
	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (!is_used(part))
			continue;
		part->is_synced = true;
		stack_sync_begin(&part->update, p->ap->flusher,
		    g->repo->fs->fsync_covers_all);
	}
}

void tables_synced(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (part->is_synced)
			sync_end(p, g, part);
		part->is_synced = false;
	}
}

int tables_sync_error(const struct repo_slice *g)
{
	const struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next)
		if (part->update.err < 0)
			return part->update.err;
	return 0;
}
