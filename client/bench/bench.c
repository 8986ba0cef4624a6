/*
 * A child does the measurements. Whatever ends the child, the parent removes
 * the files.
 */
#include "client/bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "client/bench/load.h"
#include "client/bench/measure.h"
#include "client/request/question.h"

#define SECONDS_MAX 3600
#define RATE_MAX    10000000
#define START_MS    10000

struct bench {
	const char *dir, *state, *socket;
	int rate, seconds;
	struct measure measure;
};

static pid_t worker;

static const struct command_option options[] = {
	{ OPTION_STRING("dir", 0, "DIR",
	    "make the repository in DIR, instead of the current directory",
	    struct bench, dir) },
	{ OPTION_STRING("state", 0, "DIR",
	      "make the journal in DIR, if on a different disk", struct bench,
	      state),
	    .excludes = 's' },
	{ OPTION_STRING("socket", 0, "PATH",
	      "measure the daemon on this socket, and start none", struct bench,
	      socket),
	    .excludes = 's' },
	{ OPTION_NUMBER("clients", 0, "N",
	    "use at most N clients at the same time (64)", struct bench,
	    measure.clients, 1, LOAD_CLIENTS_MAX) },
	{ OPTION_NUMBER("refs", 0, "N",
	    "use at most N refs in a transaction (10000)", struct bench,
	    measure.refs, 1, REFD_UPDATES_MAX) },
	{ OPTION_NUMBER("rate", 0, "N",
	    "updates per second in the last measurement (half of the highest)",
	    struct bench, rate, 1, RATE_MAX) },
	{ OPTION_NUMBER("seconds", 0, "N", "seconds of each measurement (2)",
	    struct bench, seconds, 1, SECONDS_MAX) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs", struct bench,
	    measure.json) },
	{ 0 }
};

static void stop_worker(int sig)
{
	if (worker > 0)
		kill(worker, sig);
}

/* Holds signals back until there is a worker to end. */
static void hold_signals(bool held)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Ends with its parent. The clients end with the worker. */
static void work(const struct bench *o, struct scratch *s)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	hold_signals(false);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (o->socket)
		s->socket = xstrdup(o->socket);
	refd_free(question_connect(s->socket, o->socket ? 0 : START_MS));
	scratch_make_repo(s);
	measure_all(&o->measure);
	flush_output();
	_exit(0);
}

static int wait_for_worker(void)
{
	int status = 0;

	while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static int run_bench(const struct command *c, int argc, char **argv)
{
	struct bench o = { .dir = ".",
		.seconds = 2,
		.measure = { .clients = 64, .refs = 10000 } };
	struct scratch s = { 0 };
	int rc;

	cli_parse(c, &o, argc, &argv);
	o.measure.rate = o.rate;
	o.measure.seconds = o.seconds;
	o.measure.on = &s;
	hold_signals(true);
	scratch_make(&s, o.dir, o.state);
	signal(SIGINT, stop_worker);
	signal(SIGTERM, stop_worker);
	signal(SIGHUP, stop_worker);
	if (!o.socket)
		scratch_start(&s);
	fflush(NULL);
	worker = fork();
	if (worker == 0)
		work(&o, &s);
	hold_signals(false);
	rc = wait_for_worker();
	if (rc > 0 && rc <= EXIT_FATAL && !o.socket)
		scratch_quote(&s);
	scratch_remove(&s);
	return rc;
}

const struct command bench_command = {
	.name = "bench",
	.summary = "measure a daemon on this machine",
	.purpose =
	    "Measures how many updates of refs per second a daemon makes "
	    "durable on this machine, and how long an update takes.",
	.example = "refd bench --dir /srv/git --seconds 5",
	.outcome =
	    "Measures the disk of /srv/git. Each measurement takes five seconds.",
	.manual = "refd-bench(1)",
	.options = options,
	.run = run_bench,
};
