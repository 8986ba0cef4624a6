/*
 * Compares what a batch is about to do with the row of the group that it
 * applies. A row does the same on every node, and can't be taken back.
 *
 * The happy path: the plan of this node writes and deletes the same refs as the
 * row, from the same old values. Log lines may differ, because each node has
 * its own HEAD and its own logs.
 *
 * Failures: a lock is held, or the batch is too full: the row is tried again.
 * Anything else fails all updates of the row.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/batch/pass.h"

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

/* *DIFFERS: the first member that differs. It stays NULL if the numbers of
 * members differ, or without memory. */
static bool are_same(const struct record *a, const struct record *b,
    const struct record_member **differs)
{
	struct writes of_a = { 0 }, of_b = { 0 };
	bool ok;
	size_t i;

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

/* A client could let git do what refd does not support. */
static void deny_unsupported(struct record *plan)
{
	size_t i;

	for (i = 0; i < plan->nr_members; i++)
		if (plan->members[i].status == REFD_UNSUPPORTED)
			plan->members[i].status = REFD_DENIED;
}

bool group_fits(struct slice *s)
{
	const bool goes_back = any_is_given_back(s);
	const struct record_member *differs = NULL;
	struct txn_update *u;
	size_t i;

	deny_unsupported(&s->plan);
	if (!group_txn_is_row(s->txn) ||
	    (!goes_back &&
		are_same(&s->plan, group_txn_of(s->txn)->record, &differs)))
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
