/* refd-deliver: sends changes of refs to web hooks and commands. refd execs
 * this program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "client/deliver/console.h"
#include "client/deliver/deliver.h"
#include "client/refd.h"
#include "proto/lib/cli.h"

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
	deliver_run(&endpoints, outbox, socket ? socket : REFD_SYSTEM_SOCKET);
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
	/* Bodies contain names of users. */
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
	flush_output();
	return rc;
}
