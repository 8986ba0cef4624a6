/*
 * Mutexes with a rank. Two threads that wait for each other's mutex stop the
 * daemon for good, and no test shows this unless both threads meet. So every
 * mutex has a place in one order. In debug builds (REFD_RANKS) the program
 * aborts if a thread waits for a mutex and has one of the same or a later rank.
 * docs/threads.md tells what each protects.
 *
 * Any thread. mutex_lock() and the waits block.
 */
#ifndef BASE_MUTEX_H
#define BASE_MUTEX_H

#include <pthread.h>

/* In the order in which a thread may take them. */
enum mutex_rank {
	MUTEX_CONFIG,             /* live_config */
	MUTEX_DEFERRED_ROWS,      /* deferred.rows */
	MUTEX_DEFERRED_TELLING,   /* deferred.telling */
	MUTEX_MARKER,             /* marker */
	MUTEX_REPLICA_READER,     /* of a replica */
	MUTEX_LOG,                /* commit_log.lock */
	MUTEX_JOURNAL_USE,        /* of the journal: use_lock */
	MUTEX_JOURNAL_CHECKPOINT, /* ckpt_lock */
	MUTEX_JOURNAL_COMMIT,     /* commit_lock */
	MUTEX_FS,                 /* of a file system; sync_failures.lacking */
	MUTEX_BARRIERS,           /* barriers */
	MUTEX_JOBS,               /* packer, looker, historian, replica */
	MUTEX_QUEUES,             /* admissions, store, repos */
	MUTEX_CHECKPOINTER,       /* checkpointer */
	MUTEX_FLOORS,             /* pipeline, flusher */
	MUTEX_STACKS,             /* stack_set */
	MUTEX_INNER,              /* within a module: all others */
	MUTEX_LAST                /* log */
};

struct mutex {
	pthread_mutex_t lock;
#ifdef REFD_RANKS
	enum mutex_rank rank;
#endif
};

/* For many readers or one writer. */
struct rwlock {
	pthread_rwlock_t lock;
#ifdef REFD_RANKS
	enum mutex_rank rank;
#endif
};

#ifdef REFD_RANKS
#define MUTEX_INIT(is) { .lock = PTHREAD_MUTEX_INITIALIZER, .rank = (is) }
/* The caller is about to wait for a lock of RANK, or has taken it. */
void mutex_rank_wait(enum mutex_rank rank);
void mutex_rank_take(enum mutex_rank rank);
void mutex_rank_give(enum mutex_rank rank);
#define MUTEX_RANK(what, m)   mutex_rank_##what((m)->rank)
#define MUTEX_SET_RANK(m, is) ((m)->rank = (is))
#else
#define MUTEX_INIT(is)        { .lock = PTHREAD_MUTEX_INITIALIZER }
#define MUTEX_RANK(what, m)   ((void)0)
#define MUTEX_SET_RANK(m, is) ((void)(is))
#endif

static inline void mutex_init(struct mutex *m, enum mutex_rank rank)
{
	pthread_mutex_init(&m->lock, NULL);
	MUTEX_SET_RANK(m, rank);
}

static inline void mutex_destroy(struct mutex *m)
{
	pthread_mutex_destroy(&m->lock);
}

static inline void mutex_lock(struct mutex *m)
{
	MUTEX_RANK(wait, m);
	pthread_mutex_lock(&m->lock);
	MUTEX_RANK(take, m);
}

/* Waits for nobody, so the rank may be any. 0, or an errno. */
static inline int mutex_trylock(struct mutex *m)
{
	int r = pthread_mutex_trylock(&m->lock);

	if (r == 0)
		MUTEX_RANK(take, m);
	return r;
}

static inline void mutex_unlock(struct mutex *m)
{
	MUTEX_RANK(give, m);
	pthread_mutex_unlock(&m->lock);
}

/* As pthread_cond_timedwait(); without UNTIL, as pthread_cond_wait(). M is
 * taken again before the return, so M must be the mutex that was taken last. */
static inline int mutex_wait_until(pthread_cond_t *cond, struct mutex *m,
    const struct timespec *until)
{
	int r;

	MUTEX_RANK(give, m);
	MUTEX_RANK(wait, m);
	r = until != NULL ? pthread_cond_timedwait(cond, &m->lock, until) :
			    pthread_cond_wait(cond, &m->lock);
	MUTEX_RANK(take, m);
	return r;
}

static inline void mutex_wait(pthread_cond_t *cond, struct mutex *m)
{
	mutex_wait_until(cond, m, NULL);
}

static inline void rwlock_init(struct rwlock *l, enum mutex_rank rank)
{
	pthread_rwlock_init(&l->lock, NULL);
	MUTEX_SET_RANK(l, rank);
}

static inline void rwlock_destroy(struct rwlock *l)
{
	pthread_rwlock_destroy(&l->lock);
}

static inline void rwlock_read(struct rwlock *l)
{
	MUTEX_RANK(wait, l);
	pthread_rwlock_rdlock(&l->lock);
	MUTEX_RANK(take, l);
}

static inline void rwlock_write(struct rwlock *l)
{
	MUTEX_RANK(wait, l);
	pthread_rwlock_wrlock(&l->lock);
	MUTEX_RANK(take, l);
}

static inline void rwlock_unlock(struct rwlock *l)
{
	MUTEX_RANK(give, l);
	pthread_rwlock_unlock(&l->lock);
}

#endif
