/*
 * Committing together: when the rows of a batch go to the commit log.
 *
 * Happy path: gather, append, wait.
 *
 * Failures: commit_log.h tells the fate of the rows. A dead log takes no rows.
 */
#include <errno.h>
#include <time.h>

#include "daemon/base/time.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/pipeline/pipeline_internal.h"

#define GATHER_MAX_NS (10 * 1000 * 1000)

/* One flush serves all rows before it. So a batch waits while other batches
 * take their locks, but no longer than a flush takes. */
static void gather(struct pipeline *p)
{
	int64_t ns = journal_flush_ns(p->journal);
	struct timespec until;

	if (ns > GATHER_MAX_NS)
		ns = GATHER_MAX_NS;
	until = time_after(ns);
	pthread_mutex_lock(&p->mutex);
	p->nr_gathering++;
	while (p->nr_locking > 0 &&
	    pthread_cond_timedwait(&p->gathered, &p->mutex, &until) == 0)
		;
	p->nr_gathering--;
	pthread_mutex_unlock(&p->mutex);
}

static int commit(struct pipeline *p, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct commit_log_mark mark;
	int r;

	if (flush)
		gather(p);
	r = commit_log_append(p->cfg.log, rows, nr, &mark);
	return r != 0 ? r :
			commit_log_wait(p->cfg.log, &mark,
			    flush ? COMMIT_LOG_DURABLE : COMMIT_LOG_LOCAL);
}

/* The group knows nothing of the rows. */
static int commit_of_node(struct pipeline *p, struct journal_row *rows,
    size_t nr)
{
	int r = commit(p, rows, nr, true);

	return r != JOURNAL_UNKNOWN ?
	    r :
	    group_fail(p->cfg.group, "the journal can't be synced");
}

/* All ROWS have one kind, and all are of this node alone, or none is. */
static int commit_in_group(struct pipeline *p, struct journal_row *rows,
    size_t nr)
{
	struct commit_log_mark mark;
	int r;

	switch (rows[0].kind) {
	case JOURNAL_SLICE:
		if (rows[0].is_of_node)
			return commit_of_node(p, rows, nr);
		break;
	case JOURNAL_ABORT:
		return group_fail(p->cfg.group,
		    "an update of the group can't be published: the next "
		    "start does it");
	case JOURNAL_DEFERRED:
	case JOURNAL_DEFERRED_END:
		return commit(p, rows, nr, true);
	case JOURNAL_WAITING:
		return -EINVAL; /* group_postpone() */
	}
	r = group_append(p->cfg.group, rows, nr, &mark);
	if (r != 0 ||
	    commit_log_wait(p->cfg.log, &mark, COMMIT_LOG_DURABLE) == 0)
		return r;
	return group_fail(p->cfg.group,
	    "the journal has lost rows that the group has");
}

int group_commit(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	struct pipeline *p = arg;

	if (p->cfg.is_fatal(p->cfg.arg))
		return JOURNAL_UNKNOWN;
	return p->cfg.group != NULL ? commit_in_group(p, rows, nr) :
				      commit(p, rows, nr, flush);
}

/* ---- values that other nodes have ---- */

/* Is the old value of M still behind a ref? */
static bool keeps_old(const struct txn *txn, const struct record_member *m)
{
	return !m->had_old || refd_oid_is_null(&m->old_oid) ||
	    (m->action == RECORD_WRITE &&
		txn_has_behind(txn, &m->new_oid, &m->old_oid));
}

static bool changes(const struct record_member *m)
{
	return m->status == REFD_OK &&
	    (m->action == RECORD_WRITE || m->action == RECORD_DELETE);
}

void group_committed(void *arg, const struct txn *txn, const struct repo *repo,
    const struct record *plan)
{
	struct group *g = ((struct pipeline *)arg)->cfg.group;
	const struct record_member *m, *end = plan->members + plan->nr_members;
	bool keeps_all = true;

	/* Other nodes may lack what this node lacked. */
	if (txn->row != NULL)
		return;
	for (m = plan->members; m < end; m++)
		keeps_all = keeps_all && (!changes(m) || keeps_old(txn, m));
	if (!txn->is_in_row)
		group_note_held(g);
	if (!keeps_all)
		group_forget(g, repo->uuid);
	for (m = plan->members; m < end; m++)
		if (changes(m) && m->action == RECORD_WRITE &&
		    m->target == NULL)
			group_know(g, txn->group_epoch, repo->uuid,
			    &m->new_oid);
}
