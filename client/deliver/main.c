/* refd-deliver: sends changes of refs to web hooks and commands. refd execs
 * this program. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "client/deliver/deliver.h"
#include "client/deliver/outbox.h"
#include "client/refd.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"
#include "proto/lib/consent.h"
#include "proto/lib/json.h"
#include "proto/lib/time_text.h"

/* ---- the commands of the administrator ---- */

/*
 * The commands of the administrator on the state of refd-deliver. Each prints
 * to standard output, and returns the exit status. The service may run
 * meanwhile. Blocking; one thread.
 */

/* ---- names ---- */

struct endpoint_search {
	const char *name;
	bool is_found;
	struct text known;
};

static void compare(void *arg, const struct outbox_counts *counts)
{
	struct endpoint_search *s = arg;

	s->is_found |= !strcmp(s->name, counts->name);
	text_addf(&s->known, "%s%s", s->known.len ? ", " : "", counts->name);
}

/* Ends the program if the service has never had an endpoint NAME, so that a
 * typing error is noticed. */
static void console_require(struct outbox *o, const char *name)
{
	struct endpoint_search s = { .name = name };

	outbox_each_endpoint(o, compare, &s);
	if (!s.is_found)
		die("the service has no endpoint '%s'; its endpoints: %s", name,
		    s.known.len ? s.known.data : "none");
	text_done(&s.known);
}

/* ---- dead letters ---- */

static void print_row(void *arg, const struct outbox_row *row)
{
	char when[64];

	(void)arg;
	print_lines(stdout, "%s\t%s\t%s\t%" PRIu64 "\t", row->endpoint, row->id,
	    time_text_local(row->died_ms, when), row->failures);
	print_part(stdout, "%s", row->error);
	print_lines(stdout, "\t");
	print_line(stdout, "%s", row->repo);
}

static void print_json(void *arg, const struct outbox_row *row)
{
	struct json j = { .to = stdout };

	(void)arg;
	json_begin(&j, NULL, '{');
	json_text(&j, "endpoint", row->endpoint);
	json_text(&j, "id", row->id);
	json_text(&j, "event", row->event);
	json_text(&j, "repo", row->repo);
	json_count(&j, "attempts", row->failures);
	json_text(&j, "error", row->error);
	json_count(&j, "queued_time_ms", row->time_ms);
	json_count(&j, "died_time_ms", row->died_ms);
	json_value(&j, "body", row->body);
	json_finish(&j, '}');
}

/* NAME is an endpoint, or NULL for all of them. */
static int console_list(struct outbox *o, const char *name, bool as_json)
{
	outbox_each_dead(o, name, as_json ? print_json : print_row, NULL);
	return EXIT_DONE;
}

typedef uint64_t change_fn(struct outbox *o, const char *name, const char *id);

static uint64_t change_all(struct outbox *o, change_fn *change,
    const char *name, char **ids, int nr)
{
	uint64_t changed = 0;
	int i;

	outbox_begin(o);
	if (nr == 0)
		changed = change(o, name, NULL);
	for (i = 0; i < nr; i++)
		changed += change(o, name, ids[i]);
	outbox_commit(o);
	return changed;
}

/* An id without a dead letter is a failure, so that a typing error is
 * noticed. */
static int report(uint64_t changed, int nr, const char *fate)
{
	say("%" PRIu64 " dead letters %s", changed, fate);
	return changed < (uint64_t)nr ? EXIT_FAILED : EXIT_DONE;
}

/* Dead letters of the endpoint NAME: those with one of NR ids, or all of them
 * if NR is 0. */
static int console_retry(struct outbox *o, const char *name, char **ids, int nr)
{
	return report(change_all(o, outbox_retry, name, ids, nr), nr,
	    "wait for another attempt");
}

static bool has_consent(const char *question)
{
	enum consent consent = consent_ask(question);

	if (consent == CONSENT_NOBODY)
		say("nothing was deleted: --yes deletes without a question");
	else if (consent == CONSENT_NO)
		say("nothing was deleted");
	return consent == CONSENT_YES;
}

/* The same. Without IS_SURE they ask. */
static int console_drop(struct outbox *o, const char *name, char **ids, int nr,
    bool is_sure)
{
	if (!is_sure &&
	    !has_consent(nr ? "Delete these dead letters?" :
			      "Delete all dead letters of the endpoint?"))
		return EXIT_FAILED;
	return report(change_all(o, outbox_drop, name, ids, nr), nr, "deleted");
}

static int console_forget(struct outbox *o, const char *name, bool is_sure)
{
	if (!is_sure &&
	    !has_consent("Delete the position, the waiting changes and the "
			 "dead letters of the endpoint?"))
		return EXIT_FAILED;
	outbox_begin(o);
	outbox_forget(o, name);
	outbox_commit(o);
	return EXIT_DONE;
}

/* ---- metrics ---- */

enum deliver_metric {
	DELIVERED,
	SECONDS,
	FAILED,
	DIED,
	GAPS,
	WAITING,
	WAITING_BYTES,
	OLDEST,
	DEAD,
	READ,
	NR_METRICS
};

static const struct {
	const char *name, *kind, *help;
} metrics[NR_METRICS] = {
	[DELIVERED] = { "delivered_total", "counter", "Successful attempts." },
	[SECONDS] = { "delivered_seconds_total", "counter",
	    "Time of the successful attempts." },
	[FAILED] = { "failed_total", "counter", "Failed attempts." },
	[DIED] = { "died_total", "counter",
	    "Changes that became dead letters." },
	[GAPS] = { "gaps_total", "counter",
	    "Gaps that stand for changes which were lost." },
	[WAITING] = { "waiting", "gauge", "Changes that wait." },
	[WAITING_BYTES] = { "waiting_bytes", "gauge",
	    "Bodies of the changes that wait." },
	[OLDEST] = { "oldest_seconds", "gauge",
	    "Age of the oldest change that waits; 0: none waits." },
	[DEAD] = { "dead_letters", "gauge", "Dead letters." },
	[READ] = { "read_lsn", "gauge",
	    "The last record that was read from the feed." },
};

/* The counts of all endpoints, and a copy of each name. */
struct printing {
	struct outbox_counts *list;
	size_t nr, size;
};

static void keep(void *arg, const struct outbox_counts *counts)
{
	struct printing *p = arg;

	p->list = xroom(p->list, p->nr, &p->size, sizeof(*p->list));
	p->list[p->nr] = *counts;
	p->list[p->nr++].name = xstrdup(counts->name);
}

static uint64_t value_of(const struct outbox_counts *c,
    enum deliver_metric metric, uint64_t now_ms)
{
	switch (metric) {
	case DELIVERED:
		return c->delivered;
	case SECONDS:
		return c->took_ms;
	case FAILED:
		return c->failed;
	case DIED:
		return c->died;
	case GAPS:
		return c->gaps;
	case WAITING:
		return c->waiting;
	case WAITING_BYTES:
		return c->waiting_bytes;
	case OLDEST:
		return c->oldest_ms && c->oldest_ms < now_ms ?
		    (now_ms - c->oldest_ms) / 1000 :
		    0;
	case DEAD:
		return c->dead;
	case READ:
		return c->position.at.lsn;
	case NR_METRICS:
		break;
	}
	return 0;
}

/* Names of endpoints have only plain characters (endpoints.c), so they need no
 * quoting. */
static void print_metric(const struct printing *p, enum deliver_metric m,
    uint64_t now_ms)
{
	uint64_t value;
	size_t i;

	print_lines(stdout,
	    "# HELP refd_deliver_%s %s\n# TYPE refd_deliver_%s %s\n",
	    metrics[m].name, metrics[m].help, metrics[m].name, metrics[m].kind);
	for (i = 0; i < p->nr; i++) {
		value = value_of(&p->list[i], m, now_ms);
		print_part(stdout, "refd_deliver_%s{endpoint=\"%s\"} ",
		    metrics[m].name, p->list[i].name);
		if (m == SECONDS)
			print_line(stdout, "%" PRIu64 ".%03u", value / 1000,
			    (unsigned)(value % 1000));
		else
			print_line(stdout, "%" PRIu64, value);
	}
}

static int console_prometheus(struct outbox *o)
{
	struct printing p = { 0 };
	const uint64_t now_ms = clock_wall_ms();
	enum deliver_metric m;
	size_t i;

	outbox_each_endpoint(o, keep, &p);
	for (m = 0; m < NR_METRICS; m++)
		print_metric(&p, m, now_ms);
	for (i = 0; i < p.nr; i++)
		free((char *)p.list[i].name);
	free(p.list);
	return EXIT_DONE;
}

#define CONFIG "/etc/refd/deliver.conf"
#define STATE  "/var/lib/refd_deliver"

struct deliver_options {
	const char *config, *state, *socket;
	enum { RUN, CHECK, LIST, RETRY, DROP, FORGET, PROMETHEUS } mode;
	bool json, yes;
};

#define MODE(long_name, text, to)                                              \
	OPTION_SET(long_name, 0, text, struct deliver_options, mode, to),      \
	    .excludes = 'm'

static const struct command_option options[] = {
	{ OPTION_STRING("config", 0, "FILE",
	    "the configuration, if not " CONFIG, struct deliver_options,
	    config) },
	{ OPTION_STRING("state", 0, "DIR", "the state directory, if not " STATE,
	    struct deliver_options, state) },
	{ OPTION_STRING("socket", 0, "PATH",
	    "the daemon's socket, if not the configured one",
	    struct deliver_options, socket) },
	{ MODE("check", "check the configuration, and deliver nothing",
	    CHECK) },
	{ MODE("list", "list the dead letters", LIST) },
	{ MODE("retry", "try dead letters of ENDPOINT once more", RETRY) },
	{ MODE("drop", "delete dead letters of ENDPOINT", DROP) },
	{ MODE("forget", "delete all that is known of ENDPOINT", FORGET) },
	{ MODE("prometheus", "print metrics for Prometheus", PROMETHEUS) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs; with --list",
	    struct deliver_options, json) },
	{ OPTION_FLAG("yes", 'y', "do not ask before a deletion",
	    struct deliver_options, yes) },
	{ 0 }
};

static void read_config(const struct deliver_options *opt,
    struct endpoints *endpoints)
{
	struct text why = { 0 };

	if (!endpoints_read(endpoints, opt->config, &why))
		die("%s", why.data);
}

/* Makes this process the only one that delivers, until its end. */
static void lock_state(const char *dir)
{
	char *path = xasprintf("%s/lock", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		die("cannot open '%s': %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		die("another refd-deliver serves '%s'", dir);
	free(path);
}

static int serve(const struct deliver_options *opt)
{
	struct endpoints endpoints = { 0 };
	const char *socket = opt->socket;
	struct outbox *outbox;

	read_config(opt, &endpoints);
	if (mkdir(opt->state, 0700) < 0 && errno != EEXIST)
		die("cannot make '%s': %s", opt->state, strerror(errno));
	lock_state(opt->state);
	outbox = outbox_open(opt->state, true);
	if (!socket)
		socket = endpoints.socket;
	if (!socket)
		socket = getenv("REFD_SOCKET");
	if (!socket || !*socket)
		socket = REFD_SYSTEM_SOCKET;
	deliver_run(&endpoints, outbox, socket);
	outbox_close(outbox);
	endpoints_done(&endpoints);
	return EXIT_DONE;
}

static int check(const struct deliver_options *opt)
{
	struct endpoints endpoints = { 0 };

	read_config(opt, &endpoints);
	print_line(stdout, "%s: in order", opt->config);
	endpoints_done(&endpoints);
	return EXIT_DONE;
}

static int forget(const struct deliver_options *opt, struct outbox *o,
    const char *name)
{
	struct endpoints endpoints = { 0 };
	struct text why = { 0 };
	int rc;

	/* A missing configuration has no sections. */
	endpoints_read(&endpoints, opt->config, &why);
	if (endpoints_find(&endpoints, name))
		die("'%s' has a section for the endpoint '%s': remove the "
		    "section, restart the service, and run this command again",
		    opt->config, name);
	rc = console_forget(o, name, opt->yes);
	endpoints_done(&endpoints);
	text_done(&why);
	return rc;
}

static int administer(const struct deliver_options *opt, int argc, char **argv)
{
	struct outbox *o = outbox_open(opt->state, false);
	int rc = EXIT_DONE;

	if (argc)
		console_require(o, argv[0]);
	switch (opt->mode) {
	case LIST:
		rc = console_list(o, argv[0], opt->json);
		break;
	case RETRY:
		rc = console_retry(o, argv[0], argv + 1, argc - 1);
		break;
	case DROP:
		rc = console_drop(o, argv[0], argv + 1, argc - 1, opt->yes);
		break;
	case FORGET:
		rc = forget(opt, o, argv[0]);
		break;
	case PROMETHEUS:
		rc = console_prometheus(o);
		break;
	case RUN:
	case CHECK:
		break;
	}
	outbox_close(o);
	return rc;
}

static void check_arguments(const struct command *c,
    const struct deliver_options *opt, int argc)
{
	bool needs_name =
	    opt->mode == RETRY || opt->mode == DROP || opt->mode == FORGET;

	if (needs_name && argc == 0)
		cli_usage(c, "the name of an endpoint is missing");
	if ((opt->mode == LIST || opt->mode == FORGET) && argc > 1)
		cli_usage(c, "more than one endpoint");
	if (!needs_name && opt->mode != LIST && argc > 0)
		cli_usage(c,
		    "an argument without --list, --retry, --drop or "
		    "--forget");
}

static int run_deliver(const struct command *c, int argc, char **argv)
{
	struct deliver_options opt = { .config = CONFIG,
		.state = getenv("STATE_DIRECTORY") };

	if (!opt.state)
		opt.state = STATE;
	argc = cli_parse(c, &opt, argc, &argv);
	check_arguments(c, &opt, argc);
	/* Bodies contain names of users, so other users must not read the
	 * files. */
	umask(077);
	if (opt.mode == RUN)
		return serve(&opt);
	if (opt.mode == CHECK)
		return check(&opt);
	return administer(&opt, argc, argv);
}

static const struct command deliver_command = {
	.name = "deliver",
	.summary = "send changes to web hooks and commands",
	.arguments = "[<endpoint> [<id>...]]",
	.purpose = "Runs the service that sends every change of a ref to the "
		   "configured web hooks and commands, or looks after its "
		   "dead letters.",
	.example = "refd deliver --list",
	.outcome = "Lists the changes that could not be delivered.",
	.manual = "refd-deliver(8)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
	.run = run_deliver,
};

int main(int argc, char **argv)
{
	int rc;

	signal(SIGPIPE, SIG_IGN);
	cli_start(&deliver_command);
	if (argc > 0)
		argv[0] = (char *)"deliver";
	rc = run_deliver(&deliver_command, argc, argv);
	cli_flush();
	return rc;
}
