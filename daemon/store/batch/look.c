/*
 * Reads the values of refs before git changes them: phase "prepared" of a gate.
 *
 * The happy path: git holds the locks, and waits. Every update gets the value
 * as `found`, and the status aborted, because the batch changes nothing. No
 * lock and no turn is taken.
 *
 * What fails:
 *	a value which cannot be read,	is not given: history then does not know
 *	the value of a symbolic ref	the value before
 *	git packs a value that it has	the transaction is refused: packed-refs
 *	read before the ref changed	would bring the value back
 */
#include <errno.h>
#include <sys/stat.h>

#include "daemon/store/batch/files.h"
#include "daemon/store/batch/tables.h"

static void note(struct change *c, struct loose_value *value)
{
	if (value->kind == LOOSE_OID)
		c->u->found = value->oid;
	c->u->has_found = value->kind == LOOSE_OID ||
	    value->kind == LOOSE_ABSENT || value->kind == LOOSE_DIR;
	loose_value_done(value);
}

static bool has_place(const struct change *c)
{
	return c->slice->git_err == 0 && c->edit.dirfd >= 0;
}

static bool is_absent(struct pass *p, int dirfd, const char *path)
{
	struct sys_stat st;
	int r = SYS(p->sys, lstatat, dirfd, path, &st);

	return r == -ENOENT || r == -ENOTDIR || (r == 0 && S_ISDIR(st.mode));
}

/*
 * Git locks each ref that it changes, except when it packs. Then git only locks
 * packed-refs, and `git pack-refs --auto` has read the refs before. A loose
 * file overrules the line that git will write. But without a file, the line
 * becomes the value, and brings a deleted ref or an older value back.
 */
static bool is_packed_late(struct pass *p, const struct change *c)
{
	const struct refd_update *ask = c->u->ask;
	const struct repo_slice *g = c->repo_slice;
	char lock[REFD_PATH_MAX];
	struct refd_oid oid;
	int r;

	if (ask->action != REFD_UPDATE || c->edit.dirfd != g->repo->fd ||
	    token_lock_path(lock, c->edit.name) < 0 ||
	    !is_absent(p, c->edit.dirfd, lock) ||
	    !is_absent(p, c->edit.dirfd, c->edit.name))
		return false;
	r = packed_lookup(g->files.snap, c->edit.name, &oid);
	return r == 0 || (r > 0 && !refd_oid_eq(&oid, &ask->new_oid));
}

static void refuse(struct change *c)
{
	struct txn *txn = c->slice->txn;

	if (txn->refused != REFD_OK)
		return;
	txn->refused = REFD_STALE;
	txn->why = repo_why("git has read '%s' before another writer changed "
			    "it, and would pack the former value: pack the "
			    "refs again",
	    c->edit.name);
}

/* Without packed-refs, an absent file says nothing. */
static void look_at_files(struct pass *p, struct repo_slice *g)
{
	struct loose_value value;
	struct change *c;
	bool may_pack;

	if (packed_snapshot(g->repo->packed, &g->files.snap) < 0)
		return;
	may_pack = !is_absent(p, g->repo->fd, "packed-refs.lock");
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!has_place(c))
			continue;
		if (may_pack && is_packed_late(p, c))
			refuse(c);
		if (files_look(p, c, &value) == 0)
			note(c, &value);
	}
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
}

static void look_at_tables(struct repo_slice *g)
{
	struct tables_glance glance = { .look.budget.work = TABLES_WORK };
	struct loose_value value;
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (has_place(c) && tables_glance(&glance, c, &value) == 0)
			note(c, &value);
	stack_look_end(&glance.look);
}

void pass_look(struct pass *p)
{
	struct repo_slice *g = &p->repo_slices[0];
	size_t i;

	/* Not at a different place, or in a different format. */
	if (p->nr_repo_slices > 0 && repo_is_same(p->ap->repos, g->repo)) {
		if (g->repo->format == REPO_FILES)
			look_at_files(p, g);
		else
			look_at_tables(g);
		p->slices[0].txn->is_looked =
		    p->slices[0].txn->refused == REFD_OK;
	}
	for (i = 0; i < p->nr_asked; i++)
		txn_decide(p->changes[i]->u, REFD_ABORTED, NULL);
}
