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

#define FLUSHES     200
#define FLUSH_BYTES 4096
/* Younger files may count as not flushed. */
#define AGE_US       200000
#define WAIT_MS      30000
#define RATE_CLIENTS 16

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
	if (fsync(fd) < 0 || !load_run(&load, &with, &res) || res.failed)
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
		.oids = m->on->oids,
		.nr_oids = 2 };
	struct load_refd on = { .socket = m->on->socket, .job = &job };
	struct load_contestant with = load_refd(&on);
	uint64_t before = count_flushes(m);
	struct load_result res;

	if (!load_run(load, &with, &res))
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

static void say_flush(const struct measure *m)
{
	struct load_result res = measure_flush(m);
	char *refs = scratch_file_system(m->on->dir);
	char *journal = scratch_file_system(m->on->state);

	if (m->json) {
		printf("{\"refs_on\":\"%s\",\"flush_on\":\"%s\",\"flush\":",
		    refs, journal);
		load_print(&res, stdout);
	} else {
		printf("refs on %s; a flush costs %.2f ms on %s (99 of 100"
		       " under %.2f)\n",
		    refs, ms(res.p50_us), journal, ms(res.p99_us));
	}
	free(refs);
	free(journal);
	fflush(stdout);
}

static void say_one(const struct measure *m)
{
	struct load load = { .clients = 1, .seconds = m->seconds };
	uint64_t flushes;
	struct load_result res = measure_refd(m, JOB_MOVE, 1, &load, &flushes);

	if (m->json) {
		fputs(",\"one\":", stdout);
		load_print(&res, stdout);
	} else {
		printf("one update by itself takes %.2f ms (99 of 100 under"
		       " %.2f, longest %.2f)\n",
		    ms(res.p50_us), ms(res.p99_us), ms(res.max_us));
	}
	fflush(stdout);
}

/* Returns the highest throughput, per second. */
static double say_storms(const struct measure *m)
{
	const char *comma = "";
	double most = 0;
	unsigned clients;

	if (m->json)
		fputs(",\"storm\":[", stdout);
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
		if (m->json) {
			printf("%s{\"clients\":%u,\"flushes\":%" PRIu64
			       ",\"load\":",
			    comma, clients, flushes);
			load_print(&res, stdout);
			putchar('}');
			comma = ",";
		} else {
			printf("%8u%12.0f%12.2f%12.2f%12.2f%16.1f\n", clients,
			    rate_of(&res), ms(res.p50_us), ms(res.p99_us),
			    ms(res.max_us),
			    (double)res.done / (double)(flushes ? flushes : 1));
		}
		fflush(stdout);
	}
	if (m->json)
		putchar(']');
	return most;
}

static void say_transactions(const struct measure *m)
{
	const char *comma = "";
	unsigned refs;

	if (m->json)
		fputs(",\"transactions\":[", stdout);
	else
		printf("\n%8s%12s%12s%12s\n", "new refs", "median ms",
		    "longest ms", "us a ref");
	for (refs = 1; refs <= m->refs; refs *= 10) {
		struct load load = { .clients = 1,
			.txns = refs > 1000 ? 3 : 10 };
		uint64_t flushes;
		struct load_result res =
		    measure_refd(m, JOB_CREATE, refs, &load, &flushes);

		if (m->json) {
			printf("%s{\"refs\":%u,\"load\":", comma, refs);
			load_print(&res, stdout);
			putchar('}');
			comma = ",";
		} else {
			printf("%8u%12.2f%12.2f%12.1f\n", refs, ms(res.p50_us),
			    ms(res.max_us), (double)res.p50_us / refs);
		}
		fflush(stdout);
	}
	if (m->json)
		putchar(']');
}

static void say_open(const struct measure *m, double rate)
{
	struct load load = { .clients = RATE_CLIENTS,
		.seconds = m->seconds,
		.rate = rate };
	uint64_t flushes;
	struct load_result res = measure_refd(m, JOB_MOVE, 1, &load, &flushes);

	if (m->json) {
		printf(",\"open\":{\"rate\":%.1f,\"load\":", rate);
		load_print(&res, stdout);
		puts("}}");
		return;
	}
	printf("\nat %.0f updates a second%s, from when each is due: median"
	       " %.2f ms, 99%% %.2f,\n99.9%% %.2f, longest %.2f\n",
	    rate, m->rate > 0 ? "" : ", half of the most", ms(res.p50_us),
	    ms(res.p99_us), ms(res.p999_us), ms(res.max_us));
}

void measure_all(const struct measure *m)
{
	double most;

	say_flush(m);
	make_known(m);
	say_one(m);
	most = say_storms(m);
	say_transactions(m);
	say_open(m, m->rate > 0 ? m->rate : most / 2);
}
