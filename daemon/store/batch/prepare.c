/*
 * Prepares a pass for its commit.
 *
 * The happy path:
 *	same	check that each repository is still at its path
 *	stage	the work before any lock is taken; sync the staged files if the
 *		mode says so (durability.c)
 *	lock	hold every ref, in order; read the values; follow symbolic refs
 *		(prepare_lock.c)
 *	check	old values, directory/file conflicts (prepare_check.c)
 *	logs	find the log lines (prepare_logs.c)
 *	seal	everything else that publishing needs
 * The steps of one format of refs are in backend.h.
 *
 * What fails:
 *	the path leads elsewhere	the changes are given back, and the
 *					repository is opened again
 *	one file under two names	both updates fail
 *	no space			the update fails, or its atomic
 *					transaction
 * pass_release() undoes all completed steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/backend.h"

static void check_same(struct pass *p)
{
	struct repo_slice *g = NULL;
	bool same = true;
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice != g) {
			g = c->repo_slice;
			same = repo_is_same(p->ap->repos, g->repo);
			if (!same)
				repo_doom(p->ap->repos, g->repo);
		}
		if (!same)
			change_again(c, TXN_AGAIN_REOPEN);
	}
}

/* Fails updates in a removed worktree: they must not reach the main
 * worktree. */
static void check_places(struct pass *p)
{
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		r = c->slice->git_err;
		if (r == -ENOENT)
			change_fail(c, REFD_NOREPO,
			    "'%s' is no longer a git directory of '%s'",
			    c->slice->txn->req.git_dir, c->slice->repo->path);
		else if (r < 0)
			change_fail_errno(c, r, "can't open the worktree");
		else if (c->edit.dirfd == -ENOENT)
			change_cant_lock(c, REFD_MISSING,
			    "there is no such worktree");
		else if (c->edit.dirfd < 0)
			change_fail_errno(c, c->edit.dirfd,
			    "can't open the worktree");
	}
}

/* HEAD, main-worktree/HEAD and worktrees/<id>/HEAD can be the same file. */
static void check_twice(struct pass *p)
{
	struct change *c, *before;
	size_t i;

	for (i = 1; i < p->nr_changes; i++) {
		before = p->changes[i - 1];
		c = p->changes[i];
		if (c->slice != before->slice ||
		    c->edit.dirfd != before->edit.dirfd ||
		    strcmp(c->edit.name, before->edit.name) != 0)
			continue;
		change_fail_detail(c, REFD_DUPLICATE, REFD_DETAIL_DUPLICATE,
		    c->u->ask->name, NULL, NULL);
		change_fail_detail(before, REFD_DUPLICATE,
		    REFD_DETAIL_DUPLICATE, before->u->ask->name, NULL, NULL);
	}
}

int pass_need_token(struct pass *p, struct repo_slice *g)
{
	int r;

	if (g->has_token)
		return 0;
	r = token_init(&g->token, p->sys, g->repo->stage_fd,
	    atomic_fetch_add(&p->ap->next_token, 1));
	g->has_token = r == 0;
	return r;
}

static void stage(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->stage(p, &p->repo_slices[i]);
	durability_values(p);
}

static void seal(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->seal(p, &p->repo_slices[i]);
	if (p->has_staged)
		durability_values(p);
}

void pass_prepare(struct pass *p)
{
	check_same(p);
	check_places(p);
	check_twice(p);
	pass_settle(p);
	stage(p);
	pass_settle(p);
	pass_lock(p);
	pass_settle(p);
	pass_check(p);
	pass_settle(p);
	pass_prepare_logs(p);
	pass_settle(p);
	seal(p);
	pass_settle(p);
}
