/*
 * The store's threads, and what the scheduler asks of the store as a whole.
 *
 * The hand-over of a transaction stands beside its work, because this file
 * would only forward the call: store_admit() in admission/admissions.c,
 * store_apply() in pipeline/pipeline.c, and store_reap() in completions.c.
 *
 * What fails: if a thread cannot be started, store_start fails. If the journal
 * cannot be reopened, the store ends: every transaction still comes back, as
 * unknown or refused, and the daemon must exit.
 */
#include "daemon/store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/history/historian.h"
#include "daemon/store/store_internal.h"

/* ---- handing over ---- */

const struct store_parts *store_parts(const struct store *s)
{
	return &s->parts;
}

void store_ask(struct store *s, struct store_question *q)
{
	switch (q->kind) {
	case STORE_ASK_ID:
		admissions_look_up(s->admissions, q);
		break;
	case STORE_ASK_HISTORY:
		historian_ask(s->historian, q);
		break;
	case STORE_ASK_CHECKPOINT:
		checkpointer_ask(s->checkpointer, q);
		break;
	case STORE_ASK_PACK:
		packer_ask(s->packer, q);
		break;
	case STORE_ASK_LOOK:
		looker_ask(s->looker, (struct store_look *)q);
		break;
	}
}

void store_tell_service(struct store *s, enum store_service service)
{
	packer_allow(s->packer, service == STORE_SERVES);
	if (service == STORE_STOPS)
		historian_stop(s->historian);
}

bool store_may_commit(struct store *s, const struct txn *txn)
{
	return REPLICA(s->replica, may_commit, txn);
}

void store_token_log(struct store *s, uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	replica_token_log(s->replica, id);
}

const uint8_t *store_journal_id(const struct store *s)
{
	return journal_uuid(s->journal);
}

size_t store_max_batches(const struct store *s)
{
	(void)s;
	return PIPELINE_BATCHES;
}

void store_release(struct store *s, struct repo *repo)
{
	repo_put(&s->repos, repo);
}

uint64_t store_repo_key(const struct repo *repo)
{
	return repo->id;
}

bool store_writes_alone(const struct repo *repo)
{
	return repo->format == REPO_REFTABLE;
}

const char *store_repo_path(const struct repo *repo)
{
	return repo->path;
}

/* ---- threads ---- */

static void end_threads(struct store *s)
{
	REPLICA(s->replica, stop);
	checkpointer_stop(s->checkpointer);
	store_tell_service(s, STORE_STOPS);
	workers_stop(s->workers);
	s->started = false;
}

int store_start(struct store *s)
{
	int r;

	admissions_start(s->admissions);
	if (workers_start(s->workers) < 0)
		return -EAGAIN;
	s->started = true;
	r = checkpointer_start(s->checkpointer);
	if (r == 0)
		r = REPLICA(s->replica, start);
	if (r < 0)
		end_threads(s);
	return r;
}

int store_stop(struct store *s)
{
	int r = 0;

	if (s->started) {
		end_threads(s);
		r = checkpointer_once(s->checkpointer, true);
		/* Perhaps only the last sync of this round found that a file
		 * system failed. Then this round has not deferred the records
		 * of this file system, so a second round defers them. */
		if (r < 0)
			r = checkpointer_once(s->checkpointer, true);
	}
	return r;
}

/* ---- reports for people ---- */

void store_tell(const struct store *s, enum store_event event,
    const char *place, const char *why)
{
	if (s->cfg.event != NULL)
		s->cfg.event(event, place, why);
}

void store_set_fatal(struct store *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	mutex_lock(&s->mutex);
	if (s->fatal[0] == '\0')
		vsnprintf(s->fatal, sizeof(s->fatal), fmt, ap);
	mutex_unlock(&s->mutex);
	va_end(ap);
	s->cfg.wake(s->cfg.wake_arg);
}

void store_log_failed(void *store, const char *why)
{
	struct store *s = store;

	store_set_fatal(s, "the journal in '%s' %s", s->state_dir, why);
}

const char *store_fatal(struct store *s)
{
	const char *fatal;

	mutex_lock(&s->mutex);
	fatal = s->fatal[0] != '\0' ? s->fatal : NULL;
	mutex_unlock(&s->mutex);
	return fatal;
}

int64_t store_stuck_ns(struct store *s)
{
	return commit_log_stuck_ns(s->log);
}

void store_stats(struct store *s, struct store_stats *stats)
{
	struct journal_stats journal;

	memset(stats, 0, sizeof(*stats));
	stats->batches = pipeline_batches(s->pipeline);
	deferred_count(s->deferred, &stats->awaiting_repos,
	    &stats->awaiting_refs);
	barriers_count(&s->barriers, stats);
	checkpointer_stats(s->checkpointer, stats);
	journal_stats(s->journal, &journal);
	stats->last_lsn = journal_last_lsn(s->journal);
	stats->forgotten_lsn = journal_forgotten(s->journal);
	stats->flushes = journal.flushes;
	stats->wal_bytes = journal.wal_bytes;
	stats->is_journal_damaged = journal_is_damaged(s->journal);
	mutex_lock(&s->repos.mutex);
	stats->open_repos = s->repos.nr_open;
	mutex_unlock(&s->repos.mutex);
	historian_stats(s->historian, stats);
	packer_stats(s->packer, stats);
	stats->suspect_fs = sync_failures_count(s->sync_failures);
	REPLICA(s->replica, look, &stats->replica);
}
