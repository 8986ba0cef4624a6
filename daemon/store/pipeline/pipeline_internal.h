/*
 * The state of the pipeline. Private to pipeline.c and group_commit.c.
 */
#ifndef STORE_PIPELINE_INTERNAL_H
#define STORE_PIPELINE_INTERNAL_H

#include <pthread.h>

#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/stages.h"
#include "daemon/store/window/apply.h"

/* A window in work. All zero: none. */
struct commit_slot {
	const struct window *window;
	uint64_t floor; /* no record of WINDOW gets a lower LSN */
	struct stage_work work;
	bool has_more;    /* repositories besides the one in WORK */
	bool is_prepared; /* WORK is the stage commit, not prepare */
};

struct committer {
	struct pipeline *pipeline;
	struct commit_slot *slot; /* of the thread alone */
	pthread_t thread;
};

struct pipeline {
	struct pipeline_config cfg;
	struct journal *journal; /* of cfg.log */
	struct applier applier;

	/* Only for the thread that starts and stops the store. */
	struct committer committers[PIPELINE_COMMITTERS];
	size_t nr_threads;

	/* All members below: under MUTEX. */
	pthread_mutex_t mutex;
	pthread_cond_t cond;     /* a new window, or STOPPING */
	pthread_cond_t gathered; /* no window prepares any more */
	struct window_fifo to_apply;
	size_t nr_preparing; /* windows that were handed over and have not
				taken their locks yet */
	uint64_t nr_ended;
	bool stopping;
	struct commit_slot slots[PIPELINE_COMMITTERS];
};

/* group_commit.c: applier.commit; ARG is the pipeline. */
int group_commit(void *arg, struct journal_row *rows, size_t nr, bool flush);

#endif
