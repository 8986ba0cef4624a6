/*
 * Files: the operations, and the end of a pass, which releases the locks and
 * files of a repository.
 *
 * What fails: if a lock can't be removed, the token stays and counts as ended,
 * and the next try removes both.
 */
#include <string.h>

#include "daemon/store/files/batch/files.h"

const struct ref_backend files_backend = {
	.stage = files_stage,
	.hold = files_hold,
	.held = files_held,
	.look = files_look,
	.glance = files_glance,
	.has_log = files_has_log,
	.conflict = files_conflict,
	.log = files_log,
	.seal = files_seal,
	.wait = files_wait,
	.sync = files_sync,
	.synced = files_synced,
	.sync_error = files_sync_error,
	.publish = files_publish,
	.release = files_release,
	.resume = files_resume,
};

static bool repo_has_rest(const struct repo_slice *g)
{
	const struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (edit_is_locked(&c->edit) || c->edit.has_value)
			return true;
	return false;
}

static void release_repo(const struct pass *p, struct repo_slice *g)
{
	bool has_rest = repo_has_rest(g);

	/* A deferred deletion keeps the lock of its ref, and recovery locks
	 * packed-refs again for its rewrite, so packed-refs need not stay
	 * locked. */
	if (g->files.packed_changed)
		packed_rewrite_abandon(g->repo->packed);
	if (g->files.packed_locked &&
	    token_unlock(&g->token, g->repo->fd, "packed-refs") < 0)
		has_rest = true;
	files_give_turn(g);
	if (!g->has_token || repo_slice_is_kept(g))
		return;
	if (has_rest || token_done(&g->token) < 0)
		p->ap->left(p->ap->arg, g->repo, g->token.id);
}

/* Removes the log that was created for C, if C failed, because an empty log
 * would block other names. */
static void unmake_log(const struct change *c)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(&c->edit, path);

	if (!c->log_made || change_is_committed(c) ||
	    c->u->status == REFD_UNKNOWN)
		return;
	reflog_unmake(&log);
}

static bool leaves_no_file(const struct change *c)
{
	return c->action != CHANGE_WRITE || !edit_is_published(&c->edit) ||
	    c->to_packed;
}

/* Is the next change in the same directory, and does it leave no file? Then C
 * need not prune the directory, because the next change will. */
static bool is_before_neighbour(const struct change *c)
{
	const struct change *next = c->next_in_repo;
	size_t len;

	if (next == NULL)
		return false;
	len = strlen(c->edit.name);
	while (len > 0 && c->edit.name[len - 1] != '/')
		len--;
	return leaves_no_file(next) && next->edit.dirfd == c->edit.dirfd &&
	    strncmp(c->edit.name, next->edit.name, len) == 0 &&
	    strchr(next->edit.name + len, '/') == NULL;
}

void files_release(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (c->edit.progress == PROGRESS_DEFERRED)
			continue;
		unmake_log(c);
		edit_discard(&c->edit);
		edit_unlock(&c->edit);
	}
	release_repo(p, g);
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
	p->unlocked_ns = SYS(p->sys, now_mono);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (leaves_no_file(c) && !is_before_neighbour(c))
			loose_prune_parents(p->sys, c->edit.dirfd, c->edit.name,
			    2);
}
