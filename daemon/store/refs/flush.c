/*
 * Makes many files durable together.
 *
 * The happy path:
 *	write-out	begins when the file is added, so that the drive works
 *			while further files are added; the end waits until
 *			the write-out of each file has ended
 *	fsync		the workers get all files but the last. The caller
 *			syncs the last file and each file that no worker has
 *			begun, and then waits for the workers
 *
 * The caller syncs such files because all workers may be busy, or may hang on
 * another disk.
 *
 * Failures: if a sync fails, failed() tells the owner of the file.
 */
#include "daemon/store/refs/flush.h"

#include <pthread.h>
#include <stdlib.h>

#include <utlist.h>

#include "daemon/base/mutex.h"
#include "daemon/base/workers.h"

/* The maximum of workers at a time, besides the caller. The first few workers
 * gain the most. A disk that hangs keeps all workers of this source, so there
 * are only a few. */
#define FLUSH_WORKERS 3

struct flusher {
	const struct sys *sys;
	struct workers *workers;
	struct work_source source; /* one file */

	/* All members below: under MUTEX. */
	struct mutex mutex;
	pthread_cond_t done;
	struct flush_file *files; /* a list of utlist */
};

static int sync_file(const struct sys *sys, const struct flush_file *file)
{
	return file->how == FLUSH_WRITE_OUT ?
	    SYS(sys, write_out_wait, file->fd) :
	    SYS(sys, fsync, file->fd);
}

/* work_source.work */
static bool flusher_work(void *arg)
{
	struct flusher *fl = arg;
	struct flush_file *file;
	int err;

	mutex_lock(&fl->mutex);
	file = fl->files;
	if (file == NULL) {
		mutex_unlock(&fl->mutex);
		return false;
	}
	DL_DELETE(fl->files, file);
	if (fl->files != NULL)
		workers_wake(fl->workers, &fl->source);
	mutex_unlock(&fl->mutex);
	err = sync_file(fl->sys, file);
	mutex_lock(&fl->mutex);
	file->err = err;
	if (--*file->left == 0)
		pthread_cond_broadcast(&fl->done);
	mutex_unlock(&fl->mutex);
	return true;
}

struct flusher *flusher_new(const struct sys *sys, struct workers *workers)
{
	struct flusher *fl = calloc(1, sizeof(*fl));

	if (fl == NULL)
		return NULL;
	fl->sys = sys;
	fl->workers = workers;
	fl->source = (struct work_source){ .work = flusher_work,
		.arg = fl,
		.most = FLUSH_WORKERS };
	mutex_init(&fl->mutex, MUTEX_FLOORS);
	pthread_cond_init(&fl->done, NULL);
	workers_add(workers, &fl->source);
	return fl;
}

void flusher_free(struct flusher *fl)
{
	if (fl == NULL)
		return;
	pthread_cond_destroy(&fl->done);
	mutex_destroy(&fl->mutex);
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
	mutex_lock(&fl->mutex);
	file->left = left;
	++*left;
	DL_APPEND(fl->files, file);
	mutex_unlock(&fl->mutex);
	workers_wake(fl->workers, &fl->source);
}

/* Takes back a file of this caller (LEFT) that no worker has begun. */
static struct flush_file *take_back(struct flusher *fl, const size_t *left)
{
	struct flush_file *file;

	DL_SEARCH_SCALAR(fl->files, file, left, left);
	if (file != NULL)
		DL_DELETE(fl->files, file);
	return file;
}

/* All workers may be busy, or hang on another disk, so the caller syncs every
 * file that no worker has begun. */
static void wait_for(struct flusher *fl, size_t *left)
{
	struct flush_file *file;
	int err;

	mutex_lock(&fl->mutex);
	while (*left > 0) {
		file = take_back(fl, left);
		if (file == NULL) {
			mutex_wait(&fl->done, &fl->mutex);
			continue;
		}
		mutex_unlock(&fl->mutex);
		err = sync_file(fl->sys, file);
		mutex_lock(&fl->mutex);
		file->err = err;
		--*left;
	}
	mutex_unlock(&fl->mutex);
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
    struct flusher *flusher, int fd, enum flush_how how)
{
	*one = (struct flush_one){ .flusher = flusher,
		.file = { .fd = fd, .how = how } };
	if (flusher != NULL)
		hand_over(flusher, &one->file, &one->left);
	else
		one->file.err = sync_file(sys, &one->file);
}

int flush_wait(struct flush_one *one)
{
	if (one->flusher != NULL)
		wait_for(one->flusher, &one->left);
	return one->file.err;
}
