/*
 * packed-refs without what a batch deletes: its lock, and packed-refs.new
 * written, and synced unless all of them are of mode none.
 *
 * The happy path: one rewrite for all deletions of a repository, and none
 * where no name is in it; its lock is taken all the same, or a running
 * pack-refs would bring the ref back.
 *
 * What fails: the lock is held, then all deletions are given back; a file
 * that can't be read or written fails them all. A deletion that fails behind
 * this, for its transaction's sake or its logs', must not take its ref out of
 * packed-refs: where others of the batch go on, the file is written anew.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch.h"

static bool is_deletion(const struct change *c, const struct group *g)
{
	return c->group == g && c->action == CHANGE_DELETE && change_is_live(c);
}

static void deletions_failed(struct batch *b, struct group *g, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (!is_deletion(c, g))
			continue;
		if (err == -EEXIST)
			change_locked(c, "packed-refs");
		else if (err == -EBADMSG)
			change_fail(c, REFD_IO,
			    "packed-refs has a malformed line");
		else
			change_fail_errno(c, err, "can't rewrite packed-refs");
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One deletion that was promised something is enough. */
static bool must_sync(const struct batch *b, const struct group *g)
{
	const struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->group == g && c->left_out &&
		    c->share->mode > REFD_DURABILITY_NONE)
			return true;
	}
	return false;
}

static int rewrite(const struct batch *b, struct group *g, const char **names,
    size_t nr, mode_t mode)
{
	qsort(names, nr, sizeof(*names), by_bytes);
	return packed_rewrite_begin(g->repo->packed, names, nr, mode,
	    must_sync(b, g), &g->packed_changed);
}

static int lock_and_rewrite(const struct batch *b, struct group *g,
    const char **names, size_t nr, const struct share *s)
{
	int r;

	r = token_lock(&g->token, g->repo->fd, "packed-refs", s->dir_mode);
	if (r < 0)
		return r;
	g->packed_locked = true;
	return rewrite(b, g, names, nr, s->file_mode);
}

static void prepare_group(struct batch *b, struct group *g, const char **names)
{
	struct share *s = NULL;
	struct change *c;
	size_t i, nr = 0;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (!is_deletion(c, g) || c->dirfd != g->repo->fd)
			continue;
		s = c->share;
		c->left_out = true;
		names[nr++] = c->name;
	}
	if (nr == 0)
		return;
	r = lock_and_rewrite(b, g, names, nr, s);
	if (r < 0)
		deletions_failed(b, g, r);
}

void batch_prepare_deletions(struct batch *b)
{
	const char **names;
	size_t i;

	names = calloc(b->nr_changes + 1, sizeof(*names));
	for (i = 0; i < b->nr_groups; i++)
		if (names != NULL)
			prepare_group(b, &b->groups[i], names);
		else
			deletions_failed(b, &b->groups[i], -ENOMEM);
	free(names);
}

int batch_refit_packed(struct batch *b, struct group *g,
    bool (*is_deleted)(const struct change *c))
{
	const struct share *s = NULL;
	bool fits = true;
	const char **names;
	struct change *c;
	size_t i, nr = 0;
	int r;

	names = calloc(b->nr_changes + 1, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->group != g || !c->left_out)
			continue;
		s = c->share;
		if (is_deleted(c))
			names[nr++] = c->name;
		else
			fits = false;
	}
	r = 0;
	if (!fits) {
		packed_rewrite_abandon(g->repo->packed);
		g->packed_changed = false;
		r = rewrite(b, g, names, nr, s->file_mode);
	}
	free(names);
	return r;
}
