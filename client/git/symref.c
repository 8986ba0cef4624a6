#include "client/git/symref.h"

#include <stdlib.h>
#include <string.h>

#include "proto/refname.h"

char *symref_target(const struct gitdir *gd, const char *name)
{
	static const char main_worktree[] = "main-worktree/";
	const char *dir = gd->common, *at;
	struct text t = { 0 };
	char *path, *target = NULL;

	if (has_prefix(name, main_worktree))
		name += sizeof(main_worktree) - 1;
	else if (refd_refname_is_per_worktree(name))
		dir = gd->path;
	path = xasprintf("%s/%s", dir, name);
	if (text_read_file(&t, path) == 0 && has_prefix(t.data, "ref:")) {
		at = t.data + 4 + strspn(t.data + 4, " \t\r\n");
		target = xasprintf("%.*s", (int)strcspn(at, " \t\r\n"), at);
	}
	text_done(&t);
	free(path);
	return target;
}
