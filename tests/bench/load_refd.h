/*
 * refd as a contestant of a load. Each client has a connection. Blocking; runs
 * in the clients' processes.
 */
#ifndef TESTS_BENCH_LOAD_REFD_H
#define TESTS_BENCH_LOAD_REFD_H

#include <stdbool.h>

#include "client/refd.h"
#include "tests/bench/job.h"
#include "tests/bench/load.h"

struct load_refd {
	const char *socket;
	const struct job *job; /* NULL: sends pings */
	bool atomic;
};

/* Borrows ON. */
struct load_contestant load_refd(struct load_refd *on);

#endif
