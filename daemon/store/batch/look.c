/*
 * Reads the values of refs before git changes them: phase "prepared" of a gate.
 *
 * The happy path: git holds the locks, and waits. Every update gets the value
 * as `found`, and the status aborted, because the batch changes nothing. No
 * lock and no turn is taken.
 *
 * What fails: a value which cannot be read, or the value of a symbolic ref, is
 * not given. History then does not know the value before.
 */
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

/* Without packed-refs, an absent file says nothing. */
static void look_at_files(struct pass *p, struct repo_slice *g)
{
	struct loose_value value;
	struct change *c;

	if (packed_snapshot(g->repo->packed, &g->files.snap) < 0)
		return;
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (has_place(c) && files_look(p, c, &value) == 0)
			note(c, &value);
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
}

static void look_at_tables(struct repo_slice *g)
{
	struct tables_glance glance = { .budget =
					    REFTABLE_BUDGET(TABLES_WORK) };
	struct loose_value value;
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (has_place(c) && tables_glance(&glance, c, &value) == 0)
			note(c, &value);
	tables_glance_end(&glance);
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
		p->slices[0].txn->is_looked = true;
	}
	for (i = 0; i < p->nr_asked; i++)
		txn_decide(p->changes[i]->u, REFD_ABORTED, NULL);
}
