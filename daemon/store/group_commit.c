/*
 * Committing together: when a committer's rows go to the commit log.
 *
 * The happy path: gather, append, wait.
 *
 * What fails: the log says what became of the rows (commit_log.h). A log that
 * is dead makes the store fatal.
 */
#include <time.h>

#include "daemon/store/store_internal.h"

#define GATHER_MAX_NS (10 * 1000 * 1000)

void group_commit_failed(void *store, const char *why)
{
	struct store *s = store;

	store_set_fatal(s, "the journal in '%s' %s", s->state_dir, why);
}

/* A flush for one takes as long as one for all: while others are about to have
 * their locks it waits for them, but no longer than a flush takes. Who is
 * alone waits for nobody. */
static void gather(struct store *s)
{
	int64_t ns = journal_flush_ns(s->journal);
	struct timespec until;

	if (ns > GATHER_MAX_NS)
		ns = GATHER_MAX_NS;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_mutex_lock(&s->mutex);
	while (s->nr_preparing > 0 &&
	    pthread_cond_timedwait(&s->gathered_cond, &s->mutex, &until) == 0)
		;
	pthread_mutex_unlock(&s->mutex);
}

int group_commit(void *store, struct journal_row *rows, size_t nr, bool flush)
{
	struct commit_log_mark mark;
	struct store *s = store;
	int r;

	if (store_fatal(s) != NULL)
		return JOURNAL_UNKNOWN;
	if (flush)
		gather(s);
	r = commit_log_append(s->log, rows, nr, &mark);
	return r != 0 ? r :
			commit_log_wait(s->log, &mark,
			    flush ? COMMIT_LOG_DURABLE : COMMIT_LOG_LOCAL);
}
