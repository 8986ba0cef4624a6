/*
 * Makes many files durable together.
 *
 * The happy path:
 *	write-out	begins when the file is added; the end waits for all: the
 *			drive has been busy with all files by then
 *	fsync		each file is handed to the flusher's threads, except the
 *			last. The caller syncs the last file, then all files that
 *			no thread has begun, then waits for the threads
 *
 * Failures: a sync: the file's owner is told. A thread cannot be started: there
 * are fewer threads.
 */
#include "daemon/store/refs/flush.h"

#include <pthread.h>
#include <stdlib.h>

/* Few disks gain from more threads, and the first few threads gain the most. */
#define THREADS 8

struct flusher {
	const struct sys *sys;
	pthread_mutex_t mutex;
	pthread_cond_t more, done;
	struct flush_file *first, **end;
	bool stopping;
	pthread_t threads[THREADS];
	unsigned nr_threads;
};

static void *flusher_main(void *arg)
{
	struct flusher *fl = arg;
	struct flush_file *file;
	int err;

	pthread_mutex_lock(&fl->mutex);
	for (;;) {
		file = fl->first;
		if (file == NULL && fl->stopping)
			break;
		if (file == NULL) {
			pthread_cond_wait(&fl->more, &fl->mutex);
			continue;
		}
		fl->first = file->next;
		if (fl->first == NULL)
			fl->end = &fl->first;
		pthread_mutex_unlock(&fl->mutex);
		err = SYS(fl->sys, fsync, file->fd);
		pthread_mutex_lock(&fl->mutex);
		file->err = err;
		if (--*file->left == 0)
			pthread_cond_broadcast(&fl->done);
	}
	pthread_mutex_unlock(&fl->mutex);
	return NULL;
}

struct flusher *flusher_new(const struct sys *sys)
{
	struct flusher *fl = calloc(1, sizeof(*fl));

	if (fl == NULL)
		return NULL;
	fl->sys = sys;
	fl->end = &fl->first;
	pthread_mutex_init(&fl->mutex, NULL);
	pthread_cond_init(&fl->more, NULL);
	pthread_cond_init(&fl->done, NULL);
	while (fl->nr_threads < THREADS &&
	    pthread_create(&fl->threads[fl->nr_threads], NULL, flusher_main,
		fl) == 0)
		fl->nr_threads++;
	if (fl->nr_threads > 0)
		return fl;
	flusher_free(fl);
	return NULL;
}

void flusher_free(struct flusher *fl)
{
	if (fl == NULL)
		return;
	pthread_mutex_lock(&fl->mutex);
	fl->stopping = true;
	pthread_cond_broadcast(&fl->more);
	pthread_mutex_unlock(&fl->mutex);
	while (fl->nr_threads > 0)
		pthread_join(fl->threads[--fl->nr_threads], NULL);
	pthread_cond_destroy(&fl->done);
	pthread_cond_destroy(&fl->more);
	pthread_mutex_destroy(&fl->mutex);
	free(fl);
}

/* ---- the files of one thread ---- */

void flush_init(struct flush *f, const struct sys *sys, struct flusher *flusher,
    void (*failed)(void *arg, void *what, int err), void *arg)
{
	f->sys = sys;
	f->flusher = flusher;
	f->failed = failed;
	f->arg = arg;
	f->nr = 0;
}

/* An earlier error has precedence. */
static void close_file(struct flush *f, int fd, int err, void *what)
{
	int closed = SYS(f->sys, close, fd);

	if (err == 0)
		err = closed;
	if (err < 0)
		f->failed(f->arg, what, err);
}

void flush_add(struct flush *f, int fd, enum flush_how how, void *what)
{
	int err = 0;

	if (how == FLUSH_BEGIN || how == FLUSH_WRITE_OUT)
		err = SYS(f->sys, write_out_begin, fd);
	if (how == FLUSH_NOTHING || how == FLUSH_BEGIN || err < 0) {
		close_file(f, fd, err, what);
		return;
	}
	f->files[f->nr++] =
	    (struct flush_file){ .fd = fd, .how = how, .what = what };
	if (f->nr == FLUSH_MAX)
		flush_end(f);
}

static void hand_over(struct flusher *fl, struct flush_file *file, size_t *left)
{
	pthread_mutex_lock(&fl->mutex);
	file->left = left;
	++*left;
	file->next = NULL;
	*fl->end = file;
	fl->end = &file->next;
	pthread_cond_signal(&fl->more);
	pthread_mutex_unlock(&fl->mutex);
}

/* A file counted in LEFT that no thread has begun. */
static struct flush_file *take_back(struct flusher *fl, const size_t *left)
{
	struct flush_file **at = &fl->first, *file;

	while ((file = *at) != NULL && file->left != left)
		at = &file->next;
	if (file == NULL)
		return NULL;
	*at = file->next;
	if (fl->end == &file->next)
		fl->end = at;
	return file;
}

/* All threads may be waiting for a disk that hangs, with other callers' files.
 * So this thread syncs the files that no thread has begun. */
static void wait_for(struct flusher *fl, size_t *left)
{
	struct flush_file *file;
	int err;

	pthread_mutex_lock(&fl->mutex);
	while (*left > 0) {
		file = take_back(fl, left);
		if (file == NULL) {
			pthread_cond_wait(&fl->done, &fl->mutex);
			continue;
		}
		pthread_mutex_unlock(&fl->mutex);
		err = SYS(fl->sys, fsync, file->fd);
		pthread_mutex_lock(&fl->mutex);
		file->err = err;
		--*left;
	}
	pthread_mutex_unlock(&fl->mutex);
}

void flush_end(struct flush *f)
{
	struct flush_file *mine = NULL;
	size_t i, left = 0;

	for (i = 0; i < f->nr; i++) {
		if (f->files[i].how != FLUSH_FSYNC)
			continue;
		if (mine != NULL && f->flusher != NULL)
			hand_over(f->flusher, mine, &left);
		else if (mine != NULL)
			mine->err = SYS(f->sys, fsync, mine->fd);
		mine = &f->files[i];
	}
	if (mine != NULL)
		mine->err = SYS(f->sys, fsync, mine->fd);
	if (f->flusher != NULL)
		wait_for(f->flusher, &left);
	for (i = 0; i < f->nr; i++)
		if (f->files[i].how == FLUSH_WRITE_OUT)
			f->files[i].err =
			    SYS(f->sys, write_out_wait, f->files[i].fd);
	for (i = 0; i < f->nr; i++)
		close_file(f, f->files[i].fd, f->files[i].err,
		    f->files[i].what);
	f->nr = 0;
}

/* ---- a single file, in the background ---- */

void flush_ahead(struct flush_one *one, const struct sys *sys,
    struct flusher *flusher, int fd)
{
	*one = (struct flush_one){ .flusher = flusher,
		.file = { .fd = fd, .how = FLUSH_FSYNC } };
	if (flusher != NULL)
		hand_over(flusher, &one->file, &one->left);
	else
		one->file.err = SYS(sys, fsync, fd);
}

int flush_wait(struct flush_one *one)
{
	if (one->flusher != NULL)
		wait_for(one->flusher, &one->left);
	return one->file.err;
}
