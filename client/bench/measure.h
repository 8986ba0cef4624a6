/*
 * The measurements of refd bench, printed as a table, line by line, or as a
 * JSON object. Blocking; one thread. A failed measurement ends the program.
 */
#ifndef CLIENT_BENCH_MEASURE_H
#define CLIENT_BENCH_MEASURE_H

#include <stdbool.h>

#include "client/bench/scratch.h"

struct measure {
	const struct scratch *on;
	unsigned clients; /* maximum */
	unsigned refs;    /* maximum per transaction */
	double rate;      /* 0: half of the highest throughput */
	double seconds;   /* of each measurement with a duration */
	bool json;
};

void measure_all(const struct measure *m);

#endif
