/*
 * The other programs of refd. An installed refd has them in LIBEXECDIR, a build
 * has them beside it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/cli.h"
#include "client/program.h"

__attribute__((used)) static const char program_mark[] =
    PROGRAM_MARK REFD_VERSION;

static void exec_beside(const char *name, char **argv)
{
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *path;

	if (len < 0)
		return;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return;
	*slash = '\0';
	path = xasprintf("%s/%s", self, name);
	execv(path, argv);
	free(path);
}

static int run(const char *name, char **argv)
{
	char *path = xasprintf("%s/%s", LIBEXECDIR, name);

	argv[0] = xstrdup(name);
	exec_beside(name, argv);
	if (errno == ENOENT)
		execv(path, argv);
	die("cannot run %s (neither beside refd nor in %s): %s", name,
	    LIBEXECDIR, strerror(errno));
}

int program_daemon(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-daemon", argv);
}

int program_admin(const struct command *c, int argc, char **argv)
{
	char **args = xcalloc((size_t)argc + 2, sizeof(*args));

	(void)c;
	memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
	return run("refd-admin", args);
}

int program_deliver(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-deliver", argv);
}

int program_group(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-group", argv);
}
