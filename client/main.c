/*
 * refd: what people, scripts and git's hooks call. One table of commands;
 * what needs the journal or the daemon's own libraries is in other programs,
 * which are run from here.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/admin/admin.h"
#include "client/base/cli.h"
#include "client/bench/bench.h"
#include "client/command.h"
#include "client/doctor/doctor.h"
#include "client/enable/enable.h"
#include "client/log/log.h"
#include "client/push/hook.h"
#include "client/restore/restore.h"
#include "client/update/update.h"
#include "client/verify.h"

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* NULL: another name for one above */
} commands[] = {
	{ "update", command_update, "update refs, as git update-ref does" },
	{ "hook", command_hook, "what git runs: refd hook proc-receive" },
	{ "enable", command_enable, "have a repository's pushes served" },
	{ "disable", command_disable, "undo what enable did" },
	{ "ping", command_ping, "ask whether the daemon serves" },
	{ "query", command_query, "ask what became of a transaction" },
	{ "log", command_log, "what happened to refs" },
	{ "watch", command_watch, "what happens to them, as it does" },
	{ "restore", command_restore, "have refs as they were at a moment" },
	{ "status", command_status, "what the daemon is and does" },
	{ "stats", command_stats, "what it has counted" },
	{ "top", command_top, "what is busy now" },
	{ "slowlog", command_slowlog, "what took long, and where" },
	{ "locks", command_locks, "who waits for which lock" },
	{ "pause", command_pause, "have everybody wait" },
	{ "drain", command_drain, "finish what waits, take nothing new" },
	{ "resume", command_resume, "go on after pause or drain" },
	{ "checkpoint", command_checkpoint,
	    "have all refs on disk, before a copy" },
	{ "daemon", command_daemon, "run the daemon, in the foreground" },
	{ "recover", command_admin, "replay the journal by hand" },
	{ "disown", command_admin, "free a repository of a lost journal" },
	{ "verify", command_verify, "check a repository's refs" },
	{ "doctor", command_doctor, "look for what is set up wrongly" },
	{ "check-config", command_admin, "check the daemon's configuration" },
	{ "bench", command_bench, "measure what it does on this machine" },
	{ "version", command_version, "say which version this is" },
	{ "help", command_help, "say this" },
	{ "--version", command_version, NULL },
	{ "--help", command_help, NULL },
	{ "-h", command_help, NULL },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void list_commands(FILE *to)
{
	size_t i;

	fputs("usage: refd <command> [<args>]\n\n", to);
	for (i = 0; i < NR_COMMANDS; i++)
		if (commands[i].summary)
			fprintf(to, "    %-14s%s\n", commands[i].name,
			    commands[i].summary);
	fputs("\nA command says more when it is given -h; refd(1) says all.\n",
	    to);
}

static int command_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	list_commands(stdout);
	return EXIT_DONE;
}

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("refd " REFD_VERSION);
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

	/* write(2) to a pipe without a reader fails: a hook may end before it
	 * has read everything. flush_output() handles standard output. */
	signal(SIGPIPE, SIG_IGN);
	if (argc > 0 && !strcmp(base_name(argv[0]), "proc-receive"))
		return command_proc_receive(argc, argv);
	if (argc < 2) {
		list_commands(stderr);
		return EXIT_USAGE;
	}
	for (i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		rc = commands[i].run(argc - 1, argv + 1);
		flush_output();
		return rc;
	}
	say("'%s' is not a command; refd help lists them", argv[1]);
	return EXIT_USAGE;
}
