/*
 * "refd disown": releases a repository from its journal, if repository and
 * state directory were separated for ever, for example by a restore. Nothing
 * waits for records of the old journal. The next daemon that serves the
 * repository owns it.
 *
 * Exit: 0 all repositories are released; 1 at least one is not.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/account.h"
#include "daemon/admin/admin.h"
#include "daemon/store/recovery/disown.h"

static int real_path(const char *arg, char *path, size_t size)
{
	const struct sys *sys = &sys_kernel;
	int r,
	    fd = SYS(sys, openat, SYS_TRUSTED, arg, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	r = SYS(sys, fd_path, fd, path, size);
	SYS(sys, close, fd);
	return r;
}

static bool disown(const char *arg)
{
	char path[4096], *why = NULL;
	size_t unlocked = 0;
	int r = real_path(arg, path, sizeof(path));

	if (r < 0) {
		fprintf(stderr, "refd: can't find '%s': %s\n", arg,
		    strerror(-r));
		return false;
	}
	r = disown_repo(&sys_kernel, path, &unlocked, &why);
	if (r < 0)
		fprintf(stderr, "refd: %s\n", why != NULL ? why : strerror(-r));
	else if (unlocked > 0)
		printf("disowned: %s; of the locks that its daemon left "
		       "removed: %zu\n",
		    path, unlocked);
	else
		printf("disowned: %s\n", path);
	free(why);
	return r == 0;
}

static const struct command command = {
	.name = "disown",
	.arguments = "<repository>...",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
	.options = (const struct command_option[]){ { 0 } },
};

int admin_disown(int argc, char **argv)
{
	bool all = true;
	int i, status;

	if (!admin_parse(&command, NULL, &argc, &argv, &status))
		return status;
	if (!account_become_owner_of(argv[0]))
		return 1;
	for (i = 0; i < argc; i++)
		all = disown(argv[i]) && all;
	return all ? 0 : 1;
}
