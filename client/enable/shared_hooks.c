#include "client/enable/shared_hooks.h"

#include <string.h>

#include "client/base/cli.h"
#include "client/enable/hook_link.h"

/* A refd that runs where it was built, or from a copy of the tree, has its
 * hooks beside it. */
char *shared_hooks_place(const char *self)
{
	const char *slash = strrchr(self, '/');

	if (!strcmp(self, BINDIR "/refd"))
		return xstrdup(DATADIR "/refd/hooks");
	while (slash > self && slash[-1] != '/')
		slash--;
	return xasprintf("%.*sshare/refd/hooks", (int)(slash - self), self);
}

bool shared_hooks_are_there(const char *dir)
{
	const bool are = hook_link_is_refd(dir);

	if (!are)
		say_error("%s/proc-receive is not this refd: install refd "
			  "again, because git would find no hook there",
		    dir);
	return are;
}
