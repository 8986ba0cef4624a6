/*
 * What a commit in a group of nodes does in addition. A row of the group's log
 * does the same on every node, and can't be taken back.
 *
 * The happy path: the prepared file of each repository is durable first. The
 * plan of this node writes and deletes the same refs as the row, from the same
 * old values. Log lines may differ: each node has its own HEAD and its own
 * logs.
 *
 * Failures: a lock is held, or the batch is too full: the row is tried again.
 * Anything else fails all updates of the row.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/tables.h"

struct writes {
	const struct record_member **members; /* owned */
	size_t nr;
};

static int compare(const void *va, const void *vb)
{
	const struct record_member *a =
	    *(const struct record_member *const *)va;
	const struct record_member *b =
	    *(const struct record_member *const *)vb;

	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* A symbolic ref has no value of its own: the values that its old and its new
 * target lead to may differ. check_old_value() has seen a value in its
 * place. */
static bool are_same_values(const struct record_member *a,
    const struct record_member *b)
{
	return a->target != NULL ||
	    (refd_oid_eq(&a->new_oid, &b->new_oid) &&
		a->had_old == b->had_old &&
		refd_oid_eq(&a->old_oid, &b->old_oid));
}

/* The members of REC that change a ref, in one order. */
static bool list_writes(struct writes *writes, const struct record *rec)
{
	const struct record_member *m;
	size_t i;

	writes->nr = 0;
	writes->members = calloc(rec->nr_members + 1, sizeof(*writes->members));
	if (writes->members == NULL)
		return false;
	for (i = 0; i < rec->nr_members; i++) {
		m = &rec->members[i];
		if (m->status == REFD_OK &&
		    (m->action == RECORD_WRITE || m->action == RECORD_DELETE))
			writes->members[writes->nr++] = m;
	}
	qsort(writes->members, writes->nr, sizeof(*writes->members), compare);
	return true;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_same(const struct record_member *a,
    const struct record_member *b)
{
	return a->index == b->index && a->action == b->action &&
	    strcmp(a->name, b->name) == 0 &&
	    strcmp(a->worktree, b->worktree) == 0 &&
	    is_same_text(a->target, b->target) && are_same_values(a, b);
}

/* *DIFFERS: the first member that differs; NULL: memory, or the numbers of
 * members differ. */
static bool are_same(const struct record *a, const struct record *b,
    const struct record_member **differs)
{
	struct writes of_a = { 0 }, of_b = { 0 };
	bool ok;
	size_t i;

	*differs = NULL;
	ok = list_writes(&of_a, a) && list_writes(&of_b, b) &&
	    of_a.nr == of_b.nr;
	for (i = 0; ok && i < of_a.nr; i++)
		if (!is_same(of_a.members[i], of_b.members[i])) {
			*differs = of_b.members[i];
			ok = false;
		}
	free(of_a.members);
	free(of_b.members);
	return ok;
}

static bool any_is_given_back(const struct slice *s)
{
	size_t i;

	for (i = 0; i < s->txn_slice->nr; i++)
		if (s->txn_slice->updates[i]->status == REFD_PENDING &&
		    s->txn_slice->updates[i]->again != TXN_AGAIN_NO)
			return true;
	return false;
}

bool slice_is_as_row(struct slice *s)
{
	const bool goes_back = any_is_given_back(s);
	const struct record_member *differs;
	struct txn_update *u;
	size_t i;

	if (s->txn->row == NULL || txn_is_of_node(s->txn) ||
	    (!goes_back && are_same(&s->plan, s->txn->row->record, &differs)))
		return true;
	for (i = 0; i < s->txn_slice->nr; i++) {
		u = s->txn_slice->updates[i];
		if (u->status != REFD_PENDING || u->again != TXN_AGAIN_NO)
			continue;
		if (goes_back)
			u->again = TXN_AGAIN_LATER;
		else
			txn_decidef(u, REFD_CONFLICT,
			    "the row of the group does something else to '%s' "
			    "on this node",
			    differs != NULL ? differs->name : u->ask->name);
	}
	return false;
}

/* If the mark stays, the import is done again. */
void slice_end_import(const struct pass *p, const struct slice *s)
{
	if (s->repo != NULL && !txn_is_of_node(s->txn) &&
	    atomic_load(&s->repo->awaits_import))
		repo_forget_import(p->sys, s->repo);
}

/* The failed sync of the prepared file of G, or 0. */
static int failed_sync(const struct repo_slice *g)
{
	int r = tables_sync_error(g);

	return r < 0 ? r : g->files.packed_err;
}

void pass_sync_first(struct pass *p)
{
	struct repo_slice *g;
	struct change *c;
	size_t i;
	int r;

	for (g = p->repo_slices; g < p->repo_slices + p->nr_repo_slices; g++) {
		g->backend->sync(p, g);
		g->backend->synced(p, g);
	}
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		r = failed_sync(c->repo_slice);
		if (c->in_rewrite && r < 0)
			change_fail_errno(c, r,
			    "can't sync packed-refs.new or the reftables");
	}
	pass_settle(p);
}
