/*
 * refd as a contestant of a load. Each client has a connection. Blocking; runs
 * in the clients' processes.
 */
#ifndef CLIENT_BENCH_LOAD_REFD_H
#define CLIENT_BENCH_LOAD_REFD_H

#include <stdbool.h>

#include "client/bench/job.h"
#include "client/bench/load.h"
#include "client/refd.h"

struct load_refd {
	const char *socket;
	const struct job *job; /* NULL: sends pings */
	bool atomic;
};

/* Borrows ON. */
struct load_contestant load_refd(struct load_refd *on);

#endif
