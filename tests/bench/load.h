/*
 * Runs many clients at once and measures the time of each transaction. The
 * contestant defines a transaction; the loop and the clocks are the same for
 * all contestants.
 *
 * Each client is a process, which ends with this process. Without a rate, a
 * client begins its next transaction after the last answer (a closed loop,
 * which measures throughput). With a rate, transactions have due times that do
 * not depend on the answers, and a transaction's time counts from its due time
 * (an open loop, which measures latency).
 *
 * Blocking; one thread. A failed set-up ends the program.
 */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/lib/json.h"

#define LOAD_CLIENTS_MAX 10000

enum load_outcome {
	LOAD_DONE,
	LOAD_BEATEN, /* answered: a different client was first */
	LOAD_FAILED
};

/* ARG belongs to the contestant, with its value before the clients were forked.
 * Only transaction() is timed. open() may end the program; close() may be NULL.
 */
struct load_contestant {
	void *arg;
	void *(*open)(void *arg, unsigned client);
	enum load_outcome (*transaction)(void *opened, unsigned nr);
	void (*close)(void *opened);
};

/* The first of TXNS (per client) and SECONDS ends the load; 0 means no limit,
 * but one of them is required. RATE: transactions per second of all clients; 0:
 * a closed loop. */
struct load {
	unsigned clients;
	unsigned txns;
	double seconds;
	double rate;
};

/* Times are in microseconds, of answered transactions. LEAST and MOST: the
 * smallest and the largest number of answers of a client. */
struct load_result {
	uint64_t done, beaten, failed;
	uint64_t least, most;
	double seconds;
	uint32_t p50_us, p99_us, p999_us, max_us;
};

/* False: a client failed. */
bool load_run(const struct load *load, const struct load_contestant *with,
    struct load_result *result);
void load_json(struct json *j, const char *key, const struct load_result *res);

#endif
