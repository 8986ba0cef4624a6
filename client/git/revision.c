#include "client/git/revision.h"

#include <stdlib.h>
#include <string.h>

static void start_git(struct revisions *revs)
{
	char *dir = xasprintf("--git-dir=%s", revs->gd->path);
	const char *argv[] = { "git", dir, "cat-file",
		"--batch-check=%(objectname)", NULL };

	coprocess_start(&revs->git, argv);
	free(dir);
}

bool revision_resolve(struct revisions *revs, const char *name,
    struct refd_oid *oid)
{
	const enum refd_object_format format = revs->object_format;
	const size_t hex = refd_object_format_hex(format);
	struct text answer = { 0 };
	bool found;

	if (strlen(name) == hex && refd_oid_parse(name, format, oid) == 0)
		return true;
	if (!*name || strchr(name, '\n'))
		return false;
	if (!revs->git.to)
		start_git(revs);
	if (!coprocess_ask(&revs->git, name, &answer))
		die("git cat-file ended before it answered");
	found =
	    answer.len == hex && refd_oid_parse(answer.data, format, oid) == 0;
	text_done(&answer);
	return found;
}

void revisions_done(struct revisions *revs)
{
	coprocess_stop(&revs->git);
}
