#include "client/enable/shared_hooks.h"

#include <string.h>

#include "client/enable/hook_link.h"
#include "client/hooks/forward.h"
#include "proto/lib/cli.h"

/* If refd runs where refd was built, or from a copy of the tree, the hooks are
 * in the same tree. */
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
	if (hook_link_is_refd(dir) && forward_is_in(dir))
		return true;
	say_error("%s has not all hooks of this refd: install refd again, "
		  "because git would miss a hook there",
	    dir);
	return false;
}
