/*
 * Files: renames packed-refs.new, then looks for conflicting writers.
 *
 * The happy path: packed-refs.new has exactly the committed changes and is
 * renamed. A writer who has read the old packed-refs finds no file in the way
 * of a conflicting ref, so refd looks at each new name. No file or directory is
 * there.
 *
 * What fails:
 *	a change in packed-refs.new	packed-refs.new is written again without
 *	was not committed		the change
 *	packed-refs.new can't be	all changes in it are aborted
 *	written, synced or renamed
 *	the rename fails, and may	`unknown` for all changes in it; the
 *	have happened			record and the locks stay, and recovery
 *					finishes them
 *	a file, or a lock below the	git read the old packed-refs and created
 *	name, is at a new name		a ref below the name, or a writer
 *					ignores locks: the new ref is removed
 *					from packed-refs, under its lock and
 *					packed-refs.lock, and aborted
 *	the ref can't be removed	`unknown`; the record and the locks
 *					stay, and the next start looks again
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/store/files/batch/files.h"

/* IS_DOUBTFUL: packed-refs may have the changes. */
static void rewrite_failed(struct pass *p, struct repo_slice *g, int err,
    bool is_doubtful)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice != g || !c->in_rewrite ||
		    !change_is_committed(c))
			continue;
		if (is_doubtful)
			change_keep_all(p, c, err);
		else
			change_take_back(p, c, err);
	}
}

/* 0: the name of C is free, since empty directories are removed. */
static int look_at(struct pass *p, struct change *c)
{
	struct sys_stat st;
	int r;

	r = SYS(p->sys, lstatat, c->edit.dirfd, c->edit.name, &st);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (!S_ISDIR(st.mode))
		return -EEXIST;
	return loose_clear_dirs(p->sys, c->edit.dirfd, c->edit.name, NULL);
}

static bool goes_back(const struct change *c, const struct repo_slice *g)
{
	return c->repo_slice == g && c->to_packed && change_is_committed(c) &&
	    (c->taken < 0 || (c->slice->txn->req.atomic && c->slice->is_taken));
}

static int take_out(struct pass *p, struct repo_slice *g)
{
	struct packed_edit *edits;
	size_t i, nr = 0;
	int r;

	edits = calloc(p->nr_changes + 1, sizeof(*edits));
	if (edits == NULL)
		return -ENOMEM;
	for (i = 0; i < p->nr_changes; i++)
		if (goes_back(p->changes[i], g))
			edits[nr++].name = p->changes[i]->edit.name;
	r = packed_rewrite(g->repo->packed, edits, nr, g->files.packed_mode);
	free(edits);
	/* This second rename takes refs back, and must be durable. The fsync of
	 * the new file can make the first rename durable, and after a power
	 * loss the refs would be there again. Recovery could not tell whose
	 * refs they are. */
	return r < 0 ? r : SYS(p->sys, fsync, g->repo->fd);
}

static void take_back(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	size_t i;
	int r;

	r = take_out(p, g);
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (!goes_back(c, g))
			continue;
		if (r < 0)
			change_keep(p, c, r);
		else if (c->taken < 0)
			change_take_back(p, c, c->taken);
	}
}

static void look(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	bool any = false;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice != g || !c->to_packed ||
		    !change_is_committed(c))
			continue;
		c->taken = look_at(p, c);
		if (c->taken < 0)
			any = c->slice->is_taken = true;
	}
	if (any)
		take_back(p, g);
}

void files_publish_packed(struct pass *p, struct repo_slice *g)
{
	bool is_doubtful = false;
	int r;

	r = files_sync_error(g);
	if (r == 0)
		r = files_refit_packed(p, g);
	if (r == 0 && g->files.packed_changed) {
		r = packed_rewrite_finish(g->repo->packed);
		g->files.packed_changed = r < 0;
		is_doubtful = sys_may_have_happened(r);
	}
	if (r < 0)
		rewrite_failed(p, g, r, is_doubtful);
	else
		look(p, g);
}
