#include "daemon/store/stages.h"

#include <stdio.h>
#include <string.h>

#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/history/historian.h"
#include "daemon/store/store_internal.h"

const char *store_stage_name(enum store_stage stage)
{
	static const char *const names[] = {
#define X(symbol, name, nr_threads) [STORE_STAGE_##symbol] = name,
		STORE_STAGE_TABLE(X)
#undef X
	};

	return names[stage];
}

bool stage_add(struct store_progress *p, const struct stage_work *work,
    int64_t before_ns)
{
	if (work->path == NULL)
		return false;
	p->nr_stuck += work->since_ns <= before_ns;
	if (p->since_ns != 0 && p->since_ns <= work->since_ns)
		return false;
	p->since_ns = work->since_ns;
	snprintf(p->path, sizeof(p->path), "%s", work->path);
	return true;
}

/* A thread at work on PATH, or none. */
static void add(struct store_progress *p, const char *path, int64_t since_ns,
    int64_t before_ns)
{
	stage_add(p, &(struct stage_work){ path, since_ns }, before_ns);
}

static void add_admissions(struct store *s, struct store_progress *progress,
    int64_t before_ns)
{
	const struct admission_slot *slot = s->admission.slots;
	size_t i;

	if (s->is_sorting)
		add(&progress[STORE_STAGE_LOOKUP], s->state_dir, s->sorting_ns,
		    before_ns);
	for (i = 0; i < ADMISSION_WORKERS; i++)
		add(&progress[STORE_STAGE_ADMISSION], slot[i].path,
		    slot[i].since_ns, before_ns);
}

void store_progress(struct store *s, int64_t limit_ns,
    struct store_progress progress[STORE_STAGES])
{
	static const size_t nr_threads[STORE_STAGES] = {
#define X(symbol, name, nr_threads) nr_threads,
		STORE_STAGE_TABLE(X)
#undef X
	};
	int64_t before_ns = SYS(s->sys, now_mono) - limit_ns;
	size_t i;

	memset(progress, 0, STORE_STAGES * sizeof(*progress));
	for (i = 0; i < STORE_STAGES; i++)
		progress[i].nr_threads = nr_threads[i];
	barriers_progress(&s->barriers, progress, before_ns);
	pipeline_progress(s->pipeline, before_ns, progress);
	pthread_mutex_lock(&s->mutex);
	add_admissions(s, progress, before_ns);
	pthread_mutex_unlock(&s->mutex);
	checkpointer_progress(s->checkpointer, before_ns,
	    &progress[STORE_STAGE_CHECKPOINT]);
	historian_progress(s->historian, before_ns,
	    &progress[STORE_STAGE_HISTORY]);
}
