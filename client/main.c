/*
 * refd: the command for users, scripts and git's hooks. The commands that need
 * the journal or the libraries of the daemon are in other programs.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/admin/admin.h"
#include "client/ask.h"
#include "client/base/cli.h"
#include "client/bench/bench.h"
#include "client/doctor/doctor.h"
#include "client/enable/enable.h"
#include "client/log/log.h"
#include "client/program.h"
#include "client/push/hook.h"
#include "client/restore/restore.h"
#include "client/update/update.h"
#include "client/verify.h"

static int run_help(const struct command *c, int argc, char **argv);

static int run_version(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	(void)argv;
	puts("refd " REFD_VERSION);
	return EXIT_DONE;
}

/* A command of another program: it parses its own options. */
#define OTHER(name, summary, run)                                              \
	(&(const struct command)COMMAND(name, summary, NULL, run))

/* A heading of the list. */
#define GROUP(title) (&(const struct command){ .summary = (title) })

static const struct command *const commands[] = {
	GROUP("Change refs"),
	&update_command,
	&restore_command,
	&hook_command,
	&enable_command,
	&disable_command,
	GROUP("Ask the daemon"),
	&ping_command,
	&query_command,
	&log_command,
	&watch_command,
	&status_command,
	&stats_command,
	&top_command,
	&slowlog_command,
	&locks_command,
	GROUP("Control the daemon"),
	OTHER("daemon", "run the daemon in the foreground", program_daemon),
	OTHER("check-config", "check the daemon's configuration",
	    program_admin),
	&pause_command,
	&drain_command,
	&resume_command,
	&checkpoint_command,
	OTHER("recover", "replay the journal", program_admin),
	OTHER("disown", "release a repository from a lost journal",
	    program_admin),
	GROUP("Check and measure"),
	&verify_command,
	&doctor_command,
	&bench_command,
	OTHER("version", "print the version", run_version),
	OTHER("help", "print this list", run_help),
	OTHER("--version", NULL, run_version),
	OTHER("--help", NULL, run_help),
	OTHER("-h", NULL, run_help),
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void list_commands(FILE *to)
{
	size_t i;

	fputs("usage: refd <command> [<args>]\n", to);
	for (i = 0; i < NR_COMMANDS; i++)
		if (!commands[i]->name)
			fprintf(to, "\n%s\n", commands[i]->summary);
		else if (commands[i]->summary)
			fprintf(to, "    %-14s%s\n", commands[i]->name,
			    commands[i]->summary);
	fputs("\n'refd <command> -h' prints the options of a command. "
	      "See also refd(1).\n",
	    to);
}

static int run_help(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	(void)argv;
	list_commands(stdout);
	return EXIT_DONE;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	size_t i;
	int rc;

	/* write(2) must report a closed pipe: a hook may end before it has read
	 * everything. flush_output() handles standard output. */
	signal(SIGPIPE, SIG_IGN);
	if (argc > 0 && !strcmp(base_name(argv[0]), "proc-receive"))
		return hook_proc_receive();
	if (argc < 2) {
		list_commands(stderr);
		return EXIT_USAGE;
	}
	for (i = 0; i < NR_COMMANDS; i++) {
		if (!commands[i]->name || strcmp(argv[1], commands[i]->name))
			continue;
		rc = commands[i]->run(commands[i], argc - 1, argv + 1);
		flush_output();
		return rc;
	}
	say("'%s' is not a command; refd help lists them", argv[1]);
	return EXIT_USAGE;
}
