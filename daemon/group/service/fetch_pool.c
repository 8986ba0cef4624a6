#include "daemon/group/service/fetch_pool.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NR_THREADS 4
/* Of one fetch, if it has several jobs. */
#define JOINED_MOST 50000

struct fetcher {
	struct fetch_pool *pool;
	pthread_t thread;
	int cancel;         /* readable: the jobs in work end */
	uint64_t epoch;     /* of these jobs; under LOCK */
	const char *source; /* as EPOCH */
};

struct fetch_pool {
	struct fetch_site site;
	int wake;
	struct fetcher workers[NR_THREADS];
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t has_work;
	struct fetch_job
	    *jobs; /* in order; a thread has those that are taken */
	struct fetch_job *done;
	bool has_ended;
};

/* ---- jobs ---- */

static struct refd_oid *copy_oids(const struct refd_oid *oids, size_t nr)
{
	struct refd_oid *copy = xcalloc(nr + 1, sizeof(*copy));

	if (nr > 0)
		memcpy(copy, oids, nr * sizeof(*copy));
	return copy;
}

struct fetch_job *fetch_job_new(const struct group_bytes *path,
    const struct refd_oid *oids, size_t nr_oids, const struct refd_oid *bases,
    size_t nr_bases)
{
	struct fetch_job *job = xcalloc(1, sizeof(*job));

	job->path = xasprintf("%.*s", (int)path->len, (const char *)path->data);
	job->source_path = xstrdup(job->path);
	job->oids = copy_oids(oids, nr_oids);
	job->nr_oids = nr_oids;
	job->bases = copy_oids(bases, nr_bases);
	job->nr_bases = nr_bases;
	return job;
}

void fetch_job_free(struct fetch_job *job)
{
	if (!job)
		return;
	free(job->path);
	free(job->source_path);
	free(job->oids);
	free(job->bases);
	text_done(&job->why);
	free(job);
}

bool fetch_job_is_of_daemon(const struct fetch_job *job)
{
	static const uint8_t none[GROUP_UUID_BYTES];

	return memcmp(job->id, none, sizeof(none)) == 0;
}

/* ---- taking; the lock is held ---- */

static bool is_same_repo(const struct fetch_job *a, const struct fetch_job *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) ||
	    !strcmp(a->path, b->path);
}

static bool is_joinable(const struct fetch_job *a, const struct fetch_job *b)
{
	return a->epoch == b->epoch && a->is_late == b->is_late &&
	    !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) &&
	    !strcmp(a->path, b->path) && !strcmp(a->source, b->source) &&
	    !strcmp(a->source_path, b->source_path) && a->format == b->format &&
	    a->is_new == b->is_new;
}

static bool is_busy(const struct fetch_pool *pool, const struct fetch_job *job)
{
	const struct fetch_job *other;

	for (other = pool->jobs; other; other = other->next)
		if (other->is_taken && is_same_repo(other, job))
			return true;
	return false;
}

/* The jobs of the daemon leave one thread for jobs of other nodes, whose leader
 * waits for the answer. The daemon has one job for a repository, so its jobs
 * are not joined. */
static bool must_wait(const struct fetch_pool *pool,
    const struct fetch_job *job)
{
	const struct fetch_job *other;
	size_t nr = 0;

	if (!fetch_job_is_of_daemon(job))
		return false;
	for (other = pool->jobs; other; other = other->next)
		nr += other->is_taken && fetch_job_is_of_daemon(other);
	return nr >= NR_THREADS - 1;
}

static bool has_same(const struct fetch_pool *pool, const struct fetch_job *job)
{
	const struct fetch_job *other;

	if (!fetch_job_is_of_daemon(job))
		return false;
	for (other = pool->jobs; other; other = other->next)
		if (fetch_job_is_of_daemon(other) &&
		    other->epoch == job->epoch && is_same_repo(other, job))
			return true;
	return false;
}

/* Takes JOB out of the list AT. */
static struct fetch_job *unlink_job(struct fetch_job **at)
{
	struct fetch_job *job = *at;

	*at = job->next;
	job->next = NULL;
	return job;
}

/* Takes the first job whose repository has no fetch, and jobs like it. Returns
 * the number of jobs in TAKEN, which the caller frees; 0: none. */
static size_t take(struct fetch_pool *pool, struct fetch_job ***taken)
{
	struct fetch_job *first = pool->jobs, *job;
	size_t nr = 0, size = 0, oids = 0;

	while (first &&
	    (first->is_taken || is_busy(pool, first) || must_wait(pool, first)))
		first = first->next;
	*taken = NULL;
	for (job = first; job; job = job->next) {
		if (job->is_taken || !is_joinable(first, job) ||
		    (nr > 0 && oids + job->nr_oids > JOINED_MOST))
			continue;
		*taken = xroom(*taken, nr, &size, sizeof(**taken));
		(*taken)[nr++] = job;
		oids += job->nr_oids;
		job->is_taken = true;
	}
	return nr;
}

static void finish(struct fetch_pool *pool, struct fetch_job *job)
{
	struct fetch_job **at = &pool->jobs;
	const uint64_t one = 1;

	while (*at != job)
		at = &(*at)->next;
	unlink_job(at);
	for (at = &pool->done; *at; at = &(*at)->next)
		continue;
	*at = job;
	if (write(pool->wake, &one, sizeof(one)) < 0)
		die("cannot report a fetch: out of memory");
}

static void cancel(const struct fetcher *w)
{
	const uint64_t one = 1;

	if (write(w->cancel, &one, sizeof(one)) < 0)
		die("cannot end a fetch: out of memory");
}

static bool is_cancelled(const struct fetcher *w)
{
	struct pollfd fd = { .fd = w->cancel, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* W has taken jobs like JOB. */
static void begin(struct fetcher *w, const struct fetch_job *job)
{
	uint64_t count;

	w->epoch = job->epoch;
	w->source = job->source;
	if (job->is_late)
		cancel(w);
	else if (is_cancelled(w) && read(w->cancel, &count, sizeof(count)) < 0)
		die("cannot begin a fetch");
}

/* ---- a thread ---- */

/* Fetches for all of JOBS at once. */
static bool run(struct fetcher *w, struct fetch_job *const *jobs, size_t nr,
    struct text *why)
{
	struct fetch_wish wish = { .source = jobs[0]->source,
		.source_path = jobs[0]->source_path,
		.path = jobs[0]->path,
		.uuid = jobs[0]->uuid,
		.is_new = jobs[0]->is_new,
		.format = jobs[0]->format,
		.cancel = w->cancel };
	struct text oids = { 0 }, bases = { 0 };
	bool is_done;
	size_t i;

	if (is_cancelled(w)) {
		text_adds(why, "the fetch was ended: the lead has changed");
		return false;
	}
	for (i = 0; i < nr; i++) {
		text_add(&oids, jobs[i]->oids,
		    jobs[i]->nr_oids * sizeof(struct refd_oid));
		text_add(&bases, jobs[i]->bases,
		    jobs[i]->nr_bases * sizeof(struct refd_oid));
	}
	wish.oids = (const struct refd_oid *)oids.data;
	wish.nr_oids = oids.len / sizeof(struct refd_oid);
	wish.bases = (const struct refd_oid *)bases.data;
	wish.nr_bases = bases.len / sizeof(struct refd_oid);
	is_done = fetch_run(&w->pool->site, &wish, why);
	text_done(&oids);
	text_done(&bases);
	return is_done;
}

static void run_jobs(struct fetcher *w, struct fetch_job *const *jobs,
    size_t nr)
{
	struct fetch_pool *pool = w->pool;
	struct text why = { 0 };
	bool is_held = nr > 1 && run(w, jobs, nr, &why);
	size_t i;

	for (i = 0; i < nr; i++) {
		jobs[i]->is_held =
		    is_held || run(w, &jobs[i], 1, &jobs[i]->why);
		pthread_mutex_lock(&pool->lock);
		finish(pool, jobs[i]);
		pthread_mutex_unlock(&pool->lock);
	}
	text_done(&why);
}

static void *work(void *arg)
{
	struct fetcher *w = arg;
	struct fetch_pool *pool = w->pool;
	struct fetch_job **jobs;
	size_t nr;

	pthread_mutex_lock(&pool->lock);
	while (!pool->has_ended) {
		nr = take(pool, &jobs);
		if (nr == 0) {
			pthread_cond_wait(&pool->has_work, &pool->lock);
			continue;
		}
		begin(w, jobs[0]);
		pthread_mutex_unlock(&pool->lock);
		run_jobs(w, jobs, nr);
		free(jobs);
		pthread_mutex_lock(&pool->lock);
		w->epoch = UINT64_MAX;
		pthread_cond_broadcast(&pool->has_work);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* ---- calls ---- */

struct fetch_pool *fetch_pool_start(const struct fetch_site *site, int wake)
{
	struct fetch_pool *pool = xcalloc(1, sizeof(*pool));
	struct fetcher *w;

	pool->site = *site;
	pool->wake = wake;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->has_work, NULL);
	for (w = pool->workers; w < pool->workers + NR_THREADS; w++) {
		*w = (struct fetcher){ .pool = pool,
			.cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
			.epoch = UINT64_MAX };
		if (w->cancel < 0 ||
		    pthread_create(&w->thread, NULL, work, w) != 0)
			die("cannot start a thread: raise the limits of "
			    "processes and files of this account");
	}
	return pool;
}

void fetch_pool_add(struct fetch_pool *pool, struct fetch_job *job)
{
	struct fetch_job **at;

	pthread_mutex_lock(&pool->lock);
	if (has_same(pool, job)) {
		fetch_job_free(job);
	} else {
		for (at = &pool->jobs; *at; at = &(*at)->next)
			continue;
		*at = job;
		pthread_cond_signal(&pool->has_work);
	}
	pthread_mutex_unlock(&pool->lock);
}

bool fetch_pool_has(struct fetch_pool *pool, const struct fetch_job *job)
{
	bool has;

	pthread_mutex_lock(&pool->lock);
	has = has_same(pool, job);
	pthread_mutex_unlock(&pool->lock);
	return has;
}

void fetch_pool_end_fetches(struct fetch_pool *pool, uint64_t epoch,
    const char *source)
{
	struct fetch_job *job;
	struct fetcher *w;

	pthread_mutex_lock(&pool->lock);
	for (job = pool->jobs; job; job = job->next)
		job->is_late |=
		    job->epoch < epoch && (!source || job->source == source);
	for (w = pool->workers; w < pool->workers + NR_THREADS; w++)
		if (w->epoch < epoch && (!source || w->source == source))
			cancel(w);
	pthread_mutex_unlock(&pool->lock);
}

struct fetch_job *fetch_pool_done(struct fetch_pool *pool)
{
	struct fetch_job *job = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->done)
		job = unlink_job(&pool->done);
	pthread_mutex_unlock(&pool->lock);
	return job;
}

void fetch_pool_end(struct fetch_pool *pool)
{
	struct fetcher *w;

	fetch_pool_end_fetches(pool, UINT64_MAX, NULL);
	pthread_mutex_lock(&pool->lock);
	pool->has_ended = true;
	pthread_cond_broadcast(&pool->has_work);
	pthread_mutex_unlock(&pool->lock);
	for (w = pool->workers; w < pool->workers + NR_THREADS; w++) {
		pthread_join(w->thread, NULL);
		close(w->cancel);
	}
	while (pool->jobs)
		fetch_job_free(unlink_job(&pool->jobs));
	while (pool->done)
		fetch_job_free(unlink_job(&pool->done));
	pthread_cond_destroy(&pool->has_work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
