/*
 * The other programs of refd. An installed refd has them in LIBEXECDIR, and is
 * itself in BINDIR. A build has all in one directory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/program.h"
#include "proto/lib/cli.h"
#include "proto/lib/launch.h"

__attribute__((used)) static const char program_mark[] =
    PROGRAM_MARK REFD_VERSION;

/* NAME beside this program, or else in DIR. */
static char *find(const char *name, const char *dir)
{
	char self[4096], *path;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len > 0) {
		self[len] = '\0';
		path = xasprintf("%.*s/%s", (int)(strrchr(self, '/') - self),
		    self, name);
		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return xasprintf("%s/%s", dir, name);
}

char *program_path(const char *name)
{
	return find(name, LIBEXECDIR);
}

char *program_refd(void)
{
	return find("refd", BINDIR);
}

/* PACKAGE contains the program, and "make TARGET" installs it. */
static int run(const char *name, const char *package, const char *target,
    char **argv)
{
	int err;

	argv[0] = xstrdup(name);
	err = launch_replace(program_path(name), (const char *const *)argv);
	if (err == -ENOENT)
		die("%s is neither beside refd nor in %s: install the package "
		    "%s, or run \"make %s\" in the source",
		    name, LIBEXECDIR, package, target);
	die("cannot run %s: %s", program_path(name), strerror(-err));
}

int program_daemon(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-daemon", "refd", "install", argv);
}

int program_admin(const struct command *c, int argc, char **argv)
{
	char **args = xcalloc((size_t)argc + 2, sizeof(*args));

	(void)c;
	memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
	return run("refd-admin", "refd", "install", args);
}

int program_deliver(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-deliver", "refd-deliver", "install-deliver", argv);
}

int program_group(const struct command *c, int argc, char **argv)
{
	(void)c;
	(void)argc;
	return run("refd-group", "refd-group", "install-group", argv);
}
