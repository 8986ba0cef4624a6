/*
 * Many clients at once, and how long each of their transactions takes. What a
 * transaction is, and with whom, is the contestant's affair; the loop and the
 * clocks are the same for all.
 *
 * Each client is a process of its own, which ends with this one. Without a
 * rate it begins its next transaction when the last one is answered (a closed
 * loop: how much goes through). With one, transactions are due at times that
 * don't depend on the answers, and each counts from when it was due, not from
 * when its client got round to it (an open loop: how long it takes).
 *
 * Blocking; one thread. What can't be set up ends the program.
 */
#ifndef CLIENT_BENCH_LOAD_H
#define CLIENT_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LOAD_CLIENTS_MAX 10000

enum load_outcome {
	LOAD_DONE,
	LOAD_BEATEN, /* it was answered, and another was first */
	LOAD_FAILED
};

/* ARG is the contestant's, as it was before the clients parted. Only
 * transaction() is timed. open() may end the program; close() may be NULL. */
struct load_contestant {
	void *arg;
	void *(*open)(void *arg, unsigned client);
	enum load_outcome (*transaction)(void *opened, unsigned nr);
	void (*close)(void *opened);
};

/* Of TXNS (each client's) and SECONDS what comes first ends it; 0 is no end,
 * but one of them is needed. RATE: transactions a second, of all together; 0:
 * a closed loop. */
struct load {
	unsigned clients;
	unsigned txns;
	double seconds;
	double rate;
};

/* Times are microseconds, of those that were answered. LEAST and MOST: what
 * the client with the fewest and the one with the most were answered. */
struct load_result {
	uint64_t done, beaten, failed;
	uint64_t least, most;
	double seconds;
	uint32_t p50_us, p99_us, p999_us, max_us;
};

/* False: a client did not come to its end. */
bool load_run(const struct load *load, const struct load_contestant *with,
    struct load_result *result);
/* As one object of JSON, without a newline. */
void load_print(const struct load_result *result, FILE *to);

#endif
