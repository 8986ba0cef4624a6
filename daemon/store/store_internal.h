/*
 * Inside the store: its parts. Private to them.
 *
 * A pool of workers (base/workers.h) serves, in this order:
 *	barriers	the new objects of one file system (barrier.h)
 *	flusher		a file that a window syncs (refs/flush.h)
 *	pipeline	a window (pipeline/pipeline.h)
 *	syncs		a file system of a checkpoint (checkpoint/checkpointer.h)
 *	admissions	admission, look-ups, retries (admission/admissions.h)
 * Two threads have work of their own:
 *	checkpointer	rounds of the checkpoint (checkpoint/checkpointer.h)
 *	historian	questions about history, its index, what is trimmed
 *
 * Work comes from a queue. The result goes to the completions (completions.h) or
 * to the next queue.
 *
 * The order of the locks. A thread that holds a lock takes only locks of lower
 * lines. Two locks of one line are never held together.
 *	deferred.rows, then deferred.telling	deferred/deferred.h
 *	fs.objects_sync, fs.checkpoint, sync_failures.lacking_lock
 *				held during disk I/O
 *	barriers.mutex				barrier.h
 *	admissions.mutex, store.mutex, repos.mutex
 *	checkpointer.mutex
 *	pipeline.mutex
 *	deferred.mutex, historian.mutex, completions.mutex, the lock of the pool,
 *				and locks inside other modules
 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "daemon/base/workers.h"
#include "daemon/store/admission/admissions.h"
#include "daemon/store/barrier.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/fifos.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/recovery/recover.h"
#include "daemon/store/stages.h"
#include "daemon/store/store.h"

/* Threads of the pool. */
#define STORE_WORKERS 14

struct checkpointer;
struct historian;

struct store {
	const struct sys *sys;
	struct store_config cfg;
	char *state_dir;
	char **roots;
	int state_fd, state_lock_fd;
	char boot_id[40];

	struct workers *workers;
	struct repos repos;
	struct sync_failures *sync_failures; /* repos has it too */
	struct rights rights;
	struct barriers barriers;
	struct completions completions;

	struct deferred *deferred; /* has locks of its own: deferred.h */

	struct commit_log *log;
	struct journal *journal;       /* LOG's */
	struct admissions *admissions; /* has its own mutex */
	struct pipeline *pipeline;
	struct historian *historian; /* has its own mutex, within all others */
	struct checkpointer *checkpointer; /* has its own mutex */

	/* Everything below: under MUTEX. */
	pthread_mutex_t mutex;
	bool started;
	/* Why the store must not go on; "": it may. Set once. No memory is
	 * allocated for it: the lack of memory may be the reason. */
	char fatal[512];
};

/* store.c */
void store_set_fatal(struct store *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* commit_log_config.failed */
void store_log_failed(void *store, const char *why);

void store_tell(const struct store *s, enum store_event event,
    const char *place, const char *why);

/* store_open_sync_failures.c. Makes s->sync_failures, for s->repos too. 0, or
 * negative errno and *WHY. *WARNING is freed if there is a new one. */
int store_open_sync_failures(struct store *s, char **warning, char **why);
/* store_open.c. Make s->deferred, then s->pipeline, then s->checkpointer, once
 * the log is open. 0, -ENOMEM. */
int store_open_deferred(struct store *s);
int store_open_pipeline(struct store *s);
int store_open_checkpointer(struct store *s);

#endif
