/*
 * Tables: the parts of a repository, and the beginning and the end of a pass.
 *
 * The happy path: the first change makes the part of the common dir, and takes
 * the turn of its stack. All batches, and recovery, take this turn first, so
 * one batch of this daemon works in a repository at a time.
 *
 * What fails:
 *	a different batch has the turn	the changes are given back, as if a
 *					lock was held
 *	the stack is damaged		the changes fail; nothing is written
 *	too many tables for the		every transaction gets a pass of its
 *	descriptors of the daemon	own; alone, it fails
 *	more must be read than a batch	the changes are given back, and go to
 *	of several repositories may	batches of their own. A user has one
 *	read				such batch at a time. In such a batch
 *					they fail beyond a bound
 *	a lock or a file can't be	the token stays and counts as ended; the
 *	removed				next try removes token, lock and file
 */
#include "daemon/store/tables/batch/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_set.h"

/* The open tables of a pass. A pass of one stack may have them all. */
#define PASS_TABLES_MAX REFTABLE_TABLES_MAX

/* A batch holds the turn for about one flush, so a longer wait means that the
 * disk hangs. Then the wait ends, because batches of other disks must not hang
 * too. */
#define TURN_MS 10000

const struct ref_backend tables_backend = {
	.stage = tables_stage,
	.hold = tables_hold,
	.held = tables_held,
	.look = tables_look,
	.glance = tables_glance,
	.has_log = tables_has_log,
	.conflict = tables_conflict,
	.log = tables_log,
	.make = tables_make,
	.seal = tables_seal,
	.wait = tables_wait,
	.sync = tables_sync,
	.synced = tables_synced,
	.sync_error = tables_sync_error,
	.publish = tables_publish,
	.release = tables_release,
	.resume = tables_resume,
	.has_rounds = true,
};

/* ---- failures ---- */

void tables_fail(struct change *c, const struct tables_part *part, int r,
    const char *doing)
{
	char text[REFTABLE_FAULT_TEXT];
	struct reftable_fault fault = { .table = STACK_DIRECTORY };

	if (part != NULL)
		fault = part->reader.fault.table[0] != '\0' ?
		    part->reader.fault :
		    part->update.fault;
	reftable_stack_fault_text(&fault, r, text);
	switch (r) {
	case -EBUSY:
		change_locked(c, STACK_DIRECTORY "/" REFTABLE_LIST);
		break;
	case -ESTALE:
		change_again(c, TXN_AGAIN_REOPEN);
		break;
	case -ENOENT:
		change_fail(c, REFD_IO,
		    "cannot update ref '%s': a reftable, or its worktree, is "
		    "missing: %s",
		    c->u->ask->name, text);
		break;
	case -EOVERFLOW:
		change_fail(c, REFD_UNSUPPORTED,
		    "cannot update ref '%s': the reftables have used up their "
		    "update indices",
		    c->u->ask->name);
		break;
	case -EBADMSG:
		change_fail(c, REFD_IO,
		    "cannot update ref '%s': the reftables are damaged: %s; "
		    "refd verify tells more",
		    c->u->ask->name, text);
		break;
	case -E2BIG:
		change_fail(c, REFD_UNSUPPORTED,
		    "cannot update ref '%s': the name, the committer and the "
		    "message do not fit a block of a reftable",
		    c->u->ask->name);
		break;
	case -EFBIG:
	case -ELOOP:
	case -ENOTDIR:
		change_fail(c, REFD_UNSUPPORTED,
		    "cannot update ref '%s': %s: %s", c->u->ask->name, doing,
		    text);
		break;
	default:
		change_fail_errno(c, r, doing);
	}
}

void tables_fail_all(struct repo_slice *g, const struct tables_part *part,
    int r, const char *doing)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		tables_fail(c, part, r, doing);
}

/* ---- how much a pass reads ---- */

/* reftable_budget.more, called when the budget of the batch is used up. A table
 * of any size may demand any work. So a repository of which much must be read
 * gets batches of its own. */
static bool read_much(void *arg)
{
	struct repo_slice *g = arg;
	struct tables_slice *t = &g->tables;
	struct change *c;

	if (t->may_read_much)
		return false;
	/* A transaction that the store itself made needs no slot, because no
	 * worker of the pool is held up. */
	t->may_read_much =
	    g->changes->slice->txn->is_own || apply_take_large(t->pass, g);
	if (t->may_read_much)
		t->budget.work += STACK_WORK_MAX;
	for (c = g->changes; !t->may_read_much && c != NULL;
	    c = c->next_in_repo)
		change_again(c, TXN_AGAIN_ALONE);
	return t->may_read_much;
}

void tables_begin_reading(struct pass *p, struct repo_slice *g)
{
	g->tables.budget = REFTABLE_BUDGET(TABLES_WORK);
	g->tables.budget.more = read_much;
	g->tables.budget.arg = g;
	g->tables.may_read_much = false;
	g->tables.pass = p;
}

/* ---- parts ---- */

static struct tables_part *find_part(const struct repo_slice *g,
    const char *worktree)
{
	struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next)
		if (strcmp(part->worktree, worktree) == 0)
			return part;
	return NULL;
}

/* Waits for the turn of the common dir, but not while this batch has the turn
 * of a different repository, because two batches could wait for each other. */
static bool take_turn(struct pass *p, struct repo_slice *g,
    struct tables_part *part)
{
	const struct repo_slice *other;
	unsigned wait_ms = *part->worktree == '\0' ? TURN_MS : 0;
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++) {
		other = &p->repo_slices[i];
		if (other != g &&
		    (other->tables.parts != NULL || other->files.packed_turn))
			wait_ms = 0;
	}
	return stack_update_turn(&part->update, wait_ms);
}

static void insert(struct repo_slice *g, struct tables_part *part)
{
	struct tables_part **at = &g->tables.parts;

	while (*at != NULL && strcmp((*at)->worktree, part->worktree) < 0)
		at = &(*at)->next;
	part->next = *at;
	*at = part;
}

static int new_part(struct pass *p, struct repo_slice *g, const char *worktree,
    int git_fd, struct tables_part **out)
{
	struct tables_part *part;
	struct stack *stack;
	int r;

	*out = NULL;
	r = stack_set_get(g->repo->stacks, worktree, git_fd, &stack);
	if (r < 0)
		return r;
	part = calloc(1, sizeof(*part));
	if (part == NULL) {
		stack_put(stack);
		return -ENOMEM;
	}
	part->repo_slice = g;
	part->worktree = worktree;
	stack_update_init(&part->update, stack, git_fd, &g->token,
	    2 * g->tables.nr_parts);
	part->update.budget = &g->tables.budget;
	stack_put(stack);
	if (!take_turn(p, g, part)) {
		stack_update_end(&part->update);
		free(part);
		return -EBUSY;
	}
	g->tables.nr_parts++;
	insert(g, part);
	*out = part;
	return 0;
}

/* The turn of the common dir comes first, because all batches of the repository
 * meet there. */
static int get_part(struct pass *p, const struct change *at,
    struct tables_part **part)
{
	struct repo_slice *g = at->repo_slice;
	int r = 0;

	*part = find_part(g, "");
	if (*part == NULL)
		r = new_part(p, g, "", g->repo->fd, part);
	if (r < 0 || *at->worktree == '\0')
		return r;
	*part = find_part(g, at->worktree);
	return *part != NULL ?
	    0 :
	    new_part(p, g, at->worktree, at->edit.dirfd, part);
}

/* A repository of a hostile owner must not take all descriptors, so the open
 * tables of a pass are counted. */
static int check_number(struct pass *p, struct repo_slice *g,
    struct stack_update *u)
{
	const size_t nr = u->base->tables.nr;

	if (p->nr_tables > 0 && p->nr_tables + nr > PASS_TABLES_MAX) {
		pass_go_apart(p, g);
		stack_snapshot_put(u->base);
		u->base = NULL;
		stack_snapshot_forget(u->stack);
		u->fault = (struct reftable_fault){ .table = STACK_DIRECTORY,
			.why = "the worktrees have more than 500 tables" };
		return -EFBIG;
	}
	return 0;
}

int tables_part(struct pass *p, const struct change *at,
    struct tables_part **part)
{
	int r = get_part(p, at, part);

	if (r < 0 || (*part)->has_base)
		return r;
	r = stack_update_begin(&(*part)->update);
	/* A later round comes after a race, perhaps with a merge of git. After
	 * a fold the merge would not find its tables, so only the first round
	 * may fold. */
	(*part)->update.may_fold = at->repo_slice->tables.rounds == 0;
	if (r == 0)
		r = check_number(p, at->repo_slice, &(*part)->update);
	if (r == 0)
		r = stack_reader_init(&(*part)->reader, (*part)->update.base,
		    &at->repo_slice->tables.budget);
	(*part)->has_base = r == 0;
	if (r == 0)
		p->nr_tables += (*part)->update.base->tables.nr;
	return r;
}

static void end_round(struct pass *p, struct tables_part *part)
{
	if (part->has_base)
		p->nr_tables -= part->update.base->tables.nr;
	stack_reader_done(&part->reader);
	memset(&part->reader, 0, sizeof(part->reader));
	part->has_base = part->has_changes = part->confirms = false;
	free(part->records);
	part->records = NULL;
	part->nr_records = 0;
}

void tables_end_round(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next)
		end_round(p, part);
}

void tables_drop_parts(struct pass *p, struct repo_slice *g, bool keep,
    bool *rest)
{
	struct tables_part *part;

	tables_end_round(p, g);
	while ((part = g->tables.parts) != NULL) {
		g->tables.parts = part->next;
		if (keep && edit_is_locked(&part->update.list))
			edit_to(&part->update.list, PROGRESS_DEFERRED);
		if (stack_update_end(&part->update) < 0)
			*rest = true;
		free(part);
	}
	g->tables.nr_parts = 0;
	apply_give_large(g);
}

/* ---- the beginning and the end ---- */

void tables_stage(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	int r;

	tables_begin_reading(p, g);
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		r = pass_need_token(p, g);
		if (r < 0)
			change_fail_errno(c, r, "can't prepare the update");
	}
}

void tables_release(struct pass *p, struct repo_slice *g)
{
	const bool keep = repo_slice_is_kept(g);
	bool rest = false;

	tables_drop_names(g);
	tables_drop_parts(p, g, keep, &rest);
	if (p->unlocked_ns == 0)
		p->unlocked_ns = SYS(p->sys, now_mono);
	if (!g->has_token || keep)
		return;
	if (rest || token_done(&g->token) < 0)
		p->ap->left(p->ap->arg, g->repo, g->token.id);
}
