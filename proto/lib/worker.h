/*
 * Work with the rights of another account, for a command of root. The worker is
 * a fork of this process which has become the account for good
 * (proto/lib/launch.h): the account can kill the worker, but not read its
 * memory or reach root's terminal and files.
 *
 * Root's process hears what the worker tells, relays what the worker prints,
 * shows its progress, and asks the user its questions. Whatever happens to the
 * worker is a failure of this piece of work, never of the command.
 *
 * Each work can cost root the whole limit of time, so two rules keep the other
 * accounts from waiting. An account whose workers failed repeatedly gets no
 * further worker. The files of an account can also answer slowly: if its works
 * take longer than their free time, the limit of its later works becomes
 * shorter, down to the free time.
 *
 * If the account is that of this process, the work runs here, unless the work
 * asks for a fork. The function that hears may run other work. One thread, and
 * no other thread exists yet. Blocks until the end of the work.
 */
#ifndef PROTO_LIB_WORKER_H
#define PROTO_LIB_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/lib/account.h"
#include "proto/lib/launch.h"

/* Bytes that worker_tell() accepts. */
#define WORKER_TELL_MAX 65536
#define WORKER_KEEP_MAX (LAUNCH_FDS - 1)
/* Seconds of each work that its account gets free. */
#define WORKER_FREE_S 60

struct work {
	/* Runs as the account, in a process of its own, so changes in memory
	 * are lost. The result is from 0 to 255. */
	int (*run)(void *arg);
	/* Hears in this process what RUN tells, and the result goes back. The
	 * data come from a process that read hostile files, so HEAR has to
	 * check them. */
	int (*hear)(void *arg, const char *data, size_t len);
	void *arg;
	/* Open descriptors that RUN needs; the first 0 ends the list. Each
	 * descriptor must be below LAUNCH_FD_MAX - 1. */
	int keep[WORKER_KEEP_MAX];
	/* The work forks also for the account of this process, because the work
	 * may end the process. */
	bool always_forks;
	/* RUN does this many works, with a call of worker_next() after each
	 * work, and the limits count for each work anew. 0: one work. */
	size_t pieces;
	int seconds;      /* the limit, without the time in HEAR */
	int free_seconds; /* of SECONDS; 0: WORKER_FREE_S */
	size_t bytes;     /* that RUN may print */
};

/* The result of RUN. Negative: the work was not done, or not to its end, and
 * *WHY is the reason, a static text that follows "the work": "was killed". */
int worker_run(const struct account *as, const struct work *work,
    const char **why);

/* In RUN: a program or a daemon that the account chose did not answer in time.
 * Counts as a failure of the account, whatever the result is. */
void worker_held_up(void);
/* In RUN. A piece of the work is done. */
void worker_next(void);
/* In RUN. The result of HEAR; -EMSGSIZE: DATA is too long; -EPIPE. */
int worker_tell(const void *data, size_t len);

#endif
