/*
 * The state of the historian. Private to historian.c, which is the thread, and
 * to historian_handover.c, which starts and ends the thread and holds what
 * other threads call.
 */
#ifndef STORE_HISTORIAN_INTERNAL_H
#define STORE_HISTORIAN_INTERNAL_H

#include <pthread.h>

#include "daemon/store/history/historian.h"
#include "daemon/store/history/history_queue.h"
#include "daemon/store/stages.h"

struct historian {
	struct historian_config cfg;
	bool is_started; /* the owner's */
	pthread_t thread;

	/* Only the thread uses these. */
	struct history *history;
	struct history_queue queue;     /* questions */
	char path[REFD_PATH_MAX];       /* of the question in turn */
	struct store_question *waiting; /* watches */
	/* the last visible LSN at the last slice */
	uint64_t seen;
	bool is_indexed;            /* up to `seen` */
	uint64_t heard;             /* all watches were told up to here */
	int64_t heard_ns;           /* when */
	int64_t flush_ns, sweep_ns; /* not before */
	int64_t stop_ns;            /* when the stop was seen; 0: not stopped */
	int64_t index_ns, trim_ns;  /* the next time */
	bool is_damage_told, is_clock_told;

	/* Everything below: under MUTEX. */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct store_question *asked; /* a list of utlist */
	bool is_stopping;
	bool ends_watches; /* no watch waits any more */
	bool listens;      /* a commit is worth waking the thread for */
	bool is_woken;     /* the thread may not wait */
	struct stage_work work;
	uint64_t nr_watches, indexed_lsn, trimmed_lsn;
};

/* The thread; ARG is the historian. */
void *historian_main(void *arg);

#endif
