/*
 * Redoes the records of one repository whose refs are in reftables.
 *
 * Happy path:
 *	lock	the list of each stack: the standing lock of a crash, or a new
 *		one
 *	read	the surviving stacks; tables that have lost their footer are
 *		mended
 *	decide	stack_refs.c
 *	plan	stack_plan.c
 *	write	one new table per stack, by the steps of a batch
 *	sweep	later, before the locks and the names in stage/ go: tables of
 *		ended batches
 *
 * A stopped replay can begin again, because the rule finds the values in the
 * new tables.
 *
 * Failures:
 *	a foreign lock: everything is deferred
 *	a list or a table is missing or damaged, or the disk fails: the errno.
 *	Nothing was written, or only whole tables
 */
#include <errno.h>

#include "daemon/store/tables/recovery/stack_replay.h"
#include "daemon/store/tables/stack/stack_look.h"

/* A look before the first write reads the stacks of this many at most. */
#define WORKTREES 1000

static int replay_locked(struct stack_replay *sr)
{
	int r;

	r = stack_places_read(sr);
	if (r == 0)
		r = stack_refs_list(sr);
	if (r == 0)
		r = stack_refs_decide(sr);
	if (r == 0)
		r = stack_plan_refs(sr);
	if (r == 0)
		r = stack_places_write(sr);
	if (r == 0)
		stack_plan_report(sr);
	return r;
}

int replay_stacks(struct replay *rp, struct replay_row *rows)
{
	struct stack_replay sr = { .rp = rp };
	int r;

	r = ref_records_build(&rp->ref_records, rows);
	if (r == 0)
		r = stack_places_open(&sr, rows);
	if (r == 0) {
		r = stack_places_lock(&sr);
		if (r == 0) {
			r = replay_locked(&sr);
		} else if (r == -EEXIST) {
			redo_report_locked(rp,
			    STACK_DIRECTORY "/" REFTABLE_LIST, false);
			stack_refs_defer(&sr);
			r = 0;
		}
	}
	stack_refs_done(&sr);
	return stack_places_done(&sr, r);
}

/* The replay may have failed to remove the name of its token in stage/, so the
 * name is removed once more. */
static int new_token(struct replay *rp)
{
	char token[TOKEN_NAME_MAX];

	token_name(token, rp->token_id, 0);
	if (!rp->token_stays)
		SYS(rp->sys, unlinkat, rp->repo->stage_fd, token);
	return token_init(&rp->token, rp->sys, rp->repo->stage_fd,
	    rp->token_id);
}

/* ---- mending ---- */

static int mend(struct stack_replay *sr)
{
	int r = new_token(sr->rp);

	if (r == 0)
		r = stack_places_lock(sr);
	if (r == 0)
		r = stack_places_read(sr);
	return r;
}

/* A stack that stays damaged concerns only its batches, which fail. So without
 * a row to redo, the damage is no failure of recovery. */
static bool is_of_stack(int r)
{
	return r == -EBADMSG || r == -ENOENT || r == -EFBIG || r == -ELOOP ||
	    r == -ENOTDIR;
}

static int mend_place(struct replay *rp, const char *worktree)
{
	struct stack_replay sr = { .rp = rp };
	int r = stack_places_open_one(&sr, worktree);

	if (r == 0)
		r = stack_places_are_sound(&sr);
	if (r == 0)
		r = mend(&sr);
	r = stack_places_done(&sr, r > 0 ? 0 : r);
	if (!rp->token_stays)
		token_done(&rp->token);
	return is_of_stack(r) ? 0 : r;
}

/* Mends one stack at a time, so that a damaged stack, or a stack with a foreign
 * lock, does not stop the mending of the others. */
int replay_stacks_mend(struct replay *rp)
{
	const struct ref_places *places = &rp->leftover->places;
	int r = 0, err;
	size_t i;

	for (i = 0; i < places->nr; i++) {
		err = mend_place(rp, places->list[i].worktree);
		r = r < 0 ? r : err;
	}
	return r;
}

/* ---- the look ---- */

static bool is_damaged(const struct sys *sys, struct repo *repo,
    const char *worktree)
{
	int git_fd = repo_open_worktree(sys, repo, worktree), r;
	struct stack_look look;

	if (git_fd < 0)
		return false;
	r = stack_look_begin(&look, repo->stacks, worktree, git_fd, 0);
	stack_look_end(&look);
	if (git_fd != repo->fd)
		SYS(sys, close, git_fd);
	return r == -EBADMSG;
}

bool replay_stacks_any_damaged(const struct sys *sys, struct repo *repo)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned left = WORKTREES;
	bool any;

	if (!repo_has_reftable(sys, repo))
		return false;
	any = is_damaged(sys, repo, "");
	if (any || SYS(sys, dir_open, repo->fd, "worktrees", &dir) < 0)
		return any;
	while (!any && left-- > 0 && SYS(sys, dir_next, dir, &entry) > 0)
		any = entry.name[0] != '.' && is_damaged(sys, repo, entry.name);
	SYS(sys, dir_close, dir);
	return any;
}

/* ---- the sweep ---- */

static int sweep(struct stack_replay *sr)
{
	struct stack_place *place;
	size_t i;
	int r;

	r = stack_places_open(sr, NULL);
	if (r == 0)
		r = stack_places_lock(sr);
	for (i = 0; i < sr->nr_places && r == 0; i++) {
		place = &sr->places[i];
		if (place->stack != NULL)
			r = stack_places_sweep(sr, place);
	}
	return r;
}

int replay_stacks_sweep(struct replay *rp)
{
	struct stack_replay sr = { .rp = rp };
	int r;

	if (rp->leftover->nr_values == 0)
		return 0;
	r = new_token(rp);
	if (r == 0)
		r = sweep(&sr);
	r = stack_places_done(&sr, r);
	if (!rp->token_stays)
		token_done(&rp->token);
	return r == -EEXIST || r == -EBADMSG ? 0 : r;
}
