/*
 * Contestants of a load for comparison with refd: they do the same job in a
 * different way. All functions block and run in the client processes, except
 * *_new(). These are called before the processes are made, and exit on failure.
 */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include "tests/bench/job.h"
#include "tests/bench/load.h"

struct peer {
	const struct job *job;
	const char *path;     /* of the database, log or socket */
	const char *input;    /* standard input of a command */
	char *const *command; /* git, a replacement, or any command */
};

/* A process for each update: <command> -C <repo> update-ref <name> <new>. */
struct load_contestant peer_git(struct peer *p);
/* A process for each client, kept alive: <command> -C <repo> update-ref
 * --stdin. */
struct load_contestant peer_kept(struct peer *p);
/* A command from start to end. It reads INPUT, not the job. */
struct load_contestant peer_command(struct peer *p);
/* A log at PATH with preallocated blocks, and one fdatasync for all waiting
 * clients: the lower bound for every journal. */
struct load_contestant peer_raw(struct peer *p);
/* SQLite at PATH, WAL, synchronous=FULL: a row for each ref. */
struct load_contestant peer_sqlite(struct peer *p);
/* A Redis that listens at PATH: SET, and MSET for several refs. */
struct load_contestant peer_redis(struct peer *p);
/* A loose ref for each update, written to a .lock and renamed, without any
 * flush: the lower bound for every writer of loose refs. */
struct load_contestant peer_rename(struct peer *p);

#endif
