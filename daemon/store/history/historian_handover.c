/*
 * Starts and ends the historian's thread, and hands questions and answers over.
 *
 * Happy path:
 *	ask	the question goes into a list; the thread wakes
 *	commit	the thread wakes, if a watch waits
 *
 * Failures: out of memory, or no thread. Both fail the start of the store. To
 * hand over allocates nothing.
 */
#include <stdlib.h>

#include <utlist.h>

#include "daemon/store/history/historian_internal.h"

struct historian *historian_new(const struct historian_config *cfg)
{
	struct historian *h = calloc(1, sizeof(*h));
	pthread_condattr_t attr;

	if (h == NULL)
		return NULL;
	h->cfg = *cfg;
	pthread_mutex_init(&h->mutex, NULL);
	/* A wall clock that is set back must not stop the historian. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->cond, &attr);
	pthread_condattr_destroy(&attr);
	return h;
}

int historian_start(struct historian *h)
{
	h->history = history_new(&h->cfg.history);
	if (h->history != NULL)
		h->is_started =
		    pthread_create(&h->thread, NULL, historian_main, h) == 0;
	if (h->is_started)
		return 0;
	history_free(h->history);
	h->history = NULL;
	return -1;
}

void historian_stop(struct historian *h)
{
	if (!h->is_started)
		return;
	pthread_mutex_lock(&h->mutex);
	h->is_stopping = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mutex);
	pthread_join(h->thread, NULL);
	h->is_started = false;
}

void historian_free(struct historian *h)
{
	if (h == NULL)
		return;
	pthread_cond_destroy(&h->cond);
	pthread_mutex_destroy(&h->mutex);
	free(h);
}

/* ---- handing over ---- */

void historian_ask(struct historian *h, struct store_question *ask)
{
	pthread_mutex_lock(&h->mutex);
	DL_APPEND(h->asked, ask);
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mutex);
}

void historian_end_watches(struct historian *h)
{
	pthread_mutex_lock(&h->mutex);
	h->ends_watches = h->is_woken = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->mutex);
}

void historian_note_commit(struct historian *h)
{
	pthread_mutex_lock(&h->mutex);
	if (h->listens) {
		h->is_woken = true;
		pthread_cond_signal(&h->cond);
	}
	pthread_mutex_unlock(&h->mutex);
}

void historian_stats(struct historian *h, struct store_stats *stats)
{
	pthread_mutex_lock(&h->mutex);
	stats->watching = h->nr_watches;
	stats->indexed_lsn = h->indexed_lsn;
	stats->trimmed_lsn = h->trimmed_lsn;
	pthread_mutex_unlock(&h->mutex);
}

void historian_progress(struct historian *h, int64_t before_ns,
    struct store_progress *progress)
{
	pthread_mutex_lock(&h->mutex);
	stage_add(progress, &h->work, before_ns);
	pthread_mutex_unlock(&h->mutex);
}
