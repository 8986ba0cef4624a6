/*
 * The jobs of the packer, and the worker that does one round of a job.
 *
 * Happy path: a job is a repository with a reference. A round packs some
 * thousand refs. While the repository is full of loose refs, the job rests and
 * gets another round. Then the reference goes back, and the asker is told.
 *
 * Failure modes:
 *	packed-refs is locked, can't be read, ...	the job ends, and the
 *							asker is told
 *	records of the repository are deferred		the same: the refs on
 *							disk may be wrong
 *	a sync failed			the file system is not trusted any more
 *	refs change all the time	a round without success ends the job;
 *					so does the bound of rounds
 *	no memory for a job		an automatic job is left to the next
 *					checkpoint
 *	a comparison fails		refd verify remains
 */
#include "daemon/store/packing/packer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/mutex.h"
#include "daemon/store/packing/pack_round.h"
#include "daemon/store/recovery/returned.h"
#include "daemon/store/stages.h"

/* A job ends after this many rounds, which pack a million refs. */
#define ROUNDS_MAX 256
/* After a round, a job rests this many times as long as the round took. */
#define REST_ASKED     1
#define REST_AUTOMATIC 4
/* This many jobs begin by themselves at a time, while other repositories wait
 * for a later checkpoint. */
#define AUTOMATIC_MAX 64
/* Refs that change all the time would be packed all the time. So after an
 * automatic job, the repository is not packed again for this many times as long
 * as the job took, and at least for a minute. */
#define REST_REPO    100
#define REST_REPO_NS (60 * INT64_C(1000000000))
/* A comparison needs all earlier records to be published, so it comes this much
 * later. */
#define COMPARE_AFTER_NS (10 * INT64_C(1000000000))

struct job {
	struct repo *repo; /* with a reference, which ASK has if there */
	struct store_question *ask; /* NULL: automatic */
	bool compares;              /* with the records; automatic, no rounds */
	uint64_t nr_made;           /* automatic: new loose refs until now */
	uint64_t nr_packed, nr_left;
	int64_t due_ns;  /* monotonic */
	int64_t took_ns; /* all rounds */
	unsigned rounds;
	struct stage_work work; /* no path: no worker has the job */
	struct job *next, *prev;
};

struct packer {
	const struct store_parts *cfg;
	struct work_source source; /* a round */
	atomic_uint_fast64_t threshold;
	struct mutex mutex;
	/* Everything below is under MUTEX. */
	struct job *jobs;  /* a list of utlist, in the order of their turns */
	bool is_forbidden; /* see packer_allow() */
	size_t nr_automatic;
	uint64_t nr_refs, nr_failed;
};

/* ---- one round, on a worker ---- */

static int peel(void *arg, const struct refd_oid *oid, struct refd_oid *peeled)
{
	struct odb *odb = arg;

	switch (odb_type(odb, oid)) {
	case OBJECT_COMMIT:
	case OBJECT_TREE:
	case OBJECT_BLOB:
		return 0;
	case OBJECT_TAG:
		return odb_peel(odb, oid, peeled) == 0 ? 1 : -EIO;
	case OBJECT_ABSENT:
	case OBJECT_ERROR:
		break;
	}
	return -ENOENT;
}

/* The object reader of the repository belongs to admission, so a round has a
 * reader of its own. */
static int run_round(struct packer *p, struct pack_round *round)
{
	struct repo *repo = round->repo;
	struct repos *repos = p->cfg->repos;
	char migration[REPO_MIGRATION_MAX];
	struct odb *odb;
	int r;

	/* git refs migrate takes no lock, and removes files of refs, so no
	 * round begins meanwhile. */
	if (repo_has_migration(p->cfg->sys, repo->fd, migration))
		return -EINPROGRESS;
	if (deferred_blocks_writes(p->cfg->deferred, repo->id))
		return -EBUSY;
	if (!repo_is_same(repos, repo))
		return -ESTALE;
	odb = odb_new(p->cfg->sys, repo->fd, &repo->object_format,
	    &odb_stores(repo->odb)->rule);
	if (odb == NULL)
		return -ENOMEM;
	round->arg = odb;
	r = odb_refresh(odb);
	if (r == 0)
		r = fs_enter(repos, repo->fs);
	if (r == 0) {
		r = pack_round(round);
		/* fs_leave() removes the mark of the sync, by which the next
		 * start would know of the failure. So the failure is noted
		 * before. */
		if (round->sync_err < 0)
			fs_fail(repos, repo->fs, round->sync_err);
		fs_leave(repos, repo->fs);
	}
	odb_free(odb);
	return r;
}

/* Does an automatic job cost less than its loose refs? If not, the repository
 * waits for more loose refs. */
static bool pays(const struct job *job)
{
	if (job->ask != NULL || job->rounds > 0 ||
	    packed_pays(job->repo->packed, job->nr_made, 1))
		return true;
	atomic_fetch_add(&job->repo->nr_loose_made, job->nr_made);
	return false;
}

/* Sets the results of ROUND, also without a round. */
static int work_on(struct packer *p, struct job *job, struct pack_round *round)
{
	int64_t begin_ns = SYS(p->cfg->sys, now_mono), took_ns;
	int r;

	*round = (struct pack_round){ .sys = p->cfg->sys,
		.repo = job->repo,
		.token_id = pipeline_next_token(p->cfg->pipeline),
		.peel = peel };
	if (!pays(job))
		return 0;
	r = run_round(p, round);
	if (round->leaves_locks)
		deferred_add_locks(p->cfg->deferred, job->repo,
		    round->token_id);
	took_ns = SYS(p->cfg->sys, now_mono) - begin_ns;
	job->took_ns += took_ns;
	job->due_ns = begin_ns + took_ns +
	    took_ns * (job->ask != NULL ? REST_ASKED : REST_AUTOMATIC);
	job->nr_packed += round->nr_packed;
	job->nr_left = round->nr_left;
	job->rounds++;
	return r;
}

/* ---- a comparison, on a worker ---- */

struct comparison {
	const struct packer *packer;
	const struct repo *repo;
};

static void tell_returned(void *arg, const struct returned *found)
{
	const struct comparison *c = arg;
	char *text = returned_text(found, c->repo->object_format), *why;

	why = repo_why("%s: %s", found->name, text != NULL ? text : "");
	if (c->packer->cfg->config->event != NULL && why != NULL)
		c->packer->cfg->config->event(STORE_REF_RETURNED, c->repo->path,
		    why);
	free(why);
	free(text);
}

static void compare(struct packer *p, const struct job *job)
{
	struct comparison c = { p, job->repo };

	if (fs_enter(p->cfg->repos, job->repo->fs) < 0)
		return;
	returned_find(p->cfg->sys, p->cfg->journal, job->repo, tell_returned,
	    &c);
	fs_leave(p->cfg->repos, job->repo->fs);
}

static bool goes_on(const struct job *job, const struct pack_round *round)
{
	return round->is_full && round->nr_packed > 0 &&
	    job->rounds < ROUNDS_MAX;
}

/* ---- the end of a job ---- */

/* PATH is of the repository, and ERR is negative. */
static void refuse(struct store_question *ask, const char *path, int err)
{
	enum refd_status status = txn_status_of(err);
	char *why;

	switch (err) {
	case -EEXIST:
		status = REFD_LOCKED;
		why = repo_why("'%s/packed-refs.lock' exists: another program "
			       "packs or deletes refs, or died ('refd locks' "
			       "says more)",
		    path);
		break;
	case -EINPROGRESS:
		status = REFD_LOCKED;
		why = repo_why("'%s/ref_migration.*' exists: git refs migrate "
			       "is at work, or was killed ('refd verify' says "
			       "more)",
		    path);
		break;
	case -EBUSY:
		status = REFD_IO;
		why = repo_why("updates of '%s' await recovery", path);
		break;
	case -ESTALE:
		status = REFD_NOREPO;
		why = repo_why_moved(path);
		break;
	case -ECANCELED:
		status = busy_cause_count(BUSY_STOPPING);
		why = repo_why("the daemon is paused, or stopping");
		break;
	default:
		why = repo_why("can't pack the refs of '%s': %s", path,
		    err == -ELOOP       ? "packed-refs is a symbolic link" :
			err == -EBADMSG ? "packed-refs is malformed" :
					  strerror(-err));
	}
	question_refuse_for(ask, status, why);
}

static void answer(struct packer *p, struct store_question *ask,
    const char *format, uint64_t nr_packed, uint64_t nr_left)
{
	question_tell(ask, "refs-format", format);
	question_tell_number(ask, "packed", nr_packed);
	question_tell_number(ask, "left", nr_left);
	completions_put_question(p->cfg->completions, ask);
}

/* When the repository may be packed again without an ask. */
static void set_rest(struct packer *p, const struct job *job, int err)
{
	int64_t rest_ns = job->took_ns * REST_REPO;

	if (err < 0)
		atomic_fetch_add(&job->repo->nr_loose_made, job->nr_made);
	atomic_store(&job->repo->pack_after_ns,
	    SYS(p->cfg->sys, now_mono) +
		(rest_ns > REST_REPO_NS ? rest_ns : REST_REPO_NS));
}

/* No other thread has JOB any more, so the repository and the question of JOB
 * are given back. */
static void end_job(struct packer *p, struct job *job, int err)
{
	if (job->ask == NULL) {
		repo_put(p->cfg->repos, job->repo);
	} else if (err < 0) {
		refuse(job->ask, job->repo->path, err);
		completions_put_question(p->cfg->completions, job->ask);
	} else {
		answer(p, job->ask, "files", job->nr_packed, job->nr_left);
	}
	free(job);
}

/* ---- jobs; under MUTEX ---- */

static void put(struct packer *p, struct job *job)
{
	DL_APPEND(p->jobs, job);
	workers_wake(p->cfg->workers, &p->source);
}

static bool is_busy(const struct packer *p, const struct fs *fs)
{
	const struct job *job;

	DL_FOREACH(p->jobs, job)
		if (job->work.path != NULL && job->repo->fs == fs)
			return true;
	return false;
}

/* The first job that may begin a round. Otherwise sets the time of the next
 * look. */
static struct job *next_job(struct packer *p, int64_t now_ns)
{
	int64_t due_ns = INT64_MAX;
	struct job *job;

	DL_FOREACH(p->jobs, job) {
		if (job->work.path != NULL || is_busy(p, job->repo->fs))
			continue;
		if (p->is_forbidden || job->due_ns <= now_ns)
			return job;
		if (job->due_ns < due_ns)
			due_ns = job->due_ns;
	}
	if (due_ns < INT64_MAX)
		workers_wake_at(p->cfg->workers, &p->source, due_ns);
	return NULL;
}

/* work_source.work: one round, or the end of a job. */
static bool work_some(void *arg)
{
	struct packer *p = arg;
	struct pack_round round = { .is_full = false };
	struct job *job;
	bool goes_again;
	int r = -ECANCELED;

	mutex_lock(&p->mutex);
	job = next_job(p, SYS(p->cfg->sys, now_mono));
	if (job == NULL) {
		mutex_unlock(&p->mutex);
		return false;
	}
	job->work =
	    (struct stage_work){ job->repo->path, SYS(p->cfg->sys, now_mono) };
	if (!p->is_forbidden) {
		if (job->next != NULL)
			workers_wake(p->cfg->workers, &p->source);
		mutex_unlock(&p->mutex);
		if (job->compares) {
			compare(p, job);
			r = 0;
		} else {
			r = work_on(p, job, &round);
		}
		/* Readers of the statistics take a counted round for finished,
		 * so the rest is set before the round is counted. */
		if (job->ask == NULL && !job->compares)
			set_rest(p, job, r);
		mutex_lock(&p->mutex);
		p->nr_refs += round.nr_packed;
		p->nr_failed += r < 0;
	} else if (job->ask == NULL && !job->compares) {
		set_rest(p, job, r);
	}
	job->work.path = NULL;
	/* The other jobs go first. */
	DL_DELETE(p->jobs, job);
	goes_again = r == 0 && goes_on(job, &round);
	if (goes_again)
		put(p, job);
	else
		p->nr_automatic -= job->ask == NULL;
	if (p->jobs != NULL)
		workers_wake(p->cfg->workers, &p->source);
	mutex_unlock(&p->mutex);
	if (!goes_again)
		end_job(p, job, r);
	return true;
}

/* ---- calls of other threads ---- */

void packer_ask(struct packer *p, struct store_question *ask)
{
	struct repo *repo = ask->txn->repo;
	struct job *job;

	if (repo->format == REPO_REFTABLE) {
		answer(p, ask, "reftable", 0, 0);
		return;
	}
	job = calloc(1, sizeof(*job));
	if (job == NULL) {
		question_refuse(ask, BUSY(MEMORY));
		completions_put_question(p->cfg->completions, ask);
		return;
	}
	*job = (struct job){ .repo = repo, .ask = ask };
	mutex_lock(&p->mutex);
	put(p, job);
	mutex_unlock(&p->mutex);
}

static bool is_due(const struct packer *p, const struct repo *repo,
    const struct fs *fs, int64_t now_ns)
{
	const uint64_t threshold = atomic_load(&p->threshold);

	return repo->fs == fs && repo->format == REPO_FILES && !repo->doomed &&
	    threshold > 0 && atomic_load(&repo->nr_loose_made) >= threshold &&
	    atomic_load(&repo->pack_after_ns) <= now_ns;
}

/* NULL: no memory. */
static struct job *add_automatic(struct packer *p, struct repo *repo)
{
	struct job *job = calloc(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->repo = repo;
	repo->refs++;
	p->nr_automatic++;
	put(p, job);
	return job;
}

/* A file system that fails must be let go at once, so no reference to the
 * repository is held until its comparison is due. */
static bool is_compare_due(struct repo *repo, const struct fs *fs,
    int64_t now_ns)
{
	if (repo->fs != fs || repo->format != REPO_FILES || repo->doomed)
		return false;
	if (repo->compare_at_ns == 0 && packed_take_foreign(repo->packed))
		repo->compare_at_ns = now_ns + COMPARE_AFTER_NS;
	return repo->compare_at_ns != 0 && repo->compare_at_ns <= now_ns;
}

void packer_synced(struct packer *p, const struct fs *fs)
{
	const int64_t now_ns = SYS(p->cfg->sys, now_mono);
	struct repos *repos = p->cfg->repos;
	struct repo *repo;
	struct job *job;

	mutex_lock(&p->mutex);
	mutex_lock(&repos->mutex);
	for (repo = repos->open;
	    repo != NULL && !p->is_forbidden && p->nr_automatic < AUTOMATIC_MAX;
	    repo = repo->next) {
		if (is_compare_due(repo, fs, now_ns) &&
		    (job = add_automatic(p, repo)) != NULL) {
			job->compares = true;
			repo->compare_at_ns = 0;
		}
		if (!is_due(p, repo, fs, now_ns) ||
		    (job = add_automatic(p, repo)) == NULL)
			continue;
		job->nr_made = atomic_exchange(&repo->nr_loose_made, 0);
		/* Until the end of the job. */
		atomic_store(&repo->pack_after_ns, INT64_MAX);
	}
	mutex_unlock(&repos->mutex);
	mutex_unlock(&p->mutex);
}

void packer_set_threshold(struct packer *p, uint64_t refs)
{
	atomic_store(&p->threshold, refs);
}

void packer_allow(struct packer *p, bool allowed)
{
	mutex_lock(&p->mutex);
	p->is_forbidden = !allowed;
	mutex_unlock(&p->mutex);
	workers_wake(p->cfg->workers, &p->source);
}

void packer_stats(struct packer *p, struct store_stats *stats)
{
	mutex_lock(&p->mutex);
	stats->packed_refs = p->nr_refs;
	stats->pack_failures = p->nr_failed;
	mutex_unlock(&p->mutex);
}

void packer_progress(struct packer *p, int64_t before_ns,
    struct store_progress *progress)
{
	const struct job *job;

	mutex_lock(&p->mutex);
	DL_FOREACH(p->jobs, job)
		stage_add(progress, &job->work, before_ns);
	mutex_unlock(&p->mutex);
}

struct packer *packer_new(const struct store_parts *cfg)
{
	struct packer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->cfg = cfg;
	mutex_init(&p->mutex, MUTEX_JOBS);
	p->source = (struct work_source){ .work = work_some,
		.arg = p,
		.most = PACKER_WORKERS,
		.reserved = PACKER_RESERVED };
	workers_add(cfg->workers, &p->source);
	return p;
}

void packer_free(struct packer *p)
{
	struct job *job;

	if (p == NULL)
		return;
	while ((job = p->jobs) != NULL) {
		DL_DELETE(p->jobs, job);
		repo_put(p->cfg->repos, job->repo);
		free(job);
	}
	mutex_destroy(&p->mutex);
	free(p);
}
