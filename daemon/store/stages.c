#include "daemon/store/stages.h"

#include <stdio.h>
#include <string.h>

#include "daemon/store/admission/admission_queues.h"
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
	admissions_progress(s->admissions, progress, before_ns);
	barriers_progress(&s->barriers, progress, before_ns);
	pipeline_progress(s->pipeline, before_ns, progress);
	checkpointer_progress(s->checkpointer, before_ns,
	    &progress[STORE_STAGE_CHECKPOINT]);
	packer_progress(s->packer, before_ns, &progress[STORE_STAGE_PACK]);
	looker_progress(s->looker, before_ns, &progress[STORE_STAGE_LOOK]);
	historian_progress(s->historian, before_ns,
	    &progress[STORE_STAGE_HISTORY]);
}
