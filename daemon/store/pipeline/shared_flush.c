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

int pipeline_append(struct pipeline *p, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct commit_log_mark mark;
	int r;

	if (flush)
		gather(p);
	r = commit_log_append(p->cfg->log, rows, nr, &mark);
	return r != 0 ? r :
			commit_log_wait(p->cfg->log, &mark,
			    flush ? COMMIT_LOG_DURABLE : COMMIT_LOG_LOCAL);
}

int pipeline_commit(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	struct pipeline *p = arg;

	if (p->cfg->is_fatal(p->cfg->store))
		return JOURNAL_UNKNOWN;
	return REPLICA(p->cfg->replica, append, p, rows, nr, flush);
}
