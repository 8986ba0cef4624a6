/*
 * The queue of the looker, and its worker.
 *
 * Happy path: a look waits until no other look of the same kind works on its
 * file system, and a worker does one step.
 *
 * Failure modes:
 *	refs, or known refs, can't be read	the look has the reason
 *	known refs can't be written		a first look fails, because
 *						without the file the next look
 *						would be a first look again; any
 *						other look goes on, because the
 *						old file and the later records
 *						say the same
 */
#include "daemon/store/looking/looker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/mutex.h"
#include "daemon/store/looking/seen_refs.h"
#include "daemon/store/stages.h"
#include "proto/lib/array.h"

struct looker {
	const struct store_parts *cfg;
	struct work_source source;
	struct mutex mutex;
	/* Everything below: under MUTEX. */
	struct store_look *waiting, *working; /* lists of utlist */
};

/* ---- reading ---- */

static struct seen_refs *new_refs(const struct store_look *look)
{
	return seen_refs_new(look->is_large ? SEEN_REFS_MAX : SEEN_REFS_SMALL);
}

static int read_known(struct looker *l, struct store_look *look)
{
	const uint64_t visible = pipeline_visible_lsn(l->cfg->pipeline);
	uint_fast64_t none = 0;
	int r = -ENOENT;

	/* An open repository notes the refs of each record. So only records up
	 * to the present last LSN, which is set before the refs are read, may
	 * not be noted. */
	atomic_compare_exchange_strong(&look->repo->look_lsn, &none,
	    journal_last_lsn(l->cfg->journal));
	if (!look->is_first)
		r = seen_file_read(l->cfg->sys, l->cfg->state_fd,
		    look->repo->id, journal_uuid(l->cfg->journal),
		    look->repo->object_format, look->refs, &look->at.lsn);
	look->file_lsn = look->at.lsn;
	if (r != -ENOENT)
		return r;
	look->is_first = true;
	look->at = (struct refd_position){ visible, 0 };
	seen_refs_free(look->refs);
	look->refs = new_refs(look);
	return look->refs != NULL ? 0 : -ENOMEM;
}

static int read_refs(struct looker *l, struct store_look *look)
{
	int r;

	seen_refs_free(look->refs);
	look->refs = new_refs(look);
	if (look->refs == NULL)
		return -ENOMEM;
	r = read_known(l, look);
	if (r == 0)
		r = seen_refs_read(l->cfg->sys, look->repo, look->refs);
	/* The first look records nothing, because the refs may always have been
	 * there. */
	if (r == 0 && look->is_first)
		seen_refs_know(look->refs);
	if (r != -EFBIG || look->is_large)
		return r;
	store_look_enlarge(look);
	return 0;
}

/* ---- comparing ---- */

static int add_change(struct looker *l, struct store_look *look,
    const struct seen_ref *now, const struct seen_ref *known)
{
	const char *name = now != NULL ? now->name : known->name;
	struct store_look_change *all, *c;

	all = array_room(look->changes, look->nr_changes, &look->changes_size,
	    sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	look->changes = all;
	c = &all[look->nr_changes++];
	*c = (struct store_look_change){ .name = name,
		.has_before = known == NULL || known->target == NULL,
		.uid = seen_refs_owner(l->cfg->sys, look->repo, name) };
	if (now != NULL) {
		c->target = now->target;
		c->oid = now->oid;
	}
	if (known != NULL)
		c->before = known->oid;
	return 0;
}

static int by_uid(const void *va, const void *vb)
{
	const struct store_look_change *a = va, *b = vb;

	return (a->uid > b->uid) - (a->uid < b->uid);
}

/* Retention deletes old records. If records after the file's LSN are gone, the
 * next look would be a first look, and would record nothing. So the file is
 * old, and is written again, when its LSN is nearer to the deleted records than
 * to the newest record. */
static bool is_old(struct looker *l, const struct store_look *look)
{
	return 2 * look->file_lsn <
	    journal_trimmed(l->cfg->journal) + look->at.lsn;
}

static int list_changes(struct looker *l, struct store_look *look)
{
	const struct seen_refs *refs = look->refs;
	struct seen_ref now, known;
	bool is_known, is_there;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < seen_refs_nr(refs); i++) {
		is_there = seen_refs_get(refs, SEEN_DISK, i, &now);
		is_known = seen_refs_get(refs, SEEN_KNOWN, i, &known);
		if (!now.is_unknown && !seen_ref_is_same(&now, &known))
			r = add_change(l, look, is_there ? &now : NULL,
			    is_known ? &known : NULL);
	}
	if (look->nr_changes > 0)
		qsort(look->changes, look->nr_changes, sizeof(*look->changes),
		    by_uid);
	return r;
}

static int compare(struct looker *l, struct store_look *look)
{
	int r, written = 0;

	/* A slow batch can hide records from history, and the repository may
	 * not have noted the refs of records up to LOOK_LSN. If history has not
	 * shown all these records yet, nobody can tell whether a change is
	 * recorded already. So this look leaves all changes to the next look,
	 * which has these records. */
	look->is_early = look->at.lsn < atomic_load(&look->repo->look_lsn);
	r = list_changes(l, look);
	if (r == 0 && (look->is_first || look->has_news || is_old(l, look)))
		written = seen_file_write(l->cfg->sys, l->cfg->state_fd,
		    look->repo->id, journal_uuid(l->cfg->journal),
		    look->repo->object_format, look->refs, look->at.lsn);
	return look->is_first && r == 0 ? written : r;
}

/* ---- the worker ---- */

static void tell(struct store_look *look, int err)
{
	look->status = err == 0 ? REFD_OK : txn_status_of(err);
	if (err == -EFBIG)
		look->why = repo_why("'%s' has more than %d refs, or too many "
				     "levels below refs/: refd does not look "
				     "for changes there",
		    look->repo->path, SEEN_REFS_MAX);
	else if (err < 0)
		look->why = repo_why("can't %s the refs of '%s': %s",
		    look->step == LOOK_COMPARE ? "keep" : "read",
		    look->repo->path,
		    err == -EBADMSG ? "packed-refs or a reftable is malformed" :
				      strerror(-err));
}

static void work_on(struct looker *l, struct store_look *look)
{
	int r = 0;

	switch (look->step) {
	case LOOK_READ:
		r = read_refs(l, look);
		break;
	case LOOK_COMPARE:
		r = compare(l, look);
		break;
	case LOOK_FREE:
		store_look_done(look);
		break;
	}
	tell(look, r);
}

static bool is_busy(const struct looker *l, const struct store_look *look)
{
	const struct store_look *w;

	if (look->step == LOOK_FREE)
		return false;
	DL_FOREACH(l->working, w)
		if (w->step != LOOK_FREE && w->is_large == look->is_large &&
		    w->repo->fs == look->repo->fs)
			return true;
	return false;
}

/* Moves the first look that may begin to WORKING. NULL: no look may begin. */
static struct store_look *begin(struct looker *l)
{
	struct store_look *look;

	DL_FOREACH(l->waiting, look)
		if (!is_busy(l, look))
			break;
	if (look == NULL)
		return NULL;
	DL_DELETE(l->waiting, look);
	look->since_ns = SYS(l->cfg->sys, now_mono);
	DL_APPEND(l->working, look);
	return look;
}

/* work_source.work */
static bool work_some(void *arg)
{
	struct looker *l = arg;
	struct store_look *look;

	mutex_lock(&l->mutex);
	look = begin(l);
	if (look != NULL && l->waiting != NULL)
		workers_wake(l->cfg->workers, &l->source);
	mutex_unlock(&l->mutex);
	if (look == NULL)
		return false;
	work_on(l, look);
	mutex_lock(&l->mutex);
	DL_DELETE(l->working, look);
	if (l->waiting != NULL)
		workers_wake(l->cfg->workers, &l->source);
	mutex_unlock(&l->mutex);
	completions_put_question(l->cfg->completions, &look->ask);
	return true;
}

/* ---- calls of other threads ---- */

void looker_ask(struct looker *l, struct store_look *look)
{
	mutex_lock(&l->mutex);
	DL_APPEND(l->waiting, look);
	mutex_unlock(&l->mutex);
	workers_wake(l->cfg->workers, &l->source);
}

void looker_progress(struct looker *l, int64_t before_ns,
    struct store_progress *progress)
{
	const struct store_look *look;
	struct stage_work work;

	mutex_lock(&l->mutex);
	DL_FOREACH(l->working, look) {
		if (look->step == LOOK_FREE)
			continue;
		work = (struct stage_work){ look->repo->path, look->since_ns };
		stage_add(progress, &work, before_ns);
	}
	mutex_unlock(&l->mutex);
}

struct looker *looker_new(const struct store_parts *cfg)
{
	struct looker *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->cfg = cfg;
	mutex_init(&l->mutex, MUTEX_JOBS);
	l->source = (struct work_source){ .work = work_some,
		.arg = l,
		.most = LOOKER_WORKERS,
		.reserved = LOOKER_RESERVED };
	workers_add(cfg->workers, &l->source);
	return l;
}

void looker_free(struct looker *l)
{
	if (l == NULL)
		return;
	mutex_destroy(&l->mutex);
	free(l);
}
