#include "client/hook.h"

#include <string.h>

#include "client/commands.h"
#include "client/gate/gate.h"
#include "client/hooks/gate_link.h"
#include "client/push/hook.h"
#include "proto/lib/cli.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool hook_is_run(int argc, char **argv, int *rc)
{
	const char *name = argc > 0 ? base_name(argv[0]) : "";
	bool is_push = !strcmp(name, "proc-receive");

	if (!is_push && strcmp(name, GATE_LINK_NAME) != 0)
		return false;
	cli_start(&hook_command);
	if (is_push)
		*rc = hook_proc_receive();
	else if (argc == 2)
		*rc = gate_run(argv[0], argv[1]);
	else
		cli_usage(&hook_command, GATE_LINK_NAME " needs a phase");
	return true;
}

static int run_hook(const struct command *c, int argc, char **argv)
{
	argc = cli_parse(c, NULL, argc, &argv);
	if (argc == 1 && !strcmp(argv[0], "proc-receive"))
		return hook_proc_receive();
	if (argc == 2 && !strcmp(argv[0], GATE_LINK_NAME))
		return gate_run(NULL, argv[1]);
	cli_usage(c, "'%s' is no hook of refd, or has other arguments",
	    argv[0]);
}

const struct command hook_command = {
	.name = "hook",
	.summary = "serve a push, or the gate; git runs it",
	.arguments = "proc-receive | reference-transaction <phase>",
	.purpose =
	    "Serves a push: git runs this command as the hook proc-receive "
	    "of a repository. Records an update of plain git: git runs this "
	    "command as the hook reference-transaction. 'refd enable' "
	    "installs the hooks.",
	.example = "refd hook proc-receive",
	.manual = "refd-hook(1)",
	.is_like_git = true,
	.least = 1,
	.most = 2,
	.options = (const struct command_option[]){ { 0 } },
	.run = run_hook,
};
