/*
 * Whom refd is measured beside: contestants of a load that do the same job
 * their way. Blocking; the clients' processes, but for *_new(), which are
 * called before the clients part and end the program if they can't.
 */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include "client/bench/job.h"
#include "client/bench/load.h"

struct peer {
	const struct job *job;
	const char *path;     /* a database, a log, a socket: whose it is */
	const char *input;    /* what a command reads */
	char *const *command; /* git, or what takes its place; or any */
};

/* A process for each update: <command> -C <repo> update-ref <name> <new>. */
struct load_contestant peer_git(struct peer *p);
/* One for each client: <command> -C <repo> update-ref --stdin, kept alive. */
struct load_contestant peer_kept(struct peer *p);
/* A command, from its start to its end; not what it is told, but INPUT. */
struct load_contestant peer_command(struct peer *p);
/* A log at PATH that has its blocks already, one fdatasync for all that wait,
 * and nothing else: the floor under every journal. */
struct load_contestant peer_raw(struct peer *p);
/* SQLite at PATH, WAL, synchronous=FULL: a row for each ref. */
struct load_contestant peer_sqlite(struct peer *p);
/* A Redis that listens at PATH: SET, and MSET where it is more than one. */
struct load_contestant peer_redis(struct peer *p);
/* A loose ref for each, written to a .lock and renamed, and nothing flushed:
 * the floor under everyone who writes loose refs. */
struct load_contestant peer_rename(struct peer *p);

#endif
