/*
 * Makes the checkpointer of the store, the packer, which the checkpointer tells
 * of synced file systems, and the looker.
 *
 * What fails: no memory.
 */
#include <errno.h>

#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/store_internal.h"

static bool is_fatal(void *store)
{
	return store_fatal(store) != NULL;
}

static void retry(void *store)
{
	admissions_wake(((struct store *)store)->admissions);
}

static int make_packer(struct store *s)
{
	const struct packer_config cfg = { .sys = s->sys,
		.workers = s->workers,
		.repos = &s->repos,
		.deferred = s->deferred,
		.pipeline = s->pipeline,
		.completions = &s->completions,
		.journal = s->journal,
		.event = s->cfg.event };

	s->packer = packer_new(&cfg);
	return s->packer == NULL ? -ENOMEM : 0;
}

static int make_looker(struct store *s)
{
	const struct looker_config cfg = { .sys = s->sys,
		.state_fd = s->state_fd,
		.workers = s->workers,
		.journal = s->journal,
		.pipeline = s->pipeline,
		.completions = &s->completions };

	s->looker = looker_new(&cfg);
	return s->looker == NULL ? -ENOMEM : 0;
}

int store_open_checkpointer(struct store *s)
{
	int r = make_packer(s);
	const struct checkpointer_config cfg = { .sys = s->sys,
		.workers = s->workers,
		.state_dir = s->state_dir,
		.state_fd = s->state_fd,
		.repos = &s->repos,
		.log = s->log,
		.rights = &s->rights,
		.deferred = s->deferred,
		.pipeline = s->pipeline,
		.completions = &s->completions,
		.is_fatal = is_fatal,
		.retry = retry,
		.packer = s->packer,
		.arg = s };

	if (r == 0)
		r = make_looker(s);
	s->checkpointer = r == 0 ? checkpointer_new(&cfg) : NULL;
	if (s->checkpointer == NULL)
		return -ENOMEM;
	store_set_intervals(s, s->cfg.checkpoint_interval_ns,
	    s->cfg.durability_interval_ns);
	return 0;
}
