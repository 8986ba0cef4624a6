/*
 * Records that recovery could not redo: tried again when their repository is
 * opened, and with every checkpoint.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/store_internal.h"

void parked_note(void *store, uint64_t repo, uint64_t lsn)
{
	struct store *s = store;
	struct parked *p;

	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		store_set_fatal(s, "out of memory in recovery");
		return;
	}
	p->repo = repo;
	p->lsn = lsn;
	pthread_mutex_lock(&s->mutex);
	p->next = s->parked;
	s->parked = p;
	pthread_mutex_unlock(&s->mutex);
}

bool parked_has(struct store *s, uint64_t repo)
{
	struct parked *p;

	pthread_mutex_lock(&s->mutex);
	for (p = s->parked; p != NULL; p = p->next)
		if (p->repo == repo)
			break;
	pthread_mutex_unlock(&s->mutex);
	return p != NULL;
}

uint64_t parked_floor(struct store *s)
{
	uint64_t floor = UINT64_MAX;
	struct parked *p;

	for (p = s->parked; p != NULL; p = p->next)
		if (p->lsn < floor)
			floor = p->lsn;
	return floor;
}

static void found_nothing(void *arg, enum store_finding finding,
    const char *repo, const char *ref, const char *text)
{
	(void)arg;
	(void)finding;
	(void)repo;
	(void)ref;
	(void)text;
}

static void no_progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

void parked_retry(struct store *s, struct repo *repo)
{
	static const struct store_report report = { found_nothing, no_progress,
		NULL };
	struct recovery rec = { .sys = s->sys,
		.repos = &s->repos,
		.journal = s->journal,
		.boot_id = s->boot_id,
		.report = &report,
		.has_object = admit_has_object,
		.next_token = store_next_token,
		.sync_all = checkpoint_sync_all,
		.parked_at = parked_note,
		.arg = s };
	struct parked **at, *p;
	uint64_t left;
	int r;

	pthread_rwlock_rdlock(&s->journal_lock);
	r = recover_parked(&rec, repo, &left);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r < 0 || left > 0)
		return;
	pthread_mutex_lock(&s->mutex);
	for (at = &s->parked; (p = *at) != NULL;) {
		if (p->repo != repo->id) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
	pthread_mutex_unlock(&s->mutex);
}
