/*
 * The rows of a batch go into the log of the group, and then into the journal.
 *
 * The happy path: the row gets what other nodes need, the log of the group
 * takes the row, and then the journal takes it. Afterwards the daemon notes the
 * values that other nodes now have, so that the next update need not send these
 * objects. A row must do the same on every node. So a batch that applies a row
 * of the group has a plan that writes and deletes the same refs, from the same
 * old values. Log lines may differ, because each node has its own HEAD and its
 * own logs.
 *
 * A transaction is a client's, or the store's own. Own transactions are of two
 * kinds: the group has a row of the first kind (group_txn_is_row()), and only
 * this node has a change of the second (group_txn_is_of_node()).
 *
 * Failures: group.h tells the fate of the rows. With a doubt about a row that
 * the group has, the daemon ends, because no row of the group can be taken
 * back. If the plan differs, all updates of the row fail, because a row is
 * applied as a whole. If a lock is held, or the batch is too full, the row is
 * tried again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/batch/pass.h"
#include "daemon/store/objects/row_objects.h"

/* The group knows nothing of the rows. */
static int append_of_node(struct group *g, struct journal_row *rows, size_t nr)
{
	int r = pipeline_append(&g->base, rows, nr, true);

	return r != JOURNAL_UNKNOWN ?
	    r :
	    group_fail(g, "the journal can't be synced");
}

/* ---- values that other nodes have ---- */

/* Is the old value of M still behind a ref? */
static bool keeps_old(const struct group_txn *kept,
    const struct record_member *m)
{
	return !m->had_old || refd_oid_is_null(&m->old_oid) ||
	    (m->action == RECORD_WRITE && kept->objects != NULL &&
		row_objects_is_behind(kept->objects, &m->new_oid, &m->old_oid));
}

static void note_values(struct group *g, const struct slice *s,
    const struct group_txn *kept)
{
	const struct record_member *m,
	    *end = s->plan.members + s->plan.nr_members;
	bool keeps_all = true;

	for (m = s->plan.members; m < end; m++)
		keeps_all =
		    keeps_all && (!record_changes_ref(m) || keeps_old(kept, m));
	if (!kept->is_in_row)
		group_note_held(g);
	if (!keeps_all)
		group_forget(g, s->repo->uuid);
	for (m = s->plan.members; m < end; m++)
		if (record_changes_ref(m) && m->action == RECORD_WRITE &&
		    m->target == NULL)
			group_know(g, kept->epoch, s->repo->uuid, &m->new_oid);
}

static void appended(struct group *g, const struct slice *s)
{
	if (s->repo == NULL)
		return;
	/* After a row of the group, no value counts as a value that other nodes
	 * have, because they may lack what this node lacked. */
	if (!s->txn->is_own)
		note_values(g, s, group_txn_of(s->txn));
	if (record_has_value(&s->plan))
		group_repo_imported(g->base.host->sys, s->repo);
}

/* ---- the rows ---- */

/* Either all ROWS are changes of this node alone, or no row is. All ROWS also
 * have one kind, so the first row stands for all. */
int group_append_rows(struct replica *replica, struct journal_row *rows,
    size_t nr, bool flush)
{
	struct group *g = group_of(replica);
	struct commit_log_mark mark;
	size_t i;
	int r;

	(void)flush;
	switch (rows[0].kind) {
	case JOURNAL_SLICE:
		if (group_txn_is_of_node(rows[0].slice->txn))
			return append_of_node(g, rows, nr);
		break;
	case JOURNAL_ABORT:
		return group_fail(g,
		    "an update of the group can't be published: the next "
		    "start does it");
	case JOURNAL_DEFERRED:
	case JOURNAL_DEFERRED_END:
		return pipeline_append(replica, rows, nr, true);
	case JOURNAL_WAITING:
		return -EINVAL; /* group_postpone() */
	}
	r = group_append(g, rows, nr, &mark);
	if (r == 0 &&
	    commit_log_wait(replica->host->log, &mark, COMMIT_LOG_DURABLE) != 0)
		return group_fail(g,
		    "the journal has lost rows that the group has");
	for (i = 0; r == 0 && i < nr; i++)
		appended(g, rows[i].slice);
	return r;
}

bool group_is_in_row(const struct slice *s)
{
	const struct group_txn *kept = group_txn_of(s->txn);

	return kept != NULL && kept->is_in_row && record_has_value(&s->plan);
}

/* ---- the row that a batch applies ---- */

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

/* The values of a symbolic ref are not compared here, because a symbolic ref
 * has no value of its own. Nodes may find different values behind its old and
 * its new target. check_old_value() has checked before that the ref has its old
 * target, or a value. */
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

/* *DIFFERS: the first member that differs. Stays NULL if the numbers of members
 * differ, or without memory, because no single member is to blame then. */
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

/* After the status "unsupported", a client lets git make the change, which the
 * other nodes would not get. So the plan gets another status. */
static void deny_unsupported(struct record *plan)
{
	size_t i;

	for (i = 0; i < plan->nr_members; i++)
		if (plan->members[i].status == REFD_UNSUPPORTED)
			plan->members[i].status = REFD_DENIED;
}

static bool fits(struct slice *s)
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

/* Notes whether the record continues the past of the repository. A wrong note
 * in the log would hold up every other node until somebody copies the
 * repository. So if the journal cannot be read, the result is false, and all
 * updates of S wait. */
static bool note_past(const struct group *g, struct slice *s)
{
	int r = 0;
	size_t i;

	if (s->repo != NULL && !s->txn->is_own)
		r = group_repo_continues(g->base.host, s->repo);
	s->plan.continues = r == 1;
	for (i = 0; r < 0 && i < s->txn_slice->nr; i++)
		if (s->txn_slice->updates[i]->status == REFD_PENDING)
			s->txn_slice->updates[i]->again = TXN_AGAIN_LATER;
	return r >= 0;
}

bool group_fill(struct replica *r, struct slice *s, struct journal_row *row)
{
	const struct group_txn *kept = group_txn_of(s->txn);

	if (!fits(s) || !note_past(group_of(r), s))
		return false;
	if (!group_txn_is_of_node(s->txn))
		row->record = &s->plan;
	if (kept != NULL)
		row->shared_lsn = kept->lsn;
	if (kept != NULL && s->txn->is_own)
		row->final = kept->is_final;
	return true;
}
