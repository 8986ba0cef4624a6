/*
 * packed-refs.new into its place, and what that shows.
 *
 * The happy path: the file is what the journal says, and is renamed; nothing
 * stands at any of the new names.
 *
 * What fails:
 *	something of it is not in the	written anew without that
 *	journal
 *	it can't be written, synced or	those that are in it are voided
 *	renamed
 *	something stands at a new	git made a ref below the name, having read
 *	name by now, if only a lock	packed-refs before; or somebody who asks
 *	below it			for no locks wrote the ref: it is taken
 *					out of packed-refs again, under its lock
 *					and that of packed-refs, and voided
 *	it can't be taken out		unknown; record and locks stand, and the
 *					next start finds the same
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/store/window/batch.h"

static void rewrite_failed(struct batch *b, struct group *g, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->group == g && c->in_rewrite && change_is_committed(c))
			change_take_back(b, c, err);
	}
}

/* Empty directories are nobody's. */
static int look_at(struct batch *b, struct change *c)
{
	struct sys_stat st;
	int r;

	r = SYS(b->sys, lstatat, c->edit.dirfd, c->edit.name, &st);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (!S_ISDIR(st.mode))
		return -EEXIST;
	return loose_clear_dirs(b->sys, c->edit.dirfd, c->edit.name, NULL);
}

static bool goes_back(const struct change *c, const struct group *g)
{
	return c->group == g && c->to_packed && change_is_committed(c) &&
	    (c->taken < 0 || (c->share->txn->req.atomic && c->share->is_taken));
}

static int take_out(struct batch *b, struct group *g)
{
	struct packed_edit *edits;
	size_t i, nr = 0;
	int r;

	edits = calloc(b->nr_changes + 1, sizeof(*edits));
	if (edits == NULL)
		return -ENOMEM;
	for (i = 0; i < b->nr_changes; i++)
		if (goes_back(b->changes[i], g))
			edits[nr++].name = b->changes[i]->edit.name;
	r = packed_rewrite(g->repo->packed, edits, nr, g->packed_mode);
	free(edits);
	return r;
}

static void take_back(struct batch *b, struct group *g)
{
	struct change *c;
	size_t i;
	int r;

	r = take_out(b, g);
	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (!goes_back(c, g))
			continue;
		if (r < 0)
			change_keep(b, c, r);
		else if (c->taken < 0)
			change_take_back(b, c, c->taken);
	}
}

static void look(struct batch *b, struct group *g)
{
	struct change *c;
	bool any = false;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->group != g || !c->to_packed || !change_is_committed(c))
			continue;
		c->taken = look_at(b, c);
		if (c->taken < 0)
			any = c->share->is_taken = true;
	}
	if (any)
		take_back(b, g);
}

void batch_publish_packed(struct batch *b, struct group *g)
{
	int r;

	if (!g->packed_changed)
		return;
	r = g->packed_err;
	if (r == 0)
		r = batch_refit_packed(b, g);
	if (r == 0 && g->packed_changed) {
		r = packed_rewrite_finish(g->repo->packed);
		g->packed_changed = r < 0;
	}
	if (r < 0)
		rewrite_failed(b, g, r);
	else
		look(b, g);
}
