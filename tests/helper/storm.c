/*
 * Many clients at once, for scenarios and measurements. A client is a process
 * with one connection. The client works until its share is done, and survives
 * restarts of the daemon.
 *	storm --socket PATH --repo DIR --oid A --oid B [--clients N] [--txns M]
 *	      [--refs R] [--prefix refs/heads/storm] [--create | --same-ref]
 *	      [--atomic] [--durability MODE] [--timeout MS] [--log FILE]
 *
 * A client moves its own refs (<prefix>/<client>/<n>) from each --oid to the
 * next in a circle, always from the last known value. With --create every
 * transaction makes new refs (<prefix>/<client>/<txn>-<n>). With --same-ref all
 * clients swap the ref <prefix>/same until each has done its share of swaps.
 *
 * --log gets a line "<ref> <oid>" for every update as soon as it is
 * acknowledged, with a single write per line. At the end storm prints a line of
 * JSON with the results; "ok" counts updates, and "retries" counts "stale" with
 * --same-ref. Times are of transactions, from the request to the answer.
 */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/refd.h"

#define OIDS_MAX    2048
#define CLIENTS_MAX 10000
#define TIMES_MAX   10000000
#define NAP_US      2000

struct storm_plan {
	const char *socket, *repo, *prefix, *log;
	enum refd_object_format object_format;
	struct refd_oid oids[OIDS_MAX];
	unsigned nr_oids, clients, txns, refs;
	bool create, same_ref, atomic;
	enum refd_durability durability;
	int timeout_ms;
	char git_dir[PATH_MAX];
	struct stat common;
};

/* Shared with the parent. */
struct storm_tally {
	uint64_t ok, retries, txns;
	uint64_t failed[REFD_STATUSES];
};

struct client {
	const struct storm_plan *plan;
	unsigned id;
	struct refd *daemon;
	struct storm_tally *tally;
	uint32_t *times; /* of plan->txns, microseconds */
	int log_fd;
	char **names;
	struct refd_update *updates;
	/* The index of each ref's value, or -1 if unknown. */
	int *values;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- one client ---- */

static int index_of(const struct storm_plan *plan, const struct refd_oid *oid)
{
	unsigned i;

	for (i = 0; i < plan->nr_oids; i++)
		if (refd_oid_eq(&plan->oids[i], oid))
			return (int)i;
	return -1;
}

static void log_ok(const struct client *c, const struct refd_update *u)
{
	char hex[REFD_OID_MAX_HEX + 1];

	refd_oid_hex(&u->new_oid, c->plan->object_format, hex);
	if (c->log_fd >= 0 && dprintf(c->log_fd, "%s %s\n", u->name, hex) < 0)
		err(2, "cannot write the log");
}

static void name_refs(struct client *c, unsigned txn)
{
	const struct storm_plan *plan = c->plan;
	unsigned i;
	int len;

	for (i = 0; i < plan->refs; i++) {
		free(c->names[i]);
		if (plan->same_ref)
			len = asprintf(&c->names[i], "%s/same", plan->prefix);
		else if (plan->create)
			len = asprintf(&c->names[i], "%s/%u/%u-%u",
			    plan->prefix, c->id, txn, i);
		else
			len = asprintf(&c->names[i], "%s/%u/%u", plan->prefix,
			    c->id, i);
		if (len < 0)
			errx(2, "out of memory");
	}
}

/* From the known value (or none) to the next (or first) value. */
static void plan_update(const struct client *c, unsigned i)
{
	const struct storm_plan *plan = c->plan;
	struct refd_update *u = &c->updates[i];
	int old = c->values[i];

	memset(u, 0, sizeof(*u));
	u->name = c->names[i];
	u->action = plan->create ? REFD_CREATE : REFD_UPDATE;
	u->new_oid = plan->oids[(unsigned)(old + 1) % plan->nr_oids];
	if (plan->create)
		return;
	if (old >= 0) {
		u->has_old = true;
		u->old_oid = plan->oids[old];
	} else if (plan->same_ref) {
		u->has_old = true; /* null: the ref must not exist */
	}
}

static void count(struct client *c, unsigned i, const struct refd_result *res)
{
	struct refd_update *u = &c->updates[i];

	if (res->status == REFD_OK) {
		c->tally->ok++;
		c->values[i] = index_of(c->plan, &u->new_oid);
		log_ok(c, u);
		return;
	}
	if (res->has_found)
		c->values[i] = index_of(c->plan, &res->found);
	else if (res->status == REFD_UNKNOWN)
		c->values[i] = -1;
	if (c->plan->same_ref &&
	    (res->status == REFD_STALE || res->status == REFD_EXISTS))
		c->tally->retries++;
	else
		c->tally->failed[res->status]++;
}

/* Returns false if the daemon has no room now and did nothing. */
static bool take_answer(struct client *c, const struct refd_answer *ans)
{
	struct refd_result whole = { .status = ans->status };
	unsigned i;

	if (ans->kind == REFD_ANSWER_REFUSED && ans->status == REFD_BUSY)
		return false;
	for (i = 0; i < c->plan->refs; i++)
		count(c, i,
		    ans->kind == REFD_ANSWER_RESULTS ? &ans->results[i] :
						       &whole);
	return true;
}

static void connect_to_daemon(struct client *c)
{
	uint64_t give_up = now_us() + (uint64_t)c->plan->timeout_ms * 1000;
	int failed;

	for (;;) {
		failed = refd_connect(c->daemon, c->plan->timeout_ms);
		if (failed == 0 && refd_hello(c->daemon)->state == REFD_SERVING)
			return;
		if (now_us() > give_up)
			errx(2, "%s", refd_error(c->daemon));
		usleep(NAP_US);
	}
}

static void fill_request(const struct client *c, struct refd_request *req)
{
	const struct storm_plan *plan = c->plan;

	memset(req, 0, sizeof(*req));
	req->verb = REFD_VERB_TRANSACTION;
	req->git_dir = plan->git_dir;
	req->common_dev = plan->common.st_dev;
	req->common_ino = plan->common.st_ino;
	req->umask = 022;
	req->object_format = plan->object_format;
	req->atomic = plan->atomic;
	req->durability = plan->durability;
	req->deadline_ms = (uint32_t)plan->timeout_ms;
	req->message = "storm";
	req->updates = c->updates;
	req->nr_updates = plan->refs;
}

/* Sends a transaction until the answer is not "busy". */
static void do_txn(struct client *c, unsigned txn)
{
	struct refd_request req;
	struct refd_answer ans;
	bool done = false;
	uint64_t begun;
	int failed;

	name_refs(c, txn);
	for (unsigned i = 0; i < c->plan->refs; i++)
		plan_update(c, i);
	begun = now_us();
	while (!done) {
		fill_request(c, &req);
		failed = refd_call(c->daemon, &req, c->plan->timeout_ms + 5000,
		    &ans);
		if (failed < 0 && refd_answer_unknown(&req, &ans) < 0)
			errx(2, "out of memory");
		done = take_answer(c, &ans);
		refd_answer_done(&ans);
		if (!done)
			usleep(NAP_US);
	}
	c->times[txn] = (uint32_t)(now_us() - begun);
}

static void run_client(struct client *c)
{
	const struct storm_plan *plan = c->plan;
	unsigned i, txn = 0;

	c->names = calloc(plan->refs, sizeof(*c->names));
	c->updates = calloc(plan->refs, sizeof(*c->updates));
	c->values = calloc(plan->refs, sizeof(*c->values));
	c->daemon = refd_new(plan->socket);
	if (!c->names || !c->updates || !c->values || !c->daemon)
		errx(2, "out of memory");
	for (i = 0; i < plan->refs; i++)
		c->values[i] = -1;
	c->log_fd = -1;
	if (plan->log)
		c->log_fd = open(plan->log,
		    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (plan->log && c->log_fd < 0)
		err(2, "%s", plan->log);
	connect_to_daemon(c);
	while (txn < plan->txns) {
		uint64_t before = c->tally->retries;

		do_txn(c, txn);
		/* A swap that lost against a concurrent swap is tried again. */
		if (!plan->same_ref || c->tally->retries == before)
			txn++;
		c->tally->txns++;
	}
	refd_free(c->daemon);
}

/* ---- all clients ---- */

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		errx(2, "no memory for %zu bytes", size);
	return p;
}

static int compare_times(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct storm_plan *plan,
    const struct storm_tally *tallies, uint32_t *times, double seconds)
{
	size_t nr = (size_t)plan->clients * plan->txns, i, s;
	struct storm_tally sum = { 0 };
	const char *comma = "";

	for (i = 0; i < plan->clients; i++) {
		sum.ok += tallies[i].ok;
		sum.retries += tallies[i].retries;
		sum.txns += tallies[i].txns;
		for (s = 0; s < REFD_STATUSES; s++)
			sum.failed[s] += tallies[i].failed[s];
	}
	qsort(times, nr, sizeof(*times), compare_times);
	printf("{\"clients\":%u,\"refs\":%u,\"txns\":%llu,\"ok\":%llu,"
	       "\"failed\":{",
	    plan->clients, plan->refs, (unsigned long long)sum.txns,
	    (unsigned long long)sum.ok);
	for (s = 0; s < REFD_STATUSES; s++) {
		if (!sum.failed[s] || s == REFD_UNKNOWN)
			continue;
		printf("%s\"%s\":%llu", comma,
		    refd_status_name((enum refd_status)s),
		    (unsigned long long)sum.failed[s]);
		comma = ",";
	}
	printf("},\"unknown\":%llu,\"retries\":%llu,\"seconds\":%.3f,"
	       "\"txns_per_second\":%.0f,\"p50_us\":%u,\"p99_us\":%u,"
	       "\"max_us\":%u}\n",
	    (unsigned long long)sum.failed[REFD_UNKNOWN],
	    (unsigned long long)sum.retries, seconds,
	    (double)sum.txns / seconds, times[nr / 2], times[nr * 99 / 100],
	    times[nr - 1]);
}

/* Clients begin together at the gate, and end with the parent. */
static void start_client(const struct storm_plan *plan, unsigned id,
    int gate[2], struct storm_tally *tally, uint32_t *times)
{
	struct client c = { .plan = plan,
		.id = id,
		.tally = tally,
		.times = times };
	char byte;
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(gate[1]);
	if (read(gate[0], &byte, 1) != 0)
		errx(2, "the gate is broken");
	run_client(&c);
	_exit(0);
}

static int storm(const struct storm_plan *plan)
{
	struct storm_tally *tallies = shared(plan->clients * sizeof(*tallies));
	uint32_t *times =
	    shared((size_t)plan->clients * plan->txns * sizeof(*times));
	int gate[2], status, rc = 0;
	uint64_t begun;
	unsigned i;

	if (pipe2(gate, O_CLOEXEC) < 0)
		err(2, "pipe");
	for (i = 0; i < plan->clients; i++)
		start_client(plan, i, gate, &tallies[i],
		    times + (size_t)i * plan->txns);
	begun = now_us();
	close(gate[1]);
	for (i = 0; i < plan->clients; i++)
		if (wait(&status) < 0 || status)
			rc = 1;
	report(plan, tallies, times, (double)(now_us() - begun) / 1e6);
	return rc;
}

/* ---- options ---- */

static unsigned number(const char *s, unsigned most)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);

	if (*end || !*s || n < 1 || n > most)
		errx(2, "'%s' is not a number from 1 to %u", s, most);
	return (unsigned)n;
}

static void add_oid(struct storm_plan *plan, const char *hex)
{
	plan->object_format =
	    strlen(hex) > REFD_SHA1_HEX ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
	if (plan->nr_oids == OIDS_MAX ||
	    strlen(hex) != refd_object_format_hex(plan->object_format) ||
	    refd_oid_parse(hex, plan->object_format,
		&plan->oids[plan->nr_oids++]) < 0)
		errx(2, "--oid '%s': an object id, %d at most", hex, OIDS_MAX);
}

/* A bare repository, or the directory of a work tree's .git. */
static void find_repo(struct storm_plan *plan)
{
	char dot[PATH_MAX + 8];

	if (!realpath(plan->repo, plan->git_dir))
		err(2, "%s", plan->repo);
	snprintf(dot, sizeof(dot), "%s/.git", plan->git_dir);
	if (access(dot, F_OK) == 0 && !realpath(dot, plan->git_dir))
		err(2, "%s", dot);
	if (stat(plan->git_dir, &plan->common) < 0)
		err(2, "%s", plan->git_dir);
}

static void parse(struct storm_plan *plan, int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "repo", required_argument, NULL, 'r' },
		{ "clients", required_argument, NULL, 'c' },
		{ "txns", required_argument, NULL, 't' },
		{ "refs", required_argument, NULL, 'n' },
		{ "prefix", required_argument, NULL, 'p' },
		{ "oid", required_argument, NULL, 'o' },
		{ "log", required_argument, NULL, 'l' },
		{ "timeout", required_argument, NULL, 'm' },
		{ "durability", required_argument, NULL, 'd' },
		{ "create", no_argument, NULL, 'C' },
		{ "same-ref", no_argument, NULL, 'S' },
		{ "atomic", no_argument, NULL, 'A' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 's':
			plan->socket = optarg;
			break;
		case 'r':
			plan->repo = optarg;
			break;
		case 'c':
			plan->clients = number(optarg, CLIENTS_MAX);
			break;
		case 't':
			plan->txns = number(optarg, TIMES_MAX);
			break;
		case 'n':
			plan->refs = number(optarg, REFD_UPDATES_MAX);
			break;
		case 'p':
			plan->prefix = optarg;
			break;
		case 'o':
			add_oid(plan, optarg);
			break;
		case 'l':
			plan->log = optarg;
			break;
		case 'm':
			plan->timeout_ms =
			    (int)number(optarg, REFD_DEADLINE_MAX_MS);
			break;
		case 'd':
			if (refd_durability_from_name(optarg,
				&plan->durability) < 0)
				errx(2, "--durability '%s'?", optarg);
			break;
		case 'C':
			plan->create = true;
			break;
		case 'S':
			plan->same_ref = true;
			break;
		case 'A':
			plan->atomic = true;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc || !plan->socket || !plan->repo || !plan->nr_oids)
		errx(2,
		    "--socket, --repo and --oid are needed, and no arguments");
	if (plan->same_ref && (plan->create || plan->refs > 1))
		errx(2, "--same-ref is one ref, and not made anew");
	if ((uint64_t)plan->clients * plan->txns > TIMES_MAX)
		errx(2, "more than %d transactions", TIMES_MAX);
	find_repo(plan);
}

int main(int argc, char **argv)
{
	static struct storm_plan plan = { .prefix = "refs/heads/storm",
		.clients = 8,
		.txns = 100,
		.refs = 1,
		.timeout_ms = 300000 }; /* ends hanging clients */

	parse(&plan, argc, argv);
	return storm(&plan);
}
