/*
 * refd-admin: the commands of refd that use the libraries of the daemon. refd
 * execs this program.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/admin/admin.h"
#include "daemon/base/hash.h"

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

/* As the commands of the client: lost output is a failure. */
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

int main(int argc, char **argv)
{
	size_t i;

	hash_begin();
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return finish(commands[i].run(argc - 1, argv + 1));
	admin_say("'%s' is not a command of this version",
	    argc > 1 ? argv[1] : "");
	return 129;
}
