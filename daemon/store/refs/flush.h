/*
 * Makes many files durable together.
 *
 *	flush_add, flush_add, ...	takes over the descriptors
 *	flush_end			flushes and closes all
 *
 * File systems combine syncs that wait together, so workers (struct flusher)
 * sync files in parallel for all callers. Without a flusher, files are synced
 * one after the other. A struct flush belongs to one thread and holds at most
 * FLUSH_MAX descriptors. When full, it blocks until all are synced. A failed
 * sync has consumed the error, so a descriptor is synced once and then closed,
 * whatever the result.
 *
 *	flush_ahead, flush_wait		fsyncs or writes out one descriptor,
 *					which stays the caller's, in the
 *					background
 *
 * Nothing logs.
 */
#ifndef STORE_FLUSH_H
#define STORE_FLUSH_H

#include <stddef.h>

#include "daemon/base/sys.h"

#define FLUSH_MAX 64

enum flush_how {
	FLUSH_NOTHING,   /* only closed */
	FLUSH_BEGIN,     /* begins writing, does not wait */
	FLUSH_WRITE_OUT, /* written out (sys.h): a flush of the file system
			    has to follow */
	FLUSH_FSYNC
};

struct flusher;
struct workers;
/* Call before workers_start(). Returns NULL without memory. */
struct flusher *flusher_new(const struct sys *sys, struct workers *workers);
/* After workers_stop(). */
void flusher_free(struct flusher *flusher);

struct flush_file {
	int fd;
	enum flush_how how;
	void *what;
	int err;
	/* Private to the flusher. */
	size_t *left;
	struct flush_file *next, *prev;
};

struct flush {
	const struct sys *sys;
	struct flusher *flusher; /* or NULL */
	/* A flush failed: WHAT as in flush_add(), and a negative errno. */
	void (*failed)(void *arg, void *what, int err);
	void *arg;
	struct flush_file files[FLUSH_MAX];
	size_t nr;
};

void flush_init(struct flush *f, const struct sys *sys, struct flusher *flusher,
    void (*failed)(void *arg, void *what, int err), void *arg);
void flush_add(struct flush *f, int fd, enum flush_how how, void *what);
void flush_end(struct flush *f);

/* Must not move between the two calls. */
struct flush_one {
	struct flusher *flusher; /* or NULL: flush_ahead() blocks */
	struct flush_file file;
	size_t left;
};

/* HOW: FLUSH_WRITE_OUT or FLUSH_FSYNC. */
void flush_ahead(struct flush_one *one, const struct sys *sys,
    struct flusher *flusher, int fd, enum flush_how how);
/* 0 or the negative errno. */
int flush_wait(struct flush_one *one);

#endif
