/* refd-group: the log of a group of nodes, in PostgreSQL. refd execs this
 * program. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/verbs.h"
#include "proto/group_frame.h"
#include "proto/left_log.h"
#include "proto/lib/cli.h"

#define CONFIG "/etc/refd/config"
#define SOCKET "/var/lib/refd/group.sock"

static const struct command_option options[] = {
	{ OPTION_STRING("config", 0, "FILE",
	    "the configuration, if not " CONFIG, struct verb_options, config) },
	{ OPTION_FLAG("repair", 0,
	    "verify: fetch damaged objects from another node",
	    struct verb_options, repairs) },
	{ OPTION_STRING("socket", 0, "PATH",
	    "the daemon's socket, if not " SOCKET, struct verb_options,
	    socket) },
	{ 0 }
};

static const struct verb {
	const char *name;
	verb_fn *run;
	enum {
		TAKES_NOTHING,
		TAKES_NODE,   /* by default this node */
		TAKES_ORIGIN, /* can be NULL */
		TAKES_REPOS
	} takes;
} verbs[] = {
	{ "create", console_create, TAKES_ORIGIN },
	{ "status", console_status, TAKES_NOTHING },
	{ "join", join_run, TAKES_NOTHING },
	{ "promote", promote_run, TAKES_NODE },
	{ "leave", leave_run, TAKES_NODE },
	{ "verify", verify_run, TAKES_REPOS },
	{ "serve", service_run, TAKES_NOTHING },
};

static const struct verb *find_verb(const struct command *c, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	cli_usage(c, "'%s' is no command of refd group", name);
}

static void check_operand(const struct command *c, const struct verb *verb,
    const char *operand)
{
	uint8_t uuid[GROUP_UUID_BYTES];

	switch (verb->takes) {
	case TAKES_NOTHING:
		cli_usage(c, "'%s' takes no node", verb->name);
	case TAKES_NODE:
		if (!group_frame_is_name(operand))
			cli_usage(c, "'%s' is no name of a node", operand);
		break;
	case TAKES_ORIGIN:
		if (!left_log_parse(operand, uuid))
			cli_usage(c,
			    "'%s' is not what refd recover --leave has printed",
			    operand);
		break;
	case TAKES_REPOS:
		break;
	}
}

static int run(const struct command *c, struct verb_options *opt,
    const char *name)
{
	const struct verb *verb = find_verb(c, name);
	struct group_config config;
	struct text why = { 0 };
	int rc;

	opt->operand = *opt->operands;
	if (opt->operand)
		check_operand(c, verb, opt->operand);
	if (verb->takes != TAKES_REPOS &&
	    (opt->repairs || (opt->operand && opt->operands[1])))
		cli_usage_exit(c);
	if (!group_config_read(&config, opt->config, &why))
		die("%s", why.data);
	if (!opt->operand && verb->takes == TAKES_NODE)
		opt->operand = config.node;
	rc = verb->run(&config, opt);
	group_config_done(&config);
	return rc;
}

static int run_group(const struct command *c, int argc, char **argv)
{
	struct verb_options opt = { .config = CONFIG, .socket = SOCKET };

	cli_parse(c, &opt, argc, &argv);
	opt.operands = argv + 1;
	return run(c, &opt, argv[0]);
}

static const struct command group_command = {
	.name = "group",
	.summary = "keep a group's log in PostgreSQL",
	.arguments =
	    "(create [ORIGIN] | join | status | promote [NODE] | leave [NODE] | "
	    "verify [REPOSITORY...] | serve)",
	.purpose = "Creates a group of nodes in PostgreSQL, makes this machine "
		   "a node, prints the state of the group, moves the lead to "
		   "NODE, removes NODE, compares repositories of this node "
		   "with the other nodes, or serves the daemon of this node.",
	.example = "refd group status",
	.outcome = "Prints the leader, the copies and the nodes of the group.",
	.manual = "refd-group(8)",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
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
	cli_flush();
	return rc;
}
