#include "tests/bench/load.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/cli.h"

/* Shared by all clients. The memory is reserved, and used as it fills. */
#define TIMES_MAX (UINT32_C(1) << 26)

/* The results of a client, in shared memory. */
struct tally {
	uint64_t done, beaten, failed;
	uint32_t nr_times;
};

struct run {
	const struct load *load;
	const struct load_contestant *with;
	struct tally *tallies;
	uint32_t *times;
	uint32_t times_each;
	pid_t *pids;
	int ready[2], gate[2];
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void sleep_until(uint64_t when_us)
{
	struct timespec ts = { (time_t)(when_us / 1000000),
		(long)(when_us % 1000000) * 1000 };

	while (
	    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for %zu bytes", size);
	return p;
}

/* ---- one client ---- */

/* The time of the next transaction. The gaps are random, from zero to twice the
 * mean, so that the clients do not run in step. */
static uint64_t next_due(uint64_t due, double gap_us)
{
	double part = (double)random() / (double)RAND_MAX;

	return due + (uint64_t)(2 * gap_us * part);
}

static void count(struct run *run, unsigned id, enum load_outcome outcome,
    uint64_t took_us)
{
	struct tally *t = &run->tallies[id];

	switch (outcome) {
	case LOAD_DONE:
		t->done++;
		break;
	case LOAD_BEATEN:
		t->beaten++;
		break;
	case LOAD_FAILED:
		t->failed++;
		return;
	}
	run->times[(size_t)id * run->times_each + t->nr_times++] =
	    took_us < UINT32_MAX ? (uint32_t)took_us : UINT32_MAX;
}

static void work(struct run *run, unsigned id, void *opened)
{
	const struct load *load = run->load;
	uint64_t now = now_us(), due = now, end = UINT64_MAX;
	enum load_outcome outcome;
	double gap_us = 0;
	unsigned nr;

	if (load->seconds > 0)
		end = now + (uint64_t)(load->seconds * 1e6);
	if (load->rate > 0) {
		gap_us = load->clients / load->rate * 1e6;
		due = next_due(now, gap_us);
	}
	for (nr = 0; nr < run->times_each; nr++) {
		now = now_us();
		if (load->rate > 0 && due > now && due < end)
			sleep_until(due);
		else if (load->rate <= 0)
			due = now;
		if (due >= end)
			break;
		outcome = run->with->transaction(opened, nr);
		count(run, id, outcome, now_us() - due);
		if (load->rate > 0)
			due = next_due(due, gap_us);
	}
}

/* The parent closes the gate once all clients are ready. */
static void run_client(struct run *run, unsigned id)
{
	char byte = 'r';
	void *opened;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	close(run->gate[1]);
	srandom(id + 1);
	opened = run->with->open(run->with->arg, id);
	if (write(run->ready[1], &byte, 1) != 1)
		die("the gate is broken");
	close(run->ready[1]);
	if (read(run->gate[0], &byte, 1) != 0)
		die("the gate is broken");
	work(run, id, opened);
	if (run->with->close)
		run->with->close(opened);
	_exit(0);
}

/* ---- all of them ---- */

static int compare_times(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Moves the times of all clients together. */
static size_t gather(struct run *run)
{
	size_t nr = 0;
	unsigned i;

	for (i = 0; i < run->load->clients; i++) {
		uint32_t mine = run->tallies[i].nr_times;

		memmove(run->times + nr,
		    run->times + (size_t)i * run->times_each,
		    mine * sizeof(*run->times));
		nr += mine;
	}
	return nr;
}

static void sum_up(struct run *run, struct load_result *res)
{
	size_t nr = gather(run);
	unsigned i;

	res->least = UINT64_MAX;
	for (i = 0; i < run->load->clients; i++) {
		const struct tally *t = &run->tallies[i];
		uint64_t answered = t->done + t->beaten;

		res->done += t->done;
		res->beaten += t->beaten;
		res->failed += t->failed;
		if (answered < res->least)
			res->least = answered;
		if (answered > res->most)
			res->most = answered;
	}
	if (nr == 0)
		return;
	qsort(run->times, nr, sizeof(*run->times), compare_times);
	res->p50_us = run->times[nr / 2];
	res->p99_us = run->times[nr * 99 / 100];
	res->p999_us = run->times[nr * 999 / 1000];
	res->max_us = run->times[nr - 1];
}

static void start(struct run *run)
{
	char byte;
	unsigned i;
	pid_t pid;

	if (pipe(run->ready) < 0 || pipe(run->gate) < 0)
		die("cannot make a pipe: %s", strerror(errno));
	fflush(NULL);
	for (i = 0; i < run->load->clients; i++) {
		pid = fork();
		if (pid < 0)
			die("cannot start client %u: %s", i, strerror(errno));
		if (pid == 0)
			run_client(run, i);
		run->pids[i] = pid;
	}
	close(run->ready[1]);
	for (i = 0; i < run->load->clients; i++)
		if (read(run->ready[0], &byte, 1) != 1)
			die("a client could not begin");
	close(run->ready[0]);
	close(run->gate[0]);
}

static bool wait_for_all(const struct run *run)
{
	bool all_well = true;
	unsigned i;
	int status;

	for (i = 0; i < run->load->clients; i++)
		if (waitpid(run->pids[i], &status, 0) < 0 || status != 0)
			all_well = false;
	return all_well;
}

bool load_run(const struct load *load, const struct load_contestant *with,
    struct load_result *result)
{
	struct run run = { .load = load, .with = with };
	size_t tallies_size = load->clients * sizeof(*run.tallies);
	size_t times_size;
	bool all_well;
	uint64_t begun;

	run.times_each = TIMES_MAX / load->clients;
	if (load->txns && load->txns < run.times_each)
		run.times_each = load->txns;
	times_size =
	    (size_t)load->clients * run.times_each * sizeof(*run.times);
	run.tallies = shared(tallies_size);
	run.times = shared(times_size);
	run.pids = xcalloc(load->clients, sizeof(*run.pids));
	memset(result, 0, sizeof(*result));
	start(&run);
	begun = now_us();
	close(run.gate[1]);
	all_well = wait_for_all(&run);
	result->seconds = (double)(now_us() - begun) / 1e6;
	sum_up(&run, result);
	munmap(run.tallies, tallies_size);
	munmap(run.times, times_size);
	free(run.pids);
	return all_well;
}

void load_json(struct json *j, const char *key, const struct load_result *res)
{
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%.6f", res->seconds);
	json_begin(j, key, '{');
	json_count(j, "done", res->done);
	json_count(j, "beaten", res->beaten);
	json_count(j, "failed", res->failed);
	json_count(j, "least", res->least);
	json_count(j, "most", res->most);
	json_value(j, "seconds", seconds);
	json_count(j, "p50_us", res->p50_us);
	json_count(j, "p99_us", res->p99_us);
	json_count(j, "p999_us", res->p999_us);
	json_count(j, "max_us", res->max_us);
	json_end(j, '}');
}
