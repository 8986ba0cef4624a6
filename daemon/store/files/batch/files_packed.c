/*
 * Locks packed-refs and writes packed-refs.new: without the deleted refs, and
 * with the new refs of a large transaction. The file must be durable before its
 * rename, so it is synced while the journal is synced.
 *
 * The happy path: one rewrite for all deletions and new refs of a repository.
 * No rewrite happens if packed-refs has none of the deleted refs. The lock is
 * taken all the same, because a running pack-refs would bring a deleted ref
 * back. The lock file has no queue, so batches of this daemon queue before they
 * try to take the lock.
 *
 * Only a new ref with a plain value may go to packed-refs. The ref gets no log
 * line, no symbolic ref leads to it, and the peeled object of an annotated tag
 * is known, because git trusts the peeled value in the file. All refs of an
 * atomic transaction go there, or none. Each ref is locked as usual, but no
 * file at its name will stop another writer from creating a conflicting ref:
 *	above, "p" for "p/q"	the writer has p.lock now, or will meet refd's
 *				directory p/; refd looks for p.lock here
 *	below, "p/q/r"		the writer may have read the old packed-refs;
 *				refd looks after the rename
 *				(files_publish_packed.c)
 *
 * What fails: a ref that can't go to packed-refs becomes a loose ref, staged
 * under the locks. The same happens to new refs if the lock is held or the file
 * can't be read, written or replaced; deletions are then given back, or fail.
 * If a change fails later and others of the pass continue, packed-refs.new is
 * written again without the failed change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/batch/files.h"
#include "proto/refname.h"

/* A batch or a round of packing holds the turn for about one flush, and longer
 * if the file is large. A longer wait means that the disk hangs. Batches of
 * other disks must not hang too, so the batch then gives up the rewrite. */
#define PACKED_TURN_MS 10000

/* ---- selecting the refs ---- */

static bool is_peeled(const struct txn_update *u)
{
	switch (u->object) {
	case TXN_OBJECT_UNKNOWN:
		return false;
	case TXN_OBJECT_COMMIT:
	case TXN_OBJECT_OTHER:
		return true;
	case TXN_OBJECT_TAG:
		return u->peeled != NULL;
	}
	return false;
}

static bool asks_for_new(const struct refd_update *ask)
{
	return ask->action == REFD_CREATE ||
	    (ask->action == REFD_UPDATE && ask->has_old &&
		ask->old_target == NULL && refd_oid_is_null(&ask->old_oid) &&
		!refd_oid_is_null(&ask->new_oid));
}

bool files_may_pack(const struct txn_update *u, enum reflog_policy policy)
{
	const char *name = txn_update_place(u), *id, *bare;
	size_t id_len;

	return u->status == REFD_PENDING &&
	    u->txn->req.gate == REFD_GATE_NONE && asks_for_new(u->ask) &&
	    is_peeled(u) && strncmp(name, "refs/", 5) == 0 &&
	    refd_refname_place(name, &id, &id_len, &bare) ==
	    REFD_PLACE_COMMON &&
	    !reflog_policy_creates(policy, name);
}

bool files_prefer_packed(const struct applier *ap,
    const struct txn_slice *txn_slice)
{
	const struct txn *txn = txn_slice->txn;
	enum reflog_policy policy;
	size_t i, nr = 0;

	if (txn_slice->nr < ap->packed_least || txn->repo == NULL ||
	    txn->repo->format != REPO_FILES || txn->req.create_reflog)
		return false;
	/* A git-dir with another path is taken for a linked worktree, which has
	 * logs. */
	policy = pass_log_policy(txn,
	    strcmp(txn->req.git_dir, txn->repo->path) != 0);
	for (i = 0; i < txn_slice->nr; i++)
		nr += files_may_pack(txn_slice->updates[i], policy);
	if (txn->req.atomic && nr < txn->nr_updates)
		return false;
	return packed_pays(txn->repo->packed, nr, ap->packed_least);
}

/* ---- refs that must stay loose ---- */

/* The last directory that was checked: is DIR, or a directory above, locked as
 * a ref? */
struct above {
	char dir[REFD_PATH_MAX];
	bool is_locked;
};

static bool is_locked_above(const struct pass *p, const struct change *c,
    struct above *above)
{
	char path[REFD_PATH_MAX + sizeof(".lock")];
	char *slash;

	strcpy(path, c->edit.name);
	*strrchr(path, '/') = '\0';
	if (strcmp(path, above->dir) == 0)
		return above->is_locked;
	strcpy(above->dir, path);
	above->is_locked = false;
	while (!above->is_locked && (slash = strrchr(path, '/')) != NULL) {
		struct sys_stat st;

		strcat(path, ".lock");
		above->is_locked =
		    SYS(p->sys, lstatat, c->edit.dirfd, path, &st) != -ENOENT;
		*slash = '\0';
	}
	return above->is_locked;
}

static void make_loose(struct pass *p, struct change *c)
{
	int r = 0;

	c->to_packed = false;
	if (change_is_live(c))
		r = files_stage_value(p, c);
	if (r < 0)
		change_fail_errno(c, r, "can't write the new value");
}

/* All refs of an atomic transaction become loose together. */
static void keep_out(struct pass *p, struct change *c)
{
	size_t i;

	if (!c->slice->txn->req.atomic) {
		make_loose(p, c);
		return;
	}
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->slice == c->slice &&
		    p->changes[i]->to_packed)
			make_loose(p, p->changes[i]);
}

/* true: values were staged. */
static bool keep_some_out(struct pass *p, struct repo_slice *g)
{
	struct above above = { .dir = "" };
	bool any = false;
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice != g || !c->to_packed || !change_is_live(c))
			continue;
		if (c->is_end && !c->exists && !c->log && c->lines == NULL &&
		    !is_locked_above(p, c, &above))
			continue;
		keep_out(p, c);
		any = true;
	}
	return any;
}

/* ---- the file ---- */

static bool is_deletion(const struct change *c, const struct repo_slice *g)
{
	return c->repo_slice == g && c->action == CHANGE_DELETE &&
	    change_is_live(c);
}

/* true: values were staged. */
static bool rewrite_failed(struct pass *p, struct repo_slice *g, int err)
{
	struct change *c;
	bool any = false;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		c->in_rewrite = c->in_rewrite && c->repo_slice != g;
		if (c->repo_slice == g && c->to_packed) {
			make_loose(p, c);
			any = true;
		}
		if (!is_deletion(c, g))
			continue;
		if (err == -EEXIST)
			change_locked(c, "packed-refs");
		else
			change_fail_packed(c, err, "can't rewrite packed-refs");
	}
	return any;
}

static int write_packed(struct repo_slice *g, struct packed_edit *edits,
    size_t nr, bool sync, int64_t until_ns)
{
	return packed_rewrite_begin(g->repo->packed, edits, nr,
	    g->files.packed_mode, sync, until_ns, &g->files.packed_changed);
}

void files_sync(struct pass *p, struct repo_slice *g)
{
	g->files.packed_flushing = g->files.packed_changed;
	if (g->files.packed_flushing)
		flush_ahead(&g->files.packed_flush, p->sys, p->ap->flusher,
		    packed_rewrite_fd(g->repo->packed), FLUSH_FSYNC);
}

void files_synced(struct pass *p, struct repo_slice *g)
{
	(void)p;
	if (g->files.packed_flushing)
		g->files.packed_err = flush_wait(&g->files.packed_flush);
	g->files.packed_flushing = false;
}

int files_sync_error(const struct repo_slice *g)
{
	return g->files.packed_err;
}

static struct packed_edit edit_of(const struct change *c)
{
	struct packed_edit edit = { .name = c->edit.name };

	if (c->to_packed) {
		edit.oid = &c->u->ask->new_oid;
		edit.peeled = c->u->peeled;
	}
	return edit;
}

/* ---- a large file ---- */

/* false: the changes were given back. */
static bool may_rewrite_large(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	size_t i;

	if (apply_take_large(p, g))
		return true;
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice == g && c->in_rewrite)
			change_again(c, TXN_AGAIN_ALONE);
	}
	return false;
}

/* The latest deadline of the changes in the rewrite. */
static int64_t rewrite_until(const struct pass *p, const struct repo_slice *g)
{
	const struct refd_request *req;
	int64_t wait_ms = 0;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		req = &p->changes[i]->slice->txn->req;
		if (p->changes[i]->repo_slice != g ||
		    !p->changes[i]->in_rewrite)
			continue;
		if (req->deadline_ms == 0)
			wait_ms = REFD_DEADLINE_MAX_MS;
		else if (req->deadline_ms > wait_ms)
			wait_ms = req->deadline_ms;
	}
	return SYS(p->sys, now_mono) + wait_ms * 1000000;
}

/* Waits for other batches of this daemon and for packing. But while this batch
 * has the turn of a different repository, two batches could wait for each
 * other, so then there is no wait. */
static int lock_packed(const struct pass *p, struct repo_slice *g,
    mode_t dir_mode)
{
	unsigned wait_ms = PACKED_TURN_MS;
	size_t i;
	int r;

	for (i = 0; i < p->nr_repo_slices; i++)
		if (p->repo_slices[i].files.packed_turn)
			wait_ms = 0;
	g->files.packed_turn = packed_turn_take(g->repo->packed, wait_ms);
	if (!g->files.packed_turn)
		return -EEXIST;
	r = token_lock(&g->token, g->repo->fd, "packed-refs", dir_mode);
	g->files.packed_locked = r == 0;
	if (r < 0)
		files_give_turn(g);
	return r;
}

/* False: the repository is a sticky directory, and packed-refs is of another
 * account. */
static bool can_replace(const struct pass *p, struct repo_slice *g)
{
	const struct change at = { .repo_slice = g, .worktree = "" };
	char path[2 * REFD_PATH_MAX];
	struct change *c;

	if (!pass_is_kept(p, g->repo->fd, "packed-refs"))
		return true;
	change_whole_path(&at, "packed-refs", "", path);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (is_deletion(c, g) && c->in_rewrite)
			change_cant_replace(p, c, path);
	return false;
}

/* true: values were staged. */
static bool prepare_packed(struct pass *p, struct repo_slice *g,
    struct packed_edit *edits)
{
	struct slice *s = NULL;
	struct change *c;
	size_t nr = 0;
	int r;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c) || c->edit.dirfd != g->repo->fd ||
		    (c->action != CHANGE_DELETE && !c->to_packed))
			continue;
		s = c->slice;
		c->in_rewrite = true;
		edits[nr++] = edit_of(c);
	}
	if (nr == 0)
		return false;
	if (packed_is_large(g->repo->packed) && !may_rewrite_large(p, g))
		return false;
	r = lock_packed(p, g, s->dir_mode);
	g->files.packed_mode = s->file_mode;
	if (r == 0)
		r = write_packed(g, edits, nr, false, rewrite_until(p, g));
	if (r == 0 && g->files.packed_changed && !can_replace(p, g)) {
		packed_rewrite_abandon(g->repo->packed);
		g->files.packed_changed = false;
		r = -EPERM;
	}
	return r < 0 && rewrite_failed(p, g, r);
}

bool files_seal(struct pass *p, struct repo_slice *g)
{
	struct packed_edit *edits;
	struct change *c;
	size_t nr = 1;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		files_check_sticky(p, c);
		nr++;
	}
	edits = calloc(nr, sizeof(*edits));
	p->has_staged |= keep_some_out(p, g);
	if (edits != NULL)
		p->has_staged |= prepare_packed(p, g, edits);
	else
		p->has_staged |= rewrite_failed(p, g, -ENOMEM);
	free(edits);
	g->is_bound = g->files.packed_changed;
	return false;
}

/* Gives back what the commit of a session does not need, because the session
 * may wait for long. All look-ups are done, so the snapshot goes. The turn
 * goes, too, so that packed-refs.lock is like a foreign lock for other
 * batches. */
void files_wait(struct pass *p, struct repo_slice *g)
{
	(void)p;
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
	files_give_turn(g);
}

/* The locks stand since the preparation, so no round is needed. */
bool files_resume(struct pass *p, struct repo_slice *g)
{
	(void)p;
	(void)g;
	return false;
}

void files_give_turn(struct repo_slice *g)
{
	if (g->files.packed_turn)
		packed_turn_give(g->repo->packed);
	g->files.packed_turn = false;
	apply_give_large(g);
}

int files_refit_packed(struct pass *p, struct repo_slice *g)
{
	struct packed_edit *edits;
	bool fits = true;
	struct change *c;
	size_t i, nr = 0;
	int r = 0;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice == g && c->in_rewrite &&
		    !change_is_committed(c))
			fits = false;
	}
	if (fits)
		return 0;
	edits = calloc(p->nr_changes + 1, sizeof(*edits));
	if (edits == NULL)
		return -ENOMEM;
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice == g && c->in_rewrite &&
		    change_is_committed(c))
			edits[nr++] = edit_of(c);
	}
	packed_rewrite_abandon(g->repo->packed);
	g->files.packed_changed = false;
	r = write_packed(g, edits, nr, true, INT64_MAX);
	free(edits);
	return r;
}
