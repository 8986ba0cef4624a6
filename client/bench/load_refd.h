/*
 * refd as a contestant of a load: each client is one connection. Blocking; the
 * clients' processes.
 */
#ifndef CLIENT_BENCH_LOAD_REFD_H
#define CLIENT_BENCH_LOAD_REFD_H

#include <stdbool.h>

#include "client/bench/job.h"
#include "client/bench/load.h"
#include "client/refd.h"

struct load_refd {
	const char *socket;
	const struct job *job; /* NULL: pings */
	bool atomic;
};

/* Borrows ON. */
struct load_contestant load_refd(struct load_refd *on);

#endif
