/*
 * The measurements, in this order:
 *
 *	flush		a write and an fdatasync on the journal's disk
 *	one		a single client
 *	storm		1, 4, 16, ... clients in a closed loop
 *	transactions	of 1, 10, 100, ... new refs
 *	open		transactions at a given rate
 */
#include "client/bench/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "client/bench/load_refd.h"
#include "proto/lib/progress.h"

#define FLUSHES     200
#define FLUSH_BYTES 4096
/* Younger files may count as not flushed. */
#define AGE_US       200000
#define WAIT_MS      30000
#define RATE_CLIENTS 16

/* ---- one measurement ---- */

/* The number of all measurements. */
static unsigned count_steps(const struct measure *m)
{
	unsigned steps = 3, n;

	for (n = 1; n <= m->clients; n *= 4)
		steps++;
	for (n = 1; n <= m->refs; n *= 10)
		steps++;
	return steps;
}

static bool run_step(const struct measure *m, const struct load *load,
    const struct load_contestant *with, struct load_result *res)
{
	static unsigned done;
	bool ok;

	progress_show("Measuring", done++, count_steps(m), "", "");
	ok = load_run(load, with, res);
	progress_clear();
	return ok;
}

/* ---- a flush ---- */

static void write_all(int fd, const char *path, off_t at)
{
	static const char zeroes[FLUSH_BYTES];

	if (pwrite(fd, zeroes, sizeof(zeroes), at) != (ssize_t)sizeof(zeroes))
		die("%s: %s", path, strerror(errno));
}

static enum load_outcome flush_once(void *opened, unsigned nr)
{
	int fd = *(int *)opened;

	write_all(fd, "the flush probe", (off_t)nr * FLUSH_BYTES);
	return fdatasync(fd) == 0 ? LOAD_DONE : LOAD_FAILED;
}

static void *flush_open(void *arg, unsigned client)
{
	(void)client;
	return arg;
}

/* Overwrites allocated blocks, as a journal mostly does. */
static struct load_result measure_flush(const struct measure *m)
{
	char *path = xasprintf("%s/flush", m->on->state);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct load load = { .clients = 1, .txns = FLUSHES };
	struct load_contestant with = { .arg = &fd,
		.open = flush_open,
		.transaction = flush_once };
	struct load_result res;
	off_t at;

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	for (at = 0; at < FLUSHES * FLUSH_BYTES; at += FLUSH_BYTES)
		write_all(fd, path, at);
	if (fsync(fd) < 0 || !run_step(m, &load, &with, &res) || res.failed)
		die("%s cannot be flushed", path);
	close(fd);
	unlink(path);
	free(path);
	return res;
}

/* ---- the daemon ---- */

/* The daemon opens the repository and makes sure that the objects are on disk,
 * so that no measurement includes this work. */
static void make_known(const struct measure *m)
{
	struct job job = { .action = JOB_MOVE,
		.refs = 1,
		.prefix = "refs/heads/warm",
		.repo = m->on->repo,
		.object_format = m->on->object_format,
		.oids = m->on->oids,
		.nr_oids = 2 };
	struct load_refd on = { .socket = m->on->socket, .job = &job };
	struct load_contestant with = load_refd(&on);
	struct load load = { .clients = 1, .txns = 10 };
	struct load_result res;

	usleep(AGE_US);
	if (!load_run(&load, &with, &res) || res.failed)
		die("the daemon at %s does not write to %s: is that below one"
		    " of its roots, and may you write there?",
		    m->on->socket, m->on->repo);
}

static uint64_t count_flushes(const struct measure *m)
{
	struct refd_request req = { .verb = REFD_VERB_STATS };
	struct refd *r = refd_new(m->on->socket);
	struct refd_answer ans;
	uint64_t flushes = 0;
	size_t i;

	if (!r || refd_connect(r, WAIT_MS) < 0 ||
	    refd_call(r, &req, WAIT_MS, &ans) < 0)
		die("the daemon tells no stats");
	for (i = 0; ans.kind == REFD_ANSWER_PAIRS && i < ans.nr_pairs; i++)
		if (!strcmp(ans.pairs[i].key, "flushes"))
			parse_number(ans.pairs[i].value, UINT64_MAX, &flushes);
	refd_answer_done(&ans);
	refd_free(r);
	return flushes;
}

/* Every measurement has a new prefix, and so new refs. */
static struct load_result measure_refd(const struct measure *m,
    enum job_action action, unsigned refs, const struct load *load,
    uint64_t *flushes)
{
	static unsigned nr;
	char *prefix = xasprintf("refs/heads/bench%u", nr++);
	struct job job = { .action = action,
		.refs = refs,
		.prefix = prefix,
		.repo = m->on->repo,
		.object_format = m->on->object_format,
		.oids = m->on->oids,
		.nr_oids = 2 };
	struct load_refd on = { .socket = m->on->socket, .job = &job };
	struct load_contestant with = load_refd(&on);
	uint64_t before = count_flushes(m);
	struct load_result res;

	if (!run_step(m, load, &with, &res))
		die("a client did not come to its end");
	if (res.failed || res.done == 0)
		die("%" PRIu64 " transactions of %u refs failed", res.failed,
		    refs);
	*flushes = count_flushes(m) - before;
	free(prefix);
	return res;
}

/* ---- output ---- */

static double ms(uint32_t us)
{
	return us / 1000.0;
}

static double rate_of(const struct load_result *res)
{
	return (double)res->done / res->seconds;
}

static void say_flush(const struct measure *m, struct json *j)
{
	struct load_result res = measure_flush(m);
	char *refs = scratch_file_system(m->on->dir);
	char *journal = scratch_file_system(m->on->state);

	if (m->json) {
		json_text(j, "refs_on", refs);
		json_text(j, "flush_on", journal);
		load_json(j, "flush", &res);
	} else {
		printf("refs on %s, journal on %s\n"
		       "flush of the journal: median %.2f ms, 99%% %.2f ms\n",
		    refs, journal, ms(res.p50_us), ms(res.p99_us));
	}
	free(refs);
	free(journal);
	fflush(stdout);
}

static void say_one(const struct measure *m, struct json *j)
{
	struct load load = { .clients = 1, .seconds = m->seconds };
	uint64_t flushes;
	struct load_result res = measure_refd(m, JOB_MOVE, 1, &load, &flushes);

	if (m->json)
		load_json(j, "one", &res);
	else
		printf("single update, idle daemon: median %.2f ms, 99%% %.2f "
		       "ms, longest %.2f ms\n",
		    ms(res.p50_us), ms(res.p99_us), ms(res.max_us));
	fflush(stdout);
}

static void say_storm(const struct measure *m, struct json *j, unsigned clients,
    uint64_t flushes, const struct load_result *res)
{
	if (m->json) {
		json_begin(j, NULL, '{');
		json_count(j, "clients", clients);
		json_count(j, "flushes", flushes);
		load_json(j, "load", res);
		json_end(j, '}');
	} else {
		printf("%8u%12.0f%12.2f%12.2f%12.2f%16.1f\n", clients,
		    rate_of(res), ms(res->p50_us), ms(res->p99_us),
		    ms(res->max_us),
		    (double)res->done / (double)(flushes ? flushes : 1));
	}
	fflush(stdout);
}

/* Returns the highest throughput, per second. */
static double say_storms(const struct measure *m, struct json *j)
{
	double most = 0;
	unsigned clients;

	if (m->json)
		json_begin(j, "storm", '[');
	else
		printf("\n%8s%12s%12s%12s%12s%16s\n", "clients", "updates/s",
		    "median ms", "99% ms", "longest ms", "updates/flush");
	for (clients = 1; clients <= m->clients; clients *= 4) {
		struct load load = { .clients = clients,
			.seconds = m->seconds };
		uint64_t flushes;
		struct load_result res =
		    measure_refd(m, JOB_MOVE, 1, &load, &flushes);

		if (rate_of(&res) > most)
			most = rate_of(&res);
		say_storm(m, j, clients, flushes, &res);
	}
	if (m->json)
		json_end(j, ']');
	return most;
}

static void say_transactions(const struct measure *m, struct json *j)
{
	unsigned refs;

	if (m->json)
		json_begin(j, "transactions", '[');
	else
		printf("\n%8s%12s%12s%12s\n", "new refs", "median ms",
		    "longest ms", "us per ref");
	for (refs = 1; refs <= m->refs; refs *= 10) {
		struct load load = { .clients = 1,
			.txns = refs > 1000 ? 3 : 10 };
		uint64_t flushes;
		struct load_result res =
		    measure_refd(m, JOB_CREATE, refs, &load, &flushes);

		if (m->json) {
			json_begin(j, NULL, '{');
			json_count(j, "refs", refs);
			load_json(j, "load", &res);
			json_end(j, '}');
		} else {
			printf("%8u%12.2f%12.2f%12.1f\n", refs, ms(res.p50_us),
			    ms(res.max_us), (double)res.p50_us / refs);
		}
		fflush(stdout);
	}
	if (m->json)
		json_end(j, ']');
}

static void say_open(const struct measure *m, struct json *j, double rate)
{
	struct load load = { .clients = RATE_CLIENTS,
		.seconds = m->seconds,
		.rate = rate };
	uint64_t flushes;
	struct load_result res = measure_refd(m, JOB_MOVE, 1, &load, &flushes);
	char text[32];

	if (m->json) {
		snprintf(text, sizeof(text), "%.1f", rate);
		json_begin(j, "open", '{');
		json_value(j, "rate", text);
		load_json(j, "load", &res);
		json_end(j, '}');
		return;
	}
	printf("\nfixed rate of %.0f updates/s%s, times from the planned "
	       "start:\nmedian %.2f ms, 99%% %.2f ms, 99.9%% %.2f ms, longest "
	       "%.2f ms\n",
	    rate, m->rate > 0 ? "" : " (half of the highest)", ms(res.p50_us),
	    ms(res.p99_us), ms(res.p999_us), ms(res.max_us));
}

void measure_all(const struct measure *m)
{
	struct json j = { .to = stdout };
	double most;

	if (m->json)
		json_begin(&j, NULL, '{');
	say_flush(m, &j);
	make_known(m);
	say_one(m, &j);
	most = say_storms(m, &j);
	say_transactions(m, &j);
	say_open(m, &j, m->rate > 0 ? m->rate : most / 2);
	if (m->json) {
		json_end(&j, '}');
		putchar('\n');
	}
}
