/*
 * From a batch to its commit point: everything that publishing will need.
 *
 * The happy path:
 *	same	each repository's path still leads to it
 *	stage	new values are written beside the locks, before any is taken,
 *		and as the mode has it made durable (stand.c)
 *	lock	every ref, in order; what stands there is read, symbolic refs
 *		are followed (prepare_lock.c)
 *	check	old value, directory/file conflicts (prepare_check.c)
 *	logs	directories and files that lines will be appended to
 *	packed	packed-refs.lock, packed-refs.new written and synced, for
 *		deletions and for many new refs (prepare_packed.c)
 *
 * What fails:
 *	the path leads elsewhere	given back, to be opened again
 *	one file under two names	that transaction's update fails
 *	no space			that update fails, or its atomic
 *					transaction
 * batch_release() undoes whatever stands, however far this came.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/window/batch.h"

static void check_same(struct batch *b)
{
	struct group *g = NULL;
	bool same = true;
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->group != g) {
			g = c->group;
			same = repo_is_same(b->ap->repos, g->repo);
			if (!same)
				repo_doom(b->ap->repos, g->repo);
		}
		if (!same)
			change_again(c, TXN_AGAIN_REOPEN);
	}
}

/* A worktree that is gone must not turn into the main one. */
static void check_places(struct batch *b)
{
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		r = c->share->git_err;
		if (r == -ENOENT)
			change_fail(c, REFD_NOREPO,
			    "'%s' is no longer a git directory of '%s'",
			    c->share->txn->req.git_dir, c->share->repo->path);
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

/* HEAD, main-worktree/HEAD and worktrees/<id>/HEAD can be one file. */
static void check_twice(struct batch *b)
{
	struct change *c, *before;
	size_t i;

	for (i = 1; i < b->nr_changes; i++) {
		before = b->changes[i - 1];
		c = b->changes[i];
		if (c->share != before->share ||
		    c->edit.dirfd != before->edit.dirfd ||
		    strcmp(c->edit.name, before->edit.name) != 0)
			continue;
		change_fail_detail(c, REFD_DUPLICATE, REFD_DETAIL_DUPLICATE,
		    c->u->ask->name, NULL, NULL);
		change_fail_detail(before, REFD_DUPLICATE,
		    REFD_DETAIL_DUPLICATE, before->u->ask->name, NULL, NULL);
	}
}

/* The group's token, made with the first change that needs it. */
static int need_token(struct batch *b, struct group *g)
{
	int r;

	if (g->has_token)
		return 0;
	r = token_init(&g->token, b->sys, g->repo->stage_fd,
	    atomic_fetch_add(&b->ap->next_token, 1));
	g->has_token = r == 0;
	return r;
}

int batch_stage_value(struct batch *b, struct change *c)
{
	int fd = edit_stage(&c->edit, &c->u->ask->new_oid, change_new_target(c),
	    c->share->file_mode);

	if (fd < 0)
		return fd;
	batch_stand_staged(b, c, fd);
	return 0;
}

static void stage_values(struct batch *b)
{
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (!change_is_live(c))
			continue;
		r = need_token(b, c->group);
		if (r == 0)
			r = batch_stand_begin(b, c);
		if (r == 0 && c->action == CHANGE_WRITE && !c->to_packed)
			r = batch_stage_value(b, c);
		if (r < 0)
			change_fail_errno(c, r, "can't write the new value");
	}
	batch_stand_values(b);
}

void batch_prepare(struct batch *b)
{
	check_same(b);
	check_places(b);
	check_twice(b);
	batch_settle(b);
	stage_values(b);
	batch_settle(b);
	batch_lock(b);
	batch_settle(b);
	batch_check(b);
	batch_settle(b);
	batch_prepare_logs(b);
	batch_settle(b);
	batch_prepare_packed(b);
	batch_settle(b);
}
