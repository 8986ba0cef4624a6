/*
 * "refd disown": releases a repository from its journal, if repository and
 * state directory were separated for ever, for example by a restore. Then
 * nothing waits for records of the old journal, so the next daemon that serves
 * the repository owns it.
 *
 * Exit: 0 all repositories are released; 1 at least one is not.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/admin.h"
#include "daemon/store/recovery/disown.h"
#include "proto/lib/json.h"
#include "proto/lib/print.h"

/* An owner can hold the work up, for example by a file system of their own, so
 * the work has a limit. */
#define DISOWN_SECONDS 3600

struct disown_options {
	bool json;
};

static void report(const char *path, size_t unlocked, bool as_json)
{
	struct json j = { .to = stdout };

	if (as_json) {
		json_begin(&j, NULL, '{');
		json_text(&j, "repo", path);
		json_count(&j, "locks_removed", unlocked);
		json_finish(&j, '}');
		return;
	}
	print_part(stdout, "disowned: %s", path);
	if (unlocked > 0)
		print_part(stdout,
		    "; of the locks that its daemon left removed: %zu",
		    unlocked);
	print_lines(stdout, "\n");
}

struct disowning {
	const char *arg;
	bool as_json;
};

static int disown(void *data)
{
	const struct disowning *d = data;
	char path[REFD_PATH_MAX], *why = NULL;
	size_t unlocked = 0;
	int r = disown_repo(&sys_kernel, d->arg, path, &unlocked, &why);

	if (r < 0)
		admin_say("%s", why != NULL ? why : strerror(-r));
	else
		report(path, unlocked, d->as_json);
	free(why);
	return r < 0;
}

static const struct command command = {
	.name = "disown",
	.arguments = "<repository>...",
	.purpose = "Releases repositories from their daemon, so that a daemon "
		   "with another journal may serve them. Their old daemon must "
		   "not run.",
	.example = "refd disown /srv/git/project.git",
	.manual = "refd(1)",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
	.options =
	    (const struct command_option[]){
		{ OPTION_FLAG("json", 0, "print JSON, for programs",
		    struct disown_options, json) },
		{ 0 } },
};

int admin_disown(int argc, char **argv)
{
	struct disown_options opt = { 0 };
	int i, left = 0;

	admin_parse(&command, &opt, &argc, &argv);
	for (i = 0; i < argc; i++)
		left |= admin_as_owner((const char **)&argv[i], 1,
		    (struct work){ .run = disown,
			.arg = &(struct disowning){ argv[i], opt.json },
			.seconds = DISOWN_SECONDS });
	return left;
}
