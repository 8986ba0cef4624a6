/*
 * refd-admin: the commands of refd that use the libraries of the daemon, and
 * the common parts of the commands. refd execs this program.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "daemon/base/hash.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/owned.h"
#include "proto/lib/print.h"

#define EXIT_USAGE 129

/* The replay of a large journal takes hours and no other owner waits, so the
 * limit is a week. A stopped worker is noticed at once. */
#define WORK_SECONDS (7 * 24 * 3600)
#define WORK_BYTES   ((size_t)1 << 30)

void admin_say(const char *fmt, ...)
{
	char line[2 * 4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fflush(stdout);
	print_lines(stderr, "refd: %s\n", line);
}

const char *admin_state(void)
{
	const char *state = getenv("REFD_STATE");

	return state != NULL ? state : "/var/lib/refd";
}

/* As in the commands of the client, lost output is a failure. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	admin_say("cannot write to standard output: %s", strerror(errno));
	return 128;
}

void admin_usage(const struct command *c, const char *why)
{
	char help[COMMAND_HELP_MAX];

	admin_say("%s", why);
	command_usage(c, help, sizeof(help));
	print_lines(stderr, "%s", help);
	exit(EXIT_USAGE);
}

void admin_parse(const struct command *c, void *values, int *argc, char ***argv)
{
	char why[COMMAND_WHY_MAX], help[COMMAND_HELP_MAX];
	enum command_result result = command_parse(c, values, argc, argv, why);

	if (result == COMMAND_OK)
		return;
	if (result == COMMAND_HELPS) {
		command_help(c, NULL, help, sizeof(help));
		print_lines(stdout, "%s", help);
		exit(finish(0));
	}
	if (result == COMMAND_WRONG)
		admin_usage(c, why);
	admin_say("%s", why);
	exit(EXIT_USAGE);
}

/* Finds the account that owns PATH. Only root needs this account. For another
 * user, the command itself says why PATH cannot be opened. */
static int find_owner(struct account *owner, const char *path)
{
	char *why = NULL;
	struct owned at;
	int r = 0;

	*owner = (struct account){ .uid = geteuid() };
	if (owner->uid != 0)
		return 0;
	if (owned_find(&at, path, &why))
		r = account_find(owner, at.st.st_uid, at.st.st_gid);
	else
		r = -ENOENT;
	if (r < 0)
		admin_say("%s", why != NULL ? why : "out of memory");
	free(why);
	owned_done(&at);
	return r;
}

bool admin_is_same_owner(const char *path, const char *other)
{
	char *why[2] = { NULL, NULL };
	struct owned at[2];
	bool is;

	if (geteuid() != 0)
		return true;
	is = owned_find(&at[0], path, &why[0]);
	is = owned_find(&at[1], other, &why[1]) && is &&
	    at[0].st.st_uid == at[1].st.st_uid &&
	    at[0].st.st_gid == at[1].st.st_gid;
	owned_done(&at[0]);
	owned_done(&at[1]);
	free(why[0]);
	free(why[1]);
	return is;
}

int admin_as_owner(const char *const *path, int failed, struct work work)
{
	const char *why;
	struct account owner;
	int r = find_owner(&owner, *path);

	if (r < 0)
		return failed;
	work.bytes = WORK_BYTES;
	if (work.seconds == 0)
		work.seconds = WORK_SECONDS;
	r = worker_run(&owner, &work, &why);
	if (r < 0 && !interrupt_came())
		admin_say("'%s': the work with the rights of its owner, uid "
			  "%u, %s; run this as user %u, then no limit applies",
		    *path, (unsigned)owner.uid, why, (unsigned)owner.uid);
	account_done(&owner);
	return r < 0 ? failed : r;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "recover", admin_recover },
	{ "disown", admin_disown },
	{ "verify", admin_verify },
	{ "locks", admin_locks },
	{ "check-config", admin_check_config },
};

int main(int argc, char **argv)
{
	size_t i;

	hash_begin();
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return finish(commands[i].run(argc - 1, argv + 1));
	admin_say("'%s' is not a command of this version",
	    argc > 1 ? argv[1] : "");
	return EXIT_USAGE;
}
