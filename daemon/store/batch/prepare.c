/*
 * Prepares a pass for its commit. Other writers wait for the locks, so values
 * are staged and tables are made before the locks.
 *
 * The happy path:
 *	same	check that each repository is still at its path
 *	stage	the work before any lock is taken; sync the staged files if the
 *		mode says so (durability.c)
 *	lock	hold every ref, in order; read the values; follow symbolic refs
 *		(prepare_lock.c)
 *	check	old values, directory/file conflicts (prepare_check.c)
 *	logs	find the log lines (prepare_check.c)
 *	make	large files, before the locks of seal
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

#include "daemon/base/busy_cause.h"
#include "daemon/store/batch/backend.h"

/* A commit of a session waits so long for a lock of another writer. */
#define RESUME_NS       ((int64_t)1000 * 1000 * 1000)
#define RESUME_PAUSE_NS ((int64_t)2 * 1000 * 1000)

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

/* Fails updates in a removed worktree, because they must not reach the main
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

typedef void repo_slice_fn(struct pass *p, struct repo_slice *g);

static void stage(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->stage(p, &p->repo_slices[i]);
	pass_settle(p);
}

/* A step of the repositories with tables, if HAS_ROUNDS, or of those with
 * files. */
static void each_of(struct pass *p, bool has_rounds, repo_slice_fn *step)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		if (p->repo_slices[i].backend->has_rounds == has_rounds)
			step(p, &p->repo_slices[i]);
	pass_settle(p);
}

/* ---- rounds ---- */

static void one(struct pass *p, struct repo_slice *g, repo_slice_fn *step)
{
	step(p, g);
	pass_settle(p);
}

/* A new round of G, up to make(). */
static void begin_round(struct pass *p, struct repo_slice *g)
{
	pass_begin_again(p, g);
	one(p, g, pass_lock);
	one(p, g, pass_check);
	one(p, g, pass_prepare_logs);
}

static void make(struct pass *p, struct repo_slice *g)
{
	while (g->backend->make(p, g))
		begin_round(p, g);
}

static void seal(struct pass *p, struct repo_slice *g)
{
	while (g->backend->seal(p, g)) {
		begin_round(p, g);
		make(p, g);
	}
}

/* The steps before make(), of the same repositories. */
static void prepare(struct pass *p, bool has_rounds)
{
	each_of(p, has_rounds, pass_lock);
	each_of(p, has_rounds, pass_check);
	each_of(p, has_rounds, pass_prepare_logs);
}

void pass_prepare(struct pass *p)
{
	check_same(p);
	check_places(p);
	check_twice(p);
	pass_settle(p);
	stage(p);
	durability_values(p);
	pass_settle(p);
	/* Tables (true) come first, and without files, so that no lock is held
	 * while tables are flushed. */
	prepare(p, true);
	each_of(p, true, make);
	/* Hold() of tables has taken no lock, so the time of the locks begins
	 * with the first ref file, or with the list (tables_seal.c). */
	p->locked_ns = 0;
	prepare(p, false);
	/* Seal() of packed-refs may take long, so the lists of tables are
	 * locked later. */
	each_of(p, false, seal);
	each_of(p, true, seal);
	if (p->has_staged)
		durability_values(p);
	pass_settle(p);
}

/* ---- sessions ---- */

/* Nobody can give an update of a session back at its commit, so pass_resume()
 * tries again. */
static bool is_again(struct pass *p, enum txn_again why)
{
	size_t i;

	for (i = 0; i < p->nr_asked; i++)
		if (p->asked[i].u->status == REFD_PENDING &&
		    p->asked[i].u->again >= why)
			return true;
	return false;
}

static void try_again(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_asked; i++)
		p->asked[i].u->again = TXN_AGAIN_NO;
	p->slices[0].broken = false;
}

static void fail_again(struct change *c)
{
	const enum txn_again why = c->u->again;

	if (why == TXN_AGAIN_NO)
		return;
	c->u->again = TXN_AGAIN_NO;
	if (why == TXN_AGAIN_ALONE)
		change_fail(c, REFD_LOCKED,
		    "cannot update ref '%s': much of the repository must be "
		    "read, and too many such updates run; try again",
		    c->u->ask->name);
	else if (why == TXN_AGAIN_LOCKED)
		change_fail(c, REFD_LOCKED,
		    "cannot update ref '%s': another writer holds the lock of "
		    "'%s'",
		    c->u->ask->name,
		    c->u->locked_path != NULL ? c->u->locked_path :
						c->edit.name);
	else if (why == TXN_AGAIN_DIVERGED)
		change_fail(c, busy_cause_count(BUSY_GROUP), "%s",
		    busy_cause_text(BUSY_GROUP));
	else
		change_fail(c, REFD_NOREPO,
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    c->u->ask->name, c->slice->repo->path);
}

void pass_resume(struct pass *p)
{
	const int64_t until = SYS(p->sys, now_mono) + RESUME_NS;
	struct repo_slice *g = &p->repo_slices[0];
	size_t i;

	while (p->nr_repo_slices > 0 && g->backend->resume(p, g)) {
		if (!is_again(p, TXN_AGAIN_LATER)) {
			begin_round(p, g);
			make(p, g);
			seal(p, g);
		}
		pass_settle(p);
		if (!is_again(p, TXN_AGAIN_ALONE) ||
		    SYS(p->sys, now_mono) > until)
			break;
		try_again(p);
		SYS(p->sys, sleep_ns, RESUME_PAUSE_NS);
	}
	for (i = 0; i < p->nr_asked; i++)
		fail_again(&p->asked[i]);
	pass_settle(p);
}
