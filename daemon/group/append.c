/*
 * The rows of a batch go into the log of the group, and then into the journal.
 *
 * The happy path: the row gets what other nodes need, the log of the group
 * takes it, the journal takes it, and the values that other nodes now have are
 * noted.
 *
 * Failures: group.h tells the fate of the rows. With a doubt about a row that
 * the group has, the daemon ends.
 */
#include <errno.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/batch/pass.h"
#include "daemon/store/objects/row_objects.h"

/* The group knows nothing of the rows. */
static int append_of_node(struct group *g, struct pipeline *p,
    struct journal_row *rows, size_t nr)
{
	int r = pipeline_append(p, rows, nr, true);

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

static bool changes(const struct record_member *m)
{
	return m->status == REFD_OK &&
	    (m->action == RECORD_WRITE || m->action == RECORD_DELETE);
}

static void note_values(struct group *g, const struct slice *s,
    const struct group_txn *kept)
{
	const struct record_member *m,
	    *end = s->plan.members + s->plan.nr_members;
	bool keeps_all = true;

	for (m = s->plan.members; m < end; m++)
		keeps_all = keeps_all && (!changes(m) || keeps_old(kept, m));
	if (!kept->is_in_row)
		group_note_held(g);
	if (!keeps_all)
		group_forget(g, s->repo->uuid);
	for (m = s->plan.members; m < end; m++)
		if (changes(m) && m->action == RECORD_WRITE &&
		    m->target == NULL)
			group_know(g, kept->epoch, s->repo->uuid, &m->new_oid);
}

static void appended(struct group *g, const struct slice *s)
{
	if (s->repo == NULL)
		return;
	/* Other nodes may lack what this node lacked. */
	if (!s->txn->is_own)
		note_values(g, s, group_txn_of(s->txn));
	if (record_has_value(&s->plan))
		group_repo_imported(g->base.host->sys, s->repo);
}

/* ---- the rows ---- */

/* All ROWS have one kind, and all are of this node alone, or none is. */
int group_append_rows(struct replica *replica, struct pipeline *p,
    struct journal_row *rows, size_t nr, bool flush)
{
	struct group *g = group_of(replica);
	struct commit_log_mark mark;
	size_t i;
	int r;

	(void)flush;
	switch (rows[0].kind) {
	case JOURNAL_SLICE:
		if (group_txn_is_of_node(rows[0].slice->txn))
			return append_of_node(g, p, rows, nr);
		break;
	case JOURNAL_ABORT:
		return group_fail(g,
		    "an update of the group can't be published: the next "
		    "start does it");
	case JOURNAL_DEFERRED:
	case JOURNAL_DEFERRED_END:
		return pipeline_append(p, rows, nr, true);
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

bool group_fill(struct replica *r, struct slice *s, struct journal_row *row)
{
	const struct group_txn *kept = group_txn_of(s->txn);

	(void)r;
	if (!group_fits(s))
		return false;
	if (!group_txn_is_of_node(s->txn))
		row->record = &s->plan;
	if (kept != NULL)
		row->shared_lsn = kept->lsn;
	if (kept != NULL && s->txn->is_own)
		row->final = kept->is_final;
	return true;
}
