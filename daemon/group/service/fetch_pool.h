/*
 * Threads that fetch. A repository has one fetch at a time, so jobs that wait
 * for the same repository, source and epoch become one fetch. If this fetch
 * fails, each job gets a fetch of its own, because one missing object fails the
 * fetch for all.
 *
 * One thread calls; only the last call blocks.
 */
#ifndef GROUP_SERVICE_FETCH_POOL_H
#define GROUP_SERVICE_FETCH_POOL_H

#include "daemon/group/service/fetch.h"
#include "proto/group_frame.h"

struct fetch_job {
	/* Owned strings and arrays, except SOURCE. */
	char *path;        /* on this node */
	char *source_path; /* on the source */
	uint8_t uuid[GROUP_UUID_BYTES];
	const char *source;
	enum refd_object_format format;
	struct refd_oid *oids, *bases;
	size_t nr_oids, nr_bases;
	bool is_new;    /* fetch.h */
	uint64_t epoch; /* of the leader that needs the objects */
	/* For the owner. */
	uint8_t id[GROUP_UUID_BYTES];
	uint64_t number;
	size_t nr_asked; /* of the other sources */
	bool is_last;    /* all sources were asked */
	/* The result. */
	bool is_held;
	struct text why; /* of a failure */
	/* For the pool. */
	bool is_taken;
	bool is_late; /* fetch_pool_end_fetches() came later */
	struct fetch_job *next;
};

/* A job with copies of PATH, OIDS and BASES. PATH is also the path on the
 * source. */
struct fetch_job *fetch_job_new(const struct group_bytes *path,
    const struct refd_oid *oids, size_t nr_oids, const struct refd_oid *bases,
    size_t nr_bases);
void fetch_job_free(struct fetch_job *job);
/* True: the daemon of this node lacks the objects. False: another node waits
 * for the answer, and the job has an id. */
bool fetch_job_is_of_daemon(const struct fetch_job *job);

struct fetch_pool;

/* WAKE, an eventfd(2), becomes readable when a job is done. */
struct fetch_pool *fetch_pool_start(const struct fetch_site *site, int wake);
/* The pool owns JOB until fetch_pool_done(). The daemon repeats its questions.
 * So a job of the daemon is dropped if a job for the same repository and epoch
 * waits or is in work. */
void fetch_pool_add(struct fetch_pool *pool, struct fetch_job *job);
/* Would fetch_pool_add() drop JOB? */
bool fetch_pool_has(struct fetch_pool *pool, const struct fetch_job *job);
/* Ends the fetches of epochs before EPOCH, soon. The source of such a fetch can
 * be a lost machine, and the fetch would keep the repository from a later
 * leader. SOURCE is the pointer in the jobs: only fetches from SOURCE end;
 * NULL: all. */
void fetch_pool_end_fetches(struct fetch_pool *pool, uint64_t epoch,
    const char *source);
/* A job that is done, or NULL. The caller frees the job. */
struct fetch_job *fetch_pool_done(struct fetch_pool *pool);
/* Ends all fetches and the threads, and frees all. */
void fetch_pool_end(struct fetch_pool *pool);

#endif
