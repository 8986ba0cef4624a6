/*
 * Files made durable, many at once.
 *
 *	flush_add, flush_add, ...	takes the descriptors over
 *	flush_end			each has been flushed, and is closed
 *
 * A few threads of the store's (struct flusher) sync files side by side for
 * whoever asks; file systems make one write of many syncs that wait together.
 * Without them, one after the other. A struct flush belongs to one thread. It
 * holds FLUSH_MAX descriptors at most and blocks, for all of them, whenever it
 * is full. A descriptor is synced once and closed after, whatever came of it.
 *
 *	flush_ahead, flush_wait		one descriptor, which stays the
 *					caller's, is fsynced while it does
 *					something else
 *
 * Nothing logs.
 */
#ifndef STORE_FLUSH_H
#define STORE_FLUSH_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/sys.h"

#define FLUSH_MAX 64

enum flush_how {
	FLUSH_NOTHING,   /* only closed */
	FLUSH_BEGIN,     /* writing begins, nobody waits for it */
	FLUSH_WRITE_OUT, /* written out (sys.h): a flush of the file system
			    has to follow */
	FLUSH_FSYNC
};

struct flusher;
/* NULL: no thread could be had. */
struct flusher *flusher_new(const struct sys *sys);
void flusher_free(struct flusher *flusher); /* nobody waits for it */

struct flush_file {
	int fd;
	enum flush_how how;
	void *what;
	int err;
	/* The flusher's own. */
	size_t *left;
	struct flush_file *next;
};

struct flush {
	const struct sys *sys;
	struct flusher *flusher; /* or NULL */
	/* WHAT of the file that could not be flushed, and a negative errno. */
	void (*failed)(void *arg, void *what, int err);
	void *arg;
	struct flush_file files[FLUSH_MAX];
	size_t nr;
};

void flush_init(struct flush *f, const struct sys *sys, struct flusher *flusher,
    void (*failed)(void *arg, void *what, int err), void *arg);
void flush_add(struct flush *f, int fd, enum flush_how how, void *what);
void flush_end(struct flush *f);

/* Stays where it is from the one call to the other. */
struct flush_one {
	struct flusher *flusher; /* or NULL: flush_ahead() blocks */
	struct flush_file file;
	size_t left;
};

void flush_ahead(struct flush_one *one, const struct sys *sys,
    struct flusher *flusher, int fd);
/* 0 or the negative errno of the fsync. */
int flush_wait(struct flush_one *one);

#endif
