/*
 * refd: the command for users, scripts and git's hooks. The commands that need
 * the journal or the libraries of the daemon are in other programs.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/commands.h"
#include "client/hook.h"
#include "client/program.h"
#include "proto/lib/cli.h"
#include "proto/lib/json.h"
#include "proto/lib/nearest.h"

static int run_help(const struct command *c, int argc, char **argv);

struct version_options {
	bool json;
};

static int run_version(const struct command *c, int argc, char **argv)
{
	struct version_options opt = { 0 };
	struct json j = { .to = stdout };

	cli_parse(c, &opt, argc, &argv);
	if (opt.json) {
		json_begin(&j, NULL, '{');
		json_text(&j, "version", REFD_VERSION);
		json_finish(&j, '}');
	} else {
		print_line(stdout, "refd " REFD_VERSION);
	}
	return EXIT_DONE;
}

static const struct command_option no_options[] = { { 0 } };

static const struct command version_command = {
	.name = "version",
	.summary = "print the version",
	.purpose = "Prints the version of refd.",
	.example = "refd version",
	.manual = "refd(1)",
	.options =
	    (const struct command_option[]){
		{ OPTION_FLAG("json", 0, "print JSON, for programs",
		    struct version_options, json) },
		{ 0 } },
	.run = run_version,
};

static const struct command help_command = {
	.name = "help",
	.summary = "explain a command",
	.arguments = "[<command>]",
	.purpose = "Lists the commands, or explains a command and its options.",
	.example = "refd help log",
	.manual = "refd(1)",
	.most = 1,
	.options = no_options,
	.run = run_help,
};

/* A command of another program, which parses the options. */
#define OTHER(word, text, function)                                            \
	(&(const struct command){ .name = (word),                              \
	    .summary = (text),                                                 \
	    .run = (function) })

/* A heading of the list. */
#define GROUP(title) (&(const struct command){ .summary = (title) })

static const struct command *const commands[] = {
	GROUP("Everyday use"),
	&update_command,
	&log_command,
	&restore_command,
	GROUP("Watch the daemon"),
	&status_command,
	&role_command,
	&top_command,
	&watch_command,
	&slowlog_command,
	&locks_command,
	&stats_command,
	&ping_command,
	GROUP("Find and repair damage"),
	&doctor_command,
	&verify_command,
	&query_command,
	&wait_command,
	OTHER("recover", "replay the journal", program_admin),
	OTHER("disown", "release a repository from a lost journal",
	    program_admin),
	GROUP("Administration"),
	&enable_command,
	&disable_command,
	&migrate_command,
	&look_command,
	&pack_command,
	OTHER("daemon", "run the daemon in the foreground", program_daemon),
	OTHER("deliver", "send changes to web hooks and commands",
	    program_deliver),
	OTHER("group", "manage a group of nodes", program_group),
	OTHER("check-config", "check the daemon's configuration",
	    program_admin),
	&pause_command,
	&drain_command,
	&resume_command,
	&checkpoint_command,
	&hook_command,
	&version_command,
	&help_command,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void list_commands(FILE *to)
{
	size_t i;

	print_line(to, "usage: refd <command> [<args>]");
	for (i = 0; i < NR_COMMANDS; i++)
		if (!commands[i]->name)
			print_lines(to, "\n%s\n", commands[i]->summary);
		else
			print_line(to, "    %-14s%s", commands[i]->name,
			    commands[i]->summary);
	print_lines(to,
	    "\n'refd help <command>' explains a command. Manual: refd(1)\n");
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < NR_COMMANDS; i++)
		if (commands[i]->name && !strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int refuse_command(const char *word)
{
	const char *names[NR_COMMANDS];
	char hint[160];
	size_t i, nr = 0;

	for (i = 0; i < NR_COMMANDS; i++)
		if (commands[i]->name)
			names[nr++] = commands[i]->name;
	nearest_hint(word, strlen(word), "refd ", names, nr, hint,
	    sizeof(hint));
	say("'%s' is not a command%s", word,
	    *hint ? hint : "; 'refd help' lists the commands");
	return EXIT_USAGE;
}

static int run_command(const char *name, int argc, char **argv)
{
	const struct command *c = find_command(name);
	int rc;

	if (!c)
		return refuse_command(name);
	cli_start(c);
	rc = c->run(c, argc, argv);
	cli_flush();
	return rc;
}

static int run_help(const struct command *c, int argc, char **argv)
{
	static char option[] = "-h";

	if (cli_parse(c, NULL, argc, &argv) == 1)
		return run_command(argv[0], 2,
		    (char *[]){ argv[0], option, NULL });
	list_commands(stdout);
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *name;
	int rc;

	/* A hook may end before it has read everything, so write(2) must report
	 * a closed pipe. cli_flush() handles standard output. */
	signal(SIGPIPE, SIG_IGN);
	if (hook_is_run(argc, argv, &rc))
		return rc;
	if (argc < 2) {
		list_commands(stderr);
		return EXIT_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-h") || !strcmp(name, "--help"))
		name = "help";
	if (!strcmp(name, "--version"))
		name = "version";
	return run_command(name, argc - 1, argv + 1);
}
