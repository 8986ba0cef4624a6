/*
 * What refd bench measures, one figure after another, and how it is said: as
 * a table, each line as soon as it is known, or all of it as one object of
 * JSON. Blocking; one thread; what can't be measured ends the program.
 */
#ifndef CLIENT_BENCH_MEASURE_H
#define CLIENT_BENCH_MEASURE_H

#include <stdbool.h>

#include "client/bench/scratch.h"

struct measure {
	const struct scratch *on;
	unsigned clients; /* at most */
	unsigned refs;    /* of one transaction, at most */
	double rate;      /* 0: half of what goes through */
	double seconds;   /* for each figure that is taken over a time */
	bool json;
};

void measure_all(const struct measure *m);

#endif
