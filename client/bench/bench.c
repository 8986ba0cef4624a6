/*
 * The measuring is done by a child, so that whatever becomes of it, and
 * whoever interrupts it, what was made for it is removed.
 */
#include "client/bench/bench.h"

#include <errno.h>
#include <getopt.h>
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

struct options {
	const char *dir, *state, *socket;
	struct measure measure;
};

static pid_t worker;

static void __attribute__((noreturn)) usage(FILE *to, int rc)
{
	fputs("usage: refd bench [--dir DIR] [--state DIR | --socket PATH]"
	      " [--clients N] [--refs N]\n"
	      "                  [--rate N] [--seconds N] [--json]\n",
	    to);
	exit(rc);
}

static unsigned number(const char *name, const char *s, uint64_t most)
{
	uint64_t n;

	if (!parse_number(s, most, &n) || n == 0)
		die_with(EXIT_USAGE, "--%s '%s' is not a number from 1 to %llu",
		    name, s, (unsigned long long)most);
	return (unsigned)n;
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = { { "dir", required_argument, NULL,
						   'd' },
		{ "state", required_argument, NULL, 'S' },
		{ "socket", required_argument, NULL, 's' },
		{ "clients", required_argument, NULL, 'c' },
		{ "refs", required_argument, NULL, 'n' },
		{ "rate", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	struct measure *m = &o->measure;
	int c;

	while ((c = getopt_long(argc, argv, "h", names, NULL)) >= 0) {
		if (c == 'h')
			usage(stdout, 0);
		else if (c == 'd')
			o->dir = optarg;
		else if (c == 'S')
			o->state = optarg;
		else if (c == 's')
			o->socket = optarg;
		else if (c == 'c')
			m->clients =
			    number("clients", optarg, LOAD_CLIENTS_MAX);
		else if (c == 'n')
			m->refs = number("refs", optarg, REFD_UPDATES_MAX);
		else if (c == 'r')
			m->rate = number("rate", optarg, RATE_MAX);
		else if (c == 't')
			m->seconds = number("seconds", optarg, SECONDS_MAX);
		else if (c == 'j')
			m->json = true;
		else
			usage(stderr, EXIT_USAGE);
	}
	if (optind < argc || (o->state && o->socket))
		usage(stderr, EXIT_USAGE);
}

static void stop_worker(int sig)
{
	if (worker > 0)
		kill(worker, sig);
}

/* Who interrupts us before there is a worker to end is heard then. */
static void hold_signals(bool held)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Ends with its parent, and its clients end with it. */
static void work(const struct options *o, struct scratch *s)
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

int command_bench(int argc, char **argv)
{
	struct options o = { .dir = ".",
		.measure = { .clients = 64, .refs = 10000, .seconds = 2 } };
	struct scratch s = { 0 };
	int rc;

	parse(&o, argc, argv);
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
