/* refd-group: the log of a group of nodes, in PostgreSQL. refd execs this
 * program. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"
#include "client/group/console.h"
#include "client/group/service.h"

#define CONFIG "/etc/refd/config"
#define SOCKET "/var/lib/refd/group.sock"

struct group_options {
	const char *config, *socket;
};

static const struct command_option options[] = {
	{ OPTION_STRING("config", 0, "FILE",
	    "the configuration, if not " CONFIG, struct group_options,
	    config) },
	{ OPTION_STRING("socket", 0, "PATH",
	    "the daemon's socket, if not " SOCKET, struct group_options,
	    socket) },
	{ 0 }
};

static int run(const struct command *c, const struct group_options *opt,
    const char *verb)
{
	struct group_config config;
	struct text why = { 0 };
	int rc;

	if (strcmp(verb, "create") != 0 && strcmp(verb, "status") != 0 &&
	    strcmp(verb, "serve") != 0)
		cli_usage(c, "'%s' is none of create, status and serve", verb);
	if (!group_config_read(&config, opt->config, &why))
		die("%s", why.data);
	if (*verb == 'c')
		rc = console_create(&config);
	else if (strcmp(verb, "status") == 0)
		rc = console_status(&config);
	else
		rc = service_run(&config, opt->socket);
	group_config_done(&config);
	return rc;
}

static int run_group(const struct command *c, int argc, char **argv)
{
	struct group_options opt = { .config = CONFIG, .socket = SOCKET };

	argc = cli_parse(c, &opt, argc, &argv);
	return run(c, &opt, argv[0]);
}

static const struct command group_command = {
	.name = "group",
	.summary = "keep a group's log in PostgreSQL",
	.arguments = "(create | status | serve)",
	.purpose = "Creates a group of nodes in PostgreSQL, prints its state, "
		   "or joins the daemon of this node to the group's log.",
	.example = "refd group status",
	.outcome = "Prints the leader, the copies and the nodes of the group.",
	.manual = "refd-group(8)",
	.least = 1,
	.options = options,
	.run = run_group,
};

int main(int argc, char **argv)
{
	int rc;

	signal(SIGPIPE, SIG_IGN);
	cli_start(&group_command);
	if (argc > 0)
		argv[0] = (char *)"group";
	rc = run_group(&group_command, argc, argv);
	flush_output();
	return rc;
}
